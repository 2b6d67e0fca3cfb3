package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

// maxCorrections bounds the turns in which one attempt at a unit has answers mended.
const maxCorrections = 8

// A Session is one attempt at a unit.
type Session struct {
	*Program
	Agent *Agent
	Task  *agent.Task
	Calls agent.Calls
	ask   llm.Provider
	Notes []string // what went wrong without making the attempt fail
}

// BeginSession returns a session whose calls are paid, watched over and remembered.
func (a *Agent) BeginSession(p *Program, task *agent.Task, calls agent.Calls) *Session {
	s := &Session{Program: p, Agent: a, Task: task, Calls: calls}
	if task.Spec.Replay != "" {
		return s.replaySession()
	}
	s.ask = NewMemory(s.routeOf(), decorator.Origin{Scope: string(task.Job), Provider: p.Provider}, task, calls)
	return s
}

// answerOrigin returns everything besides the requests that decides a program's answers.
func (a *Agent) answerOrigin(p *Program, t mapreduce.TenantID) decorator.Origin {
	return decorator.Origin{
		Scope: string(t), Provider: p.Provider, BaseURL: cmp.Or(p.BaseURL, a.cfg.LLM.BaseURL), Window: p.Window, ToolMode: p.ToolMode,
	}
}

// CompleteRequest asks the model, unless the request does not fit into the window.
func (s *Session) CompleteRequest(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	req = s.Agent.WithForm(s.Program, req)
	req.CacheKey = cacheKeyOf(s.Task.Job)
	req.Trace = llm.Trace{Job: string(s.Task.Job), Unit: string(s.Task.Unit), Attempt: s.Task.Attempt, Turn: req.Trace.Turn}

	// What cannot fit is not sent: the unit may be split instead.
	if need := req.Prompt + s.Bound; s.Narrowest > 0 && need > s.Narrowest {
		return nil, TooLarge("prompt and answer take %d tokens, and the context window has %d", need, s.Narrowest)
	}

	// Nothing is spent on pictures that the vendor would refuse.
	if s.Sight != nil {
		if err := s.Sight.Check(req); err != nil {
			return nil, err
		}
	}

	bytes := RequestBytes(req)
	if most := s.MostContext(); most > 0 && bytes > most {
		return nil, TooLarge("the prompt has %d bytes, and limits.context of the stage %s allows %d", bytes, s.Task.StageSpec.Name, most)
	}

	s.Calls.Prompted(bytes)
	res, err := s.ask.Complete(ctx, req)
	if err != nil {
		return nil, err
	}

	by := cmp.Or(res.By, decorator.BreakerName(s.Provider, req.Model))
	s.Calls.Answered(mapreduce.AnsweredBy(by, string(res.Model)))
	if req.Schema != nil {
		s.Agent.tallies.noteFit(s.Task.Job)
	}

	s.noteRepairs(res.Repairs)
	return res, nil
}

// MostContext returns how many bytes a prompt of the unit may have; 0 is no limit.
func (s *Session) MostContext() int64 {
	if s.Task.StageSpec == nil {
		return 0
	}
	return s.Task.StageSpec.Context
}

// TooLarge returns the error of a request that does not fit.
func TooLarge(format string, args ...any) error {
	return &llm.Error{Kind: llm.TooLarge, Class: llm.TooLarge.Class(), Message: fmt.Sprintf(format, args...)}
}

// IsTooLarge reports whether a smaller request might be answered.
func IsTooLarge(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Kind == llm.TooLarge
}

// InVain reports whether an error is the model's, and the unit has no attempt left that
// might go better. An attempt that was asked to end says nothing of that.
func (s *Session) InVain(ctx context.Context, err error) bool {
	class, _ := agent.Classify(llm.ForAgent(err))
	_, ofModel := errors.AsType[*llm.Error](err)
	return ctx.Err() == nil && ofModel && (class == protocol.PermanentUnit || class == protocol.Retryable && s.Task.Last)
}

// NoteError notes what went wrong without making the attempt fail.
func (s *Session) NoteError(what string, err error) {
	if err != nil {
		what = fmt.Sprintf("%s: %v", what, err)
	}
	if !slices.Contains(s.Notes, what) {
		s.Notes = append(s.Notes, what)
	}
}
