// Package decorator has what stands between an agent and a vendor: providers that hold
// another, so that each is small and any of them can be left out. They check answers,
// retry, meter, guard, limit and cache calls. From the outside in they are meant to stand as
//
//	Structured → Retry → Meter → Guard → Limit → a vendor
//
// with Cache around or within Structured.
package decorator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/worker/llm"
)

// Structured sees an answer through until it can be used, and returns only such:
//   - a turn that paused is asked to go on;
//   - an answer, or the input of a tool, is checked against the whole schema. One
//     that does not fit is sent back once with the validator's words, and is a
//     Mismatch if that does not help, unless the schema tolerates what is left;
//   - nothing at all is Empty, which is worth another attempt;
//   - an answer that was cut off is TooLarge: the same again would be cut off
//     again, but a smaller unit might not;
//   - a refusal is Refused, a filter Filtered: no attempt would be answered.
//
// With tools beside a schema, a turn that calls some is returned as well, without
// an Answer. Usage, of a Response or an *Error, is that of all calls it made; a
// Meter stands below, and sees each of them. Agents return errors by ForAgent.
type Structured struct {
	llm.Provider
	Repairs int // turns to mend an answer. Defaults to 1; below 0, none
	Pauses  int // times a turn may pause. Defaults to 8

	// Unchecked leaves answers and calls of tools as the model wrote them: whoever leads
	// the conversation checks them.
	Unchecked bool
}

// Complete implements Provider.
func (s *Structured) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	w := work{s: s, req: req, repairs: cmp.Or(s.Repairs, 1), pauses: cmp.Or(s.Pauses, 8)}
	next := *req
	for {
		r, err := s.Provider.Complete(ctx, &next)
		if err != nil {
			return nil, w.addSpent(err)
		}
		w.add(r)
		messages, err := w.judgeResponse(r, next.Messages)
		if err != nil {
			return nil, w.addSpent(err)
		}
		if messages == nil {
			return w.finishResponse(r), nil
		}
		next.Messages = messages
	}
}

// work is one answer in the making.
type work struct {
	s       *Structured
	req     *llm.Request
	repairs int
	pauses  int
	calls   int
	usage   llm.Usage
	parts   []llm.Part // of turns that paused
}

func (w *work) add(r *llm.Response) {
	if w.calls++; w.calls == 1 {
		w.usage = r.Usage
		return
	}
	w.usage = w.usage.Add(r.Usage)
}

// addSpent adds the usage of the earlier calls to an error.
func (w *work) addSpent(err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || w.calls == 0 {
		return err
	}
	if e.Usage != (llm.Usage{}) {
		w.usage = w.usage.Add(e.Usage)
	}
	e.Usage = w.usage
	return err
}

func (w *work) finishResponse(r *llm.Response) *llm.Response {
	out := *r
	out.Parts = append(w.parts, r.Parts...)
	out.Usage = w.usage
	if len(w.parts) > 0 {
		out.Written = nil // that is of the last turn alone
	}
	return &out
}

// judgeResponse returns nothing if the answer can be used, and else the conversation
// that mends it.
func (w *work) judgeResponse(r *llm.Response, said []llm.Message) ([]llm.Message, error) {
	switch {
	case r.Stop == llm.StopPause:
		return w.resumePaused(r, said)
	case r.Stop == llm.StopRefusal:
		return nil, w.rejectResponse(r, llm.Refused, "the model refused", r.Reason)
	case r.Stop == llm.StopFilter:
		return nil, w.rejectResponse(r, llm.Filtered, "the answer was filtered", r.Reason)
	case r.Stop.Cut():
		return nil, w.rejectResponse(r, llm.TooLarge, fmt.Sprintf("the answer was cut off after %d tokens", r.Usage.Output), "")
	case r.Answer == nil && w.isEmpty(r):
		return nil, w.rejectResponse(r, llm.Empty, "the model said nothing", "")
	}
	if w.s.Unchecked {
		if w.toolTurn(r) || !json.Valid(r.Answer) {
			r.Answer = nil // what is said stands in the text
		}
		return nil, nil
	}
	err := w.checkAnswer(r)
	if err == nil {
		return nil, nil
	}
	if w.repairs <= 0 {
		if w.salvageAnswer(r) {
			return nil, nil
		}
		return nil, w.rejectResponse(r, llm.Mismatch, "the answer does not fit the schema", err.Error())
	}
	w.repairs--
	w.parts = nil
	return append(slices.Clip(said), llm.Message{Role: llm.Assistant, Parts: r.Parts}, complaintMessage(r, err)), nil
}

