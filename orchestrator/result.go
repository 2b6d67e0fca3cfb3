package orchestrator

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/orchestrator/assemble"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// GetResult implements mapreduce.Service.
func (o *Orchestrator) GetResult(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	if err := o.access.UseJob(ctx, by, id); err != nil {
		return err
	}
	job, err := o.jobs.View.Job(ctx, id)
	if err != nil {
		return err
	}
	if job.State != mapreduce.JobComplete && !partial {
		return &errs.Error{
			Kind: errs.Precondition, Reason: "JOB_STATE",
			Message: "job " + string(id) + " is " + job.State.String() + ": its result is not complete; ask for a partial one",
		}
	}
	if err := sink(&mapreduce.ResultPart{Job: job}); err != nil {
		return err
	}
	ctl, err := o.jobs.View.Control(ctx, id)
	if err != nil {
		return err
	}
	compiled, err := o.specs.Compiled(id, &job.Spec)
	if err != nil {
		return err
	}
	from, err := assembledFrom(id, compiled, ctl)
	if err != nil {
		return err
	}
	return assemble.Result(ctx, o.jobs.Reader(), from, sink)
}

// assembledFrom returns a job as its result is assembled, as far as it has come.
func assembledFrom(id mapreduce.JobID, compiled *jobspec.Compiled, ctl *records.Control) (assemble.Job, error) {
	stages := jobspec.NewStages(compiled, ctl)
	job := assemble.Job{ID: id, Direct: compiled.DirectUnit(), Last: lastUnit(ctl)}
	for level := range int64(len(ctl.Levels)) {
		stage := stages.StageAt(level)
		job.Records = append(job.Records, stage == nil || stage.Output.Kind == pipeline.OutputRecords)
	}
	var err error
	job.Schema, err = recordsSchema(compiled.Spec, stages)
	return job, err
}

// recordsSchema returns the schema of the records that a job makes of its documents;
// an empty one if it makes none.
func recordsSchema(spec *mapreduce.JobSpec, stages jobspec.Stages) (*schema.Schema, error) {
	text := spec.Schema
	if stage := stages.StageAt(0); stage != nil && stage.Output.Schema != nil && stage.Output.Kind == pipeline.OutputRecords {
		text = stage.Output.Schema
	}
	if len(text) == 0 {
		return new(schema.Schema), nil
	}
	return schema.Parse("schema", text)
}

// lastUnit returns the unit that a job comes to, as far as it is planned: that of
// the last level, if there is one; else "".
func lastUnit(ctl *records.Control) mapreduce.UnitID {
	if ctl.Level == int64(len(ctl.Levels))-1 || ctl.TreeTop > 0 {
		return ctl.LevelAt(int64(len(ctl.Levels)) - 1).Unit
	}
	return ""
}
