package batching

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
)

// mostTries bounds the creations of a batch that its vendor refuses for now. Then its lines are asked in
// real time.
const mostTries = 100

// fewTries bounds the creations of a batch that its vendor takes, and then fails by a fault of its own: all of them
// take about an hour.
const fewTries = 10

// slowestTry bounds the time between two creations. All of mostTries take about a day: by then what
// waits at the vendor has ended.
const slowestTry = 15 * time.Minute

// step does what is next. It returns over if that was the last.
func (w *work) step(ctx context.Context) (over bool, err error) {
	switch {
	case w.createdAs != "" && w.order.State != protocol.BatchCreated:
		// It is there, and its id comes before all else.
		return false, w.moveTo(ctx, &protocol.BatchReport{State: protocol.BatchCreated, Vendor: w.createdAs})
	case w.order.State == protocol.BatchPlanned && w.isCancelled():
		return w.close(ctx, protocol.LineCancelled, "the batch was cancelled before it was made")
	case w.order.State == protocol.BatchPlanned && *w.wait.Load() != "":
		return false, w.sayWhy(ctx, *w.wait.Load())
	case w.order.State == protocol.BatchPlanned:
		return w.create(ctx)
	case w.order.State == protocol.BatchCreating:
		return w.find(ctx)
	case w.order.State == protocol.BatchCreated:
		return w.follow(ctx)
	}
	return true, fmt.Errorf("the batch is in state %d, which this version does not know", w.order.State)
}

// create makes the batch.
func (w *work) create(ctx context.Context) (over bool, err error) {
	// All of a batch is in memory while it is made.
	select {
	case w.holder.making <- struct{}{}:
		defer func() { <-w.holder.making }()
	case <-ctx.Done():
		return false, ctx.Err()
	case <-w.cancel:
		return false, nil
	}
	order, bad, err := w.readOrder(ctx)
	switch {
	case errors.Is(err, errs.DataLoss):
		return w.close(ctx, protocol.LineErrored, "what is stored of the batch cannot be read: "+err.Error())
	case err != nil:
		return false, err
	case len(bad) > 0:
		return w.setApart(ctx, bad)
	case int64(len(order.Lines)) < w.order.Lines:
		// Some were set apart, and the end of that was not heard: a batch of the others would not have the
		// count by which it is found if its creation is lost.
		return w.close(ctx, protocol.LineAgain, "")
	}

	// The time begins before the store hears of it: whoever takes the batch over counts from there on.
	w.begun = time.Now()
	limited, stop := context.WithTimeout(ctx, w.holder.config.Create)
	defer stop()
	if err := w.moveTo(limited, &protocol.BatchReport{State: protocol.BatchCreating}); err != nil {
		if e, ok := errors.AsType[*errs.Error](err); ok && e.Reason == errs.NoBatchRoom { // others have taken it
			return false, w.sayWhy(ctx, e.Message)
		}
		return false, err
	}
	made, err := w.vendor.Create(limited, *order)
	switch {
	case err == nil:
		w.createdAs = made.ID
		return w.step(ctx)
	case batch.Lost(err) || ctx.Err() != nil:
		w.lost, w.since = true, time.Now()
		return false, err
	}

	// There is no such batch. What the vendor will refuse again is asked in real time, where it is told
	// apart which call it was, and whether the job can go on.
	e, ok := errors.AsType[*llm.Error](err)
	if w.order.Tries++; ok && e.Class != protocol.Retryable || w.order.Tries >= mostTries {
		return w.close(ctx, protocol.LineErrored, "the batch could not be made: "+err.Error())
	}
	return false, errors.Join(err, w.moveTo(ctx, &protocol.BatchReport{State: protocol.BatchPlanned, Trouble: err.Error()}))
}

// sayWhy has people know why the batch is not begun yet.
func (w *work) sayWhy(ctx context.Context, why string) error {
	if w.order.Trouble == why {
		return nil
	}
	err := w.report(ctx, &protocol.BatchReport{State: protocol.BatchPlanned, Trouble: why})
	if err == nil {
		w.order.Trouble = why
	}
	return err
}

