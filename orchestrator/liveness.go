package orchestrator

import (
	"context"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
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

		t := time.NewTimer(cluster.WithJitter(15 * time.Second)) // polls look as well
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
	cluster.CallEvery(ctx, cluster.WithJitter(o.config.Poll), func() {
		o.fleet.EndSilentStreams()
		o.fleet.EndOverdueAttempts()
		o.supervisor.LogFailure(ctx, "looking for work", o.life.RefreshJobs(ctx, o.members.SeenRuns))
		o.scheduler.Grants.PollCalls(o.members.IsOnlyNode())
		o.supervisor.LogFailure(ctx, "asking for the fleet's slots", o.grants.AskForCalls(ctx))

		for _, id := range o.turnOf(polled) {
			o.scheduler.Reread(id)
			o.signals.MarkDue(id)
			o.scheduler.EndSlowPriming(id, o.config.WarmFor, time.Now())
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
