// Command coditect measures this project as the others are measured. It is started by rivals.
package main

import (
	"context"
	"errors"
	"iter"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/internal/dev/rivals/lap"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

func main() { lap.Serve(system{}) }

type system struct{}

func (system) Info() lap.Info {
	return lap.Info{
		Name: "Coditect map-reduce", Units: 100_000,
		Settings: "the embedded store, as it comes; 64 slots",
		Killed:   "as it comes: a worker whose own system closed its connection has 0.3 s to come back",
	}
}

func (system) Open(_ context.Context, dir string) (lap.Server, error) {
	s, err := rig.OpenSystem(rig.Place{Dir: filepath.Join(dir, "store")})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.ServeOn(listener)
	return &server{System: s, address: listener.Addr().String()}, nil
}

type server struct {
	*rig.System
	address string

	mu   sync.Mutex // guards jobs
	jobs []mapreduce.JobID
}

func (s *server) Address() string { return s.address }

// Submit makes one job of all units. Each is a document, and its unit is called as it is.
func (s *server) Submit(ctx context.Context, units []string) error {
	job, err := s.SubmitJob(ctx, rig.NoopSpec(rig.BusySlots), documents(units))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = append(s.jobs, job.ID)
	return nil
}

func documents(units []string) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for _, unit := range units {
			if !yield(&mapreduce.Document{ID: mapreduce.DocumentID(unit), Content: []byte(lap.Text(unit))}, nil) {
				return
			}
		}
	}
}

func (s *server) Work(ctx context.Context, w lap.Worker) error {
	slots := w.Slots
	if slots == 0 {
		slots = rig.BusySlots
	}
	stop, err := s.RunWorker(bencherOf(w), slots, rig.PrefetchFor(slots))
	if err != nil {
		return err
	}
	w.Begun()
	<-ctx.Done()
	stop()
	return nil
}

// bencherOf runs the units that were submitted. Those that reduce their outputs do nothing.
func bencherOf(w lap.Worker) agent.Agent {
	return &rig.Bencher{Output: 2, Do: func(ctx context.Context, task *agent.Task) error {
		if !rig.IsMap(task) {
			return nil
		}
		return w.Run(ctx, string(task.Unit))
	}}
}

// AwaitEnded waits until the jobs have ended with all that is done over their units, and returns
// when the last of the units themselves was kept as ended.
func (s *server) AwaitEnded(ctx context.Context, _ int) (last time.Time, err error) {
	s.mu.Lock()
	jobs := s.jobs
	s.jobs = nil
	s.mu.Unlock()

	for _, id := range jobs {
		if err := s.AwaitComplete(ctx, id); err != nil {
			return time.Time{}, err
		}
		if at := s.Observer.MappedAt(id); at.After(last) {
			last = at
		}
	}
	return last, nil
}

func (system) Work(ctx context.Context, address string, w lap.Worker) error {
	c, err := client.Dial(address, client.Config{})
	if err != nil {
		return err
	}
	defer c.Close()

	runner, err := worker.New(worker.Config{
		Steps: step.Serving(rig.Provider, bencherOf(w)), Slots: w.Slots,
		Connect: []worker.Connect{func(ctx context.Context) (worker.Stream, error) {
			stream, err := c.Connect(ctx)
			if err != nil {
				return nil, err
			}
			return &rig.Greeted{WorkerStream: stream, Greet: func() error { w.Begun(); return nil }}, nil
		}},
	})
	if err != nil {
		return err
	}
	return runner.Run(ctx)
}