// readOrder returns what the batch is made of, and replies to lines that cannot be read. The id of a line
// is its number.
func (w *work) readOrder(ctx context.Context) (order *batch.Order, bad []protocol.LineReply, err error) {
	lines, err := w.desk.Lines(ctx, w.order.Job, w.order.Number)
	if err != nil {
		return nil, nil, err
	}

	// Lines of a job differ in little but their documents.
	var decoder llm.Decoder
	order = &batch.Order{Mark: w.order.Mark, Model: llm.Model(w.order.Model), Lines: make([]batch.Line, 0, len(lines))}
	for i, l := range lines {
		lines[i].Request = nil // it is large, and not needed any more
		req, err := decoder.Request(l.Request)
		if err != nil {
			why := fmt.Sprintf("the call cannot go by batch: what is stored of it is no request that this version of the program reads: %v", err)
			bad = append(bad, protocol.LineReply{Number: l.Number, Outcome: protocol.LineErrored, Error: why})
			continue
		}
		order.Lines = append(order.Lines, batch.Line{CustomID: strconv.FormatInt(l.Number, 10), Request: *req})
	}
	return order, bad, nil
}

// setApart answers lines that cannot be read, and has the others go in another batch: the places of the
// lines of a batch never change.
func (w *work) setApart(ctx context.Context, bad []protocol.LineReply) (over bool, err error) {
	w.holder.config.Logger.Error("calls of a batch cannot be read; they are made in real time", "job", w.order.Job, "batch", w.order.Number, "calls", len(bad), "first", bad[0].Error)
	for some := range slices.Chunk(bad, protocol.MaxReplies) {
		if err := w.report(ctx, &protocol.BatchReport{Replies: some}); err != nil {
			return false, err
		}
	}
	return w.close(ctx, protocol.LineAgain, "")
}

// find looks for a batch that was begun, and perhaps made.
func (w *work) find(ctx context.Context) (over bool, err error) {
	limits := w.vendor.Limits(llm.Model(w.order.Model))
	begun := cmp.Or(w.order.Begun, w.begun, w.since)
	all, err := w.vendor.Find(ctx, w.order.Mark, begun.Add(-w.holder.config.Skew))
	if err != nil {
		return false, err
	}
	if w.without.IsZero() { // while its vendor could not be asked it has not said anything
		w.without = time.Now()
	}

	unclear := 0
	for _, b := range all {
		if b.Status == batch.Failed {
			continue // no line of it was done, and its mark is that of the next
		}
		switch b.Mark {
		case w.order.Mark:
			w.createdAs = b.ID
			return w.step(ctx)
		case "":
			// What has ended, and has had no result for so long that says whose it is, will not say it any more:
			// Anthropic's have their mark in results alone. If it was this one, its results are lost.
			if b.Status.Over() && w.isSilent(b.ID) {
				continue
			}

			// It may be this one: that is known once it has ended, unless its size or the store tells.
			if !slices.Contains(*w.others.Load(), b.ID) && (b.Counts.Total == 0 || int64(b.Counts.Total) == w.order.Lines) {
				unclear++
			}
		}
	}

	// Another process may have been making it until a moment ago, and still be.
	settle := limits.Settle
	if !w.lost {
		settle += w.holder.config.Create
	}
	if unclear > 0 || time.Since(w.without) < settle {
		return false, nil
	}

	w.lost = false
	if w.order.Tries+1 >= mostTries {
		return w.close(ctx, protocol.LineErrored, "the batch could not be made: nobody heard what came of it each time, and its vendor has none of its mark")
	}
	if err := w.moveTo(ctx, &protocol.BatchReport{State: protocol.BatchPlanned, Trouble: "it was begun, and its vendor has none of its mark"}); err != nil {
		return false, err
	}
	w.order.Tries++ // as the store counts
	return false, nil
}

// isSilent reports whether a batch that has ended was seen without results for as long as its vendor has to be believed.
func (w *work) isSilent(id string) bool {
	since, seen := w.silent[id]
	if !seen {
		since = time.Now()
		w.silent[id] = since
	}
	return time.Since(since) >= w.holder.config.Gone
}

// follow asks how far the batch is, and reads what became of its lines once it has ended.
func (w *work) follow(ctx context.Context) (over bool, err error) {
	if w.isCancelled() && !w.cancelled {
		err := w.cancelAtVendor(ctx)
		if e, ok := errors.AsType[*llm.Error](err); err != nil && !(ok && e.Kind == llm.NotFound) { // else it is told below how long it is gone
			return false, err
		}
	}

	b, err := w.vendor.Get(ctx, w.order.Vendor)
	if e, ok := errors.AsType[*llm.Error](err); ok && e.Kind == llm.NotFound {
		if w.without.IsZero() {
			w.without = time.Now()
		}
		settle := w.vendor.Limits(llm.Model(w.order.Model)).Settle
		if time.Since(w.without) < settle+w.holder.config.Gone {
			return false, err
		}
		return w.close(ctx, protocol.LineLost, "its vendor has no such batch any more")
	}
	if err != nil {
		return false, err
	}

	w.without = time.Time{}
	if !b.Status.Over() {
		return false, errors.Join(w.tell(ctx, b.Counts), w.endOverdue(ctx, &b))
	}
	if w.order.Tries+1 < triesOf(b) {
		// No line of this one was done: it is made again, later.
		if err := w.moveTo(ctx, &protocol.BatchReport{State: protocol.BatchPlanned, Trouble: b.Err.Error()}); err != nil {
			return false, err
		}
		w.createdAs, w.order.Vendor = "", ""
		w.order.Tries++
		return false, nil
	}
	if err := w.readResults(ctx); err != nil {
		if !w.areLost(err) {
			return false, err
		}
		return w.close(ctx, protocol.LineLost, "what became of it cannot be read: "+err.Error())
	}
	rest, why := restOf(b)
	return w.close(ctx, rest, why)
}

