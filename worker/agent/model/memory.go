package model

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
)

// A memory keeps the answers of a unit's finished calls as the state of its
// attempt, so that the next attempt asks only what was not answered yet. It holds
// answers that could be used, and which requests are too large to be answered:
// what went wrong otherwise may go right the next time. Of a job that captures all
// it holds that too: for a job that repeats this one, which is given the state of
// each unit's last attempt, everything is as it was.
type memory struct {
	llm.Provider
	calls  agent.Calls
	origin llm.Origin
	all    bool // keeps what went wrong as well
	replay bool // recalls that

	mu   sync.Mutex // guards the fields below
	kept map[string]remembered
	size int
}

// remembered is what became of a request.
type remembered struct {
	Response *llm.Response `json:"response,omitempty"`
	TooLarge string        `json:"too_large,omitempty"`
	Failed   *failed       `json:"failed,omitempty"` // of a job that captures all
}

// failed is an error of a call, as it is kept.
type failed struct {
	Kind      llm.Kind               `json:"kind"`
	Class     mapreduce.FailureClass `json:"class"`
	Status    int                    `json:"status,omitempty"`
	Message   string                 `json:"message"`
	RequestID string                 `json:"request_id,omitempty"`
}

func (f *failed) err() error {
	return &llm.Error{Kind: f.Kind, Class: f.Class, Status: f.Status, Message: f.Message, RequestID: f.RequestID}
}

// newMemory takes up the state of an earlier attempt. One that cannot be read
// is none.
func newMemory(p llm.Provider, origin llm.Origin, task *agent.Task, calls agent.Calls) *memory {
	m := &memory{
		Provider: p, calls: calls, origin: origin, kept: make(map[string]remembered),
		all: task.Spec.Capture == mapreduce.CaptureFull, replay: task.Spec.Replay != "",
	}
	if len(task.State) > 0 && json.Unmarshal(task.State, &m.kept) == nil && m.kept != nil {
		m.size = len(task.State)
	} else {
		m.kept = make(map[string]remembered)
	}
	return m
}

// Complete implements llm.Provider.
func (m *memory) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	sum, err := llm.AnswerKey(m.origin, req)
	if err != nil {
		return nil, err
	}
	key := hex.EncodeToString(sum)
	if res, err := m.recallResponse(key); res != nil || err != nil {
		return res, err
	}
	res, err := m.Provider.Complete(ctx, req)
	if e, ok := errors.AsType[*llm.Error](err); ok {
		m.keepError(ctx, key, e)
	}
	if err == nil {
		m.keepOutcome(ctx, key, remembered{Response: res})
	}
	return res, err
}

// recallResponse returns what became of a request in an earlier attempt, if anything.
func (m *memory) recallResponse(key string) (*llm.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	had, ok := m.kept[key]
	switch {
	case !ok:
		return nil, nil
	case had.Failed != nil && m.replay:
		return nil, had.Failed.err()
	case had.Response == nil && had.TooLarge == "":
		return nil, nil
	case had.Response == nil:
		return nil, &llm.Error{Kind: llm.TooLarge, Class: llm.TooLarge.Class(), Message: had.TooLarge}
	}
	res := *had.Response
	res.Cached, res.Usage = true, llm.Usage{Reported: true}
	return &res, nil
}

// keepError notes an error that another attempt has to know of, or another job.
func (m *memory) keepError(ctx context.Context, key string, e *llm.Error) {
	var what remembered
	if e.Kind == llm.TooLarge {
		what.TooLarge = e.Message
	}
	if m.all {
		what.Failed = &failed{Kind: e.Kind, Class: e.Class, Status: e.Status, Message: e.Message, RequestID: e.RequestID}
	}
	if what != (remembered{}) {
		m.keepOutcome(ctx, key, what)
	}
}

// keepOutcome notes what became of a request. Once the state is as large as may be, the
// calls after it are not kept, and would be made again.
func (m *memory) keepOutcome(ctx context.Context, key string, what remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	raw, err := json.Marshal(what)
	if err != nil || m.size+len(raw)+len(key)+8 > agent.MaxState {
		return
	}
	m.kept[key] = what
	m.size += len(raw) + len(key) + 8
	if state, err := json.Marshal(m.kept); err == nil && len(state) <= agent.MaxState {
		_ = m.calls.Keep(ctx, state) // without it the call may be paid for again, no more
	}
}
