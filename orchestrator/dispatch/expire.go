package dispatch

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/nodes"
)

// expireAfter expires a session unless it is taken up again within d.
func (f *Fleet) expireAfter(s nodes.SessionRef, running map[mapreduce.Held]bool, d time.Duration) {
	f.supervisor.AfterGrace(d, func(ctx context.Context) {
		if err := f.ExpireSession(ctx, s, running); err != nil && ctx.Err() == nil {
			f.supervisor.LogFailure(ctx, "expiring a session; trying again", err, "session", s.Session)
			f.expireAfter(s, running, time.Second)
		}
	})
}

// ExpireSession gives up what a session holds, unless it was taken up since: its units go
// back to their queues.
func (f *Fleet) ExpireSession(ctx context.Context, s nodes.SessionRef, running map[mapreduce.Held]bool) error {
	units := 0
	// One transaction gives up a part of what the session holds.
	for {
		loss, err := f.jobs.Sessions.Expire(ctx, s.Session, s.Node, s.Epoch, running)
		if err != nil {
			return err
		}

		units += loss.Units
		for _, id := range loss.Jobs {
			f.scheduler.Reread(id)
			f.signals.MarkDue(id)
			f.signals.NotifyWatchers(id)
		}

		if loss.Done {
			break
		}
	}

	if err := f.settleSlots(ctx, s); err != nil {
		return err
	}

	f.tracing.Lost(ctx, running)
	if units > 0 {
		f.metrics.WorkerLost(ctx)
		f.config.Logger.Warn("worker lost", "session", s.Session, "units", units)
	}
	return nil
}

// settleSlots stops counting what a session held that was given up, or has gone elsewhere:
// its slots went with it, and how many are left here is read anew first. Nothing is settled
// for a session that has come back here since.
func (f *Fleet) settleSlots(ctx context.Context, ref nodes.SessionRef) error {
	session, held := f.scheduler.Sessions.Away(ref)
	for job := range held {
		err := f.grants.Refresh(ctx, job)
		if errs.KindOf(err) == errs.NotFound && err != nil {
			continue
		}

		if err != nil {
			return err
		}
		f.signals.MarkDue(job)
	}

	if session != nil {
		f.scheduler.Sessions.Forget(session)
	}
	return nil
}
