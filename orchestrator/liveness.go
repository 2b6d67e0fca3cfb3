package orchestrator

import (
	"context"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/supervise"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// wakeLoop looks for work whenever another orchestrator notifies this one. It arms the
// watch before it looks, so that it misses nothing in between.
func (o *Orchestrator) wakeLoop(ctx context.Context) {
	for ctx.Err() == nil {
		armed, stop := context.WithCancel(ctx)
		woken, err := o.jobs.Watch(armed)
		begun := time.Now()
		if err == nil {
			err = o.life.RefreshJobs(ctx, o.jobs.View.Runs)
		}
		took := time.Since(begun)

		if !o.members.IsOnlyNode() {
			o.scheduler.Models.LookAtAll()
		}
		if err == nil && !o.members.IsOnlyNode() {
			o.scheduler.Grants.MarkCallsDue()
			err = o.grants.AskForCalls(ctx)
		}

		if err != nil {
			o.supervisor.LogFailure(ctx, "looking for work; trying again", err)
			woken = nil
		}

		t := time.NewTimer(supervise.WithJitter(15 * time.Second)) // polls look as well
		select {
		case <-woken:
		case <-t.C:
		case <-ctx.Done():
		}

		t.Stop()
		stop()
		_ = clock.Sleep(ctx, min(9*took, time.Second)) // where there are many jobs, looks take a tenth of the time at most
	}
}

// pollLoop is the fallback for missed notifications.
func (o *Orchestrator) pollLoop(ctx context.Context) {
	supervise.CallEvery(ctx, supervise.WithJitter(o.config.Poll), func() {
		o.fleet.EndSilentStreams()
		o.fleet.EndOverdueAttempts()
		o.supervisor.LogFailure(ctx, "looking for work", o.life.RefreshJobs(ctx, o.members.SeenRuns))
		o.scheduler.Grants.PollCalls(o.members.IsOnlyNode())
		o.supervisor.LogFailure(ctx, "asking for the fleet's slots", o.grants.AskForCalls(ctx))

		for _, id := range o.turnOf(polled) {
			o.scheduler.Reread(id)
			o.signals.MarkDue(id)
			o.scheduler.Priming.EndIfSlow(id, o.config.WarmFor, time.Now())
			o.supervisor.LogFailure(ctx, "looking for units that sleep", o.life.FindSleepers(ctx, id), "job", id)
			o.supervisor.LogFailure(ctx, "pausing a job", o.grants.PauseStuck(ctx, id), "job", id)
		}
	})
}

// polled bounds how many jobs one poll looks at, and so how long a poll takes.
const polled = 256

// turnOf returns up to n of the jobs on the scheduler that may run, the next ones in turn
// with each call.
func (o *Orchestrator) turnOf(n int) []mapreduce.JobID {
	ids := o.scheduler.Running()
	slices.Sort(ids)
	if len(ids) <= n {
		return ids
	}

	at, found := slices.BinarySearch(ids, o.polledLast)
	if found {
		at++
	}

	ids = append(ids[at:], ids[:at]...)[:n]
	o.polledLast = ids[n-1]
	return ids
}

// scheduleJob puts a job on the scheduler. It compiles the job if compiled is nil. waiting
// holds all units that wait, or nothing if they are not known.
func (o *Orchestrator) scheduleJob(ctx context.Context, id mapreduce.JobID, st *records.Standing, compiled *jobspec.Compiled, waiting []records.Candidate) {
	spec := st.Job.Spec
	if compiled == nil {
		var err error
		compiled, err = o.specs.Compiled(id, &spec)
		o.supervisor.LogFailure(ctx, "reading the pipeline of a job", err, "job", id) // whose units cannot be checked
	}

	stages := jobspec.NewStages(compiled, st.Control)
	if stage := stages.Current(); stage != nil {
		spec = jobspec.ForStage(spec, stage)
	}
	spec.Budget = st.Control.Budget

	share := int64(0)
	if n := st.Job.Documents - st.Job.Skipped; n > 0 {
		share = spec.Budget / n
	}

	if o.usesPriming(st.Control, &spec) {
		o.scheduler.Priming.Start(id)
	}
	o.scheduler.PutJob(id, st.Control, &spec, stages, o.config.Provider(spec.Provider).Models, share, waiting)

	// Inputs of reduces may have ended without this node hearing of it.
	if st.Control.TreeTop > 0 {
		o.signals.RequestTreeLook(id)
	}

	o.signals.MarkDue(id)
	for _, ref := range st.Sleepers {
		o.life.ScheduleWakeUp(id, ref)
	}
	o.scheduler.SleepersSeen(id, st.NextParked)
}

// usesPriming reports whether the first unit of a job must run alone.
func (o *Orchestrator) usesPriming(ctl *records.Control, spec *mapreduce.JobSpec) bool {
	return o.config.Warms != nil && ctl.State == mapreduce.Mapping && o.config.Provider(spec.Provider).Models &&
		spec.Replay == "" && o.config.Warms(spec)
}
