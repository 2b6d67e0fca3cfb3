package lifecycle

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
func (r *Roster) wakeLoop(ctx context.Context) {
	for ctx.Err() == nil {
		armed, stop := context.WithCancel(ctx)
		woken, err := r.jobs.Watch(armed)
		begun := time.Now()
		if err == nil {
			err = r.refreshAll(ctx, r.jobs.View.Runs)
		}
		took := time.Since(begun)

		if !r.members.IsOnlyNode() {
			r.scheduler.Models.LookAtAll()
		}
		if err == nil && !r.members.IsOnlyNode() {
			r.scheduler.Grants.MarkCallsDue()
			err = r.grants.AskForCalls(ctx)
		}

		if err != nil {
			r.supervisor.LogFailure(ctx, "looking for work; trying again", err)
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
func (r *Roster) pollLoop(ctx context.Context) {
	cluster.CallEvery(ctx, cluster.WithJitter(r.config.Poll), func() {
		r.supervisor.LogFailure(ctx, "looking for work", r.refreshAll(ctx, r.members.SeenRuns))
		r.scheduler.Grants.PollCalls(r.members.IsOnlyNode())
		r.supervisor.LogFailure(ctx, "asking for the fleet's slots", r.grants.AskForCalls(ctx))

		for _, id := range r.turnOf(polled) {
			r.scheduler.Reread(id)
			r.signals.MarkDue(id)
			r.scheduler.EndSlowPriming(id, r.config.WarmFor, time.Now())
			r.supervisor.LogFailure(ctx, "looking for units that sleep", r.sleepers.find(ctx, id), "job", id)
			r.supervisor.LogFailure(ctx, "pausing a job", r.grants.PauseStuck(ctx, id), "job", id)
		}
	})
}

// polled bounds how many jobs one poll looks at, and so how long a poll takes.
const polled = 256

// turnOf returns up to n of the jobs on the scheduler that may run, the next ones in turn
// with each call.
func (r *Roster) turnOf(n int) []mapreduce.JobID {
	ids := r.scheduler.Running()
	slices.Sort(ids)
	if len(ids) <= n {
		return ids
	}

	at, found := slices.BinarySearch(ids, r.polledLast)
	if found {
		at++
	}

	ids = append(ids[at:], ids[:at]...)[:n]
	r.polledLast = ids[n-1]
	return ids
}
