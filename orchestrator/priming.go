package orchestrator

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// usesPriming reports whether a job in its state has a unit that is to run alone.
func (o *Orchestrator) usesPriming(ctl *records.Control, spec *mapreduce.JobSpec) bool {
	return o.config.Warms != nil && ctl.State == mapreduce.Mapping && o.config.Provider(spec.Provider).Models &&
		spec.Replay == "" && o.config.Warms(spec)
}

// primePrefix asks for the first unit of a cold job, or tells the others that it is
// cold no more.
func (o *Orchestrator) primePrefix(ctx context.Context, id mapreduce.JobID) error {
	ask, tell := o.scheduler.Priming.Due(id, o.config.WarmFor, time.Now())
	switch {
	case tell:
		if err := o.jobs.Grants.Warmed(ctx, id); err != nil {
			return err
		}
		o.scheduler.Priming.NoteAnnounced(id)
	case ask:
		first, open, err := o.jobs.Grants.Warm(ctx, id, o.members.DeadNodes())
		if err != nil {
			return err
		}
		o.scheduler.Priming.ApplyState(id, first, open, time.Now())
	}
	return nil
}
