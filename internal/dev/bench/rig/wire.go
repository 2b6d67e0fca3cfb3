package rig

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/step"
)

// BusySlots is how many units run at once where as many are to run as can.
const BusySlots = 64

// WireOnly returns how many units a second go to a worker and back over gRPC in
// memory, when the server keeps nothing of them.
func WireOnly(ctx context.Context, n int) (float64, error) {
	f := &feeder{rest: n, left: n, done: make(chan struct{})}
	srv, err := server.New(new(servertest.Service), f, server.Config{})
	if err != nil {
		return 0, err
	}
	c, err := client.NewInProcess(srv, client.Config{})
	if err != nil {
		return 0, err
	}

	w, err := worker.New(worker.Config{
		Steps: step.Serving(Provider, &Bencher{Output: 2}), Slots: BusySlots, Prefetch: PrefetchFor(BusySlots),
		Connect: []worker.Connect{func(ctx context.Context) (worker.Stream, error) { return c.Connect(ctx) }},
	})
	if err != nil {
		return 0, err
	}

	start := time.Now()
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(run) }()

	select {
	case <-f.done:
	case err = <-ended:
		// It is read again below.
		ended <- err
	}

	rate := PerSecond(n, time.Since(start))
	stop()
	err = errors.Join(err, <-ended, c.Close())
	srv.Shutdown(ctx)
	return rate, err
}

// A feeder is a fleet that accepts everything and keeps one worker full.
type feeder struct {
	rest int // units to be handed out
	left int // units not reported
	done chan struct{}

	protocol.Blobs // nil: its units are small
}

// Work implements protocol.Fleet.
func (f *feeder) Work(_ context.Context, stream protocol.WorkStream) error {
	m, err := stream.Recv()
	if err != nil {
		return err
	}

	const job mapreduce.JobID = "mr_20250101_aaaaaa"
	out := &protocol.ToWorker{Welcome: &protocol.Welcome{}, Jobs: []protocol.JobInfo{{Job: job, Spec: NoopSpec(BusySlots)}}}
	f.assignUnits(out, job, m.Hello.Slots+m.Hello.Prefetch)

	for {
		if err := stream.Send(out); err != nil {
			return err
		}
		out = &protocol.ToWorker{}
		for len(out.Verdicts) == 0 {
			m, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}

			for _, r := range m.Reports {
				h := protocol.Held{Job: r.Job, Unit: r.Unit, Attempt: r.Attempt}
				out.Verdicts = append(out.Verdicts, protocol.VerdictOn{Held: h, Verdict: protocol.Accepted})
			}
			if f.left -= len(m.Reports); f.left == 0 && len(m.Reports) > 0 {
				close(f.done)
			}
		}
		// As many units are handed out as were reported, so that the worker stays full.
		f.assignUnits(out, job, len(out.Verdicts))
	}
}

func (f *feeder) assignUnits(m *protocol.ToWorker, job mapreduce.JobID, n int) {
	for range min(n, f.rest) {
		m.Assignments = append(m.Assignments, protocol.Assignment{
			Job: job, Unit: mapreduce.UnitID(UnitName(f.rest)), Attempt: 1, Kind: mapreduce.KindMap,
			Text: &protocol.Text{
				Document: "document", SHA256: make([]byte, 32), Content: make([]byte, TextBytes), CoreEnd: TextBytes, Chunks: 1,
			},
		})
		f.rest--
	}
}
