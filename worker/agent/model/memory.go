package model

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

// A memory has the answers of a unit's finished calls in the journal of the unit, so
// that the next attempt asks only what was not answered yet. It remembers answers that
// could be used, and which requests are too large to be answered: what went wrong
// otherwise may go right the next time. Of a job that captures all it remembers that
// too: for a job that repeats this one, which is given the journal of each unit,
// everything is as it was.
type memory struct {
	llm.Provider
	journal agent.Journal
	origin  decorator.Origin
	all     bool // remembers what went wrong as well
	replay  bool // recalls that
}

// remembered is what became of a request.
type remembered struct {
	Response *llm.Response `json:"response,omitempty"`
	TooLarge string        `json:"too_large,omitempty"`
}

// failed is an error of a call, as it is remembered.
type failed struct {
	Kind      llm.Kind              `json:"kind"`
	Class     protocol.FailureClass `json:"class"`
	Status    int                   `json:"status,omitempty"`
	Message   string                `json:"message"`
	RequestID string                `json:"request_id,omitempty"`
}

func (f *failed) err() error {
	return &llm.Error{Kind: f.Kind, Class: f.Class, Status: f.Status, Message: f.Message, RequestID: f.RequestID}
}

// NewMemory returns a provider that asks p what the journal of the task's unit does not hold.
// The keys of the journal depend on origin and on the requests alone.
func NewMemory(p llm.Provider, origin decorator.Origin, task *agent.Task, j agent.Journal) llm.Provider {
	origin.Again = CountRefused(j)
	return &memory{
		Provider: p, journal: j, origin: origin,
		all: task.Spec.Capture == mapreduce.CaptureFull, replay: task.Spec.Replay != "",
	}
}

// Complete implements llm.Provider.
func (m *memory) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	hash, err := m.recallEarlier(req)
	if err != nil {
		return nil, err
	}

	key := "ask " + hash
	failures, last := m.recallFailures(hash)
	// In a repetition, a request that failed for good fails in the same way.
	if _, answered := m.journal.Recall(key); m.replay && !answered && last != nil {
		return nil, last.err()
	}

	// That the request is too large is remembered as an answer: it would be again.
	var res *llm.Response // of this attempt
	var tooLarge *llm.Error
	raw, err := m.journal.Do(ctx, key, func(ctx context.Context) (_ []byte, err error) {
		res, err = m.Provider.Complete(ctx, req)
		if e, ok := errors.AsType[*llm.Error](err); ok && e.Kind == llm.TooLarge {
			tooLarge = e
			return json.Marshal(remembered{TooLarge: e.Message})
		}
		if err != nil {
			return nil, m.rememberFailure(ctx, failureKey(hash, failures), err)
		}
		return json.Marshal(remembered{Response: res})
	})
	switch {
	case err != nil:
		return nil, err
	case tooLarge != nil:
		return nil, tooLarge
	case res != nil:
		res.Asked, res.Answer = res.Usage, asKept(res.Answer)
		return res, nil
	}

	return decodeRemembered(raw)
}

// asKept returns an answer as later attempts recall it: JSON within JSON has other spaces, and other ways to write some
// characters. Requests that repeat it would have another key otherwise, and be paid for again.
func asKept(answer json.RawMessage) json.RawMessage {
	if answer == nil {
		return nil
	}
	kept, err := json.Marshal(answer)
	if err != nil {
		return answer // it is none that is remembered
	}
	return kept
}

// recallEarlier returns the hash of a request. It recalls the answers that an earlier
// attempt had to it and could not use, so that the journal does not miss them.
func (m *memory) recallEarlier(req *llm.Request) (hash string, err error) {
	origin := m.origin
	for origin.Again = 0; ; origin.Again++ {
		sum, err := decorator.AnswerKey(origin, req)
		if err != nil {
			return "", err
		}
		hash = hex.EncodeToString(sum)

		if origin.Again == m.origin.Again {
			return hash, nil
		}

		// Answers that were refused are in the journal too, and are passed over in order.
		m.journal.Recall("ask " + hash)
	}
}

// refusedKey is the key of the n-th time that what a unit made of its answers was refused.
func refusedKey(n int) string { return fmt.Sprintf("refused %d", n) }

// CountRefused returns how often what a unit made of its answers was refused.
func CountRefused(j agent.Journal) (n int) {
	for {
		if _, refused := j.Recall(refusedKey(n)); !refused {
			return n
		}
		n++
	}
}

// NoteRefused remembers that what a unit made of its answers is refused. The next attempt
// asks for others.
func NoteRefused(ctx context.Context, j agent.Journal) error {
	_, err := j.Do(ctx, refusedKey(CountRefused(j)), func(context.Context) ([]byte, error) { return []byte("{}"), nil })
	return err
}

// maxMisfits bounds the attempts at a unit whose answers could not be read.
const maxMisfits = 2

// NoteMisfit remembers that an attempt had no answer that could be read. It reports whether another
// attempt is worth its calls: a model that cannot keep to a form does not learn it.
func NoteMisfit(ctx context.Context, j agent.Journal) (again bool, err error) {
	n := 0
	for ; ; n++ {
		if _, noted := j.Recall(misfitKey(n)); !noted {
			break
		}
	}
	_, err = j.Do(ctx, misfitKey(n), func(context.Context) ([]byte, error) { return []byte("{}"), nil })
	return n+1 < maxMisfits, err
}

func misfitKey(n int) string { return fmt.Sprintf("misfit %d", n) }

// decodeRemembered returns the outcome of a request that was made before. An answer costs
// nothing then.
func decodeRemembered(raw []byte) (*llm.Response, error) {
	var what remembered
	if err := json.Unmarshal(raw, &what); err != nil {
		return nil, fmt.Errorf("journal: what became of a request: %w", err)
	}
	if what.Response == nil {
		return nil, &llm.Error{Kind: llm.TooLarge, Class: llm.TooLarge.Class(), Message: what.TooLarge}
	}
	what.Response.Asked = what.Response.Usage
	what.Response.Cached, what.Response.Usage = true, llm.Usage{Reported: true}
	return what.Response, nil
}

// failureKey is the key of the n-th time that a request went wrong.
func failureKey(hash string, n int) string { return fmt.Sprintf("failed %d %s", n, hash) }

// recallFailures returns how often a request has gone wrong, and how the last time, as
// far as that is remembered.
func (m *memory) recallFailures(hash string) (n int, last *failed) {
	if !m.all && !m.replay {
		return 0, nil
	}

	for ; ; n++ {
		raw, ok := m.journal.Recall(failureKey(hash, n))
		if !ok {
			return n, last
		}

		last = new(failed)
		if json.Unmarshal(raw, last) != nil {
			return n, nil // the request is made again
		}
	}
}

// rememberFailure returns err, which a request has gone wrong with, and remembers it in a
// job that captures all.
func (m *memory) rememberFailure(ctx context.Context, key string, err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || !m.all {
		return err
	}

	_, lost := m.journal.Do(ctx, key, func(context.Context) ([]byte, error) {
		return json.Marshal(failed{Kind: e.Kind, Class: e.Class, Status: e.Status, Message: e.Message, RequestID: e.RequestID})
	})
	if lost != nil {
		return errors.Join(err, lost)
	}
	return err
}
