package lifecycle

import (
	"bytes"
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	outcome "github.com/coditect/mapreduce/internal/outcome/review"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/result"
	"github.com/coditect/mapreduce/orchestrator/review"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
	stored "github.com/coditect/mapreduce/store/jobs/review"
)

// Results are what clients get of jobs that have come to something.
type Results struct {
	jobs       *jobs.Jobs
	specs      *jobspec.Finder
	seals      *cluster.Seals
	supervisor *cluster.Supervisor
	places     places
}

// GetResult implements mapreduce.Service. The result of a complete job is stored. A
// partial one is assembled as it is read, of the units that are complete.
func (r *Results) GetResult(ctx context.Context, _ mapreduce.Principal, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	job, err := r.jobs.View.Job(ctx, id)
	if err == nil && job.State == mapreduce.JobComplete {
		// The job is shown with the final head of its audit chain.
		r.supervisor.LogFailure(ctx, "sealing checkpoints", r.seals.SealAll(ctx, id), "job", id)
		job, err = r.jobs.View.Job(ctx, id)
	}

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

	s, err := r.Schema(ctx, id)
	if err != nil {
		return err
	}
	applied, err := outcome.NewApplier(s, review.Decisions(ctx, r.jobs, id, ""), sink)
	if err != nil {
		return err
	}
	defer applied.Close()

	if partial {
		return r.partial(ctx, id, applied.Take)
	}
	return r.Stored(ctx, id, applied.Take)
}

// Schema returns the schema of the records that a job makes of its documents.
func (r *Results) Schema(ctx context.Context, id mapreduce.JobID) (*schema.Schema, error) {
	ctl, err := r.jobs.View.Control(ctx, id)
	if err != nil {
		return nil, err
	}
	compiled, err := r.specs.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	return recordsSchema(compiled.Spec, jobspec.NewStages(compiled, ctl)), nil
}

// partial assembles the result of a job of the units that are complete, while it is
// read.
func (r *Results) partial(ctx context.Context, id mapreduce.JobID, sink func(*mapreduce.ResultPart) error) error {
	ctl, err := r.jobs.View.Control(ctx, id)
	if err != nil {
		return err
	}

	if last := lastUnit(ctl); last != "" { // whose output is held whole
		u, err := r.jobs.View.Unit(ctx, id, last)
		if err != nil {
			return err
		}
		if u != nil {
			release, err := memory.HoldFor(ctx, assembledBytes+decodedOutput*u.Published().Length)
			if err != nil {
				return err
			}
			defer release()
		}
	}

	return r.assemble(ctx, id, 0, sink)
}

const (
	// assembledBytes is about what it takes to assemble a result, beside the output of
	// the last unit.
	assembledBytes = 4 << 20
	// decodedOutput is about how many times its length an output takes that is decoded.
	decodedOutput = 3
)

// Stored streams the result that is stored of a complete job, as it was made: some chunks at a
// time, as fast as sink takes them. Its last part, the summary, comes only once the
// hash of the whole was found right: a result without a summary is none.
func (r *Results) Stored(ctx context.Context, id mapreduce.JobID, sink func(*mapreduce.ResultPart) error) error {
	u, err := r.jobs.View.Unit(ctx, id, mapreduce.ResultUnit)
	if err != nil {
		return err
	}
	if u == nil || u.State != mapreduce.UnitComplete {
		return errs.New(errs.Aborted, "job %s is being resumed, and its result assembled anew", id)
	}

	parts := result.NewReader(0, r.places.noting(placesOf(id, u), sink))
	if err = r.jobs.Content.OutputParts(ctx, id, u, parts.Write); err == nil {
		err = parts.Close()
	}

	if err == nil || !cluster.IsPermanent(err) {
		return err
	}

	// A resume may have removed the result while it was read.
	now, e := r.jobs.View.Unit(ctx, id, mapreduce.ResultUnit)
	if e != nil {
		return e
	}
	if now == nil || now.Published().Attempt != u.Result.Attempt || !bytes.Equal(now.Published().SHA256, u.Result.SHA256) {
		return errs.New(errs.Aborted, "job %s was resumed while its result was read", id)
	}
	return errs.New(errs.DataLoss, "the stored result of job %s is damaged; ask for a partial result, which is assembled anew from the results of its units: %w", id, err)
}

