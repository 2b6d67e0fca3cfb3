package jobs_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

// mapAll completes all map units of a job.
func (w *world) mapAll(j *jobs.Jobs, id mapreduce.JobID) *lifecycle.Status {
	w.Helper()
	w.endAll(j, id, w.session(j))
	status, err := j.Levels.Status(w.ctx, id)
	w.must(err)
	if !status.Ended() {
		w.Fatalf("level 0 has not ended: %+v", status)
	}
	return status
}

// endAll has a session run all units of a job that wait.
func (w *world) endAll(j *jobs.Jobs, id mapreduce.JobID, s binding) {
	w.Helper()
	for {
		units := w.claim(j, id, s, records.MaxBatch)
		if len(units) == 0 {
			return
		}
		t := &queue.Turn{Job: id, Release: []queue.HeldID{{Session: s.id, Claim: units[0].Claim}}}
		for _, u := range units {
			t.Reports = append(t.Reports, queue.Report{Report: done(id, u)})
		}
		w.turn(j, t)
	}
}

// dealt deals the documents from 0 to n to bins in turn, as map units of one
// chunk each.
func dealt(n, bins int) [][]int64 {
	all := make([][]int64, bins)
	for i := range n {
		all[i%bins] = append(all[i%bins], keys.MapIndex(int64(i), 0))
	}
	return all
}

// sifted deals the documents from 0 to n to two bins, every k-th to the second.
func sifted(n, k int) [][]int64 {
	bins := make([][]int64, 2)
	for i := range n {
		bin := 0
		if i%k == k-1 {
			bin = 1
		}
		bins[bin] = append(bins[bin], keys.MapIndex(int64(i), 0))
	}
	return bins
}

// taken returns the indexes that a reduce takes, read some at a time.
func (w *world) taken(j *jobs.Jobs, id mapreduce.JobID, u *records.Unit, page int) (all []int64) {
	w.Helper()
	for _, in := range w.inputs(j, id, u, page) {
		all = append(all, in.Index)
	}
	return all
}

// TestBinsArePlannedInSteps plans a level whose units pick their inputs, each
// step on another node, as when they die in between; and one bin that needs
// several values for itself.
func TestBinsArePlannedInSteps(t *testing.T) {
	for _, tt := range []struct {
		name      string
		documents int
		bins      [][]int64
		least     int // steps
		page      int
	}{
		{"many bins", 700, dealt(700, 350), 2, 3},
		{"one bin of many values", 4400, sifted(4400, 20), 1, 5000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.documents > 1000 {
				testenv.SlowOnFDB(t)
			}

			w := newWorld(t, open(t), 3)
			id := w.submit(w.nodes[0], spec(), texts(tt.documents))
			s := w.mapAll(w.nodes[0], id)
			bins := tt.bins
			next := picked(s.Epoch, bins, "a warning")
			steps := 0
			for finished := false; !finished; steps++ {
				var err error
				_, finished, err = w.nodes[steps%3].Levels.PlanStep(w.ctx, id, next)
				w.must(err)
				w.healthy()
			}
			if steps < tt.least && !driver.Buggified() { // a step in doubt runs again, and makes the next as well
				t.Errorf("planned in %d steps: the test shows nothing", steps)
			}
			units := w.level(w.nodes[1], id, 1)
			if len(units) != len(bins) {
				t.Fatalf("%d units are planned, want %d", len(units), len(bins))
			}
			for i, u := range units {
				if got := w.taken(w.nodes[2], id, u, tt.page); !slices.Equal(got, bins[i]) {
					t.Fatalf("unit %s takes %d units, want %d, or others", u.ID, len(got), len(bins[i]))
				}
			}
			if got := w.job(id).Warnings; !slices.Equal(got, next.Warnings) {
				t.Errorf("warnings are %q", got)
			}
		})
	}
}

