package orchestrator

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/orchestrator/metrics"
)

// CheckStoreAnswers returns an error if the store does not answer: neither the latest signs
// of life nor a small read, which ends with ctx.
func (o *Orchestrator) CheckStoreAnswers(ctx context.Context) error {
	select {
	case <-o.Started():
	default:
		return errs.New(errs.Unavailable, "the orchestrator has not begun: it waits for the store, or for others that hold it")
	}
	if !o.supervisor.StoreAnswers() {
		return errs.New(errs.Unavailable, "the store does not answer signs of life")
	}
	if _, _, err := o.jobs.Nodes.Epoch(ctx, "health"); err != nil {
		return errs.New(errs.Unavailable, "the store does not answer a read: %w", err)
	}
	return nil
}

// CountWorkers returns how many workers have a stream to this orchestrator.
func (o *Orchestrator) CountWorkers() int { return o.scheduler.ConnectedWorkers() }

// observedFleet is what metrics show of this orchestrator.
func (o *Orchestrator) observedFleet() metrics.Fleet {
	return metrics.Fleet{
		Snapshot: o.scheduler.Snapshot, Store: o.jobs.DB().Stats(), StoreAnswers: o.supervisor.StoreAnswers,
		Orchestrators: func() int {
			_, all := o.members.QueuePlace()
			return all
		},
	}
}

// endedHook returns what counts jobs that have ended, or nil if nobody does.
func (o *Orchestrator) endedHook(m *metrics.Metrics) func(context.Context, *mapreduce.Job) {
	if m == nil {
		return nil
	}
	return func(ctx context.Context, job *mapreduce.Job) {
		m.JobEnded(ctx, job.State, presetOf(&job.Spec), job.Updated.Sub(job.Created))
	}
}

// presetOf returns the preset that a job runs, or "custom": pipelines of users have names
// that are theirs.
func presetOf(spec *mapreduce.JobSpec) string {
	name := spec.Pipeline
	if len(spec.Definition) == 0 && slices.ContainsFunc(pipeline.Presets(), func(p pipeline.PresetInfo) bool { return p.Name == name }) {
		return name
	}
	return "custom"
}
