package simulation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/step"
)

// A member is one process of a worker, on a host of its own.
type member struct {
	world  *world
	host   string
	worker *worker.Worker
	life   context.Context // of the process
	die    context.CancelFunc
	leave  context.CancelFunc // stops it in order
	ended  chan struct{}      // closed when nothing of it runs any more
	once   sync.Once          // ends it
}

// slots is how many units a worker runs at once.
const slots = 2

// join runs a worker in a place of the fleet, unless another than the one before it is there. It
// knows all addresses.
func (w *world) join(place int, before *member) error {
	w.mu.Lock()
	if w.members[place] != before {
		w.mu.Unlock()
		return nil
	}
	w.joined++
	m := &member{world: w, host: fmt.Sprintf("worker-%d", w.joined), ended: make(chan struct{})}
	w.members[place] = m
	w.mu.Unlock()

	m.life, m.die = context.WithCancel(context.Background())
	ctx, leave := context.WithCancel(context.Background())
	m.leave = leave
	config := worker.Config{
		Session: mapreduce.SessionID(m.host), Slots: slots, Prefetch: w.prefetch, DrainTimeout: 10 * time.Second,
		Steps: step.Serving(provider, &runner{world: w, name: m.host, life: m.life}),
	}

	var ends []*client.Client
	for i := range w.scenario.Nodes {
		at := (i + place) % w.scenario.Nodes // so that workers spread
		c, err := w.dial(m.host, at)
		if err != nil {
			return err
		}
		ends = append(ends, c)
		config.Connect = append(config.Connect, func(ctx context.Context) (worker.Stream, error) { return m.connect(ctx, c) })
	}

	var err error
	if m.worker, err = worker.New(config); err != nil {
		return err
	}
	w.running.Go(func() {
		defer close(m.ended)
		err := m.worker.Run(ctx)
		w.trace.note("%s ends: %v", m.host, err)
		for _, c := range ends {
			_ = c.Close() // nothing goes over it any more
		}
	})
	return nil
}

// connect opens a stream, unless the worker is dead.
func (m *member) connect(ctx context.Context, c *client.Client) (worker.Stream, error) {
	if m.life.Err() != nil {
		return nil, errDead
	}
	ctx, cut := context.WithCancel(ctx)
	context.AfterFunc(m.life, cut)
	s, err := c.Connect(ctx)
	if err != nil {
		cut()
		return nil, err
	}
	return &doubledDown{Stream: s, world: m.world}, nil
}

// kill ends the process at once. If it is told, its machine goes on and says so.
func (m *member) kill(told bool) {
	m.once.Do(func() {
		m.world.trace.note("%s dies", m.host)
		m.die()
		m.world.net.Down(m.host, told)
		m.leave()
	})
}

// stop lets the worker leave in order. It does not wait for that.
func (m *member) stop() {
	m.once.Do(func() {
		m.world.trace.note("%s leaves", m.host)
		m.leave()
	})
}

// dial returns a client at a host of the orchestrator at an address.
func (w *world) dial(host string, at int) (*client.Client, error) {
	// No name is looked up for a target of this form, and the dialer takes it as it likes.
	return client.Dial("unix:"+hostOf(at), client.Config{Options: []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return w.net.Dial(ctx, host, hostOf(at))
		}),
	}})
}

// errNobody is why a call was not answered by any orchestrator.
var errNobody = errors.New("simulation: no orchestrator answers")
