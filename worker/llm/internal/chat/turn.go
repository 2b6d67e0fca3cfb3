package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// What a stream holds.
type (
	chunk struct {
		Model   string          `json:"model"`
		Choices []choice        `json:"choices"`
		Usage   *usage          `json:"usage"`
		Tier    string          `json:"service_tier"`
		Error   json.RawMessage `json:"error"`
	}
	choice struct {
		Index        int    `json:"index"`
		Delta        delta  `json:"delta"`
		FinishReason string `json:"finish_reason"`
	}
	delta struct {
		Content          said        `json:"content"`
		Refusal          string      `json:"refusal"`
		ReasoningContent string      `json:"reasoning_content"`
		Reasoning        string      `json:"reasoning"`
		ToolCalls        []callDelta `json:"tool_calls"`
	}
	said struct { // a text, or pieces of it among what was thought
		text    string
		thought bool
	}
	callDelta struct {
		Index    int    `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	usage struct {
		Prompt        wire.Count `json:"prompt_tokens"`
		Completion    wire.Count `json:"completion_tokens"`
		PromptDetails struct {
			Cached     wire.Count `json:"cached_tokens"`
			CacheWrite wire.Count `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning wire.Count `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
)

// UnmarshalJSON implements json.Unmarshaler. It never fails: what is no text says nothing.
func (s *said) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &s.text) == nil {
		return nil
	}

	var pieces []struct {
		Text     string     `json:"text"`
		Thinking []struct{} `json:"thinking"`
	}
	_ = wire.Decode(raw, &pieces) // what there is of them

	for _, p := range pieces {
		s.text += p.Text
		s.thought = s.thought || len(p.Thinking) > 0
	}
	return nil
}

// mark is what ends a stream.
const mark = "[DONE]"

// isMark reports whether what an event holds is the mark of the end.
func isMark(data []byte) bool { return bytes.HasPrefix(data, []byte(mark)) }

func (c *chunk) hasError() bool { return len(c.Error) > 0 && string(c.Error) != "null" }

// A turn is put together from the chunks of a stream.
type turn struct {
	model   string
	tier    string // in the server's word
	text    strings.Builder
	refusal strings.Builder
	calls   []toolCall
	finish  string
	usage   llm.Usage

	thinking wire.Count // of the output of usage
	thoughts strings.Builder
	field    string // of thoughts
	thought  bool   // something, shown or not
}

// A toolCall is a call of a tool as it grows.
type toolCall struct {
	id, name string
	input    strings.Builder
}

// maxCalls bounds the calls of one turn: a chunk names one by its index.
const maxCalls = 256

// takeChunk adds a chunk. The one that holds the usage has no choices.
func (t *turn) takeChunk(c chunk) error {
	if c.Model != "" {
		t.model = c.Model
	}
	if c.Tier != "" {
		t.tier = c.Tier
	}
	t.takeUsage(c.Usage)

	for _, one := range c.Choices {
		// Only one answer was asked for.
		if one.Index != 0 {
			continue
		}

		t.text.WriteString(one.Delta.Content.text)
		t.thought = t.thought || one.Delta.Content.thought
		t.takeThinking("reasoning_content", one.Delta.ReasoningContent)
		t.takeThinking("reasoning", one.Delta.Reasoning)
		t.refusal.WriteString(one.Delta.Refusal)
		if one.FinishReason != "" {
			t.finish = one.FinishReason
		}

		for _, d := range one.Delta.ToolCalls {
			if err := t.takeCall(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeUsage sets the usage, if there is one.
func (t *turn) takeUsage(u *usage) {
	if u != nil {
		t.usage, t.thinking = usageOf(u), u.CompletionDetails.Reasoning
	}
}

// takeThinking adds what the model thinks aloud, under the name that its server gives to it. The
// vendor itself does not show it. A server that gives it two names repeats itself.
func (t *turn) takeThinking(field, text string) {
	if text == "" || t.field != "" && t.field != field {
		return
	}
	t.field, t.thought = field, true
	t.thoughts.WriteString(text)
}

// takeCall adds a piece of a call of a tool.
func (t *turn) takeCall(d callDelta) error {
	if d.Index < 0 || d.Index >= maxCalls {
		return llm.NewError(llm.Garbled, "a call of a tool has the index %d", d.Index)
	}
	// Pieces of several calls may come in turns.
	for len(t.calls) <= d.Index {
		t.calls = append(t.calls, toolCall{})
	}

	call := &t.calls[d.Index]
	call.id += d.ID
	call.name += d.Function.Name
	call.input.WriteString(d.Function.Arguments)
	return nil
}

// usageOf subtracts the tokens of the cache from those of the prompt, which include them; some are
// said to have been written and then read. What a server leaves out, or writes so that it is no
// count, it has not reported.
func usageOf(u *usage) llm.Usage {
	read, write := u.PromptDetails.Cached.N, u.PromptDetails.CacheWrite.N
	if read <= u.Prompt.N {
		write = min(write, u.Prompt.N-read)
	}
	return llm.Usage{
		Input: u.Prompt.N - read - write, CacheRead: read, CacheWrite: write,
		Output: u.Completion.N, Reported: u.Prompt.Known && u.Completion.Known,
	}.IfPossible()
}

// noteWaste adds to an error the usage of the failed turn.
func (t *turn) noteWaste(e *llm.Error) *llm.Error {
	e.Usage = t.usage
	return e
}

// toResponse is the finished turn.
func (t *turn) toResponse(c *wire.Call, tool bool) (*llm.Response, error) {
	r := &llm.Response{
		Model: llm.Model(t.model), RequestID: c.RequestID(), Stop: stopOf(t.finish),
		Usage: t.usage, Limits: c.ParseLimits(), Tier: llm.TierNamed(t.tier),
	}
	// What was written can be told from what was thought only if either is counted or
	// absent.
	if t.usage.Reported && (t.thinking.Known || !t.thought) {
		r.Written = new(min(max(t.usage.Output-t.thinking.N, 0), t.usage.Output))
	}

	if t.refusal.Len() > 0 {
		r.Stop, r.Reason = llm.StopRefusal, c.CleanText(t.refusal.String())
	}
	if t.field != "" {
		if raw, err := json.Marshal(map[string]string{t.field: t.thoughts.String()}); err == nil { // of texts
			r.Parts = append(r.Parts, llm.Part{Opaque: raw})
		}
	}

	if t.text.Len() > 0 {
		r.Parts = append(r.Parts, llm.Part{Text: t.text.String()})
	}

	for i := range t.calls {
		part, err := t.calls[i].finishedPart(i)
		if err != nil && r.Stop.Cut() {
			continue
		}
		if err != nil {
			return nil, t.noteWaste(c.FailError(err))
		}
		r.Parts = append(r.Parts, part)
	}
	if len(r.Calls()) > 0 && r.Stop == llm.StopEnd {
		r.Stop = llm.StopTool // a forced tool ends with "stop"
	}
	r.Answer = wire.AnswerOf(r, tool)
	return r, nil
}

// finishedPart returns the call as a part. Some servers give it no id. What a model wrote as its
// answer is read elsewhere if it is no JSON.
func (c *toolCall) finishedPart(i int) (llm.Part, error) {
	input, ok := wire.ToolInput(c.input.String())
	if !ok && c.name == llm.AnswerTool {
		return llm.Part{Text: c.input.String()}, nil
	}

	if !ok {
		return llm.Part{}, llm.NewError(llm.Garbled, "the input for tool %s is no JSON", redact.ShortenLine(c.name))
	}

	if c.id == "" {
		c.id = fmt.Sprintf("call_%d", i)
	}

	return llm.Part{Call: &llm.ToolCall{ID: c.id, Name: c.name, Input: input}}, nil
}

// failedStop returns the kind of error that a word for the end of an answer is; 0 if it is none.
func failedStop(s string) llm.Kind {
	switch strings.ToLower(s) {
	case "error", "abort", "aborted", "cancelled":
		return llm.Server
	case "insufficient_system_resource":
		return llm.Overloaded
	}
	return 0
}

// stopOf translates the vendor's word, and those of other servers. One that gives none has ended
// what it said.
func stopOf(s string) llm.Stop {
	switch strings.ToLower(s) {
	case "stop", "", "eos", "eos_token", "end", "end_turn", "complete", "completed", "finished", "null":
		return llm.StopEnd
	case "stop_sequence":
		return llm.StopSequence
	case "length", "max_tokens", "max_length":
		return llm.StopMax
	case "model_length", "context_length":
		return llm.StopWindow
	case "tool_calls", "function_call", "tool_use":
		return llm.StopTool
	case "content_filter", "safety", "sensitive":
		return llm.StopFilter
	default:
		return llm.Stop("openai:" + s)
	}
}
