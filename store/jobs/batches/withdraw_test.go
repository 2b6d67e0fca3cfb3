package batches_test

import (
	"context"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// reducing returns a job of which one unit failed, and so many reduces of the others wait for batches.
func reducing(t *testing.T, reduces int) (*waiter, []*records.Unit) {
	w := newWaiter(t, 3*reduces)
	w.Report(w.j, jobstest.Errored(w.id, w.Claim(w.j, w.id, w.s, 1)[0], protocol.PermanentUnit))
	w.MapAll(w.j, w.id)
	w.Advance(w.j, w.id)
	for _, u := range w.Level(w.j, w.id, 1) { // each is to reserve as much as map units do
		stored, key := new(storagev1.Unit), keys.New().Job(w.id).Unit(u.ID)
		w.Must(records.Decode(key, w.Value(key), stored))
		stored.Estimate = jobstest.Estimate
		w.Set(key, stored)
	}
	units := w.Claim(w.j, w.id, w.s, reduces)
	if len(units) != reduces || units[0].Level != 1 {
		t.Fatalf("the reduces are %v", units)
	}
	return w, units
}

// resumed resumes a job that was stopped, and takes it to its end.
func (w *waiter) resumed() {
	w.Helper()
	w.Must(w.j.Lifecycle.Resume(w.Ctx, w.id, mapreduce.Resume{}))
	w.Healthy()
	if got := w.reserved(); got != 0 {
		w.Errorf("%d are reserved when the job goes on", got)
	}
	if s, err := w.j.Batches.Look(w.Ctx, w.id); err != nil || s.Waiting+len(s.Batches) > 0 {
		w.Errorf("left of batches: %+v, %v", s, err)
	}
	w.Run(w.j, w.id)
	if job := w.Job(w.id); job.State != mapreduce.JobComplete || job.FailedUnits != 0 {
		w.Errorf("the job is %s with %d failed units", job.State, job.FailedUnits)
	}
	w.Healthy()
}

// A job that has stopped is resumed though units that are made anew wait for batches which nobody has begun: nobody will.
func TestResumeWithdrawsLines(t *testing.T) {
	pause := func(w *waiter) { w.Must(w.j.Lifecycle.Pause(w.Ctx, w.id, records.AnyEpoch, "for a while")) }
	fail := func(w *waiter) { w.Must(w.j.Lifecycle.Fail(w.Ctx, w.id, records.AnyEpoch, "a key was refused")) }
	for name, tt := range map[string]struct {
		batch func(w *waiter)
		stop  func(w *waiter)
	}{
		"in none, paused": {func(*waiter) {}, pause},
		"in none, failed": {func(*waiter) {}, fail},
		"in one that takes more": {func(w *waiter) {
			b, key := new(storagev1.Batch), keys.New().Batches(w.id).Batch(w.plan().Number)
			w.Must(records.Decode(key, w.Value(key), b))
			b.Filling = true
			w.Set(key, b)
		}, pause},
		"in one that is planned": {func(w *waiter) { w.plan() }, pause},
		"in one that a session has": {func(w *waiter) {
			if !w.take(w.plan(), w.s) {
				w.Errorf("the batch cannot be had")
			}
		}, fail},
		"in one that its vendor gave up": {func(w *waiter) {
			b := w.plan()
			w.create(b)
			_, err := w.report(b, w.s, protocol.BatchReport{State: protocol.BatchPlanned, Trouble: "too much waits"})
			w.Must(err)
		}, pause},
	} {
		t.Run(name, func(t *testing.T) {
			w, units := reducing(t, 1)
			w.park(units[0])
			tt.batch(w)
			tt.stop(w)
			w.resumed()
		})
	}
}

// A session whose batch was taken apart does not begin it.
func TestWithdrawnBatchIsNotBegun(t *testing.T) {
	w, units := reducing(t, 1)
	w.park(units[0])
	b := w.plan()
	w.take(b, w.s)
	w.Must(w.j.Lifecycle.Pause(w.Ctx, w.id, records.AnyEpoch, "for a while"))
	w.Must(w.j.Lifecycle.Resume(w.Ctx, w.id, mapreduce.Resume{}))
	if _, err := w.report(b, w.s, protocol.BatchReport{State: protocol.BatchCreating}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("the batch is begun: %v", err)
	}
}

// A batch that was begun is waited for; what is in no such batch is not.
func TestResumeWaitsForBegunBatches(t *testing.T) {
	w, units := reducing(t, 3)
	w.park(units[0])
	begun := w.plan()
	w.create(begun)
	w.park(units[1])
	w.plan()
	w.park(units[2])

	w.Must(w.j.Lifecycle.Pause(w.Ctx, w.id, records.AnyEpoch, "for a while"))
	if err := w.j.Lifecycle.Resume(w.Ctx, w.id, mapreduce.Resume{}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("a resume while a vendor has a batch: %v", err)
	}
	w.Healthy()
	s, err := w.j.Batches.Look(w.Ctx, w.id)
	w.Must(err)
	if len(s.Batches) != 1 || s.Batches[0].Number != begun.Number || s.Waiting > 0 || w.reserved() != kept {
		t.Errorf("%d are reserved, and left of batches is %+v", w.reserved(), s)
	}

	_, err = w.report(begun, w.s, protocol.BatchReport{Replies: []protocol.LineReply{answered(0)}, Over: true})
	w.Must(err)
	w.resumed()
}

// Of a batch that is taken apart, the lines of units that are kept wait for another one.
func TestKeptLinesWaitAgain(t *testing.T) {
	w, units := reducing(t, 3)
	for _, u := range units {
		w.park(u)
	}
	w.plan()
	w.Must(w.j.Lifecycle.Pause(w.Ctx, w.id, records.AnyEpoch, "for a while"))
	w.Must(w.j.Batches.Withdraw(w.Ctx, w.id, 2))
	w.Healthy()
	if s, err := w.j.Batches.Look(w.Ctx, w.id); err != nil || s.Waiting != len(units) || len(s.Batches) > 0 || w.reserved() != int64(len(units))*kept {
		t.Errorf("%d are reserved, and left of batches is %+v: %v", w.reserved(), s, err)
	}
	w.resumed()
}

// Units whose lines were taken back run again if their level is kept after all.
func TestWithdrawnUnitsAsk(t *testing.T) {
	w, units := reducing(t, 1)
	w.park(units[0])
	w.plan()
	w.Must(w.j.Lifecycle.Pause(w.Ctx, w.id, records.AnyEpoch, "for a while"))
	ctx, stop := context.WithCancel(w.Ctx)
	defer stop()
	w.j.SetHook(func(p failpoint.Point) {
		left := w.reserved() > 0
		if p == failpoint.Resume.After() && !left {
			stop()
		}
	})
	if err := w.j.Lifecycle.Resume(ctx, w.id, mapreduce.Resume{}); err == nil {
		t.Fatal("the resume was not interrupted")
	}
	w.j.SetHook(nil)
	w.Healthy()
	if u := w.Unit(w.id, string(units[0].ID)); u == nil || u.Parked {
		t.Fatalf("the unit is %+v", u)
	}

	w.Must(w.j.Causes.Mark(w.Ctx, w.id, "it broke", mapreduce.CauseIgnored))
	w.Must(w.j.Lifecycle.Resume(w.Ctx, w.id, mapreduce.Resume{}))
	w.park(w.Claim(w.j, w.id, w.s, 1)[0])
	w.create(w.plan())
	w.Healthy()
}

// A reduce of a tree that was planned at once waits for its inputs again, whatever it has asked.
func TestResumeWithdrawsLinesOfATree(t *testing.T) {
	w := newWaiter(t, 1)
	w.id = w.SubmitTree(w.j, jobstest.Texts(9), 3)
	w.PlanTree(w.j, w.id, 3)
	bad := w.Claim(w.j, w.id, w.s, 1)[0]
	w.Report(w.j, jobstest.Errored(w.id, bad, protocol.PermanentUnit))
	for _, u := range w.Claim(w.j, w.id, w.s, 8) {
		w.Report(w.j, jobstest.Done(w.id, u))
	}
	refs, err := w.j.Turns.Forgotten(w.Ctx, w.id, records.WaitRef{}, 100)
	w.Must(err)
	w.LetGo(w.j, w.id, refs)
	for _, u := range w.Claim(w.j, w.id, w.s, 3) {
		w.park(u)
	}
	w.plan()

	w.Must(w.j.Lifecycle.Pause(w.Ctx, w.id, records.AnyEpoch, "for a while"))
	w.Must(w.j.Lifecycle.Resume(w.Ctx, w.id, mapreduce.Resume{}))
	w.Healthy()
	states := make(map[mapreduce.UnitState]int)
	for _, u := range w.Level(w.j, w.id, 1) {
		states[u.State]++
	}
	if states[mapreduce.Blocked] != 1 || states[mapreduce.Pending] != 2 || w.reserved() != 0 {
		t.Errorf("%d are reserved, and the reduces are %v", w.reserved(), states)
	}
}

// A job that runs keeps its lines.
func TestWithdrawOfARunningJob(t *testing.T) {
	w, units := reducing(t, 1)
	w.park(units[0])
	if err := w.j.Batches.Withdraw(w.Ctx, w.id, 1); errs.KindOf(err) != errs.Aborted {
		t.Errorf("%v", err)
	}
	if got := w.reserved(); got != kept {
		t.Errorf("%d are reserved, want %d", got, kept)
	}
}
