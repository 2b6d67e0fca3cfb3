package orchestrator

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/orchestrator/supervise"
)

// limitsLoop tells the fleet what models have said, and deals out what this node may
// ask of them: at once when it matters, and else now and then.
func (o *Orchestrator) limitsLoop(ctx context.Context) {
	tick := time.NewTicker(supervise.WithJitter(o.config.Poll))
	defer tick.Stop()
	for {
		all := true
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-o.scheduler.Models.Changed.C():
			all = false
		}
		for _, name := range o.scheduler.Models.Due(all) {
			o.supervisor.LogFailure(ctx, "asking for a share of a model's limits", o.noteLimit(ctx, name), "model", name)
		}
	}
}

// noteLimit tells the fleet of one model, and takes what the fleet knows of it.
func (o *Orchestrator) noteLimit(ctx context.Context, name string) error {
	n := o.scheduler.Models.TakeNote(name, int64(o.config.MaxCalls))
	scope, err := o.jobs.Grants.NoteLimit(ctx, name, n, o.members.DeadNodes())
	if err != nil {
		o.scheduler.Models.PutBackNote(name, n)
		return err
	}
	if n.Refused || n.Opened > 0 || n.Closed {
		o.log.Info("limits of a model", "model", name, "pause", scope.Pause, "at_once", scope.Room, "breaker_open", scope.Breaker.Open)
	}
	again, concerned := o.scheduler.Models.ApplyScope(name, scope, time.Now())
	for _, id := range concerned[:min(len(concerned), polled)] { // polls see to the others
		o.signals.MarkDue(id)
	}
	if !again.IsZero() {
		o.signals.CallAt(again, func(context.Context) { o.scheduler.Models.LookAgain(name) })
	}
	return nil
}
