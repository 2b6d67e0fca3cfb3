package figures

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker"
)

// An Idleness is what workers cost that have nothing to do.
type Idleness struct {
	Workers   int
	Watched   time.Duration
	Beats     int64         // heartbeats of the workers meanwhile
	Commits   int64         // transactions that wrote
	Reads     int64         // transactions that only read
	Processor time.Duration // of workers and orchestrator
}

// idleBeats is for how many heartbeats idle workers are watched.
const idleBeats = 10

// MeasureIdle measures it.
func MeasureIdle(ctx context.Context, l *Lab) (*Idleness, error) {
	idle := &Idleness{Workers: l.Idle}
	return idle, l.InPlace(func(p rig.Place) error {
		kv, err := p.OpenStore()
		if err != nil {
			return err
		}

		s, err := rig.OpenOn(kv, p, orchestrator.Config{Exclusive: p.Cluster == "", Heartbeat: l.Beat})
		if err != nil {
			return err
		}
		return errors.Join(idle.measureIdle(ctx, s, l.Beat), s.Close())
	})
}

func (i *Idleness) measureIdle(ctx context.Context, s *rig.System, beat time.Duration) error {
	var beats atomic.Int64
	var welcome sync.WaitGroup
	welcome.Add(i.Workers)

	for range i.Workers {
		connection, err := s.NewConnection() // as each worker process has
		if err != nil {
			return err
		}
		welcomed := sync.OnceFunc(welcome.Done) // a worker whose stream broke is greeted again
		connect := func(ctx context.Context) (worker.Stream, error) {
			stream, err := connection.Connect(ctx)
			if err != nil {
				return nil, err
			}
			counted := &beating{WorkerStream: stream, beats: &beats}
			return &rig.Greeted{WorkerStream: counted, Greet: func() error { welcomed(); return nil }}, nil
		}
		if _, err := s.RunWorkerOver(connect, &rig.Bencher{}, 1, 0); err != nil {
			return err
		}
	}

	welcome.Wait()
	if err := clock.Sleep(ctx, beat); err != nil { // what came with the workers has been dealt with
		return err
	}

	stats := s.Jobs.DB().Stats()
	commits, reads, heard, used, start := stats.Commits.Load(), stats.Reads.Load(), beats.Load(), rig.ProcessorTime(), time.Now()
	if err := clock.Sleep(ctx, idleBeats*beat); err != nil {
		return err
	}

	i.Commits, i.Reads, i.Beats = stats.Commits.Load()-commits, stats.Reads.Load()-reads, beats.Load()-heard
	i.Processor, i.Watched = rig.ProcessorTime()-used, time.Since(start)
	return nil
}

// A beating stream counts the heartbeats that go over it.
type beating struct {
	client.WorkerStream
	beats *atomic.Int64
}

// Send sends a message.
func (b *beating) Send(m *protocol.FromWorker) error {
	if m.Heartbeat != nil {
		b.beats.Add(1)
	}
	return b.WorkerStream.Send(m)
}

// Rows returns the report.
func (i *Idleness) Rows() []Row {
	rate := func(n int64) float64 { return rig.PerSecond(int(n), i.Watched) }
	return []Row{{
		fmt.Sprintf("%s idle workers, transactions", Number(float64(i.Workers))), rate(i.Commits + i.Reads), "a second", atMost(1), fmt.Sprintf(
			"%s a second wrote; %s heartbeats a second; %s of one core",
			Number(rate(i.Commits)), Number(rate(i.Beats)), Number(i.Processor.Seconds()/i.Watched.Seconds())),
	}}
}
