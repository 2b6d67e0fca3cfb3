// Package batching sees to batches at vendors, for the worker that its orchestrators have given them to.
// It makes them, asks how far they are, and says what became of each line. What it does next follows from
// what is stored of a batch and from what its vendor says; all that it holds itself it may lose.
//
//   - A batch is begun to be created only once the store says so, and it is asked for only once the store
//     has its id.
//   - Of a batch that was begun, by this process or one before, the vendor is asked first. It is made again
//     only when its vendor has had the time to show it, and whoever may still have been making it has had
//     to give up: Limits.Settle, and Config.Create.
//   - A report that is refused ends the work on a batch: another worker sees to it.
//
// It imports the port to batches and no vendor, and knows no session and no stream.
package batching

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
)

// Config configures a Holder.
type Config struct {
	// Names are the providers whose batches can be made.
	Names []string

	// Vendor returns what makes the batches of an order. It is required.
	Vendor func(order *protocol.BatchOrder) (batch.Vendor, error)

	// Prices returns the prices of the models of an order. It is required.
	Prices func(order *protocol.BatchOrder) (*llm.Prices, error)

	Ask     time.Duration // between two questions for orders. Defaults to 5 s
	Poll    time.Duration // between two questions for a batch, at first. Defaults to 15 s
	Slowest time.Duration // between two of them, at last. Defaults to 2 minutes
	Create  time.Duration // that the creation of a batch may take. Defaults to 10 minutes

	// Gone is how long a vendor has to say that it has no such batch, or no results of it, to be believed.
	// Defaults to an hour.
	Gone time.Duration

	// Skew is by how much clocks may differ: of this process, of the one that began to create a batch, and
	// of the vendor. Defaults to an hour.
	Skew time.Duration

	Logger *slog.Logger // Defaults to none
}

// atOnce bounds the batches that are made at once: each may have some 32 MiB of requests, which are held
// in several forms.
const atOnce = 4

// A Holder sees to batches.
type Holder struct {
	config Config
	making chan struct{} // full while atOnce batches are being made
}

// New returns a holder of no batch.
func New(c Config) *Holder {
	c.Ask = cmp.Or(c.Ask, 5*time.Second)
	c.Poll = cmp.Or(c.Poll, 15*time.Second)
	c.Slowest = max(c.Poll, cmp.Or(c.Slowest, 2*time.Minute))
	c.Create = cmp.Or(c.Create, 10*time.Minute)
	c.Gone = cmp.Or(c.Gone, time.Hour)
	c.Skew = cmp.Or(c.Skew, time.Hour)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return &Holder{config: c, making: make(chan struct{}, atOnce)}
}

// Providers returns the providers whose batches can be made.
func (h *Holder) Providers() []string { return h.config.Names }

// A batchKey names a batch among all.
type batchKey struct {
	job    mapreduce.JobID
	number int64
	mark   string
}

// Run sees to the batches that orchestrators give this worker, until ctx ends.
func (h *Holder) Run(ctx context.Context, desk protocol.BatchDesk) {
	var working sync.WaitGroup
	defer working.Wait()
	held := make(map[batchKey]*work)

	for clock.Sleep(ctx, h.config.Ask) == nil {
		orders, err := desk.Orders(ctx)
		if err != nil {
			// Those that it has go on: each of their reports is refused once another worker has them.
			h.config.Logger.Info("asking for batches to see to; trying again", "error", err)
			continue
		}
		h.follow(ctx, desk, orders, held, &working)
	}
}

// follow begins the work on batches that are new, and ends that on those that are gone.
func (h *Holder) follow(ctx context.Context, desk protocol.BatchDesk, orders []protocol.BatchOrder, held map[batchKey]*work, working *sync.WaitGroup) {
	named := make(map[batchKey]bool, len(orders))
	for i := range orders {
		o := &orders[i]
		key := batchKey{o.Job, o.Number, o.Mark}
		named[key] = true

		if w := held[key]; w != nil && !w.isOver() {
			w.tellCancelled(o.Cancel)
			w.others.Store(&o.Others)
			w.wait.Store(&o.Wait)
			continue
		}

		own, end := context.WithCancel(ctx)
		w := &work{holder: h, desk: desk, order: *o, end: end, cancel: make(chan struct{}), over: make(chan struct{}), silent: make(map[string]time.Time)}
		w.tellCancelled(o.Cancel)
		w.others.Store(&o.Others)
		w.wait.Store(&o.Wait)
		held[key] = w
		working.Go(func() { w.run(own) })
	}

	for key, w := range held {
		if !named[key] {
			w.end()
			delete(held, key)
		}
	}
}

