package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// wake wakes a parked unit by a call.
func wake(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID, unit, handle, answer string) (*records.Candidate, error) {
	_, c, err := j.Queue.Wake(w.Ctx, id, mapreduce.UnitID(unit), protocol.WakeCall{Handle: handle, Answer: []byte(answer)})
	return c, err
}

// A parked unit holds nothing: no slot, no session, no tokens. What it spent is
// settled, and no failure is counted. The call that wakes it leaves the answer for all
// attempts that follow, until the unit is complete.
func TestParkedUnit(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	j, other := w.Nodes[0], w.Nodes[1]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
	s := w.Session(j)
	u := w.Claim(j, id, s, 1)[0]
	got := w.Report(j, jobstest.Parked(id, u, "batch 7", 0))
	if got.Verdict != protocol.Accepted || got.State != mapreduce.Pending || got.Requeued != nil || got.Sleeps != nil {
		t.Errorf("the report came to %+v", got)
	}
	now, job := w.Unit(id, string(u.ID)), w.Job(id)
	if now.Session != "" || now.Reserved != 0 || now.Failures != 0 || now.Tokens.In != 1 || len(now.Errors) > 0 {
		t.Errorf("the parked unit is %v", now)
	}
	if job.RunningUnits != 0 || job.ParkedUnits != 1 || job.TotalTokens.Total() != 2 {
		t.Errorf("%d units run, %d are parked, %d tokens are spent", job.RunningUnits, job.ParkedUnits, job.TotalTokens.Total())
	}
	if again := w.Report(j, jobstest.Parked(id, u, "batch 7", 0)); again.Verdict != protocol.Accepted || again.Requeued != nil {
		t.Errorf("the same report came to %+v the second time", again)
	}
	if units := w.Claim(j, id, s, 1); len(units) > 0 {
		t.Fatalf("a parked unit was claimed: %v", units)
	}
	all, err := j.View.Parkings(w.Ctx, id, []*records.Unit{now})
	w.Must(err)
	want := map[mapreduce.UnitID]*mapreduce.Parking{u.ID: {Handle: "batch 7", Note: "it waits for batch 7"}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("what it waits for, want (-), got (+):\n%s", diff)
	}
	w.Healthy()

	for _, wrong := range []struct{ unit, handle string }{{string(u.ID), "batch 8"}, {"nobody", "batch 7"}} {
		if _, err := wake(w, other, id, wrong.unit, wrong.handle, "no"); errs.KindOf(err) != errs.NotFound || err == nil {
			t.Errorf("waking %q by %q: %v", wrong.unit, wrong.handle, err)
		}
	}
	if c, err := wake(w, other, id, string(u.ID), "batch 7", "done"); err != nil || c == nil {
		t.Fatalf("waking it returned %v and %v", c, err)
	}
	for range 2 {
		wantAnswer(w, id, string(u.ID), "done")
		w.Healthy()
		if c, err := wake(w, j, id, string(u.ID), "batch 7", "something else"); err != nil || c == nil {
			t.Fatalf("waking it again returned %v and %v", c, err)
		}
		u = w.Claim(j, id, s, 1)[0]
		w.Report(j, jobstest.Returned(id, u))
	}
	u = w.Claim(j, id, s, 1)[0]
	if u.Attempt != 4 {
		t.Errorf("it is claimed the fourth time as attempt %d", u.Attempt)
	}
	w.Report(j, jobstest.Done(id, u))
	wantAnswer(w, id, string(u.ID), "")
	if _, err := wake(w, j, id, string(u.ID), "batch 7", "late"); err != nil {
		t.Errorf("waking it by the same handle when it is complete: %v", err)
	}
	w.Healthy()
}

func wantAnswer(w *jobstest.World, id mapreduce.JobID, unit, want string) {
	w.Helper()
	call, err := w.Look.View.WakeCall(w.Ctx, id, mapreduce.UnitID(unit))
	w.Must(err)
	switch {
	case call == nil && want != "":
		w.Errorf("no answer is kept, want %q", want)
	case call != nil && string(call.Answer) != want:
		w.Errorf("the answer %q is kept, want %q", call.Answer, want)
	}
}

