package orchestrator

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/observe"
)

// observedFleet is what metrics show of this orchestrator.
func (o *Orchestrator) observedFleet() observe.Fleet {
	return observe.Fleet{
		Snapshot: o.scheduler.Snapshot, Store: o.jobs.DB().Stats(), StoreAnswers: o.supervisor.StoreAnswers,
		Orchestrators: func() int {
			_, all := o.members.QueuePlace()
			return all
		},
		Demand: func(ctx context.Context) ([]protocol.Demand, error) {
			return o.Scaler.Demand(ctx, mapreduce.Principal{})
		},
	}
}

// endedHook returns a function that is called with each job that has ended; nil without
// metrics and tracing.
func endedHook(m *observe.Metrics, t *observe.Tracer) func(context.Context, *mapreduce.Job) {
	if m == nil && t == nil {
		return nil
	}
	return func(ctx context.Context, job *mapreduce.Job) {
		name := jobspec.PresetOf(&job.Spec)
		ctx = t.JobEnded(ctx, job, name)
		m.JobEnded(ctx, job.State, name, job.Updated.Sub(job.Created))
	}
}
