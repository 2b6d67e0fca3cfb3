package messages

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/url"
	"sync"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

var _ batch.Vendor = batches{}

// batches are those of a provider. The vendor keeps no mark of a batch: the ids of its lines have it,
// and are seen again only among its results.
type batches struct {
	*provider
	marks *marks
}

// marks are those of batches that have ended, by the ids of these, as their results have told, for as long as one order is
// looked for: a search among a thousand batches asks for as many results, and one that fails is not to have all of them
// asked for again.
type marks struct {
	mu sync.Mutex // guards of
	of map[string]string
}

func (m *marks) find(id string) (mark string, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mark, known = m.of[id]
	return mark, known
}

func (m *marks) keep(id, mark string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of[id] = mark
}

// NewBatches returns what makes batches at a server. The error is an *llm.Error of the kind Invalid, if
// the address is no address.
func NewBatches(cfg llm.Config, server Server) (batch.Vendor, error) {
	p, err := newProvider(cfg, server)
	if err != nil {
		return nil, err
	}
	return batches{provider: p, marks: &marks{of: make(map[string]string)}}, nil
}

// batchPath is where batches are, below the base.
const batchPath = "v1/messages/batches"

// keptFor is how long the results of a batch are there, from its creation on.
const keptFor = 29 * 24 * time.Hour

// Limits implements batch.Vendor. The queue is that of the smallest plan, whose larger ones have up to
// two and a half times as much.
func (batches) Limits(llm.Model) batch.Limits {
	return batch.Limits{
		Lines: 100_000, Bytes: 256_000_000, Queue: 200_000, LongestID: 64 - batch.LongestMark - 1,
		Within: 24 * time.Hour, Kept: keptFor, Settle: 15 * time.Minute,
	}
}

// frame is what stands around the lines of an order, and between two of them.
const (
	frameBegin, frameBetween, frameEnd = `{"requests":[`, `,`, `]}`
)

// Size implements batch.Vendor.
func (b batches) Size(line batch.Line) (int64, error) {
	return wire.LineSize(line, len(frameBetween), b.encode)
}

// encode returns a line of an order.
func (b batches) encode(sentID string, line batch.Line) ([]byte, error) {
	req, with := b.LineRequest(line, b)
	body, err := newBody(req, with)
	if err != nil {
		return nil, err
	}

	return json.Marshal(struct {
		CustomID string `json:"custom_id"`
		Params   any    `json:"params"`
	}{sentID, body})
}

// Create implements batch.Vendor.
func (b batches) Create(ctx context.Context, order batch.Order) (batch.Batch, error) {
	limits := b.Limits(order.Model)
	limits.Bytes -= int64(len(frameBegin + frameEnd))
	payload, err := wire.EncodeLines(order, limits, wire.Frame{Head: frameBegin, Between: frameBetween, Tail: frameEnd}, b.encode)
	if err != nil {
		return batch.Batch{}, err
	}

	c := b.BeginCall(ctx, new(llm.Request))
	defer c.EndCall()
	var made state
	err = c.SendFor(wire.Request{Path: batchPath, Raw: payload}, &made)
	if err == nil && made.ID == "" {
		err = llm.NewError(llm.Garbled, "the answer names no batch")
	}
	if err != nil {
		return batch.Batch{}, c.Lost(err)
	}

	out := made.batch()
	out.Mark = order.Mark
	return out, nil
}

// A state is a batch as the vendor tells of it.
type state struct {
	ID        string    `json:"id"`
	Status    string    `json:"processing_status"`
	Created   time.Time `json:"created_at"`
	Ended     time.Time `json:"ended_at"`
	Expires   time.Time `json:"expires_at"`
	Archived  time.Time `json:"archived_at"`
	Cancelled time.Time `json:"cancel_initiated_at"`
	Counts    struct {
		Processing int `json:"processing"`
		Succeeded  int `json:"succeeded"`
		Errored    int `json:"errored"`
		Canceled   int `json:"canceled"`
		Expired    int `json:"expired"`
	} `json:"request_counts"`
}

