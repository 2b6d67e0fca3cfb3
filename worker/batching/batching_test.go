package batching_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/batching"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

const lines = 6

// A desk has one batch, as an orchestrator and its store would.
type desk struct {
	mu      sync.Mutex // guards the fields below
	order   protocol.BatchOrder
	replies map[int64]protocol.LineReply
	rest    protocol.LineOutcome // of lines without a reply, once the batch is over
	over    bool
	moves   []protocol.BatchState
	refuse  bool // reports, as of a batch that another sees to

	unheard bool // the first report that ends the batch is not heard

	full     bool     // there is no room when it is first begun
	troubles []string // that were told

	late time.Duration // that the first word of a creation takes on its way back
	bad  int64         // number of a line that nobody can read, from 1; 0 is none
	lost bool          // what is stored of the lines is damaged
}

func newDesk(provider, model string) *desk {
	return &desk{
		order: protocol.BatchOrder{Batch: protocol.Batch{
			Job: "mr_20260101_aaaaaa", Number: 1, Mark: "MARKOFTHISBATCH2345", Provider: provider, Model: model, Lines: lines, State: protocol.BatchPlanned,
		}},
		replies: make(map[int64]protocol.LineReply),
	}
}

func (d *desk) Orders(context.Context) ([]protocol.BatchOrder, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return nil, nil
	}
	return []protocol.BatchOrder{d.order}, nil
}

func (d *desk) Lines(_ context.Context, _ mapreduce.JobID, _ int64) (all []protocol.BatchLine, err error) {
	if d.lost {
		return nil, errs.New(errs.DataLoss, "the request of a unit is not what was stored")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range int64(lines) {
		if _, answered := d.replies[i]; answered {
			continue
		}
		raw, err := llm.EncodeRequest(&llm.Request{
			Model: llm.Model(d.order.Model), Messages: []llm.Message{llm.Say(llm.User, fmt.Sprint("question ", i))}, MaxTokens: 100,
		})
		if err != nil {
			return nil, err
		}
		if i == d.bad-1 {
			raw = []byte(`{"Messages":7}`)
		}
		all = append(all, protocol.BatchLine{Number: i, Request: raw})
	}
	return all, nil
}

func (d *desk) Report(ctx context.Context, _ mapreduce.JobID, _ int64, r *protocol.BatchReport) error {
	err := d.take(r)
	d.mu.Lock()
	wait := d.late
	if r.State == protocol.BatchCreating {
		d.late = 0
	}
	d.mu.Unlock()
	if err != nil || r.State != protocol.BatchCreating {
		return err
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *desk) take(r *protocol.BatchReport) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.State == protocol.BatchCreating && d.full {
		d.full = false
		return &errs.Error{Kind: errs.Exhausted, Reason: errs.NoBatchRoom, Message: "others have taken it"}
	}
	if d.refuse || d.over || r.Mark != d.order.Mark {
		return errs.New(errs.Precondition, "another sees to it")
	}
	if r.Over && d.unheard {
		d.unheard = false
		return errs.New(errs.Unavailable, "the store is away")
	}
	if r.Trouble != "" {
		d.troubles = append(d.troubles, r.Trouble)
	}
	if r.State != protocol.BatchUnknown {
		d.order.State, d.order.Vendor = r.State, r.Vendor
		d.moves = append(d.moves, r.State)
	}
	if r.State == protocol.BatchCreating && d.order.Begun.IsZero() {
		d.order.Begun = time.Now()
	}
	for _, one := range r.Replies {
		if _, twice := d.replies[one.Number]; !twice {
			d.replies[one.Number] = one
		}
	}
	d.over, d.rest = r.Over, r.Rest
	return nil
}

// setWait says why the batch is not to be begun yet.
func (d *desk) setWait(why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.order.Wait = why
}

// setCancel says whether the job of the batch was cancelled.
func (d *desk) setCancel(is bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.order.Cancel = is
}

// told returns what people were told of the batch.
func (d *desk) told() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.troubles)
}

func (d *desk) isOver() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// A place is a vendor, its format and a model of it.
type place struct {
	provider, base, model string
	wire                  fakellm.Wire
}

var places = []place{
	{"openai", "http://vendor.test/v1", "gpt-4.1-mini", fakellm.OpenAI},
	{"anthropic", "http://vendor.test/", "claude-haiku-4-5", fakellm.Anthropic},
	{"gemini", "http://vendor.test/v1beta", "gemini-2.5-flash", fakellm.Gemini},
}

