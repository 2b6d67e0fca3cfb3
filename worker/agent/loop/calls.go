package loop

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/tool"
)

// maxAtOnce bounds the calls of one turn that run at the same time.
const maxAtOnce = 32

// callTools makes the calls of one turn at once, and returns their results in order, for one
// message. An error ends the attempt; a call that fails is a result.
func (c *conversation) callTools(ctx context.Context, wanted []*llm.ToolCall) ([]llm.Part, error) {
	results, failed := make([]llm.Part, len(wanted)), make([]error, len(wanted))
	room := make(chan struct{}, maxAtOnce)
	var all sync.WaitGroup

	for i, call := range wanted {
		allowed := c.counts(call) // in order: which of them are beyond the limit does not depend on chance
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			var text string
			var isError bool
			text, isError, failed[i] = c.callOne(ctx, i, call, allowed)
			results[i].Result = &llm.ToolResult{ID: call.ID, Name: call.Name, Text: text, Error: isError}
		})
	}

	all.Wait()
	return results, errors.Join(failed...)
}

// counts counts a call of a tool that the stage lists, and reports whether the limit allows
// it.
func (c *conversation) counts(call *llm.ToolCall) bool {
	if _, ok := c.tools.Spec(call.Name); !ok {
		return true // it is refused anyway, or costs nothing
	}
	if c.made >= c.limits.calls {
		return false
	}
	c.made++
	return true
}

// callOne makes a call and returns the text that the model gets for it.
func (c *conversation) callOne(ctx context.Context, i int, call *llm.ToolCall, allowed bool) (text string, isError bool, err error) {
	defer func() { // our own mistake with what a tool brought ends this attempt alone
		if p := recover(); p != nil {
			err = fmt.Errorf("after a call of %s: panic: %v\n%s", shorten.Line(call.Name, 80), p, debug.Stack())
		}
	}()
	switch {
	case call.Name == llm.AnswerTool:
		return "Read the results of your other calls first, then give the final answer alone.", true, nil
	case call.Name == rereadName:
		return c.answerReread(ctx, call.Input)
	case !allowed:
		return c.failure(call, fmt.Sprintf("it was not called: limits.tool_calls of the stage allows %d", c.limits.calls)), true, nil
	}

	began := time.Now()
	b, err := c.bringAnswer(ctx, i, call)
	if err != nil {
		return "", false, err
	}

	if b.Error != "" {
		text, isError = c.failure(call, b.Error), true
	} else if text, err = c.show(ctx, b); err != nil {
		return "", false, err
	}

	// A call that an earlier attempt made was noted and recorded then.
	if !b.recalled {
		if b.Error != "" {
			c.progress(c.turns, "%s failed: %s", shorten.Line(call.Name, 80), shorten.Line(b.Error, maxNoted))
		}
		c.calls.Record(mapreduce.Call{
			Kind: mapreduce.CallTool, Turn: int(c.turns), Name: shorten.Line(call.Name, 80), Latency: time.Since(began), Error: b.Error, Prompt: string(call.Input), Answer: text,
		})
	}
	return text, isError, nil
}

// failure returns the text that the model gets for a call that failed.
func (c *conversation) failure(call *llm.ToolCall, why string) string {
	raw, err := json.Marshal(struct {
		Source string `json:"source_type"`
		Query  string `json:"query"`
		Data   string `json:"data"`
		Error  string `json:"error"`
	}{shorten.Line(call.Name, 80), c.queryOf(call), "{}", why})
	if err != nil { // of strings
		return why
	}
	return string(raw)
}

// maxNoted bounds what people are shown of one call, in characters.
const maxNoted = 120

// maxQuery bounds what is repeated of the input of a call, in characters.
const maxQuery = 300

// queryOf says in a few words what a call asked for.
func (c *conversation) queryOf(call *llm.ToolCall) string {
	spec, _ := c.tools.Spec(call.Name)
	var in map[string]any
	if json.Unmarshal(call.Input, &in) == nil {
		for _, name := range []string{spec.Query, spec.Address} {
			if text, ok := in[name].(string); ok && name != "" {
				return shorten.Line(text, maxQuery)
			}
		}
	}
	return shorten.Line(string(call.Input), maxQuery)
}

// brought is what came of a call, as the journal remembers it. Texts of evidence are stored
// with the unit, and only named here.
type brought struct {
	Error string  `json:"error,omitempty"`
	Text  string  `json:"text,omitempty"`
	Shown []shown `json:"shown,omitempty"`
	Cut   int64   `json:"cut,omitempty"` // bytes that the tool brought and that are nowhere

	recalled bool // from an earlier attempt
}

// shown is evidence, and what of it the model is shown.
type shown struct {
	Document mapreduce.DocumentID `json:"document"`
	URI      string               `json:"uri"`
	Title    string               `json:"title,omitempty"`
	Bytes    int                  `json:"bytes"` // of the text
	Ranges   []tool.Range         `json:"ranges"`
}