// batch returns the batch.
func (s *state) batch() batch.Batch {
	n := s.Counts
	out := batch.Batch{
		ID: s.ID, Word: s.Status, Status: batch.Running, Rest: batch.Errored,
		Created: s.Created, Ended: s.Ended, Expires: s.Expires,
		Counts: batch.Counts{
			Total:     n.Processing + n.Succeeded + n.Errored + n.Canceled + n.Expired,
			Succeeded: n.Succeeded, Errored: n.Errored, Expired: n.Expired, Cancelled: n.Canceled,
		},
	}

	switch s.Status {
	case "ended":
		out.Status = batch.Ended
	case "canceling":
		out.Status = batch.Cancelling
	}

	switch {
	case !s.Archived.IsZero():
		out.KeptUntil = s.Archived
	case !s.Created.IsZero():
		out.KeptUntil = s.Created.Add(keptFor)
	}
	if !s.Cancelled.IsZero() {
		out.Rest = batch.Cancelled
	}
	return out
}

// onePath is where a batch is.
func onePath(id string) string { return batchPath + "/" + url.PathEscape(id) }

// Get implements batch.Vendor.
func (b batches) Get(ctx context.Context, id string) (batch.Batch, error) {
	var s state
	err := b.Dialer.Get(ctx, onePath(id), &s)
	return s.batch(), err
}

// Cancel implements batch.Vendor. The vendor refuses it of a batch that has ended.
func (b batches) Cancel(ctx context.Context, id string) error {
	c := b.BeginCall(ctx, new(llm.Request))
	defer c.EndCall()
	var s state
	err := c.SendFor(wire.Request{Path: onePath(id) + "/cancel", Post: true}, &s)
	if err == nil {
		return nil
	}

	if now, also := b.Get(ctx, id); also == nil && now.Status.Over() {
		return nil
	}
	return err
}

// A resultLine is a line of results.
type resultLine struct {
	CustomID string `json:"custom_id"`
	Result   struct {
		Type    string          `json:"type"`
		Message json.RawMessage `json:"message"`
		Error   json.RawMessage `json:"error"`
	} `json:"result"`
}

// Results implements batch.Vendor.
func (b batches) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		c := b.BeginDownload(ctx)
		defer c.EndCall()
		lines, err := c.SendLines(wire.Request{Path: onePath(id) + "/results"})
		if err != nil {
			yield(batch.Result{}, err)
			return
		}

		wire.Results(lines, c, func(raw json.RawMessage) (string, batch.Result, error) {
			var line resultLine
			if err := json.Unmarshal(raw, &line); err != nil {
				return "", batch.Result{}, err
			}
			return line.CustomID, b.resultOf(ctx, &line), nil
		})(yield)
	}
}

// resultOf returns what became of a line.
func (b batches) resultOf(ctx context.Context, line *resultLine) batch.Result {
	c := b.BeginLine(ctx, 200, requestOf(line.Result.Error))
	switch line.Result.Type {
	case "succeeded":
		return wire.LineResult(readMessage(c, line.Result.Message))
	case "errored":
		return wire.FailedLine(c.LineError(enveloped(line.Result.Error)))
	case "expired":
		return wire.Undone(batch.Expired)
	case "canceled":
		return wire.Undone(batch.Cancelled)
	}
	return wire.FailedLine(llm.NewError(llm.Server, "the vendor says of the line that it is %q", c.CleanText(line.Result.Type)))
}

// enveloped returns an error as the vendor writes all its errors. That of a line has an envelope of its
// own; gateways leave it out.
func enveloped(raw json.RawMessage) json.RawMessage {
	var e struct{ Error json.RawMessage }
	if json.Unmarshal(raw, &e) == nil && len(e.Error) > 0 {
		return raw
	}
	out, err := json.Marshal(map[string]json.RawMessage{"error": raw})
	if err != nil {
		return raw
	}
	return out
}

