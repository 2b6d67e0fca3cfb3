package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// maxResults bounds the results of a batch, in bytes: the most that a vendor takes of requests, some
// times over.
const maxResults = 4 << 30

// BeginDownload returns a call whose answer may be as large as the results of a batch. Its EndCall must
// be called.
func (d *Dialer) BeginDownload(ctx context.Context) *Call {
	c := d.BeginCall(ctx, new(llm.Request))
	c.most = cmp.Or(d.Config.MaxBytes, maxResults)
	return c
}

// SendLines sends a request whose answer has one JSON document in each line, and returns these, once;
// servers name many media types for that. See SendStream.
func (c *Call) SendLines(r Request) (iter.Seq2[Event, error], error) {
	body, _, err := c.send(r, anyType)
	if err != nil {
		return nil, err
	}

	read := bufio.NewReaderSize(body, maxErrorBytes)
	begin, _ := read.Peek(512) // what there is of it
	if isPage(begin) {
		return nil, c.foreignError(begin, "text/html")
	}
	return Lines(read), nil
}

// SendHeader sends a request of whose answer only a header is wanted, and returns that.
func (c *Call) SendHeader(r Request, name string) (string, error) {
	if _, _, err := c.send(r, anyType); err != nil {
		return "", err
	}
	return c.Header(name), nil
}

// Lost returns an error of a request to make a batch as batch.Vendor says: one after which nobody knows
// whether there is a batch is a *batch.LostError. A vendor that answered with a refusal made none, and
// so did one to which there was no connection.
func (c *Call) Lost(err error) error {
	e := c.FailError(err)
	refused := e.Status >= 400 && e.Status < 500 && e.Status != http.StatusRequestTimeout && e.Status != http.StatusConflict && e.Status != http.StatusTooEarly && e.Status != 499
	if refused || !c.opened.Load() && !c.sent.Load() {
		return err
	}
	return &batch.LostError{Err: e}
}

// BeginLine returns a call that was made before, as a line of a batch, by its status and id. It reads
// what came of it; nothing is sent.
func (d *Dialer) BeginLine(ctx context.Context, status int, requestID string) *Call {
	return &Call{
		d: d, ctx: ctx, cancel: func(error) {}, status: status,
		header: http.Header{"Request-Id": {requestID}},
	}
}

// LineError returns the error that a vendor has for a line.
func (c *Call) LineError(raw []byte) *llm.Error {
	kind, message := c.d.format.Judge(c.status, raw)
	if kind == 0 {
		kind, message = llm.Server, "the vendor tells of an error, in no known format"
		if c.status >= 300 {
			kind = ByStatus(c.status)
		}
	}
	return c.responseError(kind, message)
}

// LineRequest returns the request of a line, and the manners that it is asked by: those of a call in
// real time whose answer comes at once. A batch is a tier, and has no other within.
func (d *Dialer) LineRequest(line batch.Line, a Asker) (*llm.Request, manners.Manners) {
	req := line.Request
	req.Parameters = req.Parameters.Without(parameters.Tier)
	with := a.OwnForm(d.KnownManners(req.Model))
	with.NoStream = true
	return &req, with
}

// LineResult returns the result of a line that was answered, or of whose answer err was made.
func LineResult(res *llm.Response, err error) batch.Result {
	if err != nil {
		return FailedLine(llm.BrokenError(context.Background(), err))
	}
	res.Tier = llm.Batch
	return batch.Result{N: -1, Outcome: batch.Succeeded, Response: res}
}

// FailedLine returns the result of a line that has an error.
func FailedLine(e *llm.Error) batch.Result {
	return batch.Result{N: -1, Outcome: batch.Errored, Err: e}
}

// Undone returns the result of a line that was not asked.
func Undone(outcome batch.Outcome) batch.Result {
	kind, why := llm.Timeout, "the batch had no time for the line"
	if outcome == batch.Cancelled {
		why = "the batch was cancelled before the line was asked"
	}
	return batch.Result{N: -1, Outcome: outcome, Err: llm.NewError(kind, "%s", why)}
}

