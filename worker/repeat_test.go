package worker_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// Of a job that captures all, what units were answered is stored before their
// reports, also over a stream that breaks; of others it is of no use by then.
func TestStateOfUnitsThatAreDone(t *testing.T) {
	keeps := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
		return &agent.Result{Output: []byte("x")}, calls.Keep(ctx, []byte("answers"))
	}
	for _, capture := range []mapreduce.Capture{mapreduce.CaptureOff, mapreduce.CaptureStandard, mapreduce.CaptureFull} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, keeps, worker.Config{})
			full := spec
			full.Capture = capture
			r.assign(full, unitOf("u"))
			for broken := range 2 {
				synctest.Wait()
				messages := r.msgs
				got := r.take()
				states := 0
				for _, m := range messages {
					for _, s := range m.States {
						if states++; string(s.Data) != "answers" {
							t.Errorf("state %q", s.Data)
						}
					}
					if len(m.Reports) > 0 && states == 0 && capture == mapreduce.CaptureFull {
						t.Error("the report came before the state")
					}
				}
				if want := capture == mapreduce.CaptureFull; (states > 0) != want || len(got.Reports) != 1 {
					t.Errorf("capture %d, stream %d: %d states and %d reports", capture, broken, states, len(got.Reports))
				}
				if broken == 0 {
					r.pipe.cut()
					r.accept(mapreduce.Welcome{Epoch: 2})
					continue
				}
				r.verdicts(mapreduce.Accepted, got.Reports...)
			}
			r.finish()
		})
	}
}
