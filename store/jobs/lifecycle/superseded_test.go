package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// spentNow returns what the units of a job have spent, and what is superseded,
// together.
func spentNow(w *jobstest.World, id mapreduce.JobID) (tokens mapreduce.Tokens, cost int64) {
	w.Helper()
	ctl, err := w.Look.View.Control(w.Ctx, id)
	w.Must(err)
	for level := int64(-1); level < int64(len(ctl.Levels)); level++ {
		units := w.Level(w.Look, id, level)
		for _, u := range units {
			tokens = tokens.Add(mapreduce.Tokens{In: u.Tokens.In, Out: u.Tokens.Out})
			cost += u.CostMicros
		}
	}
	for _, s := range w.Job(id).Superseded {
		tokens, cost = tokens.Add(s.Tokens), cost+s.CostMicros
	}
	return tokens, cost
}

// addsUp checks that units and what is superseded come to what the job has spent.
func addsUp(w *jobstest.World, id mapreduce.JobID) {
	w.Helper()
	tokens, cost := spentNow(w, id)
	if job := w.Job(id); tokens != job.TotalTokens || cost != job.CostMicros {
		w.Errorf("units and what is superseded come to %+v and %d, the job has spent %+v and %d", tokens, cost, job.TotalTokens, job.CostMicros)
	}
	w.Healthy()
}

// What dropped units had spent stays, by level, and adds up over resumes; so does
// what their attempts did, and what caches saved them.
func TestDroppedUnitsStayPaid(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(9))
	bad := w.Claim(j, id, w.Session(j), 1)[0]
	w.Report(j, jobstest.Errored(id, bad, protocol.PermanentUnit))
	level := func(n int, units, times int64) mapreduce.Spent {
		return mapreduce.Spent{
			Level: n, Units: units, Tokens: mapreduce.Tokens{In: 4 * units * times, Out: 2 * units * times}, CostMicros: 7 * units * times,
		}
	}
	w.MapAll(j, id)
	for w.Advance(j, id) {
		for _, u := range w.Claim(j, id, w.Session(j), 9) {
			w.Report(j, jobstest.Done(id, u))
		}
	}
	if got := w.Job(id); got.State != mapreduce.JobComplete || got.Superseded != nil {
		t.Fatalf("before any resume: %v, %+v", got.State, got.Superseded)
	}
	addsUp(w, id)
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	addsUp(w, id)
	want := []mapreduce.Spent{level(1, 3, 1), level(2, 1, 1)}
	if diff := cmp.Diff(want, w.Job(id).Superseded); diff != "" {
		t.Errorf("superseded (-want +got):\n%s", diff)
	}
	again := w.Claim(j, id, w.Session(j), 1)[0]
	w.Report(j, jobstest.Errored(id, again, protocol.PermanentUnit))
	w.Advance(j, id)
	reduce := w.Claim(j, id, w.Session(j), 1)[0]
	spent := jobstest.Done(id, reduce)
	spent.Calls, spent.Latency, spent.Tools, spent.ToolTime = 2, 30*time.Millisecond, 1, 5*time.Millisecond
	spent.Savings = mapreduce.Savings{Answers: 1, AnswerMicros: 9, CacheWrite: 3, CacheRead: 2, PromptMicros: -4}
	w.Report(j, spent)
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "for a while"))
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	addsUp(w, id)
	want[0] = mapreduce.Spent{
		Level: 1, Units: 4, Tokens: mapreduce.Tokens{In: 16, Out: 8}, CostMicros: 28, Savings: spent.Savings,
		CallSums: mapreduce.CallSums{Calls: 2, Latency: 30 * time.Millisecond, Tools: 1, ToolTime: 5 * time.Millisecond},
	}
	if diff := cmp.Diff(want, w.Job(id).Superseded); diff != "" {
		t.Errorf("superseded twice (-want +got):\n%s", diff)
	}
	if job := w.Job(id); job.Calls != 2 {
		t.Errorf("the job has made %d calls, want the 2 of a unit that was dropped", job.Calls)
	}
	w.Run(j, id)
	addsUp(w, id)
}

// A late report of a unit that is dropped counts nowhere.
func TestDroppedUnitsReportInVain(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(9))
	bad := w.Claim(j, id, w.Session(j), 1)[0]
	w.Report(j, jobstest.Errored(id, bad, protocol.PermanentUnit))
	w.MapAll(j, id)
	w.Advance(j, id)
	s := w.Session(j)
	late := w.Claim(j, id, s, 1)[0]
	_, err := j.Sessions.Expire(w.Ctx, s.ID, "node-0", s.Epoch, nil)
	w.Must(err)
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "for a while"))
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	if got := w.Report(j, jobstest.Done(id, late)).Verdict; got != protocol.Gone {
		t.Errorf("the verdict over a report of a dropped unit is %v", got)
	}
	addsUp(w, id)
	w.Run(j, id)
	addsUp(w, id)
}

// A level of many units is carried in steps. A resume that ends between them leaves
// sums that agree, and another goes on. A late report of a unit that was carried
// settles nothing behind it.
func TestManyDroppedUnitsAreCarriedInSteps(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2400))
	bad := w.Claim(j, id, w.Session(j), 1)[0]
	w.Report(j, jobstest.Errored(id, bad, protocol.PermanentUnit))
	w.MapAll(j, id)
	w.Advance(j, id)
	s := w.Session(j)
	late := w.Claim(j, id, s, 1)[0]
	w.EndAll(j, id, w.Session(j))
	_, err := j.Sessions.Expire(w.Ctx, s.ID, "node-0", s.Epoch, nil)
	w.Must(err)
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "for a while"))
	before, _ := spentNow(w, id)
	ctx, stop := context.WithCancel(w.Ctx)
	defer stop()
	steps := 0
	w.Look.SetHook(func(p failpoint.Point) {
		if p == failpoint.Resume.After() {
			if steps++; steps == 1 {
				stop()
			}
		}
	})
	if err := j.Lifecycle.Resume(ctx, id, mapreduce.Resume{}); err == nil {
		t.Fatal("the resume was not interrupted")
	}
	some := w.Job(id)
	if some.State != mapreduce.JobPaused || len(some.Superseded) != 1 || some.Superseded[0].Units != 499 || w.Unit(id, "reduce_L1_0") == nil {
		t.Errorf("after one step: %v, superseded %+v", some.State, some.Superseded)
	}
	w.Report(j, jobstest.Done(id, late))
	addsUp(w, id)
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	if u := w.Unit(id, "reduce_L1_0"); u != nil || steps < 3 {
		t.Errorf("after %d steps, left of the level: %v", steps, u)
	}
	addsUp(w, id)
	if after, _ := spentNow(w, id); after != before {
		t.Errorf("%+v were spent before the resume, %+v after", before, after)
	}
	w.Run(j, id)
	addsUp(w, id)
}
