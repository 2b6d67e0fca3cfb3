package decorator

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
)

// A BatchDesk takes lines of a unit, and has what became of them. agent.Calls is one: see there.
type BatchDesk interface {
	Purse
	Do(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error)
	Recall(key string) ([]byte, bool)
	PutLine(ctx context.Context, line *mapreduce.Line) error
	LineReply(ctx context.Context, key []byte) (*mapreduce.LineReply, error)
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

	// Kept returns what stays reserved of the job's budget for a call, by its tokens and its cost: that
	// of the two which the budget is in, and 0 without one.
	Kept func(tokens, costMicros int64) int64

	// Count returns no fewer tokens than a request's prompt has. It is required.
	Count func(*llm.Request) int64
}

// Complete implements llm.Provider.
func (b *Batched) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	key, err := AnswerKey(b.Origin, req)
	if err != nil {
		return nil, llm.WrapError(llm.Invalid, err)
	}

	name := "line " + hex.EncodeToString(key)
	reply, err := b.reply(ctx, req, key, name)
	if err != nil {
		return nil, err
	}
	if reply != nil {
		return b.take(ctx, req, reply)
	}

	line, err := b.newLine(key, req)
	if err != nil { // its size, or its form: real time says so, or takes it
		return b.Provider.Complete(ctx, req)
	}
	return b.wait(ctx, req, name, line)
}

// reply returns what a batch made of a call, which was put under a name; nil if that is not known. It is
// remembered, because the store forgets it with the next line of the unit: an answer that is mended takes
// several, and each attempt begins with the first.
func (b *Batched) reply(ctx context.Context, req *llm.Request, key []byte, name string) (*mapreduce.LineReply, error) {
	if _, put := b.Desk.Recall(name); !put {
		return nil, nil
	}

	var reply *mapreduce.LineReply
	kept := "reply to " + name
	raw, known := b.Desk.Recall(kept)
	if !known {
		var err error
		if reply, err = b.Desk.LineReply(ctx, key); err != nil || reply == nil {
			return nil, err
		}
		if _, err := b.Desk.Do(ctx, kept, func(context.Context) ([]byte, error) { return json.Marshal(reply) }); err != nil {
			return nil, err
		}
		b.record(req, reply)
		return reply, nil
	}

	if err := json.Unmarshal(raw, &reply); err != nil {
		return nil, fmt.Errorf("journal: what became of a line: %w", err)
	}
	return reply, nil
}

// newLine returns the line of a request. The error says why it cannot go by batch.
func (b *Batched) newLine(key []byte, req *llm.Request) (*mapreduce.Line, error) {
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
	if len(raw) > mapreduce.MaxLine*3/4 {
		return nil, llm.NewError(llm.TooLarge, "the call has %d bytes; %d are kept", len(raw), mapreduce.MaxLine*3/4)
	}
	return &mapreduce.Line{
		Key: key, Provider: b.Name(), Model: string(req.Model), Request: raw, Size: size,
		MostLines: int64(limits.Lines), MostBytes: limits.Bytes, Fewest: int64(limits.Fewest),
	}, nil
}

// wait puts a line down and parks the unit. What the call may cost in a batch is reserved before, and stays
// so until the batch says what it took.
func (b *Batched) wait(ctx context.Context, req *llm.Request, name string, line *mapreduce.Line) (*llm.Response, error) {
	prompt := b.Count(req)
	tokens := prompt + req.AnswerBound()
	most, known := b.Prices.Most(b.Name(), req.Model, prompt, req.AnswerBound(), llm.Batch)
	if !known {
		most = -1
	}
	if err := b.Desk.Reserve(ctx, tokens, most); err != nil {
		return nil, err
	}
	defer b.Desk.Spent(0, 0, 0) // by this attempt

	// It is put even if an earlier attempt has: the unit may have put another since.
	err := b.Desk.PutLine(ctx, line)
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Reason == errs.LineOpen {
		return b.Provider.Complete(ctx, req) // the unit was woken before its time, and does something else now
	}
	if err != nil {
		return nil, err
	}
	if _, err := b.Desk.Do(ctx, name, func(context.Context) ([]byte, error) { return []byte("{}"), nil }); err != nil {
		return nil, err
	}

	parked := mapreduce.Parking{Handle: mapreduce.LineHandle(line.Key), Line: line.Key, Kept: b.Kept(tokens, max(most, 0))}
	parked.Note = fmt.Sprintf("a call of %s waits to be answered by a batch", BreakerName(b.Name(), req.Model))
	return nil, &agent.ParkedError{Parking: parked}
}

// take returns what a batch made of a call.
func (b *Batched) take(ctx context.Context, req *llm.Request, reply *mapreduce.LineReply) (*llm.Response, error) {
	switch reply.Outcome {
	case mapreduce.LineSucceeded:
		return llm.DecodeResponse(reply.Response)
	case mapreduce.LineRefused:
		return nil, refusal(reply)
	}
	return b.Provider.Complete(ctx, req)
}

// refusal is the error of a call that was refused for good.
func refusal(reply *mapreduce.LineReply) *llm.Error {
	return &llm.Error{Kind: llm.Kind(reply.Kind), Class: mapreduce.PermanentUnit, Message: reply.Error}
}

// record captures a call that a batch made, for the trace of its job, if that wants it. What a batch did not
// do is made in real time, and captured there.
func (b *Batched) record(req *llm.Request, reply *mapreduce.LineReply) {
	captures := b.Desk.Captures()
	if captures == mapreduce.CaptureOff || reply.Outcome != mapreduce.LineSucceeded && reply.Outcome != mapreduce.LineRefused {
		return
	}

	c := mapreduce.Call{Turn: req.Trace.Turn, Name: BreakerName(b.Name(), req.Model), Tokens: reply.Tokens, CostMicros: reply.CostMicros}
	if reply.Outcome == mapreduce.LineRefused {
		c.Error = refusal(reply).Error()
	}
	if captures == mapreduce.CaptureFull {
		c.Prompt = renderRequest(req)
		if res, err := llm.DecodeResponse(reply.Response); err == nil && reply.Outcome == mapreduce.LineSucceeded {
			c.Answer = renderResponse(res)
		}
	}
	b.Desk.Record(c)
}