// A timer wakes only the wait for which it was set: neither a later one of the unit
// under the same handle, nor a pause after a failure.
func TestTimersOfEarlierWaits(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
	s := w.Session(j)
	u := w.Claim(j, id, s, 1)[0]
	got := w.Report(j, jobstest.Parked(id, u, "batch", time.Hour))
	first := records.Sleeper{Unit: u.ID, Attempt: 1, Handle: "batch"}
	if diff := cmp.Diff(&records.SleeperRef{Sleeper: first, For: time.Hour}, got.Sleeps); diff != "" {
		t.Errorf("how it sleeps, want (-), got (+):\n%s", diff)
	}
	_, err := wake(w, j, id, string(u.ID), "batch", "")
	w.Must(err)
	u = w.Claim(j, id, s, 1)[0]
	w.Report(j, jobstest.Parked(id, u, "batch", time.Hour))
	wakes := func(s records.Sleeper, want int) {
		t.Helper()
		for range 2 { // a timer may ring at several nodes
			woken, err := j.Queue.Wakeup(w.Ctx, id, []records.Sleeper{s})
			w.Must(err)
			if len(woken) != want {
				t.Errorf("the timer of %+v woke %v, want %d units", s, woken, want)
			}
		}
		w.Healthy()
	}
	wakes(first, 0)
	wakes(records.Sleeper{Unit: first.Unit}, 0)
	wakes(records.Sleeper{Unit: first.Unit, Attempt: 2}, 1)
	u = w.Claim(j, id, s, 1)[0]
	w.Report(j, jobstest.Errored(id, u, protocol.Retryable))
	wakes(records.Sleeper{Unit: first.Unit, Attempt: 3}, 0)
	wakes(records.Sleeper{Unit: first.Unit}, 1)
}

// A node that was there when a pause began waits for all of it, whatever clocks say. One that
// comes later takes off what has passed since, and never waits longer because of a clock.
func TestPausesFromBeforeANode(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2))
	s := w.Session(j)
	units := w.Claim(j, id, s, 2)
	failed := jobstest.Errored(id, units[0], protocol.Retryable)
	failed.RetryAfter = time.Minute
	const jitter = 250 * time.Millisecond // half of the bound after a first failure
	w.Report(j, failed)
	w.Report(j, jobstest.Parked(id, units[1], "batch", time.Minute+jitter))
	const whole = time.Minute + jitter
	sleeps := func(node *jobs.Jobs, want time.Duration, why string) {
		t.Helper()
		refs, _, err := node.Queue.Sleepers(w.Ctx, id, "", 10)
		w.Must(err)
		if len(refs) != 2 {
			t.Fatalf("%s: %d units sleep, want 2", why, len(refs))
		}
		for _, ref := range refs {
			if off := ref.For - want; ref.For < 0 || ref.For > whole || off < -time.Second || off > time.Second {
				t.Errorf("%s: unit %s is to sleep for %v, want about %v", why, ref.Unit, ref.For, want)
			}
		}
	}
	began := w.Micro
	after := func(d time.Duration, want time.Duration, why string) {
		t.Helper()
		w.Micro = began + d.Microseconds()
		sleeps(jobs.New(store.NewDB(w.Store, store.Config{}), w.Space, "late", w.Clock), want, "a node that came later, "+why)
		sleeps(w.Nodes[1], whole, "a node that was there, "+why)
	}
	after(20*time.Second, whole-20*time.Second, "in the midst of the pause")
	after(2*time.Minute, 0, "behind its end")
	after(100*365*24*time.Hour, 0, "with a clock far ahead")
	after(-time.Hour, whole, "with a clock that is late")
	delayed, waits := w.Space.Queues(id).Delayed(units[0].ID), w.Space.Queues(id).Parked(units[1].ID)
	d, p := new(storagev1.Delay), new(storagev1.Parked)
	w.Must(proto.Unmarshal(w.Get(delayed), d))
	w.Must(proto.Unmarshal(w.Get(waits), p))
	d.EndMicros, p.EndMicros = 0, 0
	w.Set(delayed, d)
	w.Set(waits, p)
	after(20*time.Second, whole, "of which nobody told the end")
}