// A work is what this process does about one batch, in a goroutine of its own.
type work struct {
	holder *Holder
	desk   protocol.BatchDesk
	end    context.CancelFunc // of the goroutine
	over   chan struct{}      // closed when it has ended

	asked  sync.Once
	cancel chan struct{}            // closed once the job was cancelled
	others atomic.Pointer[[]string] // ids at the vendor of the job's other batches, while this one is looked for
	wait   atomic.Pointer[string]   // why it is not begun yet, "" if it may be

	// What follows is the goroutine's own.
	order      protocol.BatchOrder
	vendor     batch.Vendor
	prices     *llm.Prices
	createdAs  string    // the id of a batch that was made, and whose id is perhaps not stored
	since      time.Time // that it is in its state here, as far as this process knows
	without    time.Time // since when its vendor says that it is not there; zero if it has not said so
	begun      time.Time // when this process began to create it; zero if it did not
	lost       bool      // this process has begun to create it, and does not know what came of that
	cancelled  bool      // its vendor was told
	endingFrom time.Time // since when
	told       int64     // lines that were reported as done
	unreadable time.Time // since when its results cannot be read; zero if they can

	// silent are batches that have ended, and whose results do not say whose they are, by their ids: since when this
	// worker has seen that.
	silent map[string]time.Time

	pause time.Duration // before the next question
}

func (w *work) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// tellCancelled tells the goroutine that the job was cancelled.
func (w *work) tellCancelled(is bool) {
	if is {
		w.asked.Do(func() { close(w.cancel) })
	}
}

func (w *work) isCancelled() bool {
	select {
	case <-w.cancel:
		return true
	default:
		return false
	}
}

// run takes one step after the other until the batch is over, or somebody else's.
func (w *work) run(ctx context.Context) {
	defer close(w.over)
	log := w.holder.config.Logger.With("job", w.order.Job, "batch", w.order.Number, "provider", w.order.Provider)

	var err error
	if w.vendor, err = w.holder.config.Vendor(&w.order); err == nil {
		w.prices, err = w.holder.config.Prices(&w.order)
	}
	if err != nil {
		log.Error("a batch cannot be seen to", "error", err)
		return // it is tried again with the next order
	}

	w.since = time.Now()
	for ctx.Err() == nil {
		over, err := w.step(ctx)
		switch {
		case over:
			return
		case errors.Is(err, errs.Precondition):
			log.Info("another worker sees to a batch now", "error", err)
			return
		case err != nil && ctx.Err() == nil:
			log.Warn("seeing to a batch; trying again", "error", err)
		}
		w.rest(ctx)
	}
}

// soonGone is how long vendors take to cancel a batch, as far as they say, and a little more: what takes longer is not
// asked for more often than one that is not cancelled.
const soonGone = 12 * time.Minute

// rest waits before the next step: longer each time, and not at all once the job was cancelled.
func (w *work) rest(ctx context.Context) {
	c := &w.holder.config
	slowest := c.Slowest
	if w.cancelled && time.Since(w.endingFrom) < soonGone { // somebody may wait for it
		slowest = min(slowest, 3*c.Poll)
	}
	w.pause = min(max(c.Poll, w.pause*3/2), slowest)
	if w.order.State == protocol.BatchPlanned && w.order.Tries > 0 {
		w.pause = min(c.Poll<<min(w.order.Tries, 10), slowestTry)
	}
	t := time.NewTimer(w.pause)
	defer t.Stop()

	wake := w.cancel
	if w.cancelled || w.isCancelled() {
		wake = nil // it has been heard
	}
	select {
	case <-t.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// report says something of the batch.
func (w *work) report(ctx context.Context, r *protocol.BatchReport) error {
	r.Mark = w.order.Mark
	return w.desk.Report(ctx, w.order.Job, w.order.Number, r)
}

// moveTo reports another state, and is in it once that is stored.
func (w *work) moveTo(ctx context.Context, r *protocol.BatchReport) error {
	if err := w.report(ctx, r); err != nil {
		return err
	}
	w.order.State = r.State
	if r.Vendor != "" {
		w.order.Vendor = r.Vendor
	}
	w.since, w.without, w.pause = time.Now(), time.Time{}, 0
	return nil
}

// close ends the batch: lines without an outcome get one.
func (w *work) close(ctx context.Context, rest protocol.LineOutcome, why string) (over bool, err error) {
	err = w.report(ctx, &protocol.BatchReport{Over: true, Rest: rest, Why: why})
	return err == nil, err
}
