package worker_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/step"
)

// BenchmarkSession measures units that do nothing through one session over a
// stream in memory: assignment, run, report, verdict.
func BenchmarkSession(b *testing.B) {
	for _, slots := range []int{1, 20, 200} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			b.ReportAllocs()
			feeder := &feeder{left: b.N, names: make([]mapreduce.UnitID, b.N), done: make(chan struct{})}
			for i := range feeder.names {
				feeder.names[i] = mapreduce.UnitID(fmt.Sprintf("document_%d.txt", i))
			}
			var streams sync.WaitGroup
			w, err := worker.New(worker.Config{
				Slots: slots, Prefetch: 64 + slots, Steps: step.Serving("test", runFunc(okay)),
				Connect: []worker.Connect{func(ctx context.Context) (worker.Stream, error) {
					p := newPipe(ctx, nil)
					streams.Go(func() {
						if err := feeder.Work(ctx, far{p}); err != nil && err != io.EOF {
							b.Error(err)
						}
						p.end()
					})
					return near{p}, nil
				}},
			})
			if err != nil {
				b.Fatal(err)
			}
			ctx, stop := context.WithCancel(b.Context())
			b.ResetTimer()
			streams.Go(func() {
				if err := w.Run(ctx); err != nil {
					b.Error(err)
				}
			})
			<-feeder.done
			b.StopTimer()
			stop()
			streams.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "units/s")
		})
	}
}

// A feeder is a Fleet that accepts everything and keeps a worker full.
type feeder struct {
	names []mapreduce.UnitID
	next  int
	left  int
	done  chan struct{}

	protocol.Blobs // nil: its units are small
}

var _ protocol.Fleet = (*feeder)(nil)

func (f *feeder) Work(ctx context.Context, stream protocol.WorkStream) error {
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	out := &protocol.ToWorker{Welcome: &protocol.Welcome{}, Jobs: []protocol.JobInfo{{Job: jobID, Spec: spec}}}
	f.feed(out, m.Hello.Slots+m.Hello.Prefetch)
	for {
		if err := stream.Send(out); err != nil {
			return err
		}
		out = &protocol.ToWorker{}
		for len(out.Verdicts) == 0 {
			if m, err = stream.Recv(); err != nil {
				return err
			}
			for i := range m.Reports {
				out.Verdicts = append(out.Verdicts, protocol.VerdictOn{Held: heldOf(m.Reports[i]), Verdict: protocol.Accepted})
			}
			if f.left -= len(m.Reports); f.left == 0 && len(m.Reports) > 0 {
				close(f.done)
			}
		}
		f.feed(out, len(out.Verdicts))
	}
}

func (f *feeder) feed(m *protocol.ToWorker, n int) {
	n = min(n, len(f.names)-f.next)
	for _, id := range f.names[f.next : f.next+n] {
		m.Assignments = append(m.Assignments, unitOf(id))
	}
	f.next += n
}
