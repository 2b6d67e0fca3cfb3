package worker_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("stream broken")

// A pipe is a stream in memory; either side, or the context of the worker's,
// can break it.
type pipe struct {
	blobs  protocol.Blobs
	ctx    context.Context // of the worker's side
	up     chan *protocol.FromWorker
	down   chan *protocol.ToWorker
	closed chan struct{} // by the worker: it sends no more
	ended  chan struct{} // by the orchestrator: it sends no more
	broken chan struct{}
	once   [3]sync.Once
}

func newPipe(ctx context.Context, blobs protocol.Blobs) *pipe {
	return &pipe{
		blobs: blobs, ctx: ctx, up: make(chan *protocol.FromWorker), down: make(chan *protocol.ToWorker),
		closed: make(chan struct{}), ended: make(chan struct{}), broken: make(chan struct{}),
	}
}

func (p *pipe) cut() { p.once[0].Do(func() { close(p.broken) }) }
func (p *pipe) end() { p.once[1].Do(func() { close(p.ended) }) }

// GetBlob and PutBlob end with their contexts alone, as on a connection that has gone silent.

func (n near) GetBlob(ctx context.Context, q *protocol.BlobRequest, take func([]byte) error) error {
	return n.blobs.GetBlob(ctx, q, take)
}

func (n near) PutBlob(ctx context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	return n.blobs.PutBlob(ctx, q, next)
}

// near is the worker's side.
type near struct{ *pipe }

var _ worker.Stream = near{}

func (n near) Send(m *protocol.FromWorker) error {
	select {
	case n.up <- m:
		return nil
	case <-n.ended:
	case <-n.broken:
	case <-n.ctx.Done():
		return n.ctx.Err()
	}
	return errBroken
}

func (n near) Recv() (*protocol.ToWorker, error) {
	select {
	case m := <-n.down:
		return m, nil
	case <-n.ended:
		return nil, io.EOF
	case <-n.broken:
		return nil, errBroken
	case <-n.ctx.Done():
		return nil, n.ctx.Err()
	}
}

func (n near) CloseSend() error {
	n.once[2].Do(func() { close(n.closed) })
	return nil
}

// far is the orchestrator's side.
type far struct{ *pipe }

var _ protocol.WorkStream = far{}

func (f far) Send(m *protocol.ToWorker) error {
	select {
	case f.down <- m:
		return nil
	case <-f.broken:
	case <-f.ctx.Done():
	}
	return errBroken
}

func (f far) ClosedByWorker() bool { return false }

func (f far) Recv() (*protocol.FromWorker, error) {
	select {
	case m := <-f.up:
		return m, nil
	case <-f.closed:
		return nil, io.EOF
	case <-f.broken:
	case <-f.ctx.Done():
	}
	return nil, errBroken
}

// A peer is an orchestrator that a test plays by hand, within a bubble.
type peer struct {
	*vault
	t     *testing.T
	conns chan *pipe
	pipe  *pipe

	mu    sync.Mutex // guards the fields below
	got   protocol.FromWorker
	msgs  []*protocol.FromWorker
	ended error
	owes  chan struct{} // if there is one, connections end only when it is closed
}

func newPeer(t *testing.T) *peer {
	return &peer{vault: newVault(), t: t, conns: make(chan *pipe, 100)}
}

// connect is a worker.Connect.
func (p *peer) connect(ctx context.Context) (worker.Stream, error) {
	pipe := newPipe(ctx, p.vault)
	p.conns <- pipe
	return near{pipe}, nil
}

// accept takes the next connection, welcomes the worker and collects what it
// says. It returns the hello.
func (p *peer) accept(w protocol.Welcome) *protocol.FromWorker {
	p.t.Helper()
	p.pipe = <-p.conns
	hello, err := far{p.pipe}.Recv()
	for err != nil { // the worker has given this connection up
		p.pipe = <-p.conns
		hello, err = far{p.pipe}.Recv()
	}
	if hello.Hello == nil {
		p.t.Fatalf("first message = %+v; want a hello", hello)
	}
	p.send(&protocol.ToWorker{Welcome: &w})
	go p.collect(p.pipe)
	return hello
}

