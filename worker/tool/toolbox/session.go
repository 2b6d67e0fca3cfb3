package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/tool"
)

// maxLost bounds the calls of one tool that were given up and go on: beyond it the tool is
// out of order, and is called no more until some have ended.
const maxLost = 32

// maxError bounds the text of an error that a tool returns, in bytes.
const maxError = 2 << 10

// A Session is what one unit has of the tools that its stage lists. Calls may run at the
// same time. Kits are opened when a tool of theirs is called first.
type Session struct {
	box   *Box
	specs []tool.Spec
	ctx   context.Context // of all that kits keep for the unit: ends with Close
	stop  context.CancelFunc

	mu     sync.Mutex         // guards the fields below
	open   map[string]*opened // by the name of the kit
	closed bool
}

// An opened is the session of a kit, or why there is none.
type opened struct {
	done    chan struct{} // closed when the fields below are set
	session tool.Session
	err     error
}

// Open returns what a unit has of the tools that names stand for. Close must be called.
func (b *Box) Open(ctx context.Context, names []string) (*Session, error) {
	specs, err := b.Specs(names)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	return &Session{box: b, specs: specs, ctx: ctx, stop: stop, open: make(map[string]*opened)}, nil
}

// Specs returns the tools that the unit may call.
func (s *Session) Specs() []tool.Spec { return s.specs }

// Spec returns a tool that the unit may call, or false.
func (s *Session) Spec(name string) (tool.Spec, bool) {
	i := slices.IndexFunc(s.specs, func(spec tool.Spec) bool { return spec.Name == name })
	if i < 0 {
		return tool.Spec{}, false
	}
	return s.specs[i], true
}

// Schema returns the schema of the input of a tool, nil if the worker has no such tool.
func (s *Session) Schema(name string) *llm.Schema { return s.box.Schema(name) }

// An InputError is why a call was not made: its input does not fit.
type InputError struct {
	Tool string
	Err  error
}

// Error says what does not fit.
func (e *InputError) Error() string {
	return fmt.Sprintf("the input does not fit the schema of %s: %v", e.Tool, e.Err)
}

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// Check returns the input of a call as its tool gets it. It returns a *tool.Refused for a
// tool that the unit may not call, and an *InputError for an input that does not fit.
func (s *Session) Check(name string, input json.RawMessage) (json.RawMessage, error) {
	if _, ok := s.Spec(name); !ok {
		return nil, &tool.Refused{What: fmt.Sprintf("a call of the tool %.80q", name), Why: "the stage allows " + s.allowed()}
	}

	if len(input) > tool.MaxInput {
		return nil, &InputError{name, fmt.Errorf("it has %d bytes; at most %d are taken", len(input), tool.MaxInput)}
	}

	checked, err := s.box.tools[name].input.Check(input)
	if err != nil {
		return nil, &InputError{name, err}
	}
	return checked, nil
}

func (s *Session) allowed() string {
	if len(s.specs) == 0 {
		return "no tool"
	}
	names := make([]string, len(s.specs))
	for i, spec := range s.specs {
		names[i] = spec.Name
	}
	return strings.Join(names, ", ")
}

// Call checks and makes a call. These things might happen:
//  1. it returns a Result within the bounds of package tool;
//  2. it returns a *tool.Refused: the stage does not list the tool, or the policy of the
//     worker forbids what was asked of it;
//  3. it returns an *InputError: the tool was not called;
//  4. ctx or the session ended: it returns the cause of that;
//  5. it returns another error: the tool failed, took too long, panicked or is out of
//     order. The text of the error is valid, short, and may be shown to a model.
func (s *Session) Call(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error) {
	if s.box == nil || s.box.observe == nil || s.box.tools[name] == nil { // a model makes names up
		return s.makeCall(ctx, name, input)
	}
	ctx, end := s.box.observe(ctx, name)
	result, err := s.makeCall(ctx, name, input)
	end(err)
	return result, err
}

func (s *Session) makeCall(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error) {
	input, err := s.Check(name, input)
	if err != nil {
		return nil, err
	}

	e := s.box.tools[name]
	if n := e.lost.Load(); n >= maxLost {
		return nil, fmt.Errorf("%s is out of order on this worker: %d calls of it did not end", name, n)
	}

	limited, cancel := context.WithTimeoutCause(ctx, e.spec.Timeout, &timeoutError{name, e.spec.Timeout})
	defer cancel()
	stop := context.AfterFunc(s.ctx, cancel)
	defer stop()

	return s.awaitCall(limited, ctx, e, input)
}

// A timeoutError is why a call was given up.
type timeoutError struct {
	tool  string
	after time.Duration
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("%s did not answer within %v", e.tool, e.after)
}

// An outcome is what a tool returned.
type outcome struct {
	result *tool.Result
	err    error
}

