package worker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker"
)

// An orchestra is a Fleet in memory that keeps its units in maps: claims raise
// the attempt, finishes are fenced by it, sessions may be taken up again, and
// what a lost worker held goes back after a while. Faults make it as nasty as
// the protocol allows.
type orchestra struct {
	*vault
	spec     mapreduce.JobSpec
	faults   faults
	requeue  time.Duration // after a stream broke
	finished chan struct{} // closed when all units have ended

	mu       sync.Mutex // guards the fields below; taken before the vault's
	rand     *rand.Rand
	units    map[mapreduce.UnitID]*record
	ready    []*record
	open     int // units not ended
	sessions map[mapreduce.SessionID]*binding
	problems []error
}

var _ protocol.Fleet = (*orchestra)(nil)

// Faults are probabilities.
type faults struct {
	cut       float64 // of the stream, at a message from the worker
	lost      float64 // that what a message changed is not answered, and the stream cut
	late      float64 // that a verdict comes up to 3 s late, or with the next stream
	duplicate float64 // that an assignment is sent twice
}

type record struct {
	assignment protocol.Assignment
	state      mapreduce.UnitState
	session    mapreduce.SessionID // that processes it
	failures   int
	output     []byte
	errors     []string
}

// A binding is a session as it is known; epoch tells its streams apart.
type binding struct {
	epoch    int64
	capacity int
	pipe     interface{ cut() }
	held     map[mapreduce.UnitID]*record
	out      chan *protocol.ToWorker // to the present stream
}

func newOrchestra(seed uint64, spec mapreduce.JobSpec, as []protocol.Assignment) *orchestra {
	o := &orchestra{
		vault: newVault(),
		spec:  spec, requeue: time.Second, finished: make(chan struct{}),
		rand:     rand.New(rand.NewPCG(seed, 1)),
		units:    make(map[mapreduce.UnitID]*record),
		sessions: make(map[mapreduce.SessionID]*binding),
		open:     len(as),
	}
	o.before = func(context.Context, *protocol.BlobRequest, int64) error {
		if o.unlucky() {
			return errs.New(errs.Unavailable, "the transfer broke off")
		}
		return nil
	}
	for _, a := range as {
		r := &record{assignment: a, state: mapreduce.Pending}
		o.units[a.Unit] = r
		o.ready = append(o.ready, r)
	}
	return o
}

// connect returns a worker.Connect. The stream is served until it ends; wait
// waits for all of them.
func (o *orchestra) connect(wg *sync.WaitGroup) worker.Connect {
	return func(ctx context.Context) (worker.Stream, error) {
		if o.unlucky() {
			return nil, errBroken
		}
		p := newPipe(ctx, o.vault)
		wg.Go(func() {
			if err := o.Work(ctx, far{p}); err != nil {
				p.cut()
			}
			p.end()
		})
		return near{p}, nil
	}
}

// unlucky reports whether the stream is cut.
func (o *orchestra) unlucky() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rand.Float64() < o.faults.cut
}

// calm ends the faults.
func (o *orchestra) calm() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = faults{}
}

func (o *orchestra) problem(format string, args ...any) {
	o.problems = append(o.problems, fmt.Errorf(format, args...))
}

// Work implements protocol.Fleet.
func (o *orchestra) Work(ctx context.Context, stream protocol.WorkStream) error {
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	b, epoch, welcome := o.bind(m.Hello, stream.(far))
	defer o.unbound(m.Hello.Session, b, epoch)
	var wg sync.WaitGroup
	defer wg.Wait()
	done := make(chan struct{})
	defer close(done)
	out := make(chan *protocol.ToWorker, 10_000)
	o.mu.Lock()
	b.out = out
	o.mu.Unlock()
	out <- &protocol.ToWorker{Welcome: welcome, Jobs: []protocol.JobInfo{{Job: jobID, Spec: o.spec}}}
	wg.Go(func() {
		for {
			select {
			case m := <-out:
				if stream.Send(m) != nil {
					return
				}
			case <-done:
				return
			}
		}
	})
	draining := m.Drain
	for {
		o.dispatch(m.Hello.Session, b, epoch, draining)
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || o.unlucky() {
			return errBroken
		}
		draining = draining || m.Drain
		if !o.handle(b, epoch, m) {
			return errBroken
		}
	}
}

// bind begins a session or takes it up again: what it names and still stands
// is its own, and what it does not name goes back.
func (o *orchestra) bind(h *protocol.Hello, pipe far) (*binding, int64, *protocol.Welcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.sessions[h.Session]
	if b == nil {
		b = &binding{held: make(map[mapreduce.UnitID]*record)}
		o.sessions[h.Session] = b
	}
	if b.pipe != nil {
		b.pipe.cut()
	}
	b.epoch++
	b.pipe, b.capacity = pipe, h.Slots+h.Prefetch
	w := &protocol.Welcome{Node: "n", Epoch: b.epoch}
	named := make(map[mapreduce.UnitID]bool)
	for _, held := range h.Holding {
		r := o.units[held.Unit]
		free := r.state == mapreduce.Pending || r.state == mapreduce.Processing && r.session == h.Session
		if r.assignment.Attempt != held.Attempt || !free {
			w.Drop = append(w.Drop, held)
			continue
		}
		named[held.Unit] = true
		o.ready = slices.DeleteFunc(o.ready, func(x *record) bool { return x == r })
		r.state, r.session = mapreduce.Processing, h.Session
		b.held[held.Unit] = r
	}
	for id, r := range b.held {
		if !named[id] {
			o.giveBack(b, r)
		}
	}
	return b, b.epoch, w
}