// A house is a scripted vendor, a desk, and workers that see to its batch.
type house struct {
	*desk
	t      *testing.T
	server *batches.Server
	vendor batch.Vendor
	prices *llm.Prices
}

// each runs a test for each vendor, in virtual time.
func each(t *testing.T, script func() batches.Config, test func(h *house)) {
	t.Helper()
	for _, p := range places {
		t.Run(p.provider, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := script()
				config.Wire, config.Model = p.wire, func(fakellm.Call) fakellm.Reply { return fakellm.Reply{Text: "said"} }
				h := &house{desk: newDesk(p.provider, p.model), t: t, server: batches.New(config)}
				var err error
				if h.vendor, err = vendors.All().NewBatches(p.provider, llm.Config{Key: llm.NewKey("sk-test-0123456789abcdefghij"), BaseURL: p.base, Transport: h.server.Transport()}); err != nil {
					t.Fatal(err)
				}
				if h.prices, err = llm.ListPrices(); err != nil {
					t.Fatal(err)
				}
				test(h)
			})
		})
	}
}

// work sees to the batch until stop is called, as a worker does.
func (h *house) work() (stop func()) {
	holder := batching.New(batching.Config{
		Names:  []string{h.order.Provider},
		Vendor: func(*protocol.BatchOrder) (batch.Vendor, error) { return h.vendor, nil },
		Prices: func(*protocol.BatchOrder) (*llm.Prices, error) { return h.prices, nil },
	})
	ctx, cancel := context.WithCancel(h.t.Context())
	var running sync.WaitGroup
	running.Go(func() { holder.Run(ctx, h.desk) })
	return func() {
		cancel()
		running.Wait()
	}
}

// untilOver waits until nothing is left of the batch.
func (h *house) untilOver() {
	h.t.Helper()
	for range 24 * 60 * 2 {
		if h.isOver() {
			return
		}
		<-time.After(time.Minute)
	}
	h.t.Fatalf("the batch is not over after two days: %+v", h.order)
}

// want checks how many batches were made, and how many lines have which outcome.
func (h *house) want(made int, outcomes map[protocol.LineOutcome]int) {
	h.t.Helper()
	if got := h.server.Made(); got != made {
		h.t.Errorf("%d batches were made, want %d; it was %v", got, made, h.moves)
	}
	got := make(map[protocol.LineOutcome]int)
	for _, r := range h.replies {
		got[r.Outcome]++
	}
	if n := lines - len(h.replies); n > 0 {
		got[h.rest] += n
	}
	for outcome, n := range outcomes {
		if got[outcome] != n {
			h.t.Errorf("%d lines %s, want %d: %v", got[outcome], outcome, n, got)
		}
	}
}

// A batch for which there is no room is not made, and says once why; it is made when there is some. It has tried nothing,
// so it does not wait longer each time.
func TestBatchesWaitForRoom(t *testing.T) {
	each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
		h.setWait("there is room for 5 calls")
		h.full = true
		defer h.work()()
		<-time.After(3 * time.Hour)
		if n := h.server.Made(); n != 0 {
			t.Errorf("%d batches were made without room", n)
		}
		h.setWait("")
		<-time.After(10 * time.Minute)
		if n := h.server.Made(); n != 1 {
			t.Errorf("%d batches were made ten minutes after there was room", n)
		}
		h.untilOver()
		h.want(1, map[protocol.LineOutcome]int{protocol.LineSucceeded: lines})
		if diff := cmp.Diff([]string{"there is room for 5 calls", "others have taken it"}, h.troubles); diff != "" {
			t.Errorf("why it waited (-want +got):\n%s", diff)
		}
	})
}

// Each line has one outcome, whatever its vendor says of it, and how often.
func TestEveryLineHasAnOutcome(t *testing.T) {
	script := func() batches.Config {
		return batches.Config{Fate: func(n int, _ string) batches.Fate {
			return map[int]batches.Fate{1: batches.Dropped, 2: batches.Twice, 3: batches.Late, 4: batches.Withdrawn}[n]
		}}
	}
	each(t, script, func(h *house) {
		defer h.work()()
		h.untilOver()
		if h.order.Provider == "gemini" { // whose lines each have one result, and an error whatever goes wrong
			h.want(1, map[protocol.LineOutcome]int{protocol.LineSucceeded: lines - 2, protocol.LineErrored: 2})
			return
		}
		h.want(1, map[protocol.LineOutcome]int{
			protocol.LineSucceeded: lines - 3, protocol.LineLost: 1, protocol.LineExpired: 1, protocol.LineCancelled: 1,
		})
	})
}

