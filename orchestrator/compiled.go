package orchestrator

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs"
)

// compiledFor returns a job, compiled. That of a job on the scheduler is kept there.
func (o *Orchestrator) compiledFor(ctx context.Context, id mapreduce.JobID) (*jobspec.Compiled, error) {
	if c := o.scheduler.compiledJob(id); c != nil {
		return c, nil
	}
	rec, err := o.jobs.Record(ctx, id)
	if err != nil {
		return nil, err
	}
	spec := jobs.SpecOf(rec.Config)
	return o.compiledOf(id, &spec)
}

// compiledOf returns a job whose spec was read, compiled.
func (o *Orchestrator) compiledOf(id mapreduce.JobID, spec *mapreduce.JobSpec) (*jobspec.Compiled, error) {
	if c := o.scheduler.compiledJob(id); c != nil {
		return c, nil
	}
	c, err := jobspec.Compile(spec)
	if err != nil {
		return nil, errs.New(errs.DataLoss, "pipeline of job %s: %v", id, err)
	}
	return c, nil
}

// compiledJob returns a job that stands on the scheduler, compiled; else nil.
func (b *scheduler) compiledJob(id mapreduce.JobID) *jobspec.Compiled {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil {
		return r.stages.Compiled
	}
	return nil
}

// stageOf returns the stage of a unit, and the schema of the records that it makes,
// if it makes any. A unit that parses a document has no stage.
func (o *Orchestrator) stageOf(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit) (*pipeline.Stage, *schema.Schema, error) {
	if u.Level < 0 {
		return nil, nil, nil
	}
	c, err := o.compiledFor(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if u.Stage < 0 || u.Stage >= int64(len(c.Schemas)) {
		return nil, nil, errs.New(errs.DataLoss, "unit %s is of stage %d, and the pipeline has %d", u.UnitId, u.Stage, len(c.Schemas))
	}
	return c.Graph.Pipeline().Stages[u.Stage], c.Schemas[u.Stage], nil
}
