package messages

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// What a stream holds: events, each with the fields of all kinds.
type (
	event struct {
		Type    string `json:"type"`
		Index   int    `json:"index"`
		Message struct {
			Model string `json:"model"`
			Usage usage  `json:"usage"`
		} `json:"message"`
		ContentBlock json.RawMessage `json:"content_block"`
		Delta        delta           `json:"delta"`
		Usage        usage           `json:"usage"`
	}
	delta struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		StopReason  string `json:"stop_reason"`
		StopDetails struct {
			Category    string `json:"category"`
			Explanation string `json:"explanation"`
		} `json:"stop_details"`
	}
	content struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Input     json.RawMessage `json:"input"`
	}
	usage struct {
		Input         wire.Count `json:"input_tokens"`
		Output        wire.Count `json:"output_tokens"`
		CacheRead     wire.Count `json:"cache_read_input_tokens"`
		CacheWrite    wire.Count `json:"cache_creation_input_tokens"`
		CacheCreation struct {
			Hour wire.Count `json:"ephemeral_1h_input_tokens"`
		} `json:"cache_creation"`
		Tier string `json:"service_tier"`
	}
)

// A turn is put together from the events of a stream.
type turn struct {
	model   string
	tier    string // in the vendor's word
	blocks  []block
	stop    string
	reason  string
	usage   llm.Usage
	stopped bool // by message_stop, without which nothing is whole
}

// A block is a part of the turn as it grows.
type block struct {
	content
	first json.RawMessage // as it was when it began
	text  strings.Builder // of text or of thinking
	input strings.Builder // that came after the beginning
	sign  strings.Builder
}

// takeAll adds the events of a stream, and fails if that is not a whole answer.
func (t *turn) takeAll(c *wire.Call, events iter.Seq2[wire.Event, error]) *llm.Error {
	for raw, err := range events {
		if err != nil && t.stopped {
			break // it was to end here
		}
		if err != nil {
			return c.CutError(err)
		}

		var e event
		if err := wire.Decode(raw.Data, &e); err != nil && raw.Name != "error" {
			return c.CutError(err)
		}

		if e.Type == "error" || raw.Name == "error" {
			return c.MidstreamError(raw.Data)
		}

		if err := t.takeEvent(e); err != nil {
			return c.FailError(err)
		}
	}

	if !t.stopped {
		return c.CutError(nil)
	}
	return nil
}

// takeEvent adds an event. Kinds that are not known are passed over, as the vendor
// asks of its clients.
func (t *turn) takeEvent(e event) error {
	switch e.Type {
	case "message_start":
		t.model = e.Message.Model
		t.tier = e.Message.Usage.Tier
		t.usage = usageOf(e.Message.Usage)
	// Blocks come in order, each whole before the next begins.
	case "content_block_start":
		if e.Index != len(t.blocks) {
			return llm.NewError(llm.Garbled, "block %d follows %d others", e.Index, len(t.blocks))
		}
		t.blocks = append(t.blocks, block{first: e.ContentBlock})
		t.blocks[e.Index].begin()
	case "content_block_delta":
		if e.Index < 0 || e.Index >= len(t.blocks) {
			return llm.NewError(llm.Garbled, "a piece of block %d, which never began", e.Index)
		}
		t.blocks[e.Index].add(e.Delta)
	case "message_delta":
		t.stop = e.Delta.StopReason
		t.reason = joinWords(e.Delta.StopDetails.Category, e.Delta.StopDetails.Explanation)
		t.setUsage(e.Usage)
	case "message_stop":
		t.stopped = true
	}
	return nil
}

func joinWords(category, words string) string {
	if category == "" || words == "" {
		return category + words
	}
	return category + ": " + words
}

// setUsage sets the usage so far. It is cumulative; numbers that u leaves out stay, and
// without that of the answer nothing is reported.
func (t *turn) setUsage(u usage) {
	if u.Output.Known {
		t.usage.Output, t.usage.Reported = u.Output.N, true
	}

	if u.Input.Known {
		t.usage.Input = u.Input.N
	}
	if u.CacheRead.Known {
		t.usage.CacheRead = u.CacheRead.N
	}
	// What is kept for an hour is counted in both, and was reported at the beginning.
	if u.CacheWrite.Known {
		t.usage.CacheWrite = u.CacheWrite.N - t.usage.CacheWrite1h
	}

	t.usage = t.usage.IfPossible()
}

