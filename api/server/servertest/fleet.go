package servertest

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

var _ mapreduce.Fleet = (*Fleet)(nil)

// A Fleet gives every worker the same messages once it has said hello, and
// accepts every report.
type Fleet struct {
	Messages []*mapreduce.ToWorker // sent after Welcome

	// Received, if not nil, gets every message of every worker. Its reader sets
	// the pace.
	Received chan<- *mapreduce.FromWorker
}

// Work implements mapreduce.Fleet.
func (f *Fleet) Work(ctx context.Context, stream mapreduce.WorkStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if first.Hello == nil {
		return errs.Field("hello", "must come first")
	}
	welcome := &mapreduce.Welcome{Node: "memory", Epoch: 1, Heartbeat: 3 * time.Second, Drop: first.Hello.Holding}
	if err := stream.Send(&mapreduce.ToWorker{Welcome: welcome}); err != nil {
		return err
	}
	for _, m := range f.Messages {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return f.answer(ctx, stream)
}

func (f *Fleet) answer(ctx context.Context, stream mapreduce.WorkStream) error {
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if f.Received != nil {
			select {
			case f.Received <- m:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if len(m.Reports) == 0 {
			continue
		}
		if err := stream.Send(&mapreduce.ToWorker{Verdicts: accepted(m.Reports)}); err != nil {
			return err
		}
	}
}

func accepted(reports []mapreduce.Report) []mapreduce.VerdictOn {
	verdicts := make([]mapreduce.VerdictOn, len(reports))
	for i, r := range reports {
		verdicts[i] = mapreduce.VerdictOn{
			Held:    mapreduce.Held{Job: r.Job, Unit: r.Unit, Attempt: r.Attempt},
			Verdict: mapreduce.Accepted,
		}
	}
	return verdicts
}
