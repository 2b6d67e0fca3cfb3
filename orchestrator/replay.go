package orchestrator

import (
	"context"
	"iter"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/replay"
)

// replayInput returns the spec and the documents of a job that repeats another: they are
// the other's, and so is what each unit is answered. It spends nothing, so it has
// no budget, and nothing of it is captured.
func (o *Orchestrator) replayInput(ctx context.Context, asked mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (mapreduce.JobSpec, iter.Seq2[*mapreduce.Document, error], error) {
	// The first document is enough to refuse them.
	for _, err := range docs {
		if err == nil {
			err = errs.Field("documents", "none are taken with replay_job_id: they are those of job %s", asked.Replay)
		}
		return asked, nil, err
	}

	job, err := o.jobs.View.Job(ctx, asked.Replay)
	if err != nil {
		return asked, nil, err
	}
	if err := o.config.checkReplayable(job, asked.Tenant); err != nil {
		return asked, nil, err
	}

	spec := job.Spec
	spec.Tenant, spec.RequestID, spec.Replay = asked.Tenant, asked.RequestID, job.ID
	spec.Budget, spec.Cache, spec.Capture = 0, false, mapreduce.CaptureOff
	return spec, replay.Documents(ctx, o.jobs, job.ID), nil
}

// checkReplayable refuses to repeat a job that cannot be.
func (c *Config) checkReplayable(job *mapreduce.Job, t mapreduce.TenantID) error {
	refused := func(format string, args ...any) error { return errs.New(errs.Precondition, format, args...) }

	switch {
	case job.Spec.Tenant != t:
		return errs.New(errs.NotFound, "tenant %q has no job with the id %q", t, job.ID)
	case job.Spec.Replay != "":
		return refused("job %s repeats job %s: repeat that", job.ID, job.Spec.Replay)
	case job.State != mapreduce.JobComplete:
		return refused("job %s is %s: only a complete job can be repeated", job.ID, job.State)
	case c.specRules().AsksModels(&job.Spec) && job.Spec.Capture != mapreduce.CaptureFull:
		return refused("job %s ran without `--capture full`: the answers that its units got were not kept", job.ID)
	case c.specRules().CallsToolsAlone(&job.Spec):
		return refused("job %s called tools without a model, and would call them again: their results may differ by now", job.ID)
	}
	return nil
}