// StoredAt streams parts of the result that is stored of a complete job, beginning with a record or some before it:
// how many depends on how much of the result was read here before. It checks no hash.
func (r *Results) StoredAt(ctx context.Context, id mapreduce.JobID, record mapreduce.RecordID, sink func(*mapreduce.ResultPart) error) error {
	u, err := r.jobs.View.Unit(ctx, id, mapreduce.ResultUnit)
	if err != nil {
		return err
	}
	if u == nil || u.State != mapreduce.UnitComplete {
		return errs.New(errs.Aborted, "job %s is being resumed, and its result assembled anew", id)
	}

	of, end := placesOf(id, u), u.Published().Length
	at := r.places.before(of, record)
	parts := result.NewReader(at, r.places.noting(of, sink))
	for at < end {
		next := min(at+placeEvery, end)
		data, err := r.jobs.Content.OutputRange(ctx, id, u, at, next)
		if err != nil {
			return err
		}
		if err := parts.Write(data); err != nil {
			return err
		}
		at = next
	}
	return parts.Close()
}

// assemble assembles the result of a job as it stands, into so much room, or any if
// that is 0.
func (r *Results) assemble(ctx context.Context, id mapreduce.JobID, room int, sink func(*mapreduce.ResultPart) error) error {
	ctl, err := r.jobs.View.Control(ctx, id)
	if err != nil {
		return err
	}
	compiled, err := r.specs.Job(ctx, id)
	if err != nil {
		return err
	}

	job := assembledFrom(id, compiled, ctl)
	job.Room = room
	if job.Decisions, err = r.waited(ctx, id, compiled); err != nil {
		return err
	}
	return result.Result(ctx, r.jobs.Reader(), job, sink)
}

// waited returns the decisions that units of a job have waited for, by unit; nil if none waits.
func (r *Results) waited(ctx context.Context, id mapreduce.JobID, compiled *jobspec.Compiled) (map[int64][]*stored.Decision, error) {
	if !compiled.Graph.Pipeline().Stages[0].Review.IsSet() {
		return nil, nil
	}

	all := make(map[int64][]*stored.Decision)
	q := mapreduce.ListDecisionsQuery{Job: id, PageSize: 1000}
	for {
		page, next, err := r.jobs.Review.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			if unit, _, ok := d.Record.Parse(); ok && d.Waited {
				all[unit] = append(all[unit], d)
			}
		}
		if q.PageToken = next; next == "" {
			return all, nil
		}
	}
}

// assembledFrom returns a job as its result is assembled, as far as it has come.
func assembledFrom(id mapreduce.JobID, compiled *jobspec.Compiled, ctl *records.Control) result.Job {
	stages := jobspec.NewStages(compiled, ctl)
	job := result.Job{ID: id, Last: lastUnit(ctl)}

	for level := range int64(len(ctl.StageLevels())) {
		stage := stages.StageAt(level)
		job.Records = append(job.Records, stage == nil || stage.Output.Kind == pipeline.OutputRecords)
	}
	for level := range int64(len(ctl.StageLevels())) {
		one := result.ValueLevel{}
		if stage := stages.StageAt(level); stage != nil {
			one = result.ValueLevel{Name: stage.Name, Schema: stage.Output.Form()}
		}
		job.Values = append(job.Values, one)
	}

	if first := stages.StageAt(0); first != nil {
		job.Passages = first.Output.Kind == pipeline.OutputPassages
	}
	if last := stages.StageAt(int64(len(ctl.StageLevels())) - 1); last != nil && last.Output.Kind == pipeline.OutputReport {
		job.Report = &result.Report{Question: compiled.Spec.Vars["question"], Schema: last.Output.Form()}
	}

	job.Schema = recordsSchema(compiled.Spec, stages)
	return job
}

// recordsSchema returns the schema of the records that a job makes of its documents;
// an empty one, which no record fits, if it makes none or its schema is none: what is
// wrong with it, workers say.
func recordsSchema(spec *mapreduce.JobSpec, stages jobspec.Stages) *schema.Schema {
	text := spec.Schema
	if stage := stages.StageAt(0); stage != nil && stage.Output.Schema != nil && stage.Output.Kind == pipeline.OutputRecords {
		text = stage.Output.Schema
	}
	parsed, err := schema.Shared(text)
	if err != nil {
		return new(schema.Schema)
	}
	return parsed
}

// lastUnit returns the unit that a job comes to, as far as it is planned: that of the
// last level of its stages, if there is one; else "".
func lastUnit(ctl *records.Control) mapreduce.UnitID {
	if last := int64(len(ctl.StageLevels())) - 1; ctl.Level >= last || ctl.TreeTop > 0 {
		return ctl.LevelAt(last).Unit
	}
	return ""
}
