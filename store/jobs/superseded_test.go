package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// spentNow returns what the units of a job have spent, and what is superseded,
// together.
func (w *world) spentNow(id mapreduce.JobID) (tokens mapreduce.Tokens, cost int64) {
	w.Helper()
	ctl, err := w.look.View.Control(w.ctx, id)
	w.must(err)
	for level := int64(-1); level < int64(len(ctl.Levels)); level++ {
		units := w.level(w.look, id, level)
		for _, u := range units {
			tokens = tokens.Add(mapreduce.Tokens{In: u.Tokens.In, Out: u.Tokens.Out})
			cost += u.CostMicros
		}
	}
	for _, s := range w.job(id).Superseded {
		tokens, cost = tokens.Add(s.Tokens), cost+s.CostMicros
	}
	return tokens, cost
}

// addsUp checks that units and what is superseded come to what the job has spent.
func (w *world) addsUp(id mapreduce.JobID) {
	w.Helper()
	tokens, cost := w.spentNow(id)
	if job := w.job(id); tokens != job.TotalTokens || cost != job.CostMicros {
		w.Errorf("units and what is superseded come to %+v and %d, the job has spent %+v and %d", tokens, cost, job.TotalTokens, job.CostMicros)
	}
	w.healthy()
}

// What dropped units had spent stays, by level, and adds up over resumes; so does
// what their attempts did, and what caches saved them.
func TestDroppedUnitsStayPaid(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(9))
	bad := w.claim(j, id, w.session(j), 1)[0]
	w.report(j, errored(id, bad, mapreduce.PermanentUnit))
	level := func(n int, units, times int64) mapreduce.Spent {
		return mapreduce.Spent{
			Level: n, Units: units, Tokens: mapreduce.Tokens{In: 4 * units * times, Out: 2 * units * times}, CostMicros: 7 * units * times,
		}
	}
	w.mapAll(j, id)
	for w.advance(j, id) {
		for _, u := range w.claim(j, id, w.session(j), 9) {
			w.report(j, done(id, u))
		}
	}
	if got := w.job(id); got.State != mapreduce.JobComplete || got.Superseded != nil {
		t.Fatalf("before any resume: %v, %+v", got.State, got.Superseded)
	}
	w.addsUp(id)
	w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	w.addsUp(id)
	want := []mapreduce.Spent{level(1, 3, 1), level(2, 1, 1)}
	if diff := cmp.Diff(want, w.job(id).Superseded); diff != "" {
		t.Errorf("superseded (-want +got):\n%s", diff)
	}
	again := w.claim(j, id, w.session(j), 1)[0]
	w.report(j, errored(id, again, mapreduce.PermanentUnit))
	w.advance(j, id)
	reduce := w.claim(j, id, w.session(j), 1)[0]
	spent := done(id, reduce)
	spent.Calls, spent.Latency, spent.Tools, spent.ToolTime = 2, 30*time.Millisecond, 1, 5*time.Millisecond
	spent.Savings = mapreduce.Savings{Answers: 1, AnswerMicros: 9, CacheWrite: 3, CacheRead: 2, PromptMicros: -4}
	w.report(j, spent)
	w.must(j.Lifecycle.Pause(w.ctx, id, records.AnyEpoch, "for a while"))
	w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	w.addsUp(id)
	want[0] = mapreduce.Spent{
		Level: 1, Units: 4, Tokens: mapreduce.Tokens{In: 16, Out: 8}, CostMicros: 28, Savings: spent.Savings,
		CallSums: mapreduce.CallSums{Calls: 2, Latency: 30 * time.Millisecond, Tools: 1, ToolTime: 5 * time.Millisecond},
	}
	if diff := cmp.Diff(want, w.job(id).Superseded); diff != "" {
		t.Errorf("superseded twice (-want +got):\n%s", diff)
	}
	w.run(j, id)
	w.addsUp(id)
}

// A late report of a unit that is dropped counts nowhere.
func TestDroppedUnitsReportInVain(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(9))
	bad := w.claim(j, id, w.session(j), 1)[0]
	w.report(j, errored(id, bad, mapreduce.PermanentUnit))
	w.mapAll(j, id)
	w.advance(j, id)
	s := w.session(j)
	late := w.claim(j, id, s, 1)[0]
	_, err := j.Sessions.Expire(w.ctx, s.id, "node-0", s.epoch, nil)
	w.must(err)
	w.must(j.Lifecycle.Pause(w.ctx, id, records.AnyEpoch, "for a while"))
	w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	if got := w.report(j, done(id, late)).Verdict; got != mapreduce.Gone {
		t.Errorf("the verdict over a report of a dropped unit is %v", got)
	}
	w.addsUp(id)
	w.run(j, id)
	w.addsUp(id)
}

// A level of many units is carried in steps. A resume that ends between them leaves
// sums that agree, and another goes on. A late report of a unit that was carried
// settles nothing behind it.
func TestManyDroppedUnitsAreCarriedInSteps(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(2400))
	bad := w.claim(j, id, w.session(j), 1)[0]
	w.report(j, errored(id, bad, mapreduce.PermanentUnit))
	w.mapAll(j, id)
	w.advance(j, id)
	s := w.session(j)
	late := w.claim(j, id, s, 1)[0]
	w.endAll(j, id, w.session(j))
	_, err := j.Sessions.Expire(w.ctx, s.id, "node-0", s.epoch, nil)
	w.must(err)
	w.must(j.Lifecycle.Pause(w.ctx, id, records.AnyEpoch, "for a while"))
	before, _ := w.spentNow(id)
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	steps := 0
	w.look.SetHook(func(p failpoint.Point) {
		if p == failpoint.Resume.After() {
			if steps++; steps == 1 {
				stop()
			}
		}
	})
	if err := j.Lifecycle.Resume(ctx, id, mapreduce.Resume{}); err == nil {
		t.Fatal("the resume was not interrupted")
	}
	some := w.job(id)
	if some.State != mapreduce.JobPaused || len(some.Superseded) != 1 || some.Superseded[0].Units != 499 || w.unit(id, "reduce_L1_0") == nil {
		t.Errorf("after one step: %v, superseded %+v", some.State, some.Superseded)
	}
	w.report(j, done(id, late))
	w.addsUp(id)
	w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	if u := w.unit(id, "reduce_L1_0"); u != nil || steps < 3 {
		t.Errorf("after %d steps, left of the level: %v", steps, u)
	}
	w.addsUp(id)
	if after, _ := w.spentNow(id); after != before {
		t.Errorf("%+v were spent before the resume, %+v after", before, after)
	}
	w.run(j, id)
	w.addsUp(id)
}

func TestCheckComparesWhatIsSuperseded(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(9))
	bad := w.claim(j, id, w.session(j), 1)[0]
	w.report(j, errored(id, bad, mapreduce.PermanentUnit))
	w.mapAll(j, id)
	w.run(j, id)
	w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	w.run(j, id)
	m := &mixture{world: w}
	w.write(edit(m, w.space.Job(id).Record(), new(storagev1.Job), func(job *storagev1.Job) { job.Superseded[0].TokensIn-- }))
	if found := w.findings(); len(found) != 1 || found[0].Severity != mapreduce.Wrong {
		t.Errorf("a token less: %+v", found)
	}
	// Jobs of before it was kept lack some.
	w.write(edit(m, w.space.Job(id).Record(), new(storagev1.Job), func(job *storagev1.Job) { job.Superseded, job.Carried = nil, false }))
	w.healthy()
}