// bringAnswer makes a call that no attempt has made, or recalls what came of it. The error ends
// the attempt.
func (c *conversation) bringAnswer(ctx context.Context, i int, call *llm.ToolCall) (*brought, error) {
	input, err := c.tools.Check(call.Name, call.Input)
	if err != nil { // the same for every attempt
		return &brought{Error: err.Error()}, nil
	}

	spec, _ := c.tools.Spec(call.Name)
	do := c.calls.Do
	if !spec.Idempotent {
		do = c.calls.DoOnce
	}

	b, key := &brought{recalled: true}, c.callKey(i, call, input)
	if _, done := c.calls.Recall(key); !done {
		c.progress(c.turns, "%s %s", spec.Name, shorten.Line(c.queryOf(call), maxNoted))
	}

	raw, err := do(ctx, key, func(ctx context.Context) ([]byte, error) {
		if b, err = c.callTool(ctx, &spec, input); err != nil {
			return nil, err
		}
		return json.Marshal(b)
	})

	switch {
	case err == nil && !b.recalled:
		return b, nil
	case err == nil:
		if err := json.Unmarshal(raw, b); err != nil {
			return nil, fmt.Errorf("journal: what came of a call of %s: %w", spec.Name, err)
		}
		return b, nil
	case ctx.Err() != nil:
		return nil, err
	case errors.Is(err, journal.ErrInterrupted):
		return &brought{Error: "the call was interrupted, and nobody knows whether it was done; it is not made again. See by another tool, if one can tell."}, nil
	case errors.Is(err, journal.ErrFull):
		return &brought{Error: "it was not called: this unit has no more room to remember calls that change something"}, nil
	}
	return nil, err
}

// callKey names a call: by its turn, its number there, its id and its input.
func (c *conversation) callKey(i int, call *llm.ToolCall, input json.RawMessage) string {
	h := sha256.New()
	for _, text := range []string{call.ID, call.Name, string(input)} {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return fmt.Sprintf("tool %d.%d %x", c.turns, i, h.Sum(nil)[:16])
}

// callTool calls a tool, and keeps the evidence that it brings.
func (c *conversation) callTool(ctx context.Context, spec *tool.Spec, input json.RawMessage) (*brought, error) {
	began := time.Now()
	res, err := c.tools.Call(ctx, spec.Name, input)
	c.calls.ToolCalled(time.Since(began))

	switch {
	case ctx.Err() != nil: // the attempt has ended: what became of the call says nothing
		return nil, context.Cause(ctx)
	case err != nil:
		return &brought{Error: err.Error()}, nil
	}

	b := &brought{Text: res.Text, Cut: res.Cut}
	room := spec.MaxOutput - len(res.Text)
	for i := range res.Evidence {
		if err := c.keep(ctx, b, spec, &res.Evidence[i], &room); err != nil {
			return nil, err
		}
	}
	for i := range res.Pictures {
		if err := c.keepPicture(ctx, b, spec, &res.Pictures[i]); err != nil {
			return nil, err
		}
	}

	return b, nil
}

// maxUncited bounds what is shown of a text that could not be kept, in bytes.
const maxUncited = 4 << 10

// keep keeps one piece of evidence, and takes what is shown of it off the room.
func (c *conversation) keep(ctx context.Context, b *brought, spec *tool.Spec, e *tool.Evidence, room *int) error {
	id, err := c.calls.KeepEvidence(ctx, describe(spec, e), []byte(e.Text))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, agent.ErrNoRoom) || errors.Is(err, errs.Invalid):
		// Of a text that cannot be kept a small part is shown, with the reason.
		text := e.Text[:shorten.Boundary(e.Text, max(0, min(maxUncited, *room)))]
		*room -= len(text)
		b.Cut += int64(len(e.Text) - len(text))
		b.Text += fmt.Sprintf("\n(What %s holds cannot be cited: %v.)\n%s", e.URI, err, text)
		return nil
	case err != nil:
		return err
	}

	s := shown{Document: id, URI: e.URI, Title: e.Title, Bytes: len(e.Text)}
	wanted := e.Shown
	if len(wanted) == 0 {
		wanted = []tool.Range{{Start: 0, End: len(e.Text)}}
	}

	for _, r := range wanted {
		end := r.Start + shorten.Boundary(e.Text[r.Start:r.End], max(0, *room))
		if end > r.Start {
			s.Ranges = append(s.Ranges, tool.Range{Start: r.Start, End: end})
			*room -= end - r.Start
		}
	}
	b.Shown = append(b.Shown, s)
	return nil
}

// keepPicture keeps a picture for people.
func (c *conversation) keepPicture(ctx context.Context, b *brought, spec *tool.Spec, p *tool.Picture) error {
	e := tool.Evidence{URI: p.URI, Title: p.Title, Media: p.Media, Retrieved: p.Retrieved}
	_, err := c.calls.KeepEvidence(ctx, describe(spec, &e), p.Data)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, agent.ErrNoRoom) || errors.Is(err, errs.Invalid):
		b.Text += fmt.Sprintf("\n(The picture cannot be kept: %v.)", err)
		return nil
	}
	return err
}

// describe returns evidence of a tool as the unit keeps it.
func describe(spec *tool.Spec, e *tool.Evidence) mapreduce.Evidence {
	out := mapreduce.Evidence{
		URI: cmp.Or(e.URI, "tool:"+spec.Name), Title: e.Title, Tool: spec.Name, Media: e.Media, Retrieved: e.Retrieved.UTC().Truncate(time.Millisecond),
	}

	size := 0
	for name, value := range e.Metadata {
		size += len(name) + len(value)
	}
	if size <= mapreduce.MaxEvidenceMetadata { // else nobody reads it
		out.Metadata = e.Metadata
	}

	return out
}
