// Package worker runs units: it keeps one session with the orchestrators, gives
// what they assign to the runners of steps in a bounded number of slots, and
// reports what became of it until it has their verdict.
//
// It talks to orchestrators only through the messages of api/mapreduce, over
// whatever stream it is given, and never to a store. It imports no provider of
// models and no runner of a step: those are handed to it.
package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/apart"
	"github.com/coditect/mapreduce/worker/batchdesk"
	"github.com/coditect/mapreduce/worker/observe"
	"github.com/coditect/mapreduce/worker/step"
)

// A Stream is a worker's end of a session. Send and Recv may be called at the
// same time, each by one goroutine, and both return soon after the context
// given to Connect ends. After CloseSend, Recv returns what is under way and
// then io.EOF.
type Stream interface {
	Send(*protocol.FromWorker) error
	Recv() (*protocol.ToWorker, error)
	CloseSend() error

	// Blobs carries what is too large for messages, to and from the same
	// orchestrator. A transfer ends soon after its context does, which is when the
	// session has left the stream.
	protocol.Blobs
}

// Connect opens a stream to one orchestrator. The stream lives no longer than
// ctx.
type Connect func(ctx context.Context) (Stream, error)

// Config configures a worker.
type Config struct {
	Session mapreduce.SessionID // Defaults to one drawn at random.
	Version string              // Of the program; for display.
	Connect []Connect           // One for each address of an orchestrator. Needed.
	// Addresses are those behind Connect, in its order, for the log. Defaults to numbers.
	Addresses []string
	Steps     *step.Registry // Who runs units. Needed.
	Tools     []string       // Names of the tools that units may use here. Defaults to none.
	Parsers   []string       // Names of the parsers that it has. Defaults to none.
	Slots     int            // Units that run at once. Defaults to mapreduce.DefaultParallelism.
	Embedded  bool           // It shares the orchestrator's process, and dies with it.
	Prefetch  int            // Units held beside those that run. Defaults to 0, none.
	Limits    Limiter        // Of calls to models. Defaults to none.
	Manners   MannersKeeper  // Of servers of models. Defaults to none.
	Batches   Batcher        // Sees to batches at vendors. Defaults to none.
	// StartApart starts processes for units that are to run alone, because workers were lost
	// while they ran them. Defaults to none: such a unit then has all slots to itself.
	StartApart apart.Start
	// DrawPages draws pages of documents for models that are shown them. Defaults to none.
	DrawPages DrawPages
	Logger    *slog.Logger // Defaults to none.
	Meter     metric.Meter // Asks for the worker's counts. Defaults to none.
	Tracer    trace.Tracer // Is told of attempts that their orchestrators trace. Defaults to none.

	Heartbeat    time.Duration // Unless the orchestrator wishes another. Defaults to 3 s.
	DrainTimeout time.Duration // How long units may run on while draining. Defaults to 25 s.
	Grace        time.Duration // From the end of an attempt's context until it is abandoned. Defaults to 5 s.

	MaxOutput int // Bytes of one output. Defaults to 64 MiB.
	MaxInput  int // Bytes that are fetched for one unit. Defaults to 128 MiB.
}

func (c Config) withDefaults() Config {
	c.Session = cmp.Or(c.Session, mapreduce.SessionID("w_"+rand.Text()))
	c.Slots = cmp.Or(c.Slots, mapreduce.DefaultParallelism)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))

	c.Heartbeat = cmp.Or(c.Heartbeat, 3*time.Second)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 25*time.Second)
	c.Grace = cmp.Or(c.Grace, 5*time.Second)

	c.Limits = cmp.Or[Limiter](c.Limits, noLimits{})
	c.Manners = cmp.Or[MannersKeeper](c.Manners, noManners{})

	c.MaxOutput = cmp.Or(c.MaxOutput, 64<<20)
	c.MaxInput = cmp.Or(c.MaxInput, 128<<20)
	return c
}

func (c Config) validate() error {
	if len(c.Connect) == 0 {
		return errors.New("worker: Connect: no orchestrator to connect to")
	}
	if c.Steps == nil || len(c.Steps.Names()) == 0 {
		return errors.New("worker: Steps: nothing to run units with")
	}
	if c.MaxOutput > protocol.MaxOutput {
		return fmt.Errorf("worker: MaxOutput: is %d; orchestrators take at most %d bytes", c.MaxOutput, protocol.MaxOutput)
	}

	// Zero means the default, so only what is below it is wrong.
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Slots", int64(c.Slots)},
		{"Prefetch", int64(c.Prefetch)},
		{"Heartbeat", int64(c.Heartbeat)},
		{"DrainTimeout", int64(c.DrainTimeout)},
		{"Grace", int64(c.Grace)},
		{"MaxOutput", int64(c.MaxOutput)},
		{"MaxInput", int64(c.MaxInput)},
	} {
		if f.value < 0 {
			return fmt.Errorf("worker: %s: must not be negative", f.name)
		}
	}

	return nil
}

