package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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

// A unit that ends while there is no stream, before what it kept was worth sending,
// leaves that to the next attempt all the same.
func TestStateOfUnitsThatEndWithoutAStream(t *testing.T) {
	fails := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
		calls.Spent(agent.KeepEvery-1, 0, 0)
		if err := calls.Keep(ctx, []byte("answers")); err != nil {
			return nil, err
		}
		after(time.Second)
		return nil, errors.New("the next call failed")
	}
	synctest.Test(t, func(t *testing.T) {
		r := start(t, fails, worker.Config{})
		r.assign(spec, unitOf("u"))
		r.take()
		r.pipe.cut()
		after(10 * time.Second)
		r.take()
		r.accept(mapreduce.Welcome{Epoch: 2})
		got := r.take()
		if len(got.States) != 1 || string(got.States[0].Data) != "answers" || len(got.Reports) != 1 {
			t.Errorf("the new stream was told states %+v and reports %+v, want one of each", got.States, got.Reports)
		}
		r.verdicts(mapreduce.Accepted, got.Reports...)
		r.finish()
	})
}
