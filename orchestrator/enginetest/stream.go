package enginetest

import (
	"context"
	"testing"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

// A Raw is a worker that does whatever the test says.
type Raw struct {
	T      *testing.T
	Stream client.WorkerStream
}

// Hello opens a stream of a session and returns it with its welcome.
func Hello(t *testing.T, n *Node, h protocol.Hello) (*Raw, *protocol.Welcome) {
	t.Helper()
	stream, err := n.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := &Raw{t, stream}
	h.Offer.Providers = []string{"scripted"}
	r.Send(&protocol.FromWorker{Hello: &h})
	return r, r.Recv().Welcome
}

// Send sends a message.
func (r *Raw) Send(m *protocol.FromWorker) {
	r.T.Helper()
	if err := r.Stream.Send(m); err != nil {
		r.T.Fatal(err)
	}
}

// Recv waits for the next message.
func (r *Raw) Recv() *protocol.ToWorker {
	r.T.Helper()
	m, err := r.Stream.Recv()
	if err != nil {
		r.T.Fatal(err)
	}
	return m
}

// Assigned waits for a unit.
func (r *Raw) Assigned() protocol.Held {
	r.T.Helper()
	for {
		if m := r.Recv(); len(m.Assignments) > 0 {
			a := m.Assignments[0]
			return protocol.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt}
		}
	}
}

// Report sends a finish, and returns the verdict on it.
func (r *Raw) Report(h protocol.Held, output string) protocol.Verdict {
	r.T.Helper()
	r.Send(&protocol.FromWorker{Reports: []protocol.Report{{
		Job: h.Job, Unit: h.Unit, Attempt: h.Attempt, Outcome: protocol.Done, Output: []byte(output), Size: 1,
		Tokens: mapreduce.Tokens{In: 7, Out: 7},
	}}})
	for {
		for _, v := range r.Recv().Verdicts {
			if v.Held == h {
				return v.Verdict
			}
		}
	}
}

// A Bare worker is a stream that says what a test wants.
type Bare struct {
	client.WorkerStream
	T   *testing.T
	Cut context.CancelFunc
}

// Greet connects a worker of so many slots, which holds some units already.
func Greet(t *testing.T, n *Node, session mapreduce.SessionID, slots int, held ...protocol.Held) Bare {
	t.Helper()
	return GreetWith(t, n, &protocol.FromWorker{Hello: &protocol.Hello{
		Session: session, Slots: slots, Offer: mapreduce.Offer{Providers: []string{"scripted"}}, Holding: held,
	}})
}

// GreetWith connects a worker that begins with a message.
func GreetWith(t *testing.T, n *Node, first *protocol.FromWorker) Bare {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s, err := n.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w := Bare{s, t, cancel}
	w.Say(first)
	return w
}

// Say sends a message.
func (w Bare) Say(m *protocol.FromWorker) {
	w.T.Helper()
	if err := w.Send(m); err != nil {
		w.T.Fatal(err)
	}
}

// Until receives until a message is what is waited for.
func (w Bare) Until(is func(*protocol.ToWorker) bool) *protocol.ToWorker {
	w.T.Helper()
	for {
		m, err := w.Recv()
		if err != nil {
			w.T.Fatal(err)
		}
		if is(m) {
			return m
		}
	}
}

// Assigned waits for a unit.
func (w Bare) Assigned() protocol.Held {
	w.T.Helper()
	a := w.Until(func(m *protocol.ToWorker) bool { return len(m.Assignments) > 0 }).Assignments[0]
	return protocol.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt, Running: true}
}

// Reserve asks for tokens of a unit's budget, and returns whether it has them.
func (w Bare) Reserve(held protocol.Held, tokens int64) bool {
	w.T.Helper()
	w.Ask(held, tokens)
	return w.Reserved()
}

// Ask asks for tokens of a unit's budget.
func (w Bare) Ask(held protocol.Held, tokens int64) {
	w.T.Helper()
	w.Say(&protocol.FromWorker{Reserve: []protocol.ReserveRequest{{Held: held, Tokens: tokens}}})
}

// Reserved waits for the answer to Ask.
func (w Bare) Reserved() bool {
	w.T.Helper()
	return w.Until(func(m *protocol.ToWorker) bool { return len(m.Reserved) > 0 }).Reserved[0].Granted
}

// Report reports an attempt and returns the verdict.
func (w Bare) Report(h protocol.Held, fill func(*protocol.Report)) protocol.Verdict {
	w.T.Helper()
	r := protocol.Report{Job: h.Job, Unit: h.Unit, Attempt: h.Attempt, Outcome: protocol.Done, Size: 1}
	fill(&r)
	w.Say(&protocol.FromWorker{Reports: []protocol.Report{r}})
	return w.Until(func(m *protocol.ToWorker) bool { return len(m.Verdicts) > 0 }).Verdicts[0].Verdict
}

// AsIs leaves a report as it is.
func AsIs(*protocol.Report) {}