// giveBack makes a unit ready again. mu is held.
func (o *orchestra) giveBack(b *binding, r *record) {
	delete(b.held, r.assignment.Unit)
	r.state, r.session = mapreduce.Pending, ""
	o.ready = append(o.ready, r)
}

// unbound gives back what a session holds if it does not come back in time.
func (o *orchestra) unbound(id mapreduce.SessionID, b *binding, epoch int64) {
	o.mu.Lock()
	d := time.Duration(o.rand.Float64() * 2 * float64(o.requeue))
	o.mu.Unlock()
	time.AfterFunc(d, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if b.epoch != epoch {
			return
		}
		for _, r := range b.held {
			o.giveBack(b, r)
		}
	})
}

// dispatch claims what the session has room for.
func (o *orchestra) dispatch(id mapreduce.SessionID, b *binding, epoch int64, draining bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b.epoch != epoch || draining {
		return
	}
	m := &protocol.ToWorker{}
	for len(b.held) < b.capacity && len(o.ready) > 0 {
		r := o.ready[0]
		o.ready = o.ready[1:]
		r.state, r.session = mapreduce.Processing, id
		r.assignment.Attempt++
		b.held[r.assignment.Unit] = r
		m.Assignments = append(m.Assignments, r.assignment)
		if o.rand.Float64() < o.faults.duplicate {
			m.Assignments = append(m.Assignments, r.assignment)
		}
	}
	if m.Assignments != nil {
		b.out <- m
	}
}

// handle takes a message, and reports whether the stream lives on.
func (o *orchestra) handle(b *binding, epoch int64, m *protocol.FromWorker) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b.epoch != epoch {
		return false
	}
	answer := &protocol.ToWorker{}
	for i := range m.Reports {
		answer.Verdicts = append(answer.Verdicts, protocol.VerdictOn{
			Held: heldOf(m.Reports[i]), Verdict: o.finish(b, &m.Reports[i]),
		})
	}
	for _, q := range m.Reserve {
		answer.Reserved = append(answer.Reserved, protocol.ReserveReply{Held: q.Held, Granted: true})
	}
	if o.rand.Float64() < o.faults.lost {
		return false
	}
	if answer.Verdicts != nil && o.rand.Float64() < o.faults.late {
		o.later(b, answer)
	} else if answer.Verdicts != nil || answer.Reserved != nil {
		b.out <- answer
	}
	return true
}

// later sends an answer late, on whatever stream the session has by then. mu is
// held.
func (o *orchestra) later(b *binding, answer *protocol.ToWorker) {
	time.AfterFunc(time.Duration(o.rand.Float64()*float64(3*time.Second)), func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		b.out <- answer
	})
}

// finish takes a report and returns the verdict. mu is held.
func (o *orchestra) finish(b *binding, rep *protocol.Report) protocol.Verdict {
	r := o.units[rep.Unit]
	stands := r.assignment.Attempt == rep.Attempt && !r.state.Ended()
	if !stands {
		if r.assignment.Attempt == rep.Attempt && r.state == mapreduce.UnitComplete && bytes.Equal(r.output, o.output(r, rep)) {
			return protocol.Accepted // its own success, told again
		}
		return protocol.Stale
	}
	o.ready = slices.DeleteFunc(o.ready, func(x *record) bool { return x == r })
	for _, s := range o.sessions {
		if s.held[rep.Unit] == r {
			delete(s.held, rep.Unit)
		}
	}
	r.errors = rep.Errors
	switch {
	case rep.Outcome == protocol.Done:
		r.output = o.output(r, rep)
		o.end(r, mapreduce.UnitComplete)
	case rep.Outcome == protocol.Returned:
		o.giveBack(b, r)
	case rep.Class != protocol.Retryable || r.failures == 4:
		o.end(r, mapreduce.UnitFailed)
	default:
		r.failures++
		o.giveBack(b, r)
	}
	return protocol.Accepted
}

func (o *orchestra) end(r *record, s mapreduce.UnitState) {
	r.state, r.session = s, ""
	if o.open--; o.open == 0 {
		close(o.finished)
	}
}

// output puts the output of a report together and checks it. mu is held.
func (o *orchestra) output(r *record, rep *protocol.Report) []byte {
	if rep.Length == 0 {
		return rep.Output
	}
	out := o.stored(protocol.BlobOutput, rep.Unit, rep.Attempt)
	if sum := sha256.Sum256(out); !bytes.Equal(sum[:], rep.SHA256) || int64(len(out)) != rep.Length {
		o.problem("%s: %d bytes were put, and are not the %d that were reported", rep.Unit, len(out), rep.Length)
	}
	return out
}
