package bedrock

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// What an answer holds: events of a stream, or one document.
type (
	event struct {
		Index int `json:"contentBlockIndex"`
		Start struct {
			ToolUse *toolUse `json:"toolUse"`
		} `json:"start"`
		Delta struct {
			Text    string `json:"text"`
			ToolUse *struct {
				Input string `json:"input"`
			} `json:"toolUse"`
			Reasoning *struct {
				Text      string `json:"text"`
				Signature string `json:"signature"`
				Redacted  string `json:"redactedContent"`
			} `json:"reasoningContent"`
		} `json:"delta"`
		Stop    string `json:"stopReason"`
		Usage   *usage `json:"usage"`
		Message string `json:"message"` // of an exception
	}
	document struct {
		Output struct {
			Message struct {
				Content []block `json:"content"`
			} `json:"message"`
		} `json:"output"`
		Stop  string `json:"stopReason"`
		Usage *usage `json:"usage"`
	}
	usage struct {
		Input      wire.Count `json:"inputTokens"`
		Output     wire.Count `json:"outputTokens"`
		CacheRead  wire.Count `json:"cacheReadInputTokens"`
		CacheWrite wire.Count `json:"cacheWriteInputTokens"`
		Details    []struct {
			TTL   llm.TTL    `json:"ttl"`
			Input wire.Count `json:"inputTokens"`
		} `json:"cacheDetails"`
	}
)

// count returns the usage of a call.
func (u *usage) count() llm.Usage {
	if u == nil {
		return llm.Usage{}
	}

	out := llm.Usage{
		Input: u.Input.N, CacheRead: u.CacheRead.N, CacheWrite: u.CacheWrite.N, Output: u.Output.N,
		Reported: u.Input.Known && u.Output.Known,
	}

	// What is kept for an hour is counted in both.
	for _, d := range u.Details {
		if d.TTL == llm.OneHour {
			out.CacheWrite1h += d.Input.N
			out.CacheWrite -= d.Input.N
		}
	}

	return out.IfPossible()
}

// A turn is put together from the events of an answer.
type turn struct {
	model  llm.Model
	blocks []growing
	stop   string
	usage  *usage // the last that a stream tells
}

// growing is a block of a turn as it grows.
type growing struct {
	text      strings.Builder
	tool      *toolUse
	input     strings.Builder
	thinks    bool
	thought   strings.Builder
	signature string
	redacted  string
}

// maxBlocks bounds the blocks of one turn: an event names one by its index.
const maxBlocks = 1024

// takeAll adds the events of a stream, and fails if that is not a whole answer: one that said how
// it ended, and what it took.
func (t *turn) takeAll(c *wire.Call, events iter.Seq2[wire.Event, error]) *llm.Error {
	for raw, err := range events {
		if err != nil {
			return c.CutError(err)
		}
		if err := t.take(c, raw); err != nil {
			return err
		}

		// The usage comes behind the end, so the stream is read until both are there.
		if t.stop != "" && t.usage != nil {
			break
		}
	}

	if t.stop == "" || t.usage == nil {
		return c.CutError(nil)
	}

	if isFailure(t.stop) {
		return c.FailError(llm.NewError(llm.Garbled, "the model ended its answer with %s", redact.ShortenLine(t.stop)))
	}
	return nil
}

// take adds an event.
func (t *turn) take(c *wire.Call, raw wire.Event) *llm.Error {
	if raw.Name == wholeName {
		var d document
		if err := wire.Decode(raw.Data, &d); err != nil {
			return c.CutError(err)
		}
		t.takeDocument(&d)
		return nil
	}

	var e event
	if err := wire.Decode(raw.Data, &e); err != nil {
		return c.CutError(err)
	}

	// Exceptions come as frames of a stream that began well.
	if kind := exceptionKind(raw.Name); kind != 0 {
		return c.FailError(llm.NewError(kind, "%s in mid-stream: %s", raw.Name, e.Message))
	}

	if err := t.takeEvent(raw.Name, &e); err != nil {
		return c.FailError(err)
	}
	return nil
}

// takeEvent adds an event of a stream. Kinds that are not known are passed over.
func (t *turn) takeEvent(name string, e *event) error {
	switch name {
	case "contentBlockStart", "contentBlockDelta":
		if e.Index < 0 || e.Index >= maxBlocks {
			return llm.NewError(llm.Garbled, "a block has the index %d", e.Index)
		}

		// Blocks of text have no event for their beginning: the first piece makes them.
		for len(t.blocks) <= e.Index {
			t.blocks = append(t.blocks, growing{})
		}

		t.blocks[e.Index].grow(e)
	case "messageStop":
		t.stop = e.Stop
	case "metadata":
		t.usage = e.Usage
		if t.usage == nil {
			t.usage = new(usage)
		}
	}

	return nil
}