// endOverdue cancels a batch that its vendor was to have ended long ago, as happens for days on end: what it has done
// is paid for and used, and the rest is asked in real time.
func (w *work) endOverdue(ctx context.Context, b *batch.Batch) error {
	due := w.dueBy(b)
	if w.cancelled || due.IsZero() || time.Since(due) < w.holder.config.Skew {
		return nil
	}
	why := fmt.Sprintf("it was to end by %s, and its vendor has not ended it (%s); it is cancelled, and what it has not answered is asked in real time", due.UTC().Format("2006-01-02 15:04 UTC"), b.Word)
	if err := w.report(ctx, &protocol.BatchReport{Trouble: why}); err != nil {
		return err
	}
	w.holder.config.Logger.Warn("a batch is overdue, and is cancelled", "job", w.order.Job, "batch", w.order.Vendor, "provider", w.order.Provider, "due", due, "state", b.Word)
	return w.cancelAtVendor(ctx)
}

// cancelAtVendor cancels the batch, and has the vendor be asked soon how far that is.
func (w *work) cancelAtVendor(ctx context.Context) error {
	if err := w.vendor.Cancel(ctx, w.order.Vendor); err != nil {
		return err
	}
	w.cancelled, w.endingFrom, w.pause = true, time.Now(), 0
	return nil
}

// dueBy returns by when a batch ends or expires, as its vendor says of it, or of all; the zero time if it does not.
func (w *work) dueBy(b *batch.Batch) time.Time {
	if !b.Expires.IsZero() {
		return b.Expires
	}

	begun, within := b.Created, w.vendor.Limits(llm.Model(w.order.Model)).Within
	if begun.IsZero() {
		begun = w.order.Begun
	}
	if begun.IsZero() || within == 0 {
		return time.Time{}
	}
	return begun.Add(within)
}

// triesOf returns how often a batch may be made that has ended like b: once, unless it failed for a reason that passes. That
// more waits than the account may have passes when other batches end.
func triesOf(b batch.Batch) int64 {
	switch {
	case b.Status != batch.Failed || b.Err == nil || b.Err.Class != protocol.Retryable:
		return 1
	case b.Err.Kind == llm.RateLimited:
		return mostTries
	}
	return fewTries
}

// areLost reports whether results that could not be read will not be there another time either: the
// vendor has said for long that there are none, or sends what nobody can read.
func (w *work) areLost(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.NotFound && e.Kind != llm.Garbled {
		w.unreadable = time.Time{}
		return false
	}
	if w.unreadable.IsZero() {
		w.unreadable = time.Now()
	}
	return time.Since(w.unreadable) >= w.vendor.Limits(llm.Model(w.order.Model)).Settle+w.holder.config.Gone
}

// tell reports how many lines are done, if there are more than before.
func (w *work) tell(ctx context.Context, c batch.Counts) error {
	done := int64(c.Succeeded + c.Errored + c.Expired + c.Cancelled)
	if done <= w.told {
		return nil
	}
	if err := w.report(ctx, &protocol.BatchReport{Done: done}); err != nil {
		return err
	}
	w.told = done
	return nil
}

// restOf returns what became of lines of a batch that have no result.
func restOf(b batch.Batch) (protocol.LineOutcome, string) {
	why := ""
	if b.Err != nil {
		why = b.Err.Error()
	}

	switch b.Rest {
	case batch.Expired:
		return protocol.LineExpired, why
	case batch.Cancelled:
		return protocol.LineCancelled, why
	}
	if b.Err != nil {
		return protocol.LineErrored, why
	}
	return protocol.LineLost, "its batch has ended without a result for it"
}

// reportBytes is how many bytes of replies go in one report, about.
const reportBytes = 256 << 10

