package grant

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/orchestrator/cluster"
)

// LimitsLoop tells the fleet what models have said, and deals out what this node may
// ask of them: at once when it matters, and else now and then.
func (m *Manager) LimitsLoop(ctx context.Context) {
	tick := time.NewTicker(cluster.WithJitter(m.config.Poll))
	defer tick.Stop()
	for {
		all := true
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.scheduler.Models.Changed.C():
			all = false
		}

		for _, name := range m.scheduler.Models.Due(all) {
			m.supervisor.LogFailure(ctx, "asking for a share of a model's limits", m.noteLimit(ctx, name), "model", name)
		}
	}
}

// noteLimit tells the fleet of one model, and takes what the fleet knows of it.
func (m *Manager) noteLimit(ctx context.Context, name string) error {
	n := m.scheduler.Models.TakeNote(name, int64(m.config.MaxCalls))
	scope, err := m.jobs.Grants.NoteLimit(ctx, name, n, m.members.DeadNodes())
	if err != nil {
		m.scheduler.Models.PutBackNote(name, n)
		return err
	}

	if n.Refused || n.Opened > 0 || n.Closed {
		m.config.Logger.Info("limits of a model", "model", name, "pause", scope.Pause, "at_once", scope.Room, "breaker_open", scope.Breaker.Open)
	}

	again, concerned := m.scheduler.Models.ApplyScope(name, scope, time.Now())
	for _, id := range concerned[:min(len(concerned), MaxDue)] { // polls see to the others
		m.signals.MarkDue(id)
	}

	if !again.IsZero() {
		m.signals.CallAt(again, func(context.Context) { m.scheduler.Models.LookAgain(name) })
	}
	return nil
}
