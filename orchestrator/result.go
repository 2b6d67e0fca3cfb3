package orchestrator

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// GetResult implements mapreduce.Service.
func (o *Orchestrator) GetResult(ctx context.Context, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	return errs.New(errs.Internal, "result of %s", id)
}