// readResults reports what became of the lines. Those that were reported before are passed over by the
// store.
func (w *work) readResults(ctx context.Context) error {
	var replies, placed []protocol.LineReply
	size, places := 0, int64(0)
	flush := func() error {
		if len(replies) == 0 {
			return nil
		}
		err := w.report(ctx, &protocol.BatchReport{Replies: replies})
		replies, size = nil, 0
		return err
	}
	add := func(reply protocol.LineReply) error {
		replies = append(replies, reply)
		if size += len(reply.Response) + len(reply.Error) + 256; len(replies) == protocol.MaxReplies || size >= reportBytes {
			return flush()
		}
		return nil
	}

	for res, err := range w.vendor.Results(ctx, w.order.Vendor) {
		if err != nil {
			return errors.Join(err, flush())
		}
		reply, ok := w.replyOf(&res)
		if res.CustomID == "" { // whose it is, its place could say
			if places++; ok {
				placed = append(placed, reply)
			}
			continue
		}
		if ok {
			if err := add(reply); err != nil {
				return err
			}
		}
	}

	// Vendors that say that results are in the order of the lines have been seen to mix them.
	for _, reply := range placed {
		if w.order.Lines > 1 || places > 1 {
			reply = w.displaced(reply, places)
		}
		if err := add(reply); err != nil {
			return err
		}
	}
	return flush()
}

// displaced returns the reply to a line of a batch that does not say whose its results are. What it took counts; the
// answer may be to another line, and is not used.
func (w *work) displaced(r protocol.LineReply, results int64) protocol.LineReply {
	r.Outcome, r.Response, r.Kind = protocol.LineErrored, nil, 0
	r.Error = fmt.Sprintf("its batch has %d results for %d lines, which do not say whose they are", results, w.order.Lines)
	return r
}

// replyOf returns what became of a line, and what it took at the price of batches. It is false of a result
// that is none of this batch's lines.
func (w *work) replyOf(res *batch.Result) (protocol.LineReply, bool) {
	number := int64(res.N)
	if res.CustomID != "" {
		n, err := strconv.ParseInt(res.CustomID, 10, 64)
		if err != nil {
			return protocol.LineReply{}, false
		}
		number = n
	}
	if number < 0 || number >= w.order.Lines || res.Mark != "" && res.Mark != w.order.Mark {
		return protocol.LineReply{}, false
	}

	r := protocol.LineReply{Number: number}
	var usage llm.Usage
	switch {
	case res.Outcome == batch.Succeeded && res.Response != nil:
		usage = res.Response.Usage
		r.Outcome, r.Unmeasured = protocol.LineSucceeded, !usage.Reported
		w.enterResponse(&r, res.Response)
	case res.Outcome == batch.Expired:
		r.Outcome = protocol.LineExpired
	case res.Outcome == batch.Cancelled:
		r.Outcome = protocol.LineCancelled
	default:
		r.Outcome = protocol.LineErrored
	}

	if e := res.Err; e != nil {
		usage = e.Usage
		r.Error, r.Kind = e.Error(), int(e.Kind)
		// What is refused as it stands may be taken in real time, where a provider leaves out what its
		// server does not take.
		if r.Outcome == protocol.LineErrored && e.Class == protocol.PermanentUnit && e.Kind != llm.Invalid {
			r.Outcome = protocol.LineRefused
		}
	}
	w.price(&r, usage.IfPossible())
	return r, true
}

// enterResponse enters an answer in its reply, if it is not too long to be kept.
func (w *work) enterResponse(r *protocol.LineReply, res *llm.Response) {
	raw, err := llm.EncodeResponse(res)
	if err == nil && len(raw) <= protocol.MaxLine*3/4 {
		r.Response = raw
		return
	}
	r.Outcome, r.Kind = protocol.LineRefused, int(llm.TooLarge)
	r.Error = fmt.Sprintf("the answer has %d bytes; %d are kept", len(raw), protocol.MaxLine*3/4)
}

// price enters what a call took.
func (w *work) price(r *protocol.LineReply, u llm.Usage) {
	model := llm.Model(w.order.Model)
	r.Tokens = mapreduce.Tokens{In: u.In(), Out: u.Output}
	var priced bool
	if r.CostMicros, priced = w.prices.Cost(w.order.Provider, model, u, llm.Batch); !priced {
		r.Unpriced = r.Tokens.Total()
	}
	if u.In() > u.Input {
		plain, _ := w.prices.Cost(w.order.Provider, model, llm.Usage{Input: u.In(), Output: u.Output}, llm.Batch)
		r.Savings = mapreduce.Savings{CacheWrite: u.CacheWrite + u.CacheWrite1h, CacheRead: u.CacheRead, PromptMicros: plain - r.CostMicros}
	}
}
