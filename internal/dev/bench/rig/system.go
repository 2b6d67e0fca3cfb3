// Package rig sets up what figures measure: a whole system in this process, in a place of
// its own, whose store notes when things were durable, and children of the program, such as
// a model. It also measures what bounds a figure: the same store without the service around
// it, the same wire without the store, a sync of the disk.
//
// It wires real parts together as the command does, and may import any of them. It knows
// no figure: package figures does, and nothing else but the program imports it.
package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

// A System is the whole service in this process, as `coditect mapreduce run` has
// it: store, orchestrator, and a client over a connection in memory.
type System struct {
	*client.Client
	Jobs     *jobs.Jobs
	Observer *Observer // the store of it all
	server   *server.Server

	orchestrator *orchestrator.Orchestrator

	stop        context.CancelFunc
	running     sync.WaitGroup // orchestrator and workers
	serving     sync.WaitGroup // listeners
	workers     []context.CancelFunc
	connections []*client.Client // beside Client

	mu     sync.Mutex // guards the variable below
	failed []error    // of what ran
}

var nodes atomic.Int64

// OpenSystem starts a system in a place, which is its own.
func OpenSystem(p Place) (*System, error) {
	kv, err := p.OpenStore()
	if err != nil {
		return nil, err
	}
	s, err := OpenOn(kv, p, orchestrator.Config{Exclusive: p.Cluster == ""})
	if err != nil {
		return nil, errors.Join(err, kv.Close())
	}
	return s, nil
}

// OpenOn starts a system on a store that it closes in the end.
func OpenOn(kv store.Store, p Place, c orchestrator.Config) (*System, error) {
	s := &System{Observer: newObserver(kv, p.keySpace())}
	return s, s.startParts(p, c)
}

// An UnclosedStore is a store that is not closed by those who use it.
type UnclosedStore struct{ store.Store }

// Close does nothing.
func (UnclosedStore) Close() error { return nil }

func (s *System) startParts(p Place, c orchestrator.Config) error {
	node := mapreduce.NodeID(fmt.Sprintf("node-%d-%d", os.Getpid(), nodes.Add(1)))
	s.Jobs = jobs.New(store.NewDB(s.Observer, store.Config{}), p.keySpace(), node, time.Now)
	c.Adopt, c.Committers, c.Without = true, p.lanes, p.without
	if p.rules != nil {
		c.Rules = p.rules
	}
	o, err := orchestrator.New(s.Jobs, c)
	if err != nil {
		return err
	}

	s.orchestrator = o
	if s.server, err = server.New(o, o, server.Config{}); err != nil {
		return err
	}
	if s.Client, err = client.NewInProcess(s.server, client.Config{}); err != nil {
		return err
	}

	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	ended := make(chan struct{})
	s.running.Go(func() {
		defer close(ended)
		s.recordFailure(o.Run(ctx))
	})

	// Figures are taken when jobs can move.
	select {
	case <-o.Started():
		return nil
	case <-ended:
		return errors.Join(s.failed...)
	}
}

func (s *System) recordFailure(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, err)
}

// ServeOn takes connections from a listener until the system is closed.
func (s *System) ServeOn(l net.Listener) {
	s.serving.Go(func() { s.recordFailure(s.server.Serve(l)) })
}

// PrefetchFor is what a worker in the orchestrator's process holds beside so many
// slots.
func PrefetchFor(slots int) int { return min(max(4*slots, 16), 256) }

// Provider is the name under which units run: one whose units make no calls, so
// that what the fleet may call at once bounds nothing here.
const Provider = "rules"

// RunWorker runs units in this process until the returned function is called.
func (s *System) RunWorker(a agent.Agent, slots, prefetch int) (stop func(), err error) {
	return s.RunWorkerOver(func(ctx context.Context) (worker.Stream, error) { return s.Connect(ctx) }, a, slots, prefetch)
}

// RunWorkerOver does the same over streams that connect begins.
func (s *System) RunWorkerOver(connect worker.Connect, a agent.Agent, slots, prefetch int) (stop func(), err error) {
	w, err := worker.New(worker.Config{
		Steps: step.Serving(Provider, a), Slots: slots, Prefetch: prefetch, Embedded: true,
		DrainTimeout: time.Second, Connect: []worker.Connect{connect},
	})
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.running.Go(func() {
		defer close(done)
		s.recordFailure(w.Run(ctx))
	})

	stop = func() {
		cancel()
		<-done
	}

	s.workers = append(s.workers, stop)
	return stop, nil
}

// A Greeted stream says when its first message has come.
type Greeted struct {
	client.WorkerStream
	Greet func() error // nil after the first message
}

// Recv returns the next message.
func (g *Greeted) Recv() (*protocol.ToWorker, error) {
	m, err := g.WorkerStream.Recv()
	if err == nil && g.Greet != nil {
		err, g.Greet = g.Greet(), nil
	}
	return m, err
}

// NewConnection returns a client with a connection of its own, which the system closes in
// the end. A server bounds the streams of a connection.
func (s *System) NewConnection() (*client.Client, error) {
	c, err := client.NewInProcess(s.server, client.Config{})
	if err == nil {
		s.connections = append(s.connections, c)
	}
	return c, err
}

// Close ends the system, workers first.
func (s *System) Close() error {
	for _, stop := range s.workers {
		stop()
	}

	s.stop()
	s.running.Wait()

	ctx, stop := context.WithTimeout(context.Background(), time.Minute) // however long the machine stands still
	defer stop()
	s.server.Shutdown(ctx)
	s.serving.Wait()

	s.recordFailure(s.orchestrator.Retire(ctx))
	s.recordFailure(s.Client.Close())
	for _, c := range s.connections {
		s.recordFailure(c.Close())
	}
	s.recordFailure(s.Observer.Close())
	return errors.Join(s.failed...)
}

// WithSystem measures something on a new system, which it removes afterwards.
func (site *Site) WithSystem(measure func(s *System) error) error {
	return site.InPlace(func(p Place) error {
		s, err := OpenSystem(p)
		if err != nil {
			return err
		}
		return errors.Join(measure(s), s.Close())
	})
}