func usageOf(u usage) llm.Usage {
	hour := u.CacheCreation.Hour.N
	return llm.Usage{
		Input: u.Input.N, CacheWrite: u.CacheWrite.N - hour, CacheWrite1h: hour,
		CacheRead: u.CacheRead.N, Output: u.Output.N,
	}.IfPossible()
}

// begin takes what a block holds from its beginning on.
func (b *block) begin() {
	_ = wire.Decode(b.first, &b.content) // it is part of JSON
	b.text.WriteString(b.content.Text + b.content.Thinking)
	b.sign.WriteString(b.Signature)
}

// add takes a piece.
func (b *block) add(d delta) {
	switch d.Type {
	case "text_delta":
		b.text.WriteString(d.Text)
	case "input_json_delta":
		b.input.WriteString(d.PartialJSON)
	case "thinking_delta":
		b.text.WriteString(d.Thinking)
	case "signature_delta":
		b.sign.WriteString(d.Signature)
	}
}

// finishedPart is the finished block.
func (b *block) finishedPart() (llm.Part, error) {
	switch b.Type {
	case "text":
		return llm.Part{Text: b.text.String()}, nil
	case "tool_use":
		return b.finishedCall()
	case "thinking":
		raw, err := json.Marshal(map[string]string{"type": b.Type, "thinking": b.text.String(), "signature": b.sign.String()})
		return llm.Part{Opaque: raw}, err
	case "server_tool_use":
		return llm.Part{Opaque: withInput(b.first, b.input.String())}, nil
	default:
		return llm.Part{Opaque: b.first}, nil
	}
}

// finishedCall is the finished call of a tool. What a model wrote as its answer is read elsewhere if
// it is no JSON.
func (b *block) finishedCall() (llm.Part, error) {
	text := b.input.String()

	if text == "" {
		text = string(b.Input)
	}

	input, ok := wire.ToolInput(text)
	if !ok && b.Name == llm.AnswerTool {
		return llm.Part{Text: text}, nil
	}

	if !ok {
		return llm.Part{}, llm.NewError(llm.Garbled, "the input for tool %s is no JSON", b.Name)
	}

	return llm.Part{Call: &llm.ToolCall{ID: b.ID, Name: b.Name, Input: input}}, nil
}

// withInput returns a block with the input that was streamed after it.
func withInput(first json.RawMessage, input string) json.RawMessage {
	var fields map[string]json.RawMessage
	if !json.Valid([]byte(input)) || json.Unmarshal(first, &fields) != nil {
		return first
	}
	fields["input"] = json.RawMessage(input)
	raw, err := json.Marshal(fields)
	if err != nil {
		return first
	}
	return raw
}

// noteWaste adds to an error the usage of the failed turn.
func (t *turn) noteWaste(e *llm.Error) *llm.Error {
	e.Usage = t.usage
	return e
}

// toResponse is the finished turn. Input of a tool that was cut off by the bound
// of the answer is dropped: Stop says so.
func (t *turn) toResponse(c *wire.Call, tool bool) (*llm.Response, error) {
	r := &llm.Response{
		Model: llm.Model(t.model), RequestID: c.RequestID(), Stop: stopOf(t.stop),
		Reason: c.CleanText(t.reason), Usage: t.usage, Limits: c.ParseLimits(), Tier: llm.TierNamed(t.tier),
	}

	if t.usage.Reported && !t.hasThinking() {
		r.Written = &t.usage.Output
	}

	for i := range t.blocks {
		part, err := t.blocks[i].finishedPart()
		if err != nil && r.Stop.Cut() {
			continue
		}
		if err != nil {
			return nil, t.noteWaste(c.FailError(err))
		}

		if t.blocks[i].Type == "text" && part.Text == "" {
			continue // handed back, it would be refused
		}
		r.Parts = append(r.Parts, part)
	}

	r.Answer = wire.AnswerOf(r, tool)
	return r, nil
}

// hasThinking reports whether some of the output is thinking, which is counted with
// the rest.
func (t *turn) hasThinking() bool {
	for i := range t.blocks {
		if strings.Contains(t.blocks[i].Type, "thinking") {
			return true
		}
	}
	return false
}

// stopOf translates the vendor's word.
func stopOf(s string) llm.Stop {
	switch s {
	case "end_turn":
		return llm.StopEnd
	case "stop_sequence":
		return llm.StopSequence
	case "tool_use":
		return llm.StopTool
	case "max_tokens":
		return llm.StopMax
	case "model_context_window_exceeded":
		return llm.StopWindow
	case "pause_turn":
		return llm.StopPause
	case "refusal":
		return llm.StopRefusal
	default:
		return llm.Stop("anthropic:" + s)
	}
}
