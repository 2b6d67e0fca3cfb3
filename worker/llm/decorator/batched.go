package decorator

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
)

// A BatchDesk takes lines of a unit, and has what became of them. agent.Calls is one: see there.
type BatchDesk interface {
	Purse
	Do(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error)
	DoOnce(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error)
	Recall(key string) ([]byte, bool)
	PutLine(ctx context.Context, line *protocol.Line) error
	LineReply(ctx context.Context, key []byte) (*protocol.LineReply, error)
}

// Batched has calls answered by a batch: it puts each down as a line, and parks the unit with an
// *agent.ParkedError. The attempt that comes when the line was answered makes the same call again, and
// gets the answer, which was paid for when it came. A call that a batch did not answer is made in real
// time by Provider, which meters, guards and repeats it; and so is one that cannot go by batch.
//
// A unit waits for one line at a time. It stands within Structured: an answer that is to be mended makes
// another line.
type Batched struct {
	llm.Provider // asks in real time

	Vendor batch.Vendor
	Desk   BatchDesk
	Origin Origin // decides the answer, with the request
	Prices *llm.Prices

	// Rescued says that the job has a deadline: what stays reserved for a line is what the call costs in real
	// time, so that it can be made if no batch answers it in time.
	Rescued bool

	// Earlier says that another attempt at the unit may have put a line.
	Earlier bool

	// AtOnce says that too little time is left for a batch: no new line is put, and what earlier ones came to
	// is taken.
	AtOnce bool

	// Kept returns what stays reserved of the job's budget for a call, by its tokens and its cost: that
	// of the two which the budget is in, and 0 without one.
	Kept func(tokens, costMicros int64) int64

	// Count returns no fewer tokens than a request's prompt has. It is required.
	Count func(*llm.Request) int64

	taken atomic.Bool // a line of the unit was answered, and the journal has the answer
	used  atomic.Bool // that of its line which the store has
}

// Complete implements llm.Provider.
func (b *Batched) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	key, err := AnswerKey(b.Origin, req)
	if err != nil {
		return nil, llm.WrapError(llm.Invalid, err)
	}

	// The next line of the unit takes the place of this one, so what came of it is the unit's own to
	// remember.
	name := hex.EncodeToString(key)
	if raw, taken := b.Desk.Recall("reply " + name); taken {
		b.taken.Store(true)
		return llm.DecodeResponse(raw)
	}

	// The store has one line of a unit, and knows which: no journal has to.
	if b.Earlier && !b.used.Load() {
		reply, err := b.Desk.LineReply(ctx, key)
		if err != nil {
			return nil, err
		}
		if reply != nil {
			b.used.Store(true)
			return b.remember(ctx, name, func(ctx context.Context) (*llm.Response, error) { return b.take(ctx, req, reply) })
		}
	}

	if b.AtOnce {
		return b.Provider.Complete(ctx, req)
	}
	line, err := b.newLine(key, req)
	if err != nil { // its size, or its form: real time says so, or takes it
		return b.Provider.Complete(ctx, req)
	}
	return b.wait(ctx, req, name, line)
}

// newLine returns the line of a request. The error says why it cannot go by batch.
func (b *Batched) newLine(key []byte, req *llm.Request) (*protocol.Line, error) {
	limits := b.Vendor.Limits(req.Model)
	size, err := b.Vendor.Size(batch.Line{CustomID: "0", Request: *req})
	if err != nil {
		return nil, err
	}
	if limits.Bytes > 0 && size > limits.Bytes {
		return nil, llm.NewError(llm.TooLarge, "the call takes %d bytes of a batch, which may have %d", size, limits.Bytes)
	}

	raw, err := llm.EncodeRequest(req)
	if err != nil {
		return nil, err
	}
	if len(raw) > protocol.MaxLine*3/4 {
		return nil, llm.NewError(llm.TooLarge, "the call has %d bytes; %d are kept", len(raw), protocol.MaxLine*3/4)
	}
	return &protocol.Line{
		Key: key, Provider: b.Name(), Model: string(req.Model), Request: raw, Size: size,
		MostLines: int64(limits.Lines), MostBytes: limits.Bytes, Fewest: int64(limits.Fewest), Tokens: b.Count(req),
	}, nil
}

