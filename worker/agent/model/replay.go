package model

import (
	"context"
	"fmt"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

// mute is the provider of a unit that repeats one of another job: what it is asked
// was not asked there, and no model is asked instead.
type mute struct {
	llm.Provider
	task *agent.Task
}

// Complete implements llm.Provider.
func (m mute) Complete(context.Context, *llm.Request) (*llm.Response, error) {
	return nil, &llm.Error{
		Kind: llm.Invalid, Class: protocol.PermanentJob,
		Message: fmt.Sprintf("job %s has no stored answer to what unit %s asks in its repetition: it was asked something else there, "+
			"by another version of this program maybe, or its answers together were too long to be kept", m.task.Spec.Replay, m.task.Unit),
	}
}

// replaySession returns a session that is answered as the unit of the other job was.
func (s *Session) replaySession() *Session {
	origin := decorator.Origin{Scope: string(s.Task.Spec.Replay), Provider: s.Provider}
	s.ask = NewMemory(mute{s.Vendor, s.Task}, origin, s.Task, s.Calls)
	return s
}