// workerOffer returns what the worker offers to units.
func (c Config) workerOffer() mapreduce.Offer {
	return mapreduce.Offer{
		Providers: c.Steps.Names(), Tools: slices.Sorted(slices.Values(c.Tools)), Parsers: slices.Sorted(slices.Values(c.Parsers)),
		Batches: c.batchProviders(), Dollars: true, Reviews: true, Deadlines: true,
	}
}

// batchProviders returns the providers whose batches can be made here.
func (c Config) batchProviders() []string {
	if c.Batches == nil {
		return nil
	}
	return slices.Sorted(slices.Values(c.Batches.Providers()))
}

// A Worker runs units for orchestrators.
type Worker struct {
	session *session
	started chan struct{} // holds one element until Run takes it
}

// New returns a worker that does nothing until Run.
func New(cfg Config) (*Worker, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}

	w := &Worker{session: newSession(cfg.withDefaults()), started: make(chan struct{}, 1)}
	w.started <- struct{}{}
	return w, observe.Register(w.session.cfg.Meter, w.reading)
}

// Session returns the name of the worker's session.
func (w *Worker) Session() mapreduce.SessionID { return w.session.cfg.Session }

// Stats returns the worker's current counts.
func (w *Worker) Stats() observe.Stats { return w.session.copyStats() }

// reading returns how the worker stands, for who measures it.
func (w *Worker) reading() observe.Reading {
	r := observe.Reading{Stats: w.Stats(), Slots: w.session.cfg.Slots, Connected: w.Connected()}
	for _, b := range w.session.breakers.Open() {
		r.Open = append(r.Open, b.Name)
	}
	return r
}

// Connected reports whether an orchestrator has taken this worker up on a stream that
// has not ended.
func (w *Worker) Connected() bool { return w.session.connected.Load() }

// Trouble returns why no orchestrator has this worker: how its latest stream ended, or why
// there was none, with the address. It returns nil while it is connected, and before the
// first attempt has failed.
func (w *Worker) Trouble() error {
	if err := w.session.trouble.Load(); err != nil && !w.Connected() {
		return *err
	}
	return nil
}

// Run serves orchestrators until ctx ends, and then drains: it takes nothing
// more, hands back what has not begun, lets what runs finish within
// Config.DrainTimeout, hands back the rest, and waits for the verdicts. If there
// is no orchestrator to give them, it waits 5 s for one once nothing runs. Running
// units do not see ctx end.
//
// It returns nil if nothing was left behind. Other outcomes: the first orchestrator ever
// reached does not let it in, or reports are left without a verdict. Run is called once.
func (w *Worker) Run(ctx context.Context) error {
	select {
	case <-w.started:
	default:
		return errors.New("worker: Run was called before")
	}

	s := w.session
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	s.deliveries.life = life

	if w.session.cfg.Batches != nil {
		s.slots.Go(func() { s.cfg.Batches.Run(life, batchdesk.New(s.transfers)) })
	}

	retired := make(chan struct{})
	go func() {
		defer close(retired)
		w.awaitRetirement(ctx, life)
		end(errDraining)
	}()

	// The context of the session ends for either reason; awaitRetirement must be over
	// before its goroutines are waited for.
	err := (&connector{s}).stayConnected(life)
	end(err)
	<-retired
	s.slots.Wait()
	s.deliveries.putting.Wait()

	return errors.Join(err, s.leftBehind())
}

const (
	verdictWait = 5 * time.Second // for verdicts once nothing runs any more
	closeWait   = time.Second     // for an orchestrator to end a stream that we closed
)

// awaitRetirement waits for the reason to stop and then drains, within bounds.
func (w *Worker) awaitRetirement(ctx, life context.Context) {
	s := w.session

	select {
	case <-ctx.Done():
	case <-life.Done():
		return
	}

	s.drainQueue()
	if !w.waitIdle(life, s.cfg.DrainTimeout) {
		limit := verdictWait
		if s.interruptAll(errDraining) {
			limit += s.cfg.Grace
		}
		w.waitIdle(life, limit)
	}

	_ = clock.Sleep(life, closeWait) // it is over either way
}

// waitIdle waits until the session holds nothing, and reports whether it does.
func (w *Worker) waitIdle(life context.Context, limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-w.session.retiring.idle:
		return true
	case <-life.Done():
	case <-t.C:
	}
	return false
}

// addressOf names the orchestrator at a place of Connect.
func (c Config) addressOf(at int) string {
	if at < len(c.Addresses) {
		return c.Addresses[at]
	}
	return fmt.Sprintf("number %d", at+1)
}
