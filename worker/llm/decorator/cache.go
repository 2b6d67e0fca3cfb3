package decorator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
)

// Answers keep answers by key. agent.Calls is one: see there. An error of theirs
// costs a call, never an answer.
type Answers interface {
	Answer(ctx context.Context, key []byte) ([]byte, error)
	Share(key, answer []byte)
}

// An Origin is what decides an answer besides the request: where it goes to, and
// how. Its Scope keeps the answers of some from others.
type Origin struct {
	Scope    string
	Provider string
	BaseURL  string // "" is the vendor's own
	Window   int64
	ToolMode bool
	Again    int `json:",omitempty"` // how many answers to the same were of no use
}

// Cache answers a request that was answered before, without a call and without
// spending. It wraps Structured and keeps the answers that Structured returns: whole
// answers that fit their schema. An answer from the cache is checked like an answer of
// the model.
type Cache struct {
	llm.Provider
	Answers Answers
	Origin  Origin
	Prices  *llm.Prices // by which what was saved is reckoned

	// Saved receives what an answer from the cache saves. It is required.
	Saved func(mapreduce.Savings)
}

// mostSaved bounds what one answer saves, in millionths of a US dollar: earlier versions kept
// answers with usage that no call has, and a report that states so much is refused.
const mostSaved = 1 << 32

// keptAnswer is an answer as it is kept. It holds its key, so that it is never taken for
// the answer to another request.
type keptAnswer struct {
	Key      []byte        `json:"key"`
	Response *llm.Response `json:"response"`
}

// Complete implements Provider.
func (c *Cache) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	key, err := AnswerKey(c.Origin, req)
	if err != nil {
		return nil, llm.WrapError(llm.Invalid, err)
	}

	raw, err := c.Answers.Answer(ctx, key)
	if ctx.Err() != nil {
		return nil, llm.BrokenError(ctx, err)
	}

	if res := recallAnswer(req, key, raw); res != nil {
		cost, _ := c.Prices.Cost(c.Name(), req.Model, res.Usage.IfPossible(), chargedTier(req, res))
		c.Saved(mapreduce.Savings{Answers: 1, AnswerMicros: min(cost, mostSaved)})
		// The usage of the call that made the answer is not charged a second time.
		res.Cached, res.Usage = true, llm.Usage{Reported: true}
		return res, nil
	}

	res, err := c.Provider.Complete(ctx, req)
	if err != nil || !worthKeeping(req, res) {
		return res, err
	}
	// An answer that cannot be written down is an answer all the same.
	if raw, err := json.Marshal(keptAnswer{key, res}); err == nil {
		c.Answers.Share(key, raw)
	}
	return res, nil
}

// recallAnswer returns the answer that was kept under a key, if it is one to req.
func recallAnswer(req *llm.Request, key, raw []byte) *llm.Response {
	var kept keptAnswer
	if len(raw) == 0 || json.Unmarshal(raw, &kept) != nil || kept.Response == nil || !bytes.Equal(kept.Key, key) {
		return nil
	}
	if !worthKeeping(req, kept.Response) {
		return nil
	}
	return kept.Response
}

// worthKeeping reports whether an answer is whole and fits its schema. It replaces the
// answer by its checked form.
func worthKeeping(req *llm.Request, res *llm.Response) bool {
	if !slices.Contains([]llm.Stop{llm.StopEnd, llm.StopTool, llm.StopSequence}, res.Stop) {
		return false
	}
	w := work{req: req}
	return (res.Answer != nil || !w.isEmpty(res)) && w.checkAnswer(res) == nil
}

// AnswerKey is the SHA-256 of everything that decides an answer.
func AnswerKey(o Origin, req *llm.Request) ([]byte, error) {
	type tool struct{ Name, Description, Schema string }
	all := struct {
		Version       int // of what is asked, and how, by this package
		Origin        Origin
		Model         llm.Model
		System, Force string
		Schema        string
		Tools         []tool
		Messages      []llm.Message
		MaxTokens     int64
		NoCalls       bool           `json:",omitempty"`
		Parameters    parameters.Set `json:",omitzero"`
	}{
		Version: 1, Origin: o, Model: req.Model, System: req.System, Force: req.Force, MaxTokens: req.AnswerBound(), NoCalls: req.NoCalls,
		Parameters: req.Parameters.Without(parameters.Tier), // which says when it is answered, and not what
	}

	if req.Schema != nil {
		all.Schema = req.Schema.Name() + "\n" + req.Schema.Document()
	}

	for _, t := range req.Tools {
		one := tool{Name: t.Name, Description: t.Description}
		if t.Schema != nil {
			one.Schema = t.Schema.Document()
		}
		all.Tools = append(all.Tools, one)
	}

	for _, m := range req.Messages {
		said := llm.Message{Role: m.Role}
		for _, p := range m.Parts {
			// What a vendor is asked to keep warm does not decide its answer.
			p.Cache = ""
			said.Parts = append(said.Parts, p)
		}
		all.Messages = append(all.Messages, said)
	}

	raw, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	return sum[:], nil
}
