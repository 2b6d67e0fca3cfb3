package model

import (
	"context"
	"errors"

	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
)

// spoiledKey is the key of the fact that a batch has answered what could not be used.
const spoiledKey = "spoiled"

// HasSpoiled reports whether a batch has answered a call of the unit with what could not be used. The same
// answer would be given to each attempt, so the unit asks in real time from then on.
func HasSpoiled(j agent.Journal) bool {
	_, spoiled := j.Recall(spoiledKey)
	return spoiled
}

// Spoiling remembers if what p returns for want of an answer that can be used may go right another time.
func Spoiling(p llm.Provider, j agent.Journal) llm.Provider { return spoiling{p, j} }

type spoiling struct {
	llm.Provider
	journal agent.Journal
}

// Complete implements llm.Provider.
func (s spoiling) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	res, err := s.Provider.Complete(ctx, req)
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.Empty && e.Kind != llm.Mismatch && e.Kind != llm.Garbled {
		return res, err
	}

	// An error of the journal is one of the attempt's end, and says less than that of the call.
	_, _ = s.journal.Do(ctx, spoiledKey, func(context.Context) ([]byte, error) { return []byte("{}"), nil })
	return nil, err
}