// A forgetful vendor leaves out a result, and the names of all of those that have a place.
type forgetful struct {
	batch.Vendor
	mixed bool // none is left out, and their order is not that of the lines
}

// Results implements batch.Vendor. Those behind the one that is left out take its place.
func (f forgetful) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		n := 0
		for r, err := range f.Vendor.Results(ctx, id) {
			if f.mixed {
				if r.CustomID, r.Mark = "", ""; r.N >= 0 {
					r.N = lines - 1 - r.N
				}
				if !yield(r, err) {
					return
				}
				continue
			}
			if n++; n == 2 {
				continue
			}
			if r.N >= 0 {
				r.CustomID, r.Mark = "", ""
			}
			if n > 2 && r.N > 0 {
				r.N--
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// Answers that may be to other lines are not used, and what they took counts.
func TestDisplacedAnswersAreNotUsed(t *testing.T) {
	each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
		h.vendor = forgetful{Vendor: h.vendor}
		defer h.work()()
		h.untilOver()
		if h.order.Provider != "gemini" { // whose results have a place
			h.want(1, map[protocol.LineOutcome]int{protocol.LineSucceeded: lines - 1, protocol.LineLost: 1})
			return
		}
		h.want(1, map[protocol.LineOutcome]int{protocol.LineErrored: lines - 1, protocol.LineLost: 1})
		for n, r := range h.replies {
			if r.Response != nil || r.Tokens.In == 0 {
				t.Errorf("line %d has the answer %s, and took %+v", n, r.Response, r.Tokens)
			}
		}
	})
}

// Answers whose lines nobody names are not used by their order, which vendors have been seen to mix; what they took counts.
func TestMixedAnswersAreNotUsed(t *testing.T) {
	each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
		h.vendor = forgetful{Vendor: h.vendor, mixed: true}
		defer h.work()()
		h.untilOver()
		if h.order.Provider != "gemini" { // whose results have neither a name nor a place
			h.want(1, map[protocol.LineOutcome]int{protocol.LineLost: lines})
			return
		}
		h.want(1, map[protocol.LineOutcome]int{protocol.LineErrored: lines})
		for n, r := range h.replies {
			if r.Response != nil || r.Tokens.In == 0 || r.CostMicros == 0 {
				t.Errorf("line %d has the answer %s, and took %+v for %d", n, r.Response, r.Tokens, r.CostMicros)
			}
		}
	})
}

// A lossy vendor loses results after the first of them, or cannot tell them any more.
type lossy struct {
	batch.Vendor
	kind llm.Kind
}

// Results implements batch.Vendor.
func (l lossy) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		for r, err := range l.Vendor.Results(ctx, id) {
			if !yield(r, err) {
				return
			}
			yield(batch.Result{}, llm.NewError(l.kind, "there is nothing more"))
			return
		}
	}
}

// Results that cannot be read for long are lost, and the units go on without them; what could be read stands.
// A vendor that cannot be reached loses nothing.
func TestResultsThatCannotBeRead(t *testing.T) {
	for _, kind := range []llm.Kind{llm.NotFound, llm.Garbled} {
		t.Run(kind.String(), func(t *testing.T) {
			each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
				h.vendor = lossy{h.vendor, kind}
				begun := time.Now()
				defer h.work()()
				h.untilOver()
				h.want(1, map[protocol.LineOutcome]int{protocol.LineSucceeded: 1, protocol.LineLost: lines - 1})
				if took := time.Since(begun); took < time.Hour {
					t.Errorf("results were given up after %v", took)
				}
			})
		})
	}

	t.Run("unreachable", func(t *testing.T) {
		each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
			h.vendor = lossy{h.vendor, llm.Network}
			stop := h.work()
			<-time.After(48 * time.Hour)
			stop()
			if h.isOver() {
				t.Error("a batch whose vendor cannot be reached was given up")
			}
		})
	})
}

// A gone vendor has none of the batches that it made.
type gone struct{ batch.Vendor }

// Get implements batch.Vendor.
func (gone) Get(context.Context, string) (batch.Batch, error) {
	return batch.Batch{}, llm.NewError(llm.NotFound, "there is no such batch")
}

// Cancel implements batch.Vendor.
func (gone) Cancel(context.Context, string) error {
	return llm.NewError(llm.NotFound, "there is no such batch")
}