// Parked units that only a call wakes do not hide those behind them from whoever
// looks for timers to set.
func TestManyParkedUnits(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	j := w.Nodes[0]
	const units = 60
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(units))
	s := w.Session(j)
	for n := 0; n < units; n += 20 {
		turn := &queue.Turn{Job: id}
		for i, u := range w.Claim(j, id, s, 20) {
			after := time.Duration(0)
			if i%10 == 9 {
				after = time.Minute
			}
			turn.Reports = append(turn.Reports, queue.Report{Report: jobstest.Parked(id, u, "x", after)})
		}
		w.Turn(j, turn)
	}
	seen, after := 0, mapreduce.UnitID("")
	for calls := 0; calls == 0 || after != ""; calls++ {
		refs, next, err := w.Nodes[1].Queue.Sleepers(w.Ctx, id, after, 7)
		w.Must(err)
		seen, after = seen+len(refs), next
		if calls > units {
			t.Fatal("the units have no end")
		}
	}
	if seen != units/10 {
		t.Errorf("%d units are to be timed, want %d", seen, units/10)
	}
	st, err := w.Nodes[1].View.Standing(w.Ctx, id)
	w.Must(err)
	if len(st.Sleepers) != units/10 || st.NextParked != "" {
		t.Errorf("who takes the job up is to time %d units, and to go on behind %q", len(st.Sleepers), st.NextParked)
	}
	if queued, err := j.Queue.Queued(w.Ctx, id); err != nil || queued {
		t.Errorf("units are said to wait in the queue (%t, %v): all are parked", queued, err)
	}
}

// Cancelling, failing and pausing a job do with parked units what they do with others
// that wait: the first ends them, the others keep them.
func TestParkedUnitsOfAJobThatStops(t *testing.T) {
	for name, stop := range map[string]func(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID) error{
		"cancelled": func(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID) error { return j.Lifecycle.Cancel(w.Ctx, id) },
		"paused": func(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID) error {
			return j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "asked for")
		},
		"failed": func(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID) error {
			return j.Lifecycle.Fail(w.Ctx, id, records.AnyEpoch, "it cannot go on")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 1)
			j := w.Nodes[0]
			id := w.Submit(j, jobstest.Spec(), jobstest.Texts(3))
			s := w.Session(j)
			units := w.Claim(j, id, s, 3)
			w.Report(j, jobstest.Parked(id, units[0], "a", 0))
			w.Report(j, jobstest.Parked(id, units[1], "b", 0))
			_, err := wake(w, j, id, string(units[1].ID), "b", "yes")
			w.Must(err)
			w.Must(stop(w, j, id))
			w.Report(j, jobstest.Parked(id, units[2], "c", 0)) // late
			w.Healthy()
			cancelled := name == "cancelled"
			if cancelled {
				_, done, err := j.Lifecycle.SweepCancelled(w.Ctx, id, nil)
				w.Must(err)
				if !done {
					t.Fatal("three units are not swept at once")
				}
				wantAnswer(w, id, string(units[1].ID), "")
			}
			w.Healthy()
			_, err = wake(w, j, id, string(units[0].ID), "a", "yes")
			if found := errs.KindOf(err) != errs.NotFound || err == nil; found == cancelled {
				t.Errorf("waking a unit of a job that is %s: %v", name, err)
			}
			want := int64(1) // the late one
			if cancelled {
				want = 0
			}
			if n := w.Job(id).ParkedUnits; n != want {
				t.Errorf("%d units are parked, want %d", n, want)
			}
			if cancelled {
				return
			}
			w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
			_, err = wake(w, j, id, string(units[2].ID), "c", "yes")
			w.Must(err)
			w.Run(j, id)
			if job := w.Job(id); job.State != mapreduce.JobComplete || job.ParkedUnits != 0 {
				t.Errorf("the job is %v with %d parked units", job.State, job.ParkedUnits)
			}
			w.Healthy()
		})
	}
}

// Levels that a resume drops are dropped with what their units waited for.
func TestResumeDropsParkedReduces(t *testing.T) {
	for _, tree := range []bool{false, true} {
		t.Run(fmt.Sprintf("static tree %t", tree), func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 1)
			j := w.Nodes[0]
			var id mapreduce.JobID
			if tree {
				id = w.SubmitTree(j, jobstest.Texts(9), 3)
				w.PlanTree(j, id, 3)
			} else {
				id = w.Submit(j, jobstest.Spec(), jobstest.Texts(9))
			}
			s := w.Session(j)
			units := w.Claim(j, id, s, 9)
			turn := &queue.Turn{Job: id}
			for i, u := range units {
				r := jobstest.Done(id, u)
				if i%3 == 0 {
					r = jobstest.Errored(id, u, protocol.PermanentUnit)
				}
				turn.Reports = append(turn.Reports, queue.Report{Report: r})
			}
			w.LetGo(j, id, w.Turn(j, turn).Told)
			if !tree {
				w.Advance(j, id)
			}
			reduces := w.Claim(j, id, s, 3)
			if len(reduces) != 3 || reduces[0].Level != 1 {
				t.Fatalf("claimed %v, want three reduces", reduces)
			}
			for i, u := range reduces {
				w.Report(j, jobstest.Parked(id, u, "batch", 0))
				if i == 1 {
					_, err := wake(w, j, id, string(u.ID), "batch", "yes")
					w.Must(err)
				}
			}
			w.Healthy()
			w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "asked for"))
			w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
			w.Healthy()
			if n := w.Job(id).ParkedUnits; n != 0 {
				t.Errorf("%d units are parked whose inputs are tried again", n)
			}
			for _, u := range reduces {
				if _, err := wake(w, j, id, string(u.ID), "batch", "late"); errs.KindOf(err) != errs.NotFound || err == nil {
					t.Errorf("waking %s, whose inputs are tried again: %v", u.ID, err)
				}
			}
		})
	}
}

