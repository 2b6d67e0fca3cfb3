package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
)

// A mortalStream is one whose worker has said hello, takes what it is given, and ends as the
// test says.
type mortalStream struct {
	hello  chan *protocol.FromWorker
	given  chan protocol.Assignment
	broken chan struct{}
	closed bool // by the worker's own system
}

// Send implements protocol.WorkStream.
func (s *mortalStream) Send(m *protocol.ToWorker) error {
	for _, a := range m.Assignments {
		s.given <- a
	}
	return nil
}

// Recv implements protocol.WorkStream.
func (s *mortalStream) Recv() (*protocol.FromWorker, error) {
	select {
	case m := <-s.hello:
		return m, nil
	case <-s.broken:
		return nil, errors.New("the connection has ended")
	}
}

// ClosedByWorker implements protocol.WorkStream.
func (s *mortalStream) ClosedByWorker() bool { return s.closed }

// What a killed worker held runs elsewhere a moment later; what a worker holds that the network
// cut off waits for it, as long as it may take to come back.
func TestAKilledWorkerIsToldFromABrokenNetwork(t *testing.T) {
	for _, test := range []struct {
		name   string
		closed bool
		least  time.Duration
		most   time.Duration
	}{
		{"its system closed the connection", true, 250 * time.Millisecond, 500 * time.Millisecond},
		{"the network broke", false, 10 * time.Second, 11 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				c := enginetest.NewCluster(t)
				n := c.Orchestrator(orchestrator.Config{Adopt: true, Grace: 10 * time.Second})
				n.Submit(enginetest.Script(nil), 1)

				s := &mortalStream{make(chan *protocol.FromWorker, 1), make(chan protocol.Assignment, 1), make(chan struct{}), test.closed}
				s.hello <- &protocol.FromWorker{Hello: &protocol.Hello{Session: "mortal", Slots: 1, Offer: mapreduce.Offer{Providers: []string{"scripted"}}}}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_ = n.Orch.Work(context.WithoutCancel(t.Context()), s)
				}()
				had := <-s.given

				other := enginetest.Greet(t, n, "other", 1)
				other.Until(func(m *protocol.ToWorker) bool { return m.Welcome != nil })
				killed := time.Now()
				close(s.broken)
				<-ended

				got := other.Assigned()
				if took := time.Since(killed); got.Unit != had.Unit || took < test.least || took > test.most {
					t.Errorf("%s was given to the other worker after %v; want %s after %v to %v", got.Unit, took, had.Unit, test.least, test.most)
				}
			})
		})
	}
}