// awaitCall runs a call in a goroutine of its own, so that a tool which does not notice the
// end of its context does not hold up the unit.
func (s *Session) awaitCall(limited, ctx context.Context, e *entry, input json.RawMessage) (*tool.Result, error) {
	over := make(chan outcome, 1)
	var ended atomic.Bool // or given up: whichever comes first
	go func() {
		out := s.runCall(limited, e, input)
		if !ended.CompareAndSwap(false, true) {
			e.lost.Add(-1)
		}
		over <- out
	}()

	select {
	case out := <-over:
		return s.judge(limited, ctx, e, out)
	case <-limited.Done():
	}

	if ended.CompareAndSwap(false, true) {
		e.lost.Add(1)
		return nil, s.endCause(limited, ctx)
	}
	return s.judge(limited, ctx, e, <-over) // it answered at the same moment
}

// endCause returns why a call was given up.
func (s *Session) endCause(limited, ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	}
	return context.Cause(limited)
}

// judge returns what came of a call, within bounds.
func (s *Session) judge(limited, ctx context.Context, e *entry, out outcome) (*tool.Result, error) {
	if out.err == nil && out.result == nil {
		return nil, fmt.Errorf("%s returned nothing at all", e.spec.Name)
	}
	if out.err == nil {
		return within(&e.spec, out.result, time.Now()), nil
	}

	if limited.Err() != nil && !isRefused(out.err) { // that it was given up says more than how it ended
		return nil, s.endCause(limited, ctx)
	}
	if refused, ok := errors.AsType[*tool.Refused](out.err); ok {
		return nil, &tool.Refused{What: plain(refused.What, maxError), Why: plain(refused.Why, maxError)}
	}
	return nil, errors.New(plain(out.err.Error(), maxError))
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*tool.Refused](err)
	return ok
}

// runCall opens the kit if need be, and calls the tool. A panic is an error.
func (s *Session) runCall(ctx context.Context, e *entry, input json.RawMessage) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			s.box.logger.Error("a tool panicked", "kit", e.kit.Name(), "tool", e.spec.Name, "panic", plain(fmt.Sprint(p), maxError), "stack", string(debug.Stack()))
			out = outcome{nil, fmt.Errorf("%s broke down: %v", e.spec.Name, p)}
		}
	}()

	session, err := s.sessionOf(ctx, e.kit)
	if err != nil {
		return outcome{nil, err}
	}
	result, err := session.Call(ctx, e.spec.Name, input)
	return outcome{result, err}
}

// sessionOf returns the unit's session of a kit, which is opened once.
func (s *Session) sessionOf(ctx context.Context, k tool.Kit) (tool.Session, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errors.New("the unit has ended")
	}

	o := s.open[k.Name()]
	if o == nil {
		o = &opened{done: make(chan struct{})}
		s.open[k.Name()] = o
		// The kit is opened in the time of the unit, as this call may end before.
		go s.openKit(k, o)
	}
	s.mu.Unlock()

	select {
	case <-o.done:
		return o.session, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// openKit opens a kit for the unit. The next call tries again if that fails.
func (s *Session) openKit(k tool.Kit, o *opened) {
	defer func() {
		if p := recover(); p != nil {
			s.box.logger.Error("a kit of tools panicked", "kit", k.Name(), "panic", plain(fmt.Sprint(p), maxError), "stack", string(debug.Stack()))
			o.err = fmt.Errorf("%s broke down: %v", k.Name(), p)
		}

		s.mu.Lock()
		defer s.mu.Unlock()
		if o.err != nil {
			delete(s.open, k.Name())
		}

		// The unit has ended meanwhile, and Close left this session to its opener.
		if s.closed && o.session != nil {
			s.closeOne(k.Name(), o.session)
		}
		close(o.done)
	}()

	o.session, o.err = k.Open(s.ctx)
	if o.err == nil && o.session == nil {
		o.err = fmt.Errorf("%s opened nothing", k.Name())
	}
}

// Close ends calls that are under way, and what kits keep for the unit.
func (s *Session) Close() {
	s.stop()

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}

	s.closed = true
	for name, o := range s.open {
		select {
		case <-o.done:
			if o.session != nil {
				s.closeOne(name, o.session)
			}
		default: // the goroutine that opens it closes it
		}
	}
}

// closeOne closes the session of a kit, beside: a kit that hangs holds up no unit.
func (s *Session) closeOne(kit string, session tool.Session) {
	go func() {
		defer func() {
			if p := recover(); p != nil {
				s.box.logger.Error("a kit of tools panicked", "kit", kit, "panic", plain(fmt.Sprint(p), maxError), "stack", string(debug.Stack()))
			}
		}()

		if err := session.Close(); err != nil {
			s.box.logger.Warn("closing what a unit had of a tool", "kit", kit, "error", plain(err.Error(), maxError))
		}
	}()
}