// A batch that its vendor does not have any more is given up, one that was cancelled too; not sooner than a vendor may take to
// show it.
func TestBatchThatIsGone(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		t.Run(fmt.Sprintf("cancelled %t", cancelled), func(t *testing.T) {
			each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
				h.vendor = gone{h.vendor}
				begun := time.Now()
				defer h.work()()
				<-time.After(time.Minute)
				h.setCancel(cancelled)

				h.untilOver()
				h.want(1, map[protocol.LineOutcome]int{protocol.LineLost: lines})
				if took := time.Since(begun); took < time.Hour {
					t.Errorf("it was given up after %v", took)
				}
			})
		})
	}
}

// A full vendor fails its first batches: more waits there than the account may have.
type fullVendor struct {
	batch.Vendor
	fails int
	why   *llm.Error

	mu     sync.Mutex // guards the variable below
	failed map[string]bool
}

// Get implements batch.Vendor.
func (f *fullVendor) Get(ctx context.Context, id string) (batch.Batch, error) {
	b, err := f.Vendor.Get(ctx, id)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && (f.failed[id] || len(f.failed) < f.fails) {
		f.failed[id] = true
		b.Status, b.Err = batch.Failed, f.why
	}
	return b, err
}

// A batch for which its vendor has no room is made again once it has, and not asked for the price of real time.
func TestFullVendorIsAskedAgain(t *testing.T) {
	each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
		h.vendor = &fullVendor{Vendor: h.vendor, fails: 20, why: llm.NewError(llm.RateLimited, "enqueued token limit reached"), failed: make(map[string]bool)}
		begun := time.Now()
		defer h.work()()
		h.untilOver()
		h.want(21, map[protocol.LineOutcome]int{protocol.LineSucceeded: lines})
		if took := time.Since(begun); took < 3*time.Hour || took > 7*time.Hour {
			t.Errorf("21 creations took %v", took)
		}
	})
}

// A batch that its vendor fails by a fault of its own is made again for about an hour, and then its lines are asked in real
// time; one that would fail again is not.
func TestBatchesThatFailAreMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		fails, made int
		why         *llm.Error
		outcome     protocol.LineOutcome
		most        time.Duration
	}{
		"a fault that passes":  {3, 4, llm.NewError(llm.Server, "Cannot find file file-1"), protocol.LineSucceeded, 2 * time.Hour},
		"a fault that stays":   {1000, 10, llm.NewError(llm.Server, "the batch failed, and the vendor does not say why"), protocol.LineErrored, 2 * time.Hour},
		"an order that is bad": {1000, 1, llm.NewError(llm.Invalid, "This line is not parseable as valid JSON."), protocol.LineErrored, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
				if h.order.Provider == "anthropic" {
					return // its batches do not fail
				}
				h.vendor = &fullVendor{Vendor: h.vendor, fails: c.fails, why: c.why, failed: make(map[string]bool)}
				begun := time.Now()
				defer h.work()()
				h.untilOver()
				h.want(c.made, map[protocol.LineOutcome]int{c.outcome: lines})
				if took := time.Since(begun); took > c.most {
					t.Errorf("it took %v, want at most %v", took, c.most)
				}
			})
		})
	}
}

// A worker that learns late that it may create a batch leaves that to the one that has it by then.
func TestLateWordDoesNotCreateTwice(t *testing.T) {
	each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
		h.late = 25 * time.Minute
		first := h.work()
		<-time.After(time.Minute)
		second := h.work()
		<-time.After(3 * time.Hour)
		first()
		second()
		h.want(1, nil)
	})
}

// What a batch cost is what its vendor charges.
func TestCostIsThatOfBatches(t *testing.T) {
	each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
		defer h.work()()
		h.untilOver()
		var cost, want int64
		for _, r := range h.replies {
			cost += r.CostMicros
		}
		for _, c := range h.server.Bill() {
			e := c.Entry
			one, _ := h.prices.Cost(h.order.Provider, llm.Model(h.order.Model), llm.Usage{Input: e.Input, CacheWrite: e.CacheWrite, CacheRead: e.CacheRead, Output: e.Output}, llm.Batch)
			want += one
		}
		if cost != want || cost == 0 {
			t.Errorf("the replies cost %d, and the vendor charges %d", cost, want)
		}
	})
}

// A batch of a job that was cancelled is not made; one that was made is cancelled.
func TestCancelled(t *testing.T) {
	each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
		h.order.Cancel = true
		defer h.work()()
		h.untilOver()
		h.want(0, map[protocol.LineOutcome]int{protocol.LineCancelled: lines})
	})
	each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
		defer h.work()()
		<-time.After(25 * time.Minute) // of an hour
		h.mu.Lock()
		h.order.Cancel = true
		h.mu.Unlock()
		begun := time.Now()
		h.untilOver()
		if took := time.Since(begun); took > 15*time.Minute {
			t.Errorf("the batch ended %v after it was to be cancelled", took)
		}
	})
}