// isEmpty reports whether nothing was said that was asked for.
func (w *work) isEmpty(r *llm.Response) bool {
	return len(r.Calls()) == 0 && (w.req.Schema != nil || r.Text() == "")
}

func (w *work) resumePaused(r *llm.Response, said []llm.Message) ([]llm.Message, error) {
	if w.pauses <= 0 {
		return nil, w.rejectResponse(r, llm.Server, "the model paused too often", "")
	}
	w.pauses--
	w.parts = append(w.parts, r.Parts...)
	if n := len(said); said[n-1].Role == llm.Assistant {
		parts := append(slices.Clip(said[n-1].Parts), r.Parts...)
		return append(slices.Clip(said[:n-1]), llm.Message{Role: llm.Assistant, Parts: parts}), nil
	}
	return append(slices.Clip(said), llm.Message{Role: llm.Assistant, Parts: r.Parts}), nil
}

func (w *work) rejectResponse(r *llm.Response, kind llm.Kind, what, why string) error {
	if why != "" {
		what += ": " + why
	}
	e := llm.NewError(kind, "%s", what)
	e.Status, e.RequestID, e.Limits = 200, r.RequestID, r.Limits
	return e
}

// checkAnswer validates the answer, and replaces it by its checked form.
func (w *work) checkAnswer(r *llm.Response) error {
	if w.req.Schema != nil && !w.toolTurn(r) {
		checked, err := w.req.Schema.Check(r.Answer)
		if err == nil {
			r.Answer = checked
		}
		return err
	}
	r.Answer = nil // what is said besides calls of tools is none
	for _, c := range r.Calls() {
		i := slices.IndexFunc(w.req.Tools, func(t llm.Tool) bool { return t.Name == c.Name })
		if i < 0 {
			return &llm.MismatchError{Faults: []llm.Fault{{Message: fmt.Sprintf("there is no tool %q", c.Name)}}}
		}
		if w.req.Tools[i].Schema == nil {
			continue
		}
		checked, err := w.req.Tools[i].Schema.Check(c.Input)
		if err != nil {
			return err
		}
		c.Input = checked
	}
	if w.req.Force != "" && len(r.Calls()) == 0 {
		return &llm.MismatchError{Faults: []llm.Fault{{Message: fmt.Sprintf("the tool %q was not called", w.req.Force)}}}
	}
	return nil
}

// salvageAnswer replaces an answer that does not fit, and was not mended, by what can be
// used of it. It reports whether that is all but tolerated places.
func (w *work) salvageAnswer(r *llm.Response) bool {
	if w.req.Schema == nil || w.toolTurn(r) {
		return false
	}
	salvaged, ok := w.req.Schema.Salvage(r.Answer)
	if ok {
		r.Answer = salvaged
	}
	return ok
}

// toolTurn reports whether the model wants tools called before it answers.
func (w *work) toolTurn(r *llm.Response) bool {
	return slices.ContainsFunc(r.Calls(), func(c *llm.ToolCall) bool { return c.Name != llm.AnswerTool })
}

// complaintMessage returns the message that tells the model what is wrong. Every call of
// a tool must get a result.
func complaintMessage(r *llm.Response, err error) llm.Message {
	text := "That does not fit the schema:\n" + err.Error() + "\nGive the whole answer again, with these faults mended and nothing else changed."
	m := llm.Message{Role: llm.User}
	for _, c := range r.Calls() {
		m.Parts = append(m.Parts, llm.Part{Result: &llm.ToolResult{ID: c.ID, Name: c.Name, Text: text, Error: true}})
	}
	if m.Parts == nil {
		m.Parts = []llm.Part{{Text: text}}
	}
	return m
}
