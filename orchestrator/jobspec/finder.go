package jobspec

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Finder compiles the specs of jobs.
type Finder struct {
	jobs *jobs.Jobs
	kept func(mapreduce.JobID) *Compiled
}

// NewFinder returns a finder of jobs of a store. kept returns a job that is at hand,
// compiled, or nil.
func NewFinder(j *jobs.Jobs, kept func(mapreduce.JobID) *Compiled) *Finder {
	return &Finder{jobs: j, kept: kept}
}

// Job returns a job, compiled. That of a job on the scheduler is kept there.
func (f *Finder) Job(ctx context.Context, id mapreduce.JobID) (*Compiled, error) {
	if c := f.kept(id); c != nil {
		return c, nil
	}
	rec, err := f.jobs.View.Record(ctx, id)
	if err != nil {
		return nil, err
	}
	return f.Compiled(id, &rec.Spec)
}

// Compiled returns a job whose spec was read, compiled.
func (f *Finder) Compiled(id mapreduce.JobID, spec *mapreduce.JobSpec) (*Compiled, error) {
	if c := f.kept(id); c != nil {
		return c, nil
	}
	graph, err := graphOf(spec)
	if err != nil {
		return nil, errs.New(errs.DataLoss, "pipeline of job %s: %v", id, err)
	}
	return Compile(spec, graph), nil
}

// StageOf returns the stage of a unit, and the schema of the records that it makes,
// if it makes any. A unit that parses a document has no stage.
func (f *Finder) StageOf(ctx context.Context, id mapreduce.JobID, u *records.Unit) (*pipeline.Stage, *schema.Schema, error) {
	if u.Level < 0 {
		return nil, nil, nil
	}

	c, err := f.Job(ctx, id)
	if err != nil {
		return nil, nil, err
	}

	return c.StageOf(u)
}