// counted counts how often a vendor is asked for a batch.
type counted struct {
	batch.Vendor
	asked *atomic.Int64
}

func (c counted) Get(ctx context.Context, id string) (batch.Batch, error) {
	c.asked.Add(1)
	return c.Vendor.Get(ctx, id)
}

// A vendor that takes its time to cancel a batch is asked how far it is at first often, and then as often as of any.
func TestCancelledBatchesAreAskedForLessAndLess(t *testing.T) {
	each(t, func() batches.Config {
		return batches.Config{Takes: func(int) time.Duration { return 5 * time.Hour }, Cancels: 2 * time.Hour}
	}, func(h *house) {
		asked := new(atomic.Int64)
		h.vendor = counted{h.vendor, asked}
		defer h.work()()
		<-time.After(25 * time.Minute)
		h.mu.Lock()
		h.order.Cancel = true
		h.mu.Unlock()

		before := asked.Load()
		<-time.After(10 * time.Minute)
		first := asked.Load() - before
		<-time.After(80 * time.Minute)
		if later := asked.Load() - before - first; first < 10 || first > 20 || later > 50 {
			t.Errorf("it was asked for %d times in the first 10 minutes and %d times in the next 80", first, later)
		}
	})
}

// untold is a vendor that says of no batch by when it ends.
type untold struct{ batch.Vendor }

func (u untold) Get(ctx context.Context, id string) (batch.Batch, error) {
	b, err := u.Vendor.Get(ctx, id)
	b.Expires = time.Time{}
	return b, err
}

// A batch that its vendor does not end in its time is cancelled an hour later: what is done by then is used, and the
// others are to be asked in real time. People are told once.
func TestOverdueBatchesAreCancelled(t *testing.T) {
	for _, told := range []bool{true, false} {
		each(t, func() batches.Config {
			return batches.Config{Takes: func(int) time.Duration { return 120 * time.Hour }, Stalls: true}
		}, func(h *house) {
			due := h.vendor.Limits(llm.Model(h.order.Model)).Within
			if !told {
				h.vendor = untold{h.vendor}
			}
			stop := h.work()
			<-time.After(due + 30*time.Minute)
			if said := h.told(); h.isOver() || len(said) > 0 {
				t.Errorf("half an hour after its time: over %v, %q", h.isOver(), said)
			}
			<-time.After(90 * time.Minute)
			stop()
			if !h.isOver() {
				t.Fatalf("it goes on for ever: %+v", h.order)
			}
			if said := h.told(); len(said) != 1 || !strings.Contains(said[0], "it was to end by 2000-01-0") || !strings.Contains(said[0], "asked in real time") {
				t.Errorf("people were told %q", said)
			}
			h.want(1, map[protocol.LineOutcome]int{protocol.LineCancelled: lines - int(due/(20*time.Hour)), protocol.LineSucceeded: int(due / (20 * time.Hour))})
		})
	}
}

// A worker whose reports are refused leaves the batch to another.
func TestRefusedReportsEndTheWork(t *testing.T) {
	each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
		h.refuse = true
		stop := h.work()
		<-time.After(10 * time.Minute)
		stop()
		h.want(0, nil)
	})
}

// A line that cannot be read is asked in real time, where its unit makes it anew, and the others go in another
// batch; what is stored of a batch and damaged is not asked for again and again.
func TestLinesThatCannotBeRead(t *testing.T) {
	each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
		h.bad = 3
		defer h.work()()
		<-time.After(time.Minute)
		h.want(0, map[protocol.LineOutcome]int{protocol.LineErrored: 1, protocol.LineAgain: lines - 1})
		if got := h.replies[2]; !strings.Contains(got.Error, "no request that this version of the program reads") {
			t.Errorf("the reply to the line is %+v", got)
		}
	})
	// The same if the store is away for a moment when they have been told apart.
	each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
		h.bad, h.unheard = 3, true
		defer h.work()()
		h.untilOver()
		h.want(0, map[protocol.LineOutcome]int{protocol.LineErrored: 1, protocol.LineAgain: lines - 1})
	})
	each(t, func() batches.Config { return batches.Config{} }, func(h *house) {
		h.lost = true
		defer h.work()()
		<-time.After(time.Minute)
		h.want(0, map[protocol.LineOutcome]int{protocol.LineErrored: lines})
	})
}
