package orchestrator

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// GetResult implements mapreduce.Service. The result of a complete job is stored. A
// partial one is assembled as it is read, of the units that are complete.
func (o *Orchestrator) GetResult(ctx context.Context, _ mapreduce.Principal, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	job, err := o.jobs.View.Job(ctx, id)
	if err == nil && job.State == mapreduce.JobComplete {
		// The job is shown with the final head of its audit chain.
		o.supervisor.LogFailure(ctx, "sealing checkpoints", o.life.SealAll(ctx, id), "job", id)
		job, err = o.jobs.View.Job(ctx, id)
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

	if partial {
		return o.results.Partial(ctx, id, sink)
	}
	return o.results.Stream(ctx, id, sink)
}
