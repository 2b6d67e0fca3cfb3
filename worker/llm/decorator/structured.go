// Package decorator has what stands between an agent and a vendor: providers that hold
// another, so that each is small and any of them can be left out. They check answers,
// retry, meter, guard, limit and cache calls. From the outside in they are meant to stand as
//
//	Structured → Retry → Meter → Guard → Limit → a vendor
//
// with Cache around or within Structured, and Route around several of these.
package decorator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/answer"
)

// Structured sees an answer through until it can be used, and returns no other:
//   - a turn that paused is asked to go on;
//   - an answer, or the input of a tool, is read as llm.Schema.Read does, and checked against
//     the whole schema. One that does not fit is sent back once with what does not, and what
//     of it comes back better is taken. It is a Mismatch if that does not help, unless the
//     schema tolerates what is left;
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

	// Reserve bounds the turns to mend answers of all calls together, as those of a unit. Nil
	// bounds none.
	Reserve *Reserve

	// Unchecked leaves answers and calls of tools as the model wrote them: whoever leads
	// the conversation checks them.
	Unchecked bool
}

// A Reserve is a number of turns that can be spent once. It is safe for concurrent use.
type Reserve struct{ left atomic.Int64 }

// NewReserve returns a reserve of n turns.
func NewReserve(n int64) *Reserve {
	r := new(Reserve)
	r.left.Store(n)
	return r
}

// take reports whether a turn was left, and spends it.
func (r *Reserve) take() bool { return r == nil || r.left.Add(-1) >= 0 }

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
		// next is the request with the conversation so far; w.req stays as it was asked.
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
	parts   []llm.Part    // of turns that paused
	found   []answer.Kind // of what was mended

	// The fields below are of an answer that was sent back.
	kept   json.RawMessage // as far as it can be used; nil if not at all
	faults []llm.Fault     // of it
	cut    bool            // it breaks off
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
	slices.Sort(w.found)
	out.Repairs = slices.Compact(w.found)
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

	if w.repairs <= 0 || !w.s.Reserve.take() {
		if w.salvageAnswer(r) {
			return nil, nil
		}
		if w.cut { // a smaller unit might not be
			return nil, w.rejectResponse(r, llm.TooLarge, "the answer breaks off", "")
		}

		reject := w.rejectResponse(r, llm.Mismatch, "the answer does not fit the schema", err.Error())
		reject.Err = err
		return nil, reject
	}

	w.repairs--
	w.parts = nil
	return append(slices.Clip(said), llm.Message{Role: llm.Assistant, Parts: r.Parts}, w.complaintMessage(r, err)), nil
}

// isEmpty reports whether a response has neither calls of tools nor an answer of the kind
// that was asked for.
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

func (w *work) rejectResponse(r *llm.Response, kind llm.Kind, what, why string) *llm.Error {
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
		return w.readAnswer(r)
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

		got := w.req.Tools[i].Schema.Read(c.Input)
		if got.Answer == nil {
			return got.Fault
		}
		c.Input = got.Answer
		w.noteRepairs(got.Repairs)
	}

	if w.req.Force != "" && len(r.Calls()) == 0 {
		return &llm.MismatchError{Faults: []llm.Fault{{Message: fmt.Sprintf("the tool %q was not called", w.req.Force)}}}
	}
	return nil
}

// readAnswer reads the answer, and replaces it by its checked form. Of an answer that was sent
// for its faults alone, those of the one before are mended: what it leaves out was right.
func (w *work) readAnswer(r *llm.Response) error {
	got := w.req.Schema.Read(r.Answer)
	if w.kept != nil {
		if reply := orElse(got.Answer, got.Nearest); reply != nil {
			w.kept = w.req.Schema.Mend(w.kept, reply, w.faults)
		}

		// Only a reply that had to be whole, and fits by itself, counts where the mended
		// answer does not fit.
		mended := w.req.Schema.Read(w.kept)
		if mended.Answer != nil || w.req.Schema.Mends() || got.Answer == nil {
			got = mended
		}
	}

	if got.Answer != nil {
		r.Answer = got.Answer
		w.noteRepairs(got.Repairs)
		return nil
	}

	w.keep(got)
	return got.Fault
}

// keep keeps of an answer what can be mended. Of one that breaks off, or is something else
// altogether, all is asked for again.
func (w *work) keep(got llm.Reading) {
	w.kept, w.faults, w.cut = got.Nearest, nil, got.Cut
	if e, ok := errors.AsType[*llm.MismatchError](got.Fault); ok {
		w.faults = e.Faults
	}
	if got.Cut || slices.ContainsFunc(w.faults, func(f llm.Fault) bool { return f.Path == "" }) {
		w.kept = nil
	}
}

func orElse(a, b json.RawMessage) json.RawMessage {
	if a != nil {
		return a
	}
	return b
}

// noteRepairs notes what was mended.
func (w *work) noteRepairs(repairs []answer.Repair) {
	w.found = append(w.found, answer.Kinds(repairs)...)
}

// salvageAnswer replaces an answer that does not fit, and was not mended, by what can be
// used of it. It reports whether that is all but tolerated places.
func (w *work) salvageAnswer(r *llm.Response) bool {
	if w.req.Schema == nil || w.toolTurn(r) || w.kept == nil {
		return false
	}
	salvaged, left, ok := w.req.Schema.Salvage(w.kept)
	if ok {
		r.Answer = salvaged
		w.noteRepairs(left)
	}
	return ok
}

// toolTurn reports whether the model wants tools called before it answers.
func (w *work) toolTurn(r *llm.Response) bool {
	return slices.ContainsFunc(r.Calls(), func(c *llm.ToolCall) bool { return c.Name != llm.AnswerTool })
}

// complaintMessage returns the message that tells the model what is wrong, and asks for that
// alone where the schema allows the rest to be left out. Every call of a tool must get a result.
func (w *work) complaintMessage(r *llm.Response, err error) llm.Message {
	text := "That does not fit the schema:\n" + err.Error() + "\n"

	switch {
	case w.cut:
		text += "Give the whole answer again, to its end, and nothing beside it."
	case w.kept == nil || !w.req.Schema.Mends():
		text += "Give the whole answer again, with these faults mended and nothing else changed."
	default:
		text += "Answer in the same form, with these places alone: in a list give only the elements that are named here, in this order, and leave every other list empty. " +
			"All else of your answer is kept. What the document does not say is left out."
	}

	m := llm.Message{Role: llm.User}
	for _, c := range r.Calls() {
		m.Parts = append(m.Parts, llm.Part{Result: &llm.ToolResult{ID: c.ID, Name: c.Name, Text: text, Error: true}})
	}

	if m.Parts == nil {
		m.Parts = []llm.Part{{Text: text}}
	}
	return m
}