// wait puts a line down and parks the unit. What the call may cost in a batch is reserved before, and stays
// so until the batch says what it took.
func (b *Batched) wait(ctx context.Context, req *llm.Request, name string, line *protocol.Line) (*llm.Response, error) {
	prompt := b.Count(req)
	tokens := prompt + req.AnswerBound()
	tier := llm.Batch
	if b.Rescued {
		tier = parameters.Standard
	}
	most, known := b.Prices.Most(b.Name(), req.Model, prompt, req.AnswerBound(), tier)
	if !known {
		most = -1
	}
	if err := b.Desk.Reserve(ctx, tokens, most); err != nil {
		return nil, err
	}
	defer b.Desk.Spent(mapreduce.Charge{}) // by this attempt

	// What earlier lines came to is stored before the store forgets it. Whether the action was begun before
	// does not matter: it does nothing.
	if b.taken.Load() {
		if _, err := b.Desk.DoOnce(ctx, "before "+name, func(context.Context) ([]byte, error) { return nil, nil }); err != nil && ctx.Err() != nil {
			return nil, err
		}
	}

	err := b.Desk.PutLine(ctx, line)
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Reason == errs.LineOpen {
		return b.Provider.Complete(ctx, req) // the unit was woken before its time, and does something else now
	}
	if err != nil {
		return nil, err
	}

	parked := mapreduce.Parking{Handle: protocol.LineHandle(line.Key), Line: line.Key, Kept: b.Kept(tokens, max(most, 0))}
	parked.Note = fmt.Sprintf("a call of %s waits to be answered by a batch", BreakerName(b.Name(), req.Model))
	return nil, &agent.ParkedError{Parking: parked}
}

// remember returns what ask does, and has the unit remember it.
func (b *Batched) remember(ctx context.Context, name string, ask func(context.Context) (*llm.Response, error)) (*llm.Response, error) {
	var res *llm.Response
	_, err := b.Desk.Do(ctx, "reply "+name, func(ctx context.Context) (raw []byte, err error) {
		if res, err = ask(ctx); err != nil {
			return nil, err
		}
		return llm.EncodeResponse(res)
	})
	b.taken.Store(true)
	return res, err
}

// take returns what a batch made of a call.
func (b *Batched) take(ctx context.Context, req *llm.Request, reply *protocol.LineReply) (*llm.Response, error) {
	switch reply.Outcome {
	case protocol.LineSucceeded:
		res, err := llm.DecodeResponse(reply.Response)
		if err != nil {
			return nil, err
		}
		b.record(req, reply, res, nil)
		return res, nil
	case protocol.LineRefused:
		kind := llm.Kind(reply.Kind)
		err := &llm.Error{Kind: kind, Class: protocol.PermanentUnit, Message: reply.Error}
		b.record(req, reply, nil, err)
		return nil, err
	}
	return b.Provider.Complete(ctx, req)
}

// record captures a call that a batch made, for the trace of its job, if that wants it.
func (b *Batched) record(req *llm.Request, reply *protocol.LineReply, res *llm.Response, err error) {
	captures := b.Desk.Captures()
	if captures == mapreduce.CaptureOff {
		return
	}

	c := mapreduce.Call{Turn: req.Trace.Turn, Name: BreakerName(b.Name(), req.Model), Tokens: reply.Tokens, CostMicros: reply.CostMicros}
	if err != nil {
		c.Error = err.Error()
	}
	if captures == mapreduce.CaptureFull {
		c.Prompt = renderRequest(req)
		if res != nil {
			c.Answer = renderResponse(res)
		}
	}
	b.Desk.Record(c)
}