// A call whose transaction committed without being seen to does not wake the unit
// twice, though it was claimed and parked under the same handle in between.
func TestACallWakesOnce(t *testing.T) {
	s := jobstest.Open(t)
	w := jobstest.NewWorld(t, s, 1)
	sound := w.Nodes[0]
	id := w.Submit(sound, jobstest.Spec(), jobstest.Texts(1))
	at := w.Session(sound)
	u := w.Claim(sound, id, at, 1)[0]
	w.Report(sound, jobstest.Parked(id, u, "batch", 0))
	f := fault.New(s, fault.Config{Seed: 1, Rates: fault.Rates{fault.UnknownCommitted: 1}})
	between := &interposed{Store: f, then: func() {
		f.Heal()
		again := w.Claim(sound, id, at, 1)[0]
		w.Report(sound, jobstest.Parked(id, again, "batch", 0))
	}}
	hasty := jobs.New(store.NewDB(between, store.Config{MaxBackoff: time.Millisecond}), keys.New(), "node-1", w.Clock)
	if _, err := wake(w, hasty, id, string(u.ID), "batch", "yes"); err != nil {
		t.Fatal(err)
	}
	if !between.done {
		t.Fatal("the commit was seen: nothing is shown")
	}
	if n := w.Job(id).ParkedUnits; n != 1 {
		t.Errorf("%d units are parked: the call woke the unit a second time", n)
	}
	w.Healthy()
}

// An interposed store lets something happen before its second transaction.
type interposed struct {
	store.Store
	begun int
	then  func()
	done  bool
}

func (s *interposed) Begin(ctx context.Context) (store.Tx, error) {
	if s.begun++; s.begun == 2 {
		s.done = true
		s.then()
	}
	return s.Store.Begin(ctx)
}

// A unit that workers hand back or park over and over comes to an end: each time counts,
// and in the end for a failed attempt.
func TestHandingBackComesToAnEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		say    func(id mapreduce.JobID, u *records.Unit) *protocol.Report
		almost func(u *storagev1.Unit) // so often that one time more is one too many
	}{
		"handed back": {jobstest.Returned, func(u *storagev1.Unit) { u.Returns = 998 }},
		"parked": {
			func(id mapreduce.JobID, u *records.Unit) *protocol.Report {
				return jobstest.Parked(id, u, "h", time.Microsecond)
			},
			func(u *storagev1.Unit) { u.Parks = 9_998 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 1)
			j := w.Nodes[0]
			settings := jobstest.Spec()
			settings.MaxAttempts = 1
			id := w.Submit(j, settings, jobstest.Texts(1))
			s := w.Session(j)
			u := w.Claim(j, id, s, 1)[0]
			key, stored := w.Space.Job(id).Unit(u.ID), new(storagev1.Unit)
			w.Must(proto.Unmarshal(w.Get(key), stored))
			tt.almost(stored)
			w.Set(key, stored)
			got := w.Report(j, tt.say(id, u))
			if got.State != mapreduce.Pending || got.Sleeps == nil || got.Sleeps.For < 10*time.Second {
				t.Fatalf("the last time but one came to %+v, want the unit to sleep long", got)
			}
			again := w.Report(j, tt.say(id, u))
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("the same report came to something else the second time, want (-), got (+):\n%s", diff)
			}
			_, err := j.Queue.Wakeup(w.Ctx, id, []records.Sleeper{got.Sleeps.Sleeper})
			w.Must(err)
			u = w.Claim(j, id, s, 1)[0]
			if got := w.Report(j, tt.say(id, u)); got.State != mapreduce.UnitFailed {
				t.Errorf("the last time came to %+v, want the unit to fail", got)
			}
		})
	}
}