// requestOf returns the id of the request in whose answer an error came.
func requestOf(raw json.RawMessage) string {
	var e struct {
		RequestID string `json:"request_id"`
	}
	_ = wire.Decode(raw, &e) // there may be none
	return e.RequestID
}

// readMessage reads an answer that came whole.
func readMessage(c *wire.Call, raw json.RawMessage) (*llm.Response, error) {
	events, ok := wholeEvents(raw)
	if !ok {
		events, ok = wholeEvents(ended(raw))
	}
	if !ok {
		return nil, llm.NewError(llm.Garbled, "the answer to a line is none of this interface")
	}

	var t turn
	if err := t.takeAll(c, wire.OneByOne(events)); err != nil {
		return nil, t.noteWaste(err)
	}
	return t.toResponse(c, true)
}

// ended returns an answer that has been paid for and does not say why it ended as one that has ended as it should: those
// who pass results on leave out what they have no use for, and an answer that is cut off is told by its form.
func ended(raw json.RawMessage) json.RawMessage {
	var message map[string]json.RawMessage
	if json.Unmarshal(raw, &message) != nil || message["usage"] == nil {
		return nil
	}
	message["stop_reason"] = json.RawMessage(`"end_turn"`)
	out, err := json.Marshal(message)
	if err != nil {
		return nil
	}
	return out
}

// pageSize is the most batches that the vendor lists at once.
const pageSize = "100"

// mostFailures is how many requests for results may fail before a search ends: so it learns something each time, and
// does not go through a thousand batches of a vendor that answers nothing.
const mostFailures = 3

// Find implements batch.Vendor: whose a batch is, its results say, so each that has ended is asked for
// its first one.
func (b batches) Find(ctx context.Context, mark string, since time.Time) ([]batch.Batch, error) {
	var out []batch.Batch
	var failed error
	failures := 0
	for one, err := range b.list(ctx) {
		if err != nil {
			return nil, err
		}
		if !one.Created.IsZero() && one.Created.Before(since) {
			break // the newest come first
		}

		if one.Status == batch.Ended {
			of, known, err := b.markOf(ctx, one.ID)
			if err != nil {
				failed = err
				if failures++; failures == mostFailures {
					break
				}
				continue
			}
			if known && of != mark {
				continue
			}
			one.Mark = of
		}
		out = append(out, one)
		if one.Mark == mark { // whose the others are does not matter
			return out, nil
		}
	}

	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// markOf returns the mark in the first result of a batch; "" if it is of no order of ours. It is not known
// of one that has no results, or whose results are not there: they may be in a moment.
func (b batches) markOf(ctx context.Context, id string) (mark string, known bool, err error) {
	if mark, known = b.marks.find(id); known {
		return mark, true, nil
	}

	for r, err := range b.Results(ctx, id) {
		if e, ok := errors.AsType[*llm.Error](err); ok && e.Kind == llm.NotFound {
			return "", false, nil
		}
		if err != nil {
			return "", false, err
		}
		b.marks.keep(id, r.Mark)
		return r.Mark, true, nil
	}
	return "", false, nil
}

// list returns all batches, the newest first.
func (b batches) list(ctx context.Context) iter.Seq2[batch.Batch, error] {
	return func(yield func(batch.Batch, error) bool) {
		after := ""
		for {
			var page struct {
				Data   []state `json:"data"`
				More   bool    `json:"has_more"`
				LastID string  `json:"last_id"`
			}
			if err := b.Dialer.Get(ctx, batchPath+"?limit="+pageSize+after, &page); err != nil {
				yield(batch.Batch{}, err)
				return
			}

			for i := range page.Data {
				if !yield(page.Data[i].batch(), nil) {
					return
				}
			}
			if !page.More || page.LastID == "" {
				return
			}
			after = "&after_id=" + url.QueryEscape(page.LastID)
		}
	}
}