// TestAnotherPlanBeginsAnew: a level that was planned in part by a program that
// packs otherwise is planned anew, and none of its units are left.
func TestAnotherPlanBeginsAnew(t *testing.T) {
	w := newWorld(t, open(t), 2)
	id := w.submit(w.nodes[0], spec(), texts(700))
	s := w.mapAll(w.nodes[0], id)
	old := picked(s.Epoch, dealt(700, 350))
	// One that may have been taken and is run again takes the next as well.
	once := jobs.New(store.NewDB(w.store, store.Config{MaxAttempts: 1}), w.space, w.nodes[0].Node(), time.Now)
	_, finished, err := once.Levels.PlanStep(w.ctx, id, old)
	for store.Retryable(err) && !store.MaybeCommitted(err) {
		_, finished, err = once.Levels.PlanStep(w.ctx, id, old)
	}
	if finished || err != nil && !store.MaybeCommitted(err) {
		t.Fatalf("first step: %t, %v", finished, err)
	}
	next := picked(s.Epoch, dealt(700, 3))
	for finished := false; !finished; {
		var err error
		_, finished, err = w.nodes[1].Levels.PlanStep(w.ctx, id, next)
		w.must(err)
	}
	if _, again, err := w.nodes[0].Levels.PlanStep(w.ctx, id, old); err != nil || !again {
		t.Errorf("a step of the old plan: done %t, %v; want that it finds nothing to do", again, err)
	}
	w.healthy()
	for i, bin := range next.Bins {
		if got := w.taken(w.nodes[0], id, w.unit(id, string(mapreduce.ReduceUnit(1, i))), 100); !slices.Equal(got, bin) {
			t.Errorf("unit %d takes %d units, want %d, or others", i, len(got), len(bin))
		}
	}
	if u := w.unit(id, string(mapreduce.ReduceUnit(1, 3))); u != nil {
		t.Errorf("unit %s of the old plan is left", u.ID)
	}
}

// TestCheckFindsLostPicks: whatever is wrong with what reduces picked is found.
func TestCheckFindsLostPicks(t *testing.T) {
	at := func(i int) int64 { return keys.MapIndex(int64(i), 0) }
	for _, tt := range []struct {
		name   string
		damage func(w *world, id mapreduce.JobID)
	}{
		{"they are gone", func(w *world, id mapreduce.JobID) { w.clear(w.space.Plans(id).Picks(1, 1, at(1))) }},
		{"one is another's", func(w *world, id mapreduce.JobID) {
			w.set(w.space.Plans(id).Picks(1, 1, at(1)), &storagev1.Picks{First: at(1), Gaps: []int64{at(3), at(1), at(1)}})
		}},
		{"they are nobody's", func(w *world, id mapreduce.JobID) {
			w.set(w.space.Plans(id).Picks(2, 1, at(1)), &storagev1.Picks{First: at(1)})
		}},
		{"they are no picks", func(w *world, id mapreduce.JobID) {
			w.set(w.space.Plans(id).Picks(1, 1, at(2)), &storagev1.Picks{First: at(1)})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, open(t), 1)
			id := w.submit(w.nodes[0], spec(), texts(12))
			s := w.mapAll(w.nodes[0], id)
			_, _, err := w.nodes[0].Levels.PlanStep(w.ctx, id, picked(s.Epoch, dealt(12, 3)))
			w.must(err)
			w.healthy()
			tt.damage(w, id)
			if len(w.findings()) == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

// clear removes a key that has to be there.
func (w *world) clear(key []byte) {
	w.Helper()
	if !slices.ContainsFunc(w.all(), func(kv store.KeyValue) bool { return bytes.Equal(kv.Key, key) }) {
		w.Fatalf("nothing is under %x", key)
	}
	w.write(func(tx store.Tx) { tx.Clear(key) })
}

// set stores a message.
func (w *world) set(key []byte, m proto.Message) {
	w.Helper()
	value, err := proto.Marshal(m)
	w.must(err)
	w.write(func(tx store.Tx) { tx.Set(key, value) })
}

// picked is level 1 of a job whose reduces pick what they take.
func picked(epoch int64, bins [][]int64, warnings ...string) lifecycle.Plan {
	next := reduceLevel(epoch, 1, int64(len(bins)))
	next.Bins, next.Warnings = bins, warnings
	return next
}
