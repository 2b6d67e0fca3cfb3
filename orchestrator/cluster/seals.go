package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
)

// Seals chain the checkpoints of jobs.
type Seals struct {
	jobs       *jobs.Jobs
	members    *Membership
	signals    *Signals
	supervisor *Supervisor
	every      time.Duration // new checkpoints are chained
}

// NewSeals returns what chains new checkpoints every so often. It does nothing on its own but in
// its loop.
func NewSeals(j *jobs.Jobs, members *Membership, signals *Signals, s *Supervisor, every time.Duration) *Seals {
	return &Seals{jobs: j, members: members, signals: signals, supervisor: s, every: every}
}

// SealAll chains what is left of a job's checkpoints. A process that may only read chains none: it sees what is there,
// and whoever writes next chains the rest.
func (s *Seals) SealAll(ctx context.Context, id mapreduce.JobID) error {
	for {
		n, err := s.jobs.Audit.Seal(ctx, id)
		if errors.Is(err, store.ErrReadOnly) {
			return nil
		}
		if err != nil || n == 0 {
			return err
		}
	}
}

// Loop chains new checkpoints a few times a second.
func (s *Seals) Loop(ctx context.Context) {
	CallEvery(ctx, s.every, func() {
		for _, id := range s.signals.TakeUnsealed(s.members.TurnToSeal) {
			if _, err := s.jobs.Audit.Seal(ctx, id); err != nil && errs.KindOf(err) != errs.NotFound {
				s.supervisor.LogFailure(ctx, "sealing checkpoints; trying again", err, "job", id)
				s.signals.NotifyWatchers(id)
			}
		}
	})
}
