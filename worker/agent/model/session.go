package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model/memory"
	"github.com/coditect/mapreduce/worker/agent/model/size"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

// maxCorrections bounds the turns in which one attempt at a unit has answers mended.
const maxCorrections = 8

// A session is one attempt at a unit.
type session struct {
	*program
	agent *Agent
	task  *agent.Task
	calls agent.Calls
	ask   llm.Provider
	notes []string // what went wrong without making the attempt fail
}

// beginSession returns a session whose calls are paid, watched over and remembered.
func (a *Agent) beginSession(p *program, task *agent.Task, calls agent.Calls) *session {
	s := &session{program: p, agent: a, task: task, calls: calls}
	if task.Spec.Replay != "" {
		return s.replaySession()
	}
	s.ask = memory.New(s.routeOf(), decorator.Origin{Scope: string(task.Job), Provider: p.Provider}, task, calls)
	return s
}

// answerOrigin returns everything besides the requests that decides a program's answers.
func (a *Agent) answerOrigin(p *program, t mapreduce.TenantID) decorator.Origin {
	return decorator.Origin{
		Scope: string(t), Provider: p.Provider, BaseURL: cmp.Or(p.BaseURL, a.cfg.LLM.BaseURL), Window: p.Window, ToolMode: p.ToolMode,
	}
}

// completeRequest asks the model, unless the request does not fit into the window.
func (s *session) completeRequest(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	req = s.agent.withForm(s.program, req)
	req.CacheKey = cacheKeyOf(s.task.Job)
	req.Trace = llm.Trace{Unit: string(s.task.Unit), Attempt: s.task.Attempt, Turn: req.Trace.Turn}

	// What cannot fit is not sent: the unit may be split instead.
	if need := req.Prompt + s.bound; s.window > 0 && need > s.window {
		return nil, tooLarge("prompt and answer take %d tokens, and the context window has %d", need, s.window)
	}

	// Nothing is spent on pictures that the vendor would refuse.
	if s.sight != nil {
		if err := s.sight.Check(req); err != nil {
			return nil, err
		}
	}

	bytes := size.Bytes(req)
	if most := s.mostContext(); most > 0 && bytes > most {
		return nil, tooLarge("the prompt has %d bytes, and limits.context of the stage %s allows %d", bytes, s.task.StageSpec.Name, most)
	}

	s.calls.Prompted(bytes)
	res, err := s.ask.Complete(ctx, req)
	if err != nil {
		return nil, err
	}

	by := cmp.Or(res.By, decorator.BreakerName(s.Provider, req.Model))
	s.calls.Answered(mapreduce.AnsweredBy(by, string(res.Model)))
	if req.Schema != nil {
		s.agent.noteFit(s.task.Job)
	}

	s.noteRepairs(res.Repairs)
	return res, nil
}

// mostContext returns how many bytes a prompt of the unit may have; 0 is no limit.
func (s *session) mostContext() int64 {
	if s.task.StageSpec == nil {
		return 0
	}
	return s.task.StageSpec.Context
}

func tooLarge(format string, args ...any) error {
	return &llm.Error{Kind: llm.TooLarge, Class: llm.TooLarge.Class(), Message: fmt.Sprintf(format, args...)}
}

// isTooLarge reports whether a smaller request might be answered.
func isTooLarge(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Kind == llm.TooLarge
}
