package grant

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// PrimePrefix asks for the first unit of a cold job, or tells the others that it is
// cold no more.
func (m *Manager) PrimePrefix(ctx context.Context, id mapreduce.JobID) error {
	ask, tell := m.scheduler.Priming.Due(id, m.config.WarmFor, time.Now())
	switch {
	case tell:
		if err := m.jobs.Grants.Warmed(ctx, id); err != nil {
			return err
		}
		m.scheduler.Priming.NoteAnnounced(id)
	case ask:
		first, open, err := m.jobs.Grants.Warm(ctx, id, m.members.DeadNodes())
		if err != nil {
			return err
		}
		m.scheduler.Priming.ApplyState(id, first, open, time.Now())
	}
	return nil
}