// A Frame is what stands around the lines of an order.
type Frame struct{ Head, Between, Tail string }

// EncodeLines returns the lines of an order as encode writes them, in a frame. It refuses an order that does not keep to
// the limits, to whose bytes the head and the tail do not count. An order may be large: it is written once, where it stays.
func EncodeLines(order batch.Order, limits batch.Limits, frame Frame, encode func(sentID string, line batch.Line) ([]byte, error)) ([]byte, error) {
	if err := order.Check(limits); err != nil {
		return nil, err
	}

	var all bytes.Buffer
	for i, line := range order.Lines {
		raw, err := encode(batch.SentID(order.Mark, line.CustomID), line)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			all.Grow(roomFor(order, limits, frame, raw))
			all.WriteString(frame.Head)
		} else {
			all.WriteString(frame.Between)
		}
		all.Write(raw)
		if limits.Bytes > 0 && int64(all.Len()-len(frame.Head)) > limits.Bytes {
			return nil, llm.NewError(llm.TooLarge, "an order has more than %d bytes, which is the most that the vendor takes; line %q passes it", limits.Bytes, line.CustomID)
		}
	}
	all.WriteString(frame.Tail)
	return all.Bytes(), nil
}

// roomFor guesses the bytes that an order takes, by the first of its lines: those of a batch are mostly alike.
func roomFor(order batch.Order, limits batch.Limits, frame Frame, first []byte) int {
	room := int64(len(first)+len(frame.Between)) * int64(len(order.Lines)) * 17 / 16
	if limits.Bytes > 0 {
		room = min(room, limits.Bytes)
	}
	return len(frame.Head) + int(min(room, mostRoom)) + len(frame.Tail)
}

// mostRoom bounds the memory that is set aside by a guess.
const mostRoom = 48 << 20

// LineSize returns the bytes that a line takes as encode writes it, with room beside.
func LineSize(line batch.Line, beside int, encode func(sentID string, line batch.Line) ([]byte, error)) (int64, error) {
	longest := string(bytes.Repeat([]byte("x"), batch.LongestMark))
	raw, err := encode(batch.SentID(longest, line.CustomID), line)
	return int64(len(raw) + beside), err
}

// Results reads results off lines, each line once whoever repeats it: of a line that has two results
// the first counts. One that cannot be read is passed over if others follow; if it is the last, they have been cut off,
// and its error ends them.
func Results(lines iter.Seq2[Event, error], c *Call, read func(raw json.RawMessage) (sentID string, r batch.Result, err error)) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		seen := make(map[string]bool)
		n := 0
		var unread error
		for e, err := range lines {
			if err != nil {
				yield(batch.Result{}, c.CutError(err))
				return
			}

			sent, r, err := read(e.Data)
			if unread = err; err != nil {
				n++ // it has a place all the same
				continue
			}
			r = Named(r, sent)
			if r.N >= 0 {
				r.N = n
			}
			n++

			if sent != "" && seen[sent] {
				continue
			}
			seen[sent] = true
			if !yield(r, nil) {
				return
			}
		}

		if unread != nil {
			yield(batch.Result{}, c.CutError(unread))
		}
	}
}

// Named returns a result with the id of its line, from the one that was sent.
func Named(r batch.Result, sent string) batch.Result {
	var ours bool
	if r.Mark, r.CustomID, ours = batch.CutID(sent); !ours {
		r.CustomID = sent
	}
	return r
}

// EachLine returns documents that came in one answer as lines.
func EachLine(all []json.RawMessage) iter.Seq2[Event, error] {
	events := make([]Event, len(all))
	for i, raw := range all {
		events[i].Data = raw
	}
	return OneByOne(events)
}

// NoResults ends results with an error before there is one.
func NoResults(err error) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) { yield(batch.Result{}, err) }
}

// anyType accepts an answer of every media type.
const anyType = "*/*"