func (p *peer) collect(pipe *pipe) {
	for {
		m, err := far{pipe}.Recv()
		p.mu.Lock()
		if err != nil {
			p.ended = err
			owes := p.owes
			p.mu.Unlock()
			if owes != nil {
				<-owes
			}
			pipe.end()
			return
		}
		p.msgs = append(p.msgs, m)
		p.got.Reports = append(p.got.Reports, m.Reports...)
		p.got.Started = append(p.got.Started, m.Started...)
		p.got.Reserve = append(p.got.Reserve, m.Reserve...)
		if m.Heartbeat != nil {
			p.got.Heartbeat = m.Heartbeat
		}
		p.got.Drain = p.got.Drain || m.Drain
		p.mu.Unlock()
	}
}

func (p *peer) send(m *protocol.ToWorker) {
	p.t.Helper()
	if err := (far{p.pipe}).Send(m); err != nil {
		p.t.Fatal(err)
	}
}

// take waits until the worker has nothing left to do at this instant, and
// returns what it said since the last take.
func (p *peer) take() protocol.FromWorker {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.got
	p.got, p.msgs = protocol.FromWorker{}, nil
	return got
}

// report is take for exactly one report.
func (p *peer) report() protocol.Report {
	p.t.Helper()
	got := p.take().Reports
	if len(got) != 1 {
		p.t.Fatalf("reports = %+v; want one", got)
	}
	return got[0]
}

// verdicts sends a verdict on each report.
func (p *peer) verdicts(v protocol.Verdict, rs ...protocol.Report) {
	p.t.Helper()
	m := &protocol.ToWorker{}
	for _, r := range rs {
		m.Verdicts = append(m.Verdicts, protocol.VerdictOn{Held: heldOf(r), Verdict: v})
	}
	p.send(m)
}

func heldOf(r protocol.Report) protocol.Held {
	return protocol.Held{Job: r.Job, Unit: r.Unit, Attempt: r.Attempt}
}

// assign introduces the job with spec and assigns units.
func (p *peer) assign(spec mapreduce.JobSpec, as ...protocol.Assignment) {
	p.t.Helper()
	p.send(&protocol.ToWorker{Jobs: []protocol.JobInfo{{Job: jobID, Spec: spec}}, Assignments: as})
}

const jobID = mapreduce.JobID("mr_20260101_abcdef")

// spec is that of jobs for the test's own agent.
var spec = mapreduce.JobSpec{Provider: "test", Model: "m"}

func unitOf(id mapreduce.UnitID) protocol.Assignment {
	return protocol.Assignment{Job: jobID, Unit: id, Attempt: 1, Kind: mapreduce.KindMap}
}

// A runFunc is an agent.
type runFunc func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error)

func (f runFunc) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	return f(ctx, task, calls)
}

func okay(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
	return &agent.Result{Output: []byte("ok"), Size: 1, Confidence: 0.5}, nil
}

// A running is a worker that runs, and the peer it talks to.
type running struct {
	*peer
	worker *worker.Worker
	stop   context.CancelFunc
	result chan error
}

// start runs a worker with one agent within a bubble. The peer has welcomed it.
func start(t *testing.T, run runFunc, cfg worker.Config) *running {
	t.Helper()
	p := newPeer(t)
	r := launch(t, p, run, cfg)
	p.accept(protocol.Welcome{Node: "n1", Epoch: 1})
	return r
}

func launch(t *testing.T, p *peer, run runFunc, cfg worker.Config) *running {
	t.Helper()
	return launchOf(t, p, step.Serving("test", run), cfg)
}

// launchOf runs a worker with steps.
func launchOf(t *testing.T, p *peer, steps *step.Registry, cfg worker.Config) *running {
	t.Helper()
	cfg.Steps = steps
	if cfg.Connect == nil {
		cfg.Connect = []worker.Connect{p.connect}
	}
	w, err := worker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{peer: p, worker: w, stop: stop, result: make(chan error, 1)}
	go func() { r.result <- w.Run(ctx) }()
	return r
}

// finish stops the worker and checks that nothing is left of it.
func (r *running) finish() {
	r.t.Helper()
	r.stop()
	if err := <-r.result; err != nil {
		r.t.Errorf("Run = %v; want nil", err)
	}
}

// after lets d pass.
func after(d time.Duration) { <-time.After(d) }
