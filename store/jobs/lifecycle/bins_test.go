package lifecycle_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

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
func taken(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID, u *records.Unit, page int) (all []int64) {
	w.Helper()
	for _, in := range w.Inputs(j, id, u, page) {
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

			w := jobstest.NewWorld(t, jobstest.Open(t), 3)
			id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(tt.documents))
			s := w.MapAll(w.Nodes[0], id)
			bins := tt.bins
			next := picked(s.Epoch, bins, "a warning")
			steps := 0
			for finished := false; !finished; steps++ {
				var err error
				_, finished, err = w.Nodes[steps%3].Levels.PlanStep(w.Ctx, id, next)
				w.Must(err)
				w.Healthy()
			}
			if steps < tt.least && !driver.Buggified() { // a step in doubt runs again, and makes the next as well
				t.Errorf("planned in %d steps: the test shows nothing", steps)
			}
			units := w.Level(w.Nodes[1], id, 1)
			if len(units) != len(bins) {
				t.Fatalf("%d units are planned, want %d", len(units), len(bins))
			}
			for i, u := range units {
				if got := taken(w, w.Nodes[2], id, u, tt.page); !slices.Equal(got, bins[i]) {
					t.Fatalf("unit %s takes %d units, want %d, or others", u.ID, len(got), len(bins[i]))
				}
			}
			if got := w.Job(id).Warnings; !slices.Equal(got, next.Warnings) {
				t.Errorf("warnings are %q", got)
			}
		})
	}
}

// TestAnotherPlanBeginsAnew: a level that was planned in part by a program that
// packs otherwise is planned anew, and none of its units are left.
func TestAnotherPlanBeginsAnew(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(700))
	s := w.MapAll(w.Nodes[0], id)
	old := picked(s.Epoch, dealt(700, 350))
	// One that may have been taken and is run again takes the next as well.
	once := jobs.New(store.NewDB(w.Store, store.Config{MaxAttempts: 1}), w.Space, w.Nodes[0].Node(), time.Now)
	_, finished, err := once.Levels.PlanStep(w.Ctx, id, old)
	for store.Retryable(err) && !store.MaybeCommitted(err) {
		_, finished, err = once.Levels.PlanStep(w.Ctx, id, old)
	}
	if finished || err != nil && !store.MaybeCommitted(err) {
		t.Fatalf("first step: %t, %v", finished, err)
	}
	next := picked(s.Epoch, dealt(700, 3))
	for finished := false; !finished; {
		var err error
		_, finished, err = w.Nodes[1].Levels.PlanStep(w.Ctx, id, next)
		w.Must(err)
	}
	if _, again, err := w.Nodes[0].Levels.PlanStep(w.Ctx, id, old); err != nil || !again {
		t.Errorf("a step of the old plan: done %t, %v; want that it finds nothing to do", again, err)
	}
	w.Healthy()
	for i, bin := range next.Bins {
		if got := taken(w, w.Nodes[0], id, w.Unit(id, string(mapreduce.ReduceUnit(1, i))), 100); !slices.Equal(got, bin) {
			t.Errorf("unit %d takes %d units, want %d, or others", i, len(got), len(bin))
		}
	}
	if u := w.Unit(id, string(mapreduce.ReduceUnit(1, 3))); u != nil {
		t.Errorf("unit %s of the old plan is left", u.ID)
	}
}

// TestCheckFindsLostPicks: whatever is wrong with what reduces picked is found.
func TestCheckFindsLostPicks(t *testing.T) {
	at := func(i int) int64 { return keys.MapIndex(int64(i), 0) }
	for _, tt := range []struct {
		name   string
		damage func(w *jobstest.World, id mapreduce.JobID)
	}{
		{"they are gone", func(w *jobstest.World, id mapreduce.JobID) { clear(w, w.Space.Plans(id).Picks(1, 1, at(1))) }},
		{"one is another's", func(w *jobstest.World, id mapreduce.JobID) {
			w.Set(w.Space.Plans(id).Picks(1, 1, at(1)), &storagev1.Picks{First: at(1), Gaps: []int64{at(3), at(1), at(1)}})
		}},
		{"they are nobody's", func(w *jobstest.World, id mapreduce.JobID) {
			w.Set(w.Space.Plans(id).Picks(2, 1, at(1)), &storagev1.Picks{First: at(1)})
		}},
		{"they are no picks", func(w *jobstest.World, id mapreduce.JobID) {
			w.Set(w.Space.Plans(id).Picks(1, 1, at(2)), &storagev1.Picks{First: at(1)})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 1)
			id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(12))
			s := w.MapAll(w.Nodes[0], id)
			_, _, err := w.Nodes[0].Levels.PlanStep(w.Ctx, id, picked(s.Epoch, dealt(12, 3)))
			w.Must(err)
			w.Healthy()
			tt.damage(w, id)
			if len(w.Findings()) == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

// clear removes a key that has to be there.
func clear(w *jobstest.World, key []byte) {
	w.Helper()
	if !slices.ContainsFunc(w.All(), func(kv store.KeyValue) bool { return bytes.Equal(kv.Key, key) }) {
		w.Fatalf("nothing is under %x", key)
	}
	w.Write(func(tx store.Tx) { tx.Clear(key) })
}

// picked is level 1 of a job whose reduces pick what they take.
func picked(epoch int64, bins [][]int64, warnings ...string) lifecycle.Plan {
	next := jobstest.ReduceLevel(epoch, 1, int64(len(bins)))
	next.Bins, next.Warnings = bins, warnings
	return next
}