// grow adds to a block.
func (g *growing) grow(e *event) {
	if e.Start.ToolUse != nil {
		g.tool = e.Start.ToolUse
	}

	g.text.WriteString(e.Delta.Text)
	if e.Delta.ToolUse != nil {
		g.input.WriteString(e.Delta.ToolUse.Input)
	}

	if r := e.Delta.Reasoning; r != nil {
		g.thinks = true
		g.thought.WriteString(r.Text)
		g.signature += r.Signature
		g.redacted += r.Redacted
	}
}

// takeDocument adds an answer that came whole.
func (t *turn) takeDocument(d *document) {
	t.stop, t.usage = d.Stop, d.Usage
	if t.usage == nil {
		t.usage = new(usage)
	}

	t.blocks = make([]growing, len(d.Output.Message.Content))
	for i, b := range d.Output.Message.Content {
		g := &t.blocks[i]
		g.text.WriteString(b.Text)
		if b.ToolUse != nil {
			g.tool = b.ToolUse
			g.input.Write(b.ToolUse.Input)
		}

		if b.Reasoning != nil {
			g.thinks = true
			g.takeReasoning(b.Reasoning)
		}
	}
}

// takeReasoning adds what a model thought, as it stands in a document.
func (g *growing) takeReasoning(raw json.RawMessage) {
	var r reasoning
	if json.Unmarshal(raw, &r) != nil {
		return
	}
	g.redacted = r.Redacted
	if r.Text != nil {
		g.thought.WriteString(r.Text.Text)
		g.signature = r.Text.Signature
	}
}

// reasoning is what a model thought, as it is handed back.
type reasoning struct {
	Text     *reasoningText `json:"reasoningText,omitempty"`
	Redacted string         `json:"redactedContent,omitempty"`
}

type reasoningText struct {
	Text      string `json:"text"`
	Signature string `json:"signature,omitempty"`
}

// noteWaste adds to an error the usage of the failed turn.
func (t *turn) noteWaste(e *llm.Error) *llm.Error {
	e.Usage = t.usage.count()
	return e
}

// toResponse is the finished turn.
func (t *turn) toResponse(c *wire.Call, tool bool) (*llm.Response, error) {
	r := &llm.Response{Model: t.model, RequestID: c.RequestID(), Stop: stopOf(t.stop), Usage: t.usage.count(), Limits: c.ParseLimits()}

	thought := false
	for i := range t.blocks {
		part, ok := t.blocks[i].finish()
		if !ok && !r.Stop.Cut() {
			return nil, t.noteWaste(c.FailError(llm.NewError(llm.Garbled, "the input for tool %s is no JSON", redact.ShortenLine(t.blocks[i].tool.Name))))
		}

		thought = thought || t.blocks[i].thinks
		if ok && (part.Text != "" || part.Call != nil || part.Opaque != nil) {
			r.Parts = append(r.Parts, part)
		}
	}

	if r.Usage.Reported && !thought { // else it counts what was thought
		r.Written = &t.usage.Output.N
	}

	if r.Stop == llm.StopFilter {
		r.Reason = c.CleanText(t.stop)
	}

	r.Answer = wire.AnswerOf(r, tool)
	return r, nil
}

// finish returns a block as a part. It is false if the input of a tool is no JSON; what a model
// wrote as its answer is read elsewhere.
func (g *growing) finish() (llm.Part, bool) {
	switch {
	case g.thinks:
		kept := reasoning{Redacted: g.redacted}
		if g.redacted == "" {
			kept.Text = &reasoningText{g.thought.String(), g.signature}
		}
		raw, err := json.Marshal(map[string]any{"reasoningContent": kept})
		return llm.Part{Opaque: raw}, err == nil
	case g.tool == nil:
		return llm.Part{Text: g.text.String()}, true
	}

	input, ok := wire.ToolInput(g.input.String())
	if !ok && g.tool.Name == llm.AnswerTool {
		return llm.Part{Text: g.input.String()}, true
	}

	return llm.Part{Call: &llm.ToolCall{ID: g.tool.ID, Name: g.tool.Name, Input: input}}, ok
}

// stopOf translates the vendor's word.
func stopOf(s string) llm.Stop {
	switch s {
	case "end_turn":
		return llm.StopEnd
	case "tool_use":
		return llm.StopTool
	case "max_tokens":
		return llm.StopMax
	case "stop_sequence":
		return llm.StopSequence
	case "model_context_window_exceeded":
		return llm.StopWindow
	case "guardrail_intervened", "content_filtered":
		return llm.StopFilter
	case "refusal":
		return llm.StopRefusal
	case "pause_turn":
		return llm.StopPause
	default:
		return llm.Stop("bedrock:" + s)
	}
}

// wholeName is the name of an event that is a whole answer.
const wholeName = "whole"

// wholeEvents returns an answer that came whole as the only event. It is false if it is no such
// answer.
func wholeEvents(raw []byte) ([]wire.Event, bool) {
	var d document
	if json.Unmarshal(raw, &d) != nil || d.Stop == "" {
		return nil, false
	}
	return []wire.Event{{Name: wholeName, Data: raw}}, true
}
