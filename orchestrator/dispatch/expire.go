package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/grant"
	"github.com/coditect/mapreduce/orchestrator/observe"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/nodes"
)

// Losses give up what sessions held whose workers are gone.
type Losses struct {
	jobs       *jobs.Jobs
	scheduler  *schedule.Scheduler
	grants     *grant.Manager
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
	metrics    *observe.Metrics
	tracing    *observe.Tracer
	grace      time.Duration // that a worker has to come back
	log        *slog.Logger
}

// handleUnbound sees to a session that could not be taken up, or not for certain: if
// its worker does not come back, nobody else here knows of it.
func (l *Losses) handleUnbound(id mapreduce.SessionID, epochs ...int64) {
	for _, e := range epochs {
		l.expireAfter(nodes.SessionRef{Session: id, Node: l.jobs.Node(), Epoch: e}, nil, l.grace)
	}
}

// expireLostSession expires a session whose worker did not come back in time. If it did, or
// went elsewhere, nothing is left to do here but to forget it.
func (l *Losses) expireLostSession(ctx context.Context, session *workers.Session, running map[protocol.Held]bool) {
	err := l.Expire(ctx, nodes.SessionRef{Session: session.ID, Node: l.jobs.Node(), Epoch: session.Epoch}, running)
	if err != nil {
		l.supervisor.LogFailure(ctx, "expiring a session; trying again", err, "session", session.ID)
		l.supervisor.AfterGrace(time.Second, func(ctx context.Context) { l.expireLostSession(ctx, session, running) })
		return
	}
	l.scheduler.Sessions.Forget(session)
}

// expireAfter expires a session unless it is taken up again within d.
func (l *Losses) expireAfter(s nodes.SessionRef, running map[protocol.Held]bool, d time.Duration) {
	l.supervisor.AfterGrace(d, func(ctx context.Context) {
		if err := l.Expire(ctx, s, running); err != nil && ctx.Err() == nil {
			l.supervisor.LogFailure(ctx, "expiring a session; trying again", err, "session", s.Session)
			l.expireAfter(s, running, time.Second)
		}
	})
}

// Expire gives up what a session holds, unless it was taken up since: its units go
// back to their queues.
func (l *Losses) Expire(ctx context.Context, s nodes.SessionRef, running map[protocol.Held]bool) error {
	units := 0
	// One transaction gives up a part of what the session holds.
	for {
		loss, err := l.jobs.Sessions.Expire(ctx, s.Session, s.Node, s.Epoch, running)
		if err != nil {
			return err
		}

		units += loss.Units
		for _, id := range loss.Jobs {
			l.scheduler.Reread(id)
			l.signals.MarkDue(id)
			l.signals.NotifyWatchers(id)
		}

		if loss.Done {
			break
		}
	}

	if err := l.settleSlots(ctx, s); err != nil {
		return err
	}

	l.tracing.Lost(ctx, running)
	if units > 0 {
		l.metrics.WorkerLost(ctx)
		l.log.Warn("worker lost", "session", s.Session, "units", units)
	}
	return nil
}

// settleSlots stops counting what a session held that was given up, or has gone elsewhere:
// its slots went with it, and how many are left here is read anew first. Nothing is settled
// for a session that has come back here since.
func (l *Losses) settleSlots(ctx context.Context, ref nodes.SessionRef) error {
	away, held := l.scheduler.Sessions.Away(ref)
	for job := range held {
		err := l.grants.Refresh(ctx, job)
		if errs.KindOf(err) == errs.NotFound && err != nil {
			continue
		}

		if err != nil {
			return err
		}
		l.signals.MarkDue(job)
	}

	for _, session := range away {
		l.scheduler.Sessions.Forget(session)
	}
	if len(away) > 0 {
		l.returnCalls(ctx)
	}
	return nil
}

// returnCalls gives back the calls of models of what was given up. Others have use for them; and should its
// worker come back after all, it goes on with its units only if they are there.
func (l *Losses) returnCalls(ctx context.Context) {
	l.scheduler.Grants.MarkCallsDue()
	l.supervisor.LogFailure(ctx, "asking for the fleet's slots", l.grants.AskForCalls(ctx))
}
