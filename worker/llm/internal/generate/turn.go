package generate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// An event is one document of an answer.
type event struct {
	Candidates []struct {
		Content       struct{ Parts []json.RawMessage }
		FinishReason  string
		FinishMessage string
		Index         int
	}
	PromptFeedback struct{ BlockReason, BlockReasonMessage string }
	UsageMetadata  *usage
	ModelVersion   string
	ResponseID     string `json:"responseId"`
	Error          json.RawMessage
}

// served is the tier in which the call was served; "" if nobody says.
func (u *usage) served() string {
	if u == nil {
		return ""
	}
	return cmp.Or(u.Served, strings.TrimPrefix(u.Traffic, "ON_DEMAND_")) // which is the standard tier by itself
}

// usage is what the server says of tokens. Those from the cache are part of the prompt; those of
// thinking are not part of the candidates.
type usage struct {
	Prompt     wire.Count `json:"promptTokenCount"`
	Cached     wire.Count `json:"cachedContentTokenCount"`
	Candidates wire.Count `json:"candidatesTokenCount"`
	Thoughts   wire.Count `json:"thoughtsTokenCount"`
	ToolUse    wire.Count `json:"toolUsePromptTokenCount"`
	Total      wire.Count `json:"totalTokenCount"`
	Served     string     `json:"serviceTier"` // of a stream, which does not have it in a header
	Traffic    string     `json:"trafficType"` // likewise, of Vertex AI
}

// count returns the usage of a call. A number of zero is left out by the server, so the sum tells
// whether nothing was: without it, or with another, nobody knows what the call took.
func (u *usage) count() llm.Usage {
	if u == nil || !u.Prompt.Known {
		return llm.Usage{}
	}
	input, output := u.Prompt.N+u.ToolUse.N, u.Candidates.N+u.Thoughts.N
	if output == 0 && u.Total.N != input {
		return llm.Usage{}
	}
	return llm.Usage{Input: input - u.Cached.N, CacheRead: u.Cached.N, Output: output, Reported: true}.IfPossible()
}

// A turn is put together from the events of an answer.
type turn struct {
	model, id string
	parts     []llm.Part
	calls     int
	finish    string
	message   string // why, in the server's words
	blocked   string // why the prompt was
	usage     *usage // each event has that so far
}

// takeAll adds the events of a stream, and fails if that is not a whole answer: one whose server
// said how it ended.
func (t *turn) takeAll(c *wire.Call, events iter.Seq2[wire.Event, error]) *llm.Error {
	for raw, err := range events {
		if err != nil {
			return c.CutError(err)
		}

		var e event
		if err := wire.Decode(raw.Data, &e); err != nil {
			return c.CutError(err)
		}

		if len(e.Error) > 0 {
			return c.MidstreamError(raw.Data)
		}

		if err := t.take(&e); err != nil {
			return c.CutError(err)
		}

		if t.isWhole() && t.usage != nil {
			break // the last event has both
		}
	}

	if !t.isWhole() {
		return c.CutError(nil)
	}

	if kind := failedFinish(t.finish); kind != 0 {
		return c.FailError(llm.NewError(kind, "the model ended its answer with %s: %s", t.finish, t.message))
	}
	return nil
}

// isWhole reports whether the server said how the answer ended.
func (t *turn) isWhole() bool { return t.finish != "" || t.blocked != "" }

// take adds an event.
func (t *turn) take(e *event) error {
	if e.ModelVersion != "" {
		t.model = e.ModelVersion
	}
	if e.ResponseID != "" {
		t.id = e.ResponseID
	}
	if e.UsageMetadata != nil {
		t.usage = e.UsageMetadata
	}
	if e.PromptFeedback.BlockReason != "" {
		t.blocked, t.message = e.PromptFeedback.BlockReason, e.PromptFeedback.BlockReasonMessage
	}

	for _, c := range e.Candidates {
		// Only one candidate was asked for.
		if c.Index != 0 {
			continue
		}

		for _, raw := range c.Content.Parts {
			if err := t.takePart(raw); err != nil {
				return err
			}
		}

		if c.FinishReason != "" && c.FinishReason != "FINISH_REASON_UNSPECIFIED" {
			t.finish = c.FinishReason
			t.message = c.FinishMessage
		}
	}
	return nil
}

// maxCalls bounds the calls of one turn.
const maxCalls = 256

