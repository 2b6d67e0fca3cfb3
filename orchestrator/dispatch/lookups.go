package dispatch

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Bounds of the jobs that one worker may have the store asked for. A worker that comes from
// another orchestrator names at most the jobs of its slots; one that makes jobs up waits.
const (
	lookUpsPerSecond = 50
	lookUpsAtOnce    = 500
)

func newLookUps() *rate.Limiter { return rate.NewLimiter(lookUpsPerSecond, lookUpsAtOnce) }

// lookUp returns the record of a job that a worker names and the scheduler does not know,
// or nil if there is no such job.
func (r *reports) lookUp(ctx context.Context, s *workerStream, id mapreduce.JobID) (ctl *records.Control, err error) {
	if err := s.lookUps.Wait(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, errs.New(errs.Deadline, "the stream ends before the jobs that it names can be looked for")
	}

	err = r.supervisor.RetryStoreCall(ctx, "looking for a job that a worker names", func() (err error) {
		ctl, err = r.jobs.View.Control(ctx, id)
		return err
	})

	if errs.KindOf(err) == errs.NotFound {
		return nil, nil
	}
	return ctl, err
}
