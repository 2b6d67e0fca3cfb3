package scripted

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
)

// Calls grants what it is asked, counts nothing, captures nothing, shares no answers and
// remembers nothing; evidence it keeps in memory. Tests embed it in what they give to an agent,
// and override the methods that they look at. Its zero value is ready. It is safe for
// concurrent use.
type Calls struct{ Keeper }

var _ agent.Calls = (*Calls)(nil)

// Reserve implements agent.Calls.
func (*Calls) Reserve(_ context.Context, _, _ int64) error { return nil }

// Spent implements agent.Calls.
func (*Calls) Spent(mapreduce.Charge) {}

// Saved implements agent.Calls.
func (*Calls) Saved(mapreduce.Savings) {}

// Call implements agent.Calls. It makes the call.
func (*Calls) Call(ctx context.Context, _ string, call func(context.Context) error) error {
	return call(ctx)
}

// TryCall implements agent.Calls. It makes the call.
func (*Calls) TryCall(ctx context.Context, _ string, call func(context.Context) error) error {
	return call(ctx)
}

// Failing implements agent.Calls.
func (*Calls) Failing(string) {}

// Answered implements agent.Calls.
func (*Calls) Answered(string) {}

// Prompted implements agent.Calls.
func (*Calls) Prompted(int64) {}

// ToolCalled implements agent.Calls.
func (*Calls) ToolCalled(time.Duration) {}

// Progress implements agent.Calls.
func (*Calls) Progress(string) {}

// Pause implements agent.Calls. It waits.
func (*Calls) Pause(wait func() error) error { return wait() }

// Captures implements agent.Calls.
func (*Calls) Captures() mapreduce.Capture { return mapreduce.CaptureOff }

// Record implements agent.Calls.
func (*Calls) Record(mapreduce.Call) {}

// Shares implements agent.Calls.
func (*Calls) Shares() bool { return false }

// Answer implements agent.Calls. Nothing is kept under any key.
func (*Calls) Answer(context.Context, []byte) ([]byte, error) { return nil, nil }

// Share implements agent.Calls.
func (*Calls) Share(_, _ []byte) {}

// PutLine implements agent.Calls. It keeps nothing.
func (*Calls) PutLine(context.Context, *protocol.Line) error { return nil }

// LineReply implements agent.Calls. No line is ever answered.
func (*Calls) LineReply(context.Context, []byte) (*protocol.LineReply, error) { return nil, nil }

// Do implements agent.Journal. It does what is asked each time.
func (*Calls) Do(ctx context.Context, _ string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	return fn(ctx)
}

// DoOnce implements agent.Journal. It does what is asked each time.
func (*Calls) DoOnce(ctx context.Context, _ string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	return fn(ctx)
}

// Recall implements agent.Journal.
func (*Calls) Recall(string) ([]byte, bool) { return nil, false }
