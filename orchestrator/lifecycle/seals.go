package lifecycle

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
)

// SealAll chains what is left of a job's checkpoints.
func (m *Manager) SealAll(ctx context.Context, id mapreduce.JobID) error {
	for {
		n, err := m.jobs.Audit.Seal(ctx, id)
		if err != nil || n == 0 {
			return err
		}
	}
}

// SealLoop chains new checkpoints a few times a second.
func (m *Manager) SealLoop(ctx context.Context) {
	cluster.CallEvery(ctx, m.config.Seal, func() {
		for _, id := range m.signals.TakeUnsealed(m.members.TurnToSeal) {
			if _, err := m.jobs.Audit.Seal(ctx, id); err != nil && errs.KindOf(err) != errs.NotFound {
				m.supervisor.LogFailure(ctx, "sealing checkpoints; trying again", err, "job", id)
				m.signals.NotifyWatchers(id)
			}
		}
	})
}