// takePart adds a part. What the model thinks aloud is no answer. A part that is not known here
// is kept as it is.
func (t *turn) takePart(raw json.RawMessage) error {
	var p part
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}

	switch {
	case p.Thought:
	case p.Call != nil:
		if t.calls == maxCalls {
			return llm.NewError(llm.Garbled, "the answer calls more than %d tools", maxCalls)
		}
		// The signature comes before the part that it stands on, as it is handed back.
		t.keepSignature(p.Signature, "call")
		t.parts = append(t.parts, llm.Part{Call: t.toolCall(p.Call)})
		t.calls++
	case p.Text != nil && *p.Text == "":
		t.keepSignature(p.Signature, "")
	case p.Text != nil && p.Signature != "":
		t.keepSignature(p.Signature, "text")
		t.parts = append(t.parts, llm.Part{Text: *p.Text})
	case p.Text != nil:
		t.addText(*p.Text)
	case !isEmptyPart(raw):
		t.keep(kept{Part: bytes.Clone(raw)})
	}
	return nil
}

// toolCall returns a call. A call without arguments has none at all.
func (t *turn) toolCall(c *functionCall) *llm.ToolCall {
	call := &llm.ToolCall{ID: c.ID, Name: c.Name, Input: c.Args}
	if len(call.Input) == 0 || string(call.Input) == "null" {
		call.Input = json.RawMessage("{}")
	}
	if call.ID == "" {
		call.ID = fmt.Sprintf("%s%d", unnamed, t.calls)
	}
	return call
}

// isEmptyPart reports whether a part says nothing.
func isEmptyPart(raw json.RawMessage) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(raw, &fields) == nil && len(fields) == 0
}

// addText adds text to the last part if that is text, too.
func (t *turn) addText(text string) {
	if n := len(t.parts) - 1; n >= 0 && t.parts[n].Text != "" {
		t.parts[n].Text += text
		return
	}
	t.parts = append(t.parts, llm.Part{Text: text})
}

func (t *turn) keepSignature(signature, on string) {
	if signature != "" {
		t.keep(kept{Signature: signature, On: on})
	}
}

func (t *turn) keep(k kept) {
	if raw, err := json.Marshal(k); err == nil { // of texts, and of JSON that was read
		t.parts = append(t.parts, llm.Part{Opaque: raw})
	}
}

// noteWaste adds to an error the usage of the failed turn.
func (t *turn) noteWaste(e *llm.Error) *llm.Error {
	e.Usage = t.usage.count()
	return e
}

// toResponse is the finished turn.
func (t *turn) toResponse(c *wire.Call, tool bool) *llm.Response {
	r := &llm.Response{
		Model: llm.Model(t.model), RequestID: c.CleanText(t.id), Parts: t.parts, Stop: stopOf(t.finish),
		Usage: t.usage.count(), Limits: c.ParseLimits(), Tier: llm.TierNamed(cmp.Or(c.Header("x-gemini-service-tier"), t.usage.served())),
	}

	if t.blocked != "" {
		r.Stop = llm.StopFilter
	}
	if r.Stop == llm.StopFilter {
		r.Reason = c.CleanText(strings.TrimSpace(t.blocked + t.finish + " " + t.message))
	}

	if t.calls > 0 && r.Stop == llm.StopEnd {
		r.Stop = llm.StopTool // calls end with STOP
	}

	if r.Usage.Reported {
		r.Written = &t.usage.Candidates.N
	}

	r.Answer = wire.AnswerOf(r, tool)
	return r
}

// failedFinish returns the kind of error that an end is; 0 if it is none. These say that the
// model wrote a call that is none: asked again, it mostly writes a right one.
func failedFinish(reason string) llm.Kind {
	switch reason {
	case "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return llm.Garbled
	case "MISSING_THOUGHT_SIGNATURE":
		return llm.Invalid
	}
	return 0
}

// stopOf translates the vendor's word.
func stopOf(reason string) llm.Stop {
	switch reason {
	case "STOP":
		return llm.StopEnd
	case "MAX_TOKENS":
		return llm.StopMax
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return llm.StopFilter
	default:
		return llm.Stop("gemini:" + reason)
	}
}

// wholeEvents returns an answer that came whole as the only event. It is false if it is no such
// answer.
func wholeEvents(raw []byte) ([]wire.Event, bool) {
	var e event
	if json.Unmarshal(raw, &e) != nil || len(e.Candidates) == 0 && e.PromptFeedback.BlockReason == "" && e.UsageMetadata == nil {
		return nil, false
	}
	return []wire.Event{{Data: raw}}, true
}
