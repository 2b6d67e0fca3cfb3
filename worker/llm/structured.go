package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Structured sees an answer through until it can be used, and returns only such:
//   - a turn that paused is asked to go on;
//   - an answer, or the input of a tool, is checked against the whole schema. One
//     that does not fit is sent back once with the validator's words, and is a
//     Mismatch if that does not help;
//   - nothing at all is Empty, which is worth another attempt;
//   - an answer that was cut off is TooLarge: the same again would be cut off
//     again, but a smaller unit might not;
//   - a refusal is Refused, a filter Filtered: no attempt would be answered.
//
// With tools beside a schema, a turn that calls some is returned as well, without
// an Answer. Usage, of a Response or an *Error, is that of all calls it made; a
// Meter stands below, and sees each of them. Agents return errors by ForAgent.
type Structured struct {
	Provider
	Repairs int // turns to mend an answer. Defaults to 1; below 0, none
	Pauses  int // times a turn may pause. Defaults to 8
}

// Complete implements Provider.
func (s *Structured) Complete(ctx context.Context, req *Request) (*Response, error) {
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
	req     *Request
	repairs int
	pauses  int
	calls   int
	usage   Usage
	parts   []Part // of turns that paused
}

func (w *work) add(r *Response) {
	if w.calls++; w.calls == 1 {
		w.usage = r.Usage
		return
	}
	w.usage = w.usage.Add(r.Usage)
}

// addSpent adds the usage of the earlier calls to an error.
func (w *work) addSpent(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || w.calls == 0 {
		return err
	}
	if e.Usage != (Usage{}) {
		w.usage = w.usage.Add(e.Usage)
	}
	e.Usage = w.usage
	return err
}

func (w *work) finishResponse(r *Response) *Response {
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
func (w *work) judgeResponse(r *Response, said []Message) ([]Message, error) {
	switch {
	case r.Stop == StopPause:
		return w.resumePaused(r, said)
	case r.Stop == StopRefusal:
		return nil, w.rejectResponse(r, Refused, "the model refused", r.Reason)
	case r.Stop == StopFilter:
		return nil, w.rejectResponse(r, Filtered, "the answer was filtered", r.Reason)
	case r.Stop.Cut():
		return nil, w.rejectResponse(r, TooLarge, fmt.Sprintf("the answer was cut off after %d tokens", r.Usage.Output), "")
	case r.Answer == nil && w.isEmpty(r):
		return nil, w.rejectResponse(r, Empty, "the model said nothing", "")
	}
	err := w.checkAnswer(r)
	if err == nil {
		return nil, nil
	}
	if w.repairs <= 0 {
		return nil, w.rejectResponse(r, Mismatch, "the answer does not fit the schema", err.Error())
	}
	w.repairs--
	w.parts = nil
	return append(slices.Clip(said), Message{Assistant, r.Parts}, complaintMessage(r, err)), nil
}

// isEmpty reports whether nothing was said that was asked for.
func (w *work) isEmpty(r *Response) bool {
	return len(r.Calls()) == 0 && (w.req.Schema != nil || r.Text() == "")
}

func (w *work) resumePaused(r *Response, said []Message) ([]Message, error) {
	if w.pauses <= 0 {
		return nil, w.rejectResponse(r, Server, "the model paused too often", "")
	}
	w.pauses--
	w.parts = append(w.parts, r.Parts...)
	if n := len(said); said[n-1].Role == Assistant {
		parts := append(slices.Clip(said[n-1].Parts), r.Parts...)
		return append(slices.Clip(said[:n-1]), Message{Assistant, parts}), nil
	}
	return append(slices.Clip(said), Message{Assistant, r.Parts}), nil
}

func (w *work) rejectResponse(r *Response, kind Kind, what, why string) error {
	if why != "" {
		what += ": " + why
	}
	e := newError(kind, "%s", what)
	e.Status, e.RequestID, e.Limits = 200, r.RequestID, r.Limits
	return e
}

// checkAnswer validates the answer, and replaces it by its checked form.
func (w *work) checkAnswer(r *Response) error {
	if w.req.Schema != nil && !w.toolTurn(r) {
		checked, err := w.req.Schema.Check(r.Answer)
		if err == nil {
			r.Answer = checked
		}
		return err
	}
	r.Answer = nil // what is said besides calls of tools is none
	for _, c := range r.Calls() {
		i := slices.IndexFunc(w.req.Tools, func(t Tool) bool { return t.Name == c.Name })
		if i < 0 {
			return &MismatchError{[]Fault{{Message: fmt.Sprintf("there is no tool %q", c.Name)}}}
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
		return &MismatchError{[]Fault{{Message: fmt.Sprintf("the tool %q was not called", w.req.Force)}}}
	}
	return nil
}

// toolTurn reports whether the model wants tools called before it answers.
func (w *work) toolTurn(r *Response) bool {
	return slices.ContainsFunc(r.Calls(), func(c *ToolCall) bool { return c.Name != answerTool })
}

// complaintMessage returns the message that tells the model what is wrong. Every call of
// a tool must get a result.
func complaintMessage(r *Response, err error) Message {
	text := "That does not fit the schema:\n" + err.Error() + "\nGive the whole answer again, with these faults mended and nothing else changed."
	m := Message{Role: User}
	for _, c := range r.Calls() {
		m.Parts = append(m.Parts, Part{Result: &ToolResult{ID: c.ID, Name: c.Name, Text: text, Error: true}})
	}
	if m.Parts == nil {
		m.Parts = []Part{{Text: text}}
	}
	return m
}
