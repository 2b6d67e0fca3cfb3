package fakellm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
)

type fields = map[string]any

// spendLimit is the kind of an error that each format has its own words for.
const spendLimit = "spend_limit"

// A content is a text, or a list of blocks with texts in them.
type content []block

type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Input   json.RawMessage `json:"input"`
	Content content         `json:"content"`

	Source struct {
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
	Image blockImage `json:"image_url"`

	ID        string `json:"id"`
	Name      string `json:"name"`
	ToolUseID string `json:"tool_use_id"`
	IsError   bool   `json:"is_error"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`

	Cache *struct {
		TTL string `json:"ttl"`
	} `json:"cache_control"`
	Citations []json.RawMessage `json:"citations"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*c = content{{Type: "text", Text: text}}
		return nil
	}
	return json.Unmarshal(raw, (*[]block)(c))
}

// joinText is all of it.
func (c content) joinText() string {
	var b strings.Builder
	for _, part := range c {
		b.WriteString(part.Thinking + part.Text + string(part.Input) + part.Content.joinText())
	}
	return b.String()
}

type anthropicWire struct{}

func (anthropicWire) readCall(c *Call, body []byte) error {
	var in struct {
		Model     string
		MaxTokens *int64 `json:"max_tokens"`
		Stream    bool
		System    content
		Messages  []struct {
			Role    string
			Content content
		}
		Tools []struct {
			Name   string
			Schema json.RawMessage `json:"input_schema"`
			Cache  *struct{}       `json:"cache_control"`
		}
		ToolChoice struct{ Type, Name string } `json:"tool_choice"`
		Output     struct {
			Format struct {
				Type   string
				Schema json.RawMessage
			}
		} `json:"output_config"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	c.Model, c.System, c.Schema = in.Model, in.System.joinText(), in.Output.Format.Schema

	for _, t := range in.Tools {
		c.prompt = append(c.prompt, meter.Section{Text: t.Name + string(t.Schema), Marked: t.Cache != nil})
		c.Tools = append(c.Tools, t.Name)
		if t.Name == in.ToolChoice.Name {
			c.Tool, c.Schema = t.Name, t.Schema
		}
	}

	// Sections stand in the order in which the vendor reads a prompt, as a prefix of it is
	// cached.
	c.prompt = append(c.prompt, meter.Section{Text: string(in.Output.Format.Schema)})
	add := func(blocks content) {
		for _, b := range blocks {
			c.prompt = append(c.prompt, meter.Section{Text: content{b}.joinText(), Marked: b.Cache != nil})
		}
	}
	add(in.System)
	c.NoCalls = in.ToolChoice.Type == "none"

	l := ledger{checkID: checkAnthropicID}
	for _, m := range in.Messages {
		add(m.Content)
		if err := c.showAll(m.Content); err != nil {
			return err
		}
		c.Turns = append(c.Turns, Turn{m.Role, m.Content.joinText()})
		if err := l.readBlocks(m.Role, m.Content); err != nil {
			return err
		}
	}

	c.Uses = l.uses
	if err := refuseUndefined(l.uses, c.Tools); err != nil {
		return err
	}

	if err := checkVersion(c.Header.Get("Anthropic-Version"), body); err != nil {
		return err
	}

	if in.MaxTokens == nil {
		return nil // of count_tokens
	}

	c.MaxTokens = *in.MaxTokens
	if err := checkRequest(in.Model, len(in.Messages), true); err != nil {
		return err
	}
	if !in.Stream {
		return errStrict
	}
	return nil
}

// version is that of Anthropic's interface which refuses what checkVersion does. Others
// than it are of clients that are not ours.
const version = "2026-10-21"

// checkVersion refuses what an interface of this version refuses.
func checkVersion(got string, body []byte) error {
	switch got {
	case "":
		return errors.New("anthropic-version: header is required")
	case version:
	case "2023-06-01":
		return nil
	default:
		return errors.New("anthropic-version: " + got + " is not a valid version")
	}

	// What follows is refused by the newer version alone.
	var in struct {
		Temperature json.RawMessage
		TopP        json.RawMessage `json:"top_p"`
		TopK        json.RawMessage `json:"top_k"`
		Messages    []struct {
			Role    string
			Content content
		}
	}

	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}

	for name, value := range map[string]json.RawMessage{"temperature": in.Temperature, "top_p": in.TopP, "top_k": in.TopK} {
		if value != nil {
			return errors.New(name + ": not supported in version " + version)
		}
	}

	for _, m := range in.Messages {
		for _, b := range m.Content {
			if m.Role == "assistant" && b.Type == "document" {
				return errors.New("messages: a document block is not allowed in an assistant message")
			}
			if m.Role == "user" && b.Type == "text" && len(b.Citations) > 0 {
				return errors.New("messages: citations are not allowed in a user's text")
			}
		}
	}

	return nil
}

func checkRequest(model string, messages int, stream bool) error {
	switch {
	case model == "":
		return errors.New("model: field required")
	case messages == 0:
		return errors.New("messages: at least one message is required")
	case !stream:
		return errors.New("stream: this server streams only")
	}
	return nil
}

func (anthropicWire) mediaType() string { return "text/event-stream; charset=utf-8" }

func (anthropicWire) openAnswer(x *exchange) {
	x.Output = 1
	x.writeEvent("message_start", fields{"type": "message_start", "message": fields{
		"id": "msg_" + x.RequestID, "type": "message", "role": "assistant", "model": x.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil,
		"usage": anthropicUsage(x),
	}})
	x.writeEvent("ping", fields{"type": "ping"})
}

func (anthropicWire) openPart(x *exchange, n int, p part) {
	start := fields{"type": "text", "text": ""}
	switch p.kind {
	case "tool":
		start = fields{"type": "tool_use", "id": p.id, "name": p.name, "input": fields{}}
	case "thinking":
		start = fields{"type": "thinking", "thinking": "", "signature": ""}
	}
	x.writeEvent("content_block_start", fields{"type": "content_block_start", "index": n, "content_block": start})
}

// anthropicUsage is what is reported of tokens, so far.
func anthropicUsage(x *exchange) fields {
	usage := fields{
		"input_tokens": x.Input, "output_tokens": x.Output,
		"cache_creation_input_tokens": x.CacheWrite, "cache_read_input_tokens": x.CacheRead,
		"cache_creation": fields{"ephemeral_5m_input_tokens": x.CacheWrite, "ephemeral_1h_input_tokens": 0},
	}

	if x.Header.Get("Anthropic-Version") == version {
		usage["output_tokens_details"] = fields{"thinking_tokens": 0}
		usage["service_tier"], usage["inference_geo"] = "standard", "us"
	}

	x.tellUsage(usage)
	return usage
}

func (anthropicWire) writePiece(x *exchange, n int, p part, text string) {
	delta := fields{"type": "text_delta", "text": text}
	switch p.kind {
	case "tool":
		delta = fields{"type": "input_json_delta", "partial_json": text}
	case "thinking":
		delta = fields{"type": "thinking_delta", "thinking": text}
	}
	x.writeEvent("content_block_delta", fields{"type": "content_block_delta", "index": n, "delta": delta})
}

func (anthropicWire) closePart(x *exchange, n int, p part) {
	if p.kind == "thinking" {
		x.writeEvent("content_block_delta", fields{"type": "content_block_delta", "index": n, "delta": fields{"type": "signature_delta", "signature": sign(p.text)}})
	}
	x.writeEvent("content_block_stop", fields{"type": "content_block_stop", "index": n})
}

func (anthropicWire) closeAnswer(x *exchange, r Reply) {
	x.Output = r.tokens()
	delta := fields{"stop_reason": r.Stop, "stop_sequence": nil}
	if r.Why != "" {
		delta["stop_details"] = fields{"type": "refusal", "category": "cyber", "explanation": r.Why}
	}

	// The newest version tells all of the usage again at the end, without what cannot
	// change.
	usage := fields{"output_tokens": x.Output}
	if x.Header.Get("Anthropic-Version") == version {
		usage = anthropicUsage(x)
		delete(usage, "cache_creation")
		delete(usage, "service_tier")
		delete(usage, "inference_geo")
	}

	x.writeEvent("message_delta", fields{"type": "message_delta", "delta": delta, "usage": usage})
	x.writeEvent("message_stop", fields{"type": "message_stop"})
}

// writeWhole writes an answer that was not asked for as a stream.
func (anthropicWire) writeWhole(x *exchange, parts []part, r Reply) {
	content := make([]any, 0, len(parts))
	for _, p := range parts {
		switch p.kind {
		case "tool":
			var input any = fields{}
			_ = json.Unmarshal([]byte(p.text), &input) // what is none stays empty
			content = append(content, fields{"type": "tool_use", "id": p.id, "name": p.name, "input": orderedInput(p.text, input)})
		case "thinking":
			content = append(content, fields{"type": "thinking", "thinking": p.text, "signature": sign(p.text)})
		default:
			content = append(content, fields{"type": "text", "text": p.text})
		}
	}

	var details any
	if r.Why != "" {
		details = fields{"type": "refusal", "category": "cyber", "explanation": r.Why}
	}
	x.Output = r.tokens()
	x.writeAtOnce("application/json", fields{
		"id": "msg_" + x.RequestID, "type": "message", "role": "assistant", "model": x.Model, "content": content,
		"stop_reason": r.Stop, "stop_sequence": nil, "stop_details": details, "usage": anthropicUsage(x),
	})
}

func (w anthropicWire) writeBroken(x *exchange) {
	_, body := w.errorBody(529, "overloaded_error", "Overloaded")
	x.writeEvent("error", body)
}

func (anthropicWire) errorBody(status int, kind, message string) (int, any) {
	failure := fields{"type": kind, "message": message}
	switch kind {
	case "billing_error":
		status, failure["type"] = http.StatusBadRequest, "invalid_request_error"
	case spendLimit:
		failure["type"], failure["details"] = "rate_limit_error", fields{"error_code": "enforced_spend_limit_reached"}
	}
	return status, fields{"type": "error", "error": failure}
}

func (anthropicWire) stopReason(f Fault, tool bool) string {
	switch f {
	case Truncated:
		return "max_tokens"
	case Refusal, Filter:
		return "refusal"
	case Pause:
		return "pause_turn"
	case UnknownStop:
		return "bored"
	}

	if tool {
		return "tool_use"
	}
	return "end_turn"
}

type openaiWire struct{}

func (openaiWire) readCall(c *Call, body []byte) error {
	var in struct {
		Model   string
		Stream  bool
		Max     int64 `json:"max_completion_tokens"`
		OldMax  int64 `json:"max_tokens"`
		Options struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct {
			Role      string
			Content   content
			Reasoning string `json:"reasoning_content"`
			ToolCalls []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
			ToolCallID string `json:"tool_call_id"`
		}
		Tools []struct {
			Function struct {
				Name       string
				Parameters json.RawMessage
			}
		}
		ToolChoice choice `json:"tool_choice"`
		Format     struct {
			JSONSchema struct{ Schema json.RawMessage } `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	c.Model, c.MaxTokens, c.Schema = in.Model, max(in.Max, in.OldMax), in.Format.JSONSchema.Schema

	for _, t := range in.Tools {
		c.prompt = append(c.prompt, meter.Section{Text: t.Function.Name + string(t.Function.Parameters)})
		c.Tools = append(c.Tools, t.Function.Name)
		if t.Function.Name == in.ToolChoice.name {
			c.Tool, c.Schema = t.Function.Name, t.Function.Parameters
		}
	}
	c.NoCalls = in.ToolChoice.none

	l := ledger{checkID: checkOpenAIID}
	for _, m := range in.Messages {
		text := m.Content.joinText()
		calls := make([]Use, len(m.ToolCalls))
		var said strings.Builder
		for i, call := range m.ToolCalls {
			said.WriteString(call.Function.Arguments)
			calls[i] = Use{ID: call.ID, Name: call.Function.Name, Input: json.RawMessage(call.Function.Arguments)}
		}

		// Everything counts as the prompt, also what the model thought and the input of its
		// calls.
		c.prompt = append(c.prompt, meter.Section{Text: m.Reasoning + text + said.String()})
		if err := c.showAll(m.Content); err != nil {
			return err
		}
		if m.Role == "system" || m.Role == "developer" {
			c.System += text
			continue
		}

		c.Turns = append(c.Turns, Turn{m.Role, text})
		if err := l.readMessage(m.Role, calls, m.ToolCallID, text); err != nil {
			return err
		}
	}

	if err := l.settled(); err != nil {
		return err
	}
	c.Uses = l.uses

	if err := checkRequest(in.Model, len(in.Messages), true); err != nil {
		return err
	}

	// It comes last, so that a server that is not strict has read everything.
	if !in.Options.IncludeUsage || !in.Stream {
		return errStrict
	}

	return nil
}

func (openaiWire) mediaType() string { return "text/event-stream; charset=utf-8" }

// writeChunk writes one chunk. The usage is reported once, in the last.
func (openaiWire) writeChunk(x *exchange, choices []any, usage any) {
	x.writeEvent("", fields{
		"id": "chatcmpl-" + x.RequestID, "object": "chat.completion.chunk", "created": 1, "model": x.Model,
		"choices": choices, "usage": usage,
	})
}

func (w openaiWire) writeDelta(x *exchange, delta fields, finish any) {
	w.writeChunk(x, []any{fields{"index": 0, "delta": delta, "finish_reason": finish}}, nil)
}

func (w openaiWire) openAnswer(x *exchange) {
	if x.style.Comment {
		x.write(": keepalive\n\n")
	}
	var content any = ""
	if x.style.NullContent {
		content = nil
	}
	w.writeDelta(x, fields{"role": "assistant", "content": content}, nil)
	x.calls = 0
}

func (w openaiWire) openPart(x *exchange, _ int, p part) {
	if p.kind == "tool" {
		w.writeDelta(x, fields{"tool_calls": []any{fields{"index": x.calls, "id": p.id, "type": "function", "function": fields{"name": p.name, "arguments": ""}}}}, nil)
	}
}

func (w openaiWire) writePiece(x *exchange, _ int, p part, text string) {
	delta := fields{"content": text}
	switch p.kind {
	case "tool":
		delta = fields{"tool_calls": []any{fields{"index": x.calls, "function": fields{"arguments": text}}}}
	case "thinking":
		delta = fields{"reasoning_content": text}
	}
	w.writeDelta(x, delta, nil)
}

func (openaiWire) closePart(x *exchange, _ int, p part) {
	if p.kind == "tool" {
		x.calls++
	}
}

func (w openaiWire) closeAnswer(x *exchange, r Reply) {
	if r.Why != "" {
		w.writeDelta(x, fields{"refusal": r.Why}, nil)
	}

	if !x.style.NoFinish {
		w.writeDelta(x, fields{}, cmp.Or(x.style.Finish, r.Stop))
	}

	x.Output = r.tokens()

	// The chunk with the usage has no choices: an empty list, or null at some servers.
	choices := []any{}
	if x.style.NullChoices {
		choices = nil
	}

	if x.Fault == NoUsage || x.style.NoUsage {
		x.clearUsage()
	} else {
		usage := fields{
			"prompt_tokens": x.In(), "completion_tokens": x.Output, "total_tokens": x.In() + x.Output,
			"prompt_tokens_details":     fields{"cached_tokens": x.CacheRead},
			"completion_tokens_details": fields{"reasoning_tokens": meter.Tokens(r.Thinking)},
		}
		x.tellUsage(usage)
		w.writeChunk(x, choices, usage)
	}

	if !x.style.NoDone {
		x.write("data: [DONE]\n\n")
	}
}

func (w openaiWire) writeBroken(x *exchange) {
	x.clearUsage()
	_, body := w.errorBody(500, "server_error", "The server had an error while processing your request")
	x.writeEvent("", body)
}

func (openaiWire) errorBody(status int, kind, message string) (int, any) {
	var code any
	switch kind {
	case "billing_error":
		status, kind, code = http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota"
	case spendLimit:
		kind, code = "insufficient_quota", "billing_hard_limit_reached"
	case "authentication_error":
		kind, code = "invalid_request_error", "invalid_api_key"
	case "not_found_error":
		kind, code = "invalid_request_error", "model_not_found"
	case "rate_limit_error":
		kind, code = "requests", "rate_limit_exceeded"
	case "overloaded_error":
		status = http.StatusServiceUnavailable
	}
	return status, fields{"error": fields{"message": message, "type": kind, "param": nil, "code": code}}
}

func (openaiWire) stopReason(f Fault, tool bool) string {
	switch f {
	case Truncated:
		return "length"
	case Filter:
		return "content_filter"
	case UnknownStop, Pause:
		return "bored"
	}

	if tool {
		return "tool_calls"
	}
	return "stop"
}

// A choice is tool_choice: a word, or a function.
type choice struct {
	none bool
	name string
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *choice) UnmarshalJSON(raw []byte) error {
	var word string
	if json.Unmarshal(raw, &word) == nil {
		c.none = word == "none"
		return nil
	}
	var of struct{ Function struct{ Name string } }
	err := json.Unmarshal(raw, &of)
	c.name = of.Function.Name
	return err
}

// readMessage notes a message of OpenAI's: each result is one of its own.
func (l *ledger) readMessage(role string, calls []Use, id, text string) error {
	switch role {
	case "assistant":
		return l.say(calls)
	case "tool":
		return l.answer(id, text, false)
	}
	return l.settled()
}

type ollamaWire struct{}

func (ollamaWire) readCall(c *Call, body []byte) error {
	var in struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role, Content, Thinking string
			Images                  []string
			ToolName                string `json:"tool_name"`
			ToolCalls               []struct {
				Function struct {
					Name      string
					Arguments json.RawMessage
				}
			} `json:"tool_calls"`
		}
		Tools   []struct{ Function struct{ Name string } }
		Format  json.RawMessage
		Options struct {
			NumCtx     int64 `json:"num_ctx"`
			NumPredict int64 `json:"num_predict"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	c.Model, c.MaxTokens, c.Window, c.Schema = in.Model, in.Options.NumPredict, in.Options.NumCtx, in.Format

	for _, t := range in.Tools {
		c.Tools = append(c.Tools, t.Function.Name)
	}

	turn := 0
	for _, m := range in.Messages {
		c.prompt = append(c.prompt, meter.Section{Text: m.Thinking + m.Content})
		if m.Role == "system" {
			c.System += m.Content
			continue
		}

		for _, data := range m.Images {
			if err := c.show("", data); err != nil {
				return err
			}
		}
		c.Turns = append(c.Turns, Turn{m.Role, m.Content})
		if m.Role == "assistant" {
			turn++
		}

		for _, call := range m.ToolCalls {
			c.prompt = append(c.prompt, meter.Section{Text: string(call.Function.Arguments)})
			c.Uses = append(c.Uses, Use{Name: call.Function.Name, Input: call.Function.Arguments, Turn: turn})
		}
		if m.Role == "tool" { // they have no ids: the first call of the name that has no result
			i := slices.IndexFunc(c.Uses, func(u Use) bool { return !u.Answered && u.Name == m.ToolName })
			if i < 0 {
				return fmt.Errorf("a result of the tool %q, which was not called", m.ToolName)
			}
			c.Uses[i].Answered, c.Uses[i].Result = true, m.Content
		}
	}

	// That is Ollama's own where the request names none.
	if c.Window == 0 {
		c.Window = 4096
	}

	return checkRequest(in.Model, len(in.Messages), in.Stream)
}

func (ollamaWire) mediaType() string { return "application/x-ndjson" }

func (ollamaWire) writeLine(x *exchange, v fields) {
	v["model"] = x.Model
	x.write(encode(v) + "\n")
}

func (ollamaWire) openAnswer(*exchange) {}

func (ollamaWire) openPart(*exchange, int, part) {}

func (w ollamaWire) writePiece(x *exchange, _ int, p part, text string) {
	message := fields{"role": "assistant", "content": text}
	switch {
	case p.kind == "thinking":
		message = fields{"role": "assistant", "content": "", "thinking": text}
	case p.kind == "tool" && x.Tool == "":
		return // it comes whole
	}
	w.writeLine(x, fields{"message": message, "done": false})
}

func (w ollamaWire) closePart(x *exchange, _ int, p part) {
	if p.kind == "tool" && x.Tool == "" {
		w.writeLine(x, fields{"message": fields{"role": "assistant", "content": "", "tool_calls": []any{ollamaCall(p)}}, "done": false})
	}
}

// closeAnswer tells of a prompt that was cut to the window, as Ollama does, only by
// its length.
func (w ollamaWire) closeAnswer(x *exchange, r Reply) {
	x.Input, x.CacheRead, x.CacheWrite = min(x.In(), x.Window), 0, 0
	x.Output = r.tokens()
	line := fields{
		"message": fields{"role": "assistant", "content": ""}, "done": true, "done_reason": r.Stop,
		"prompt_eval_count": x.Input, "eval_count": x.Output, "total_duration": 1,
	}
	x.tellUsage(line)
	w.writeLine(x, line)
}

func (w ollamaWire) writeBroken(x *exchange) {
	x.clearUsage()
	w.writeLine(x, fields{"error": "an error was encountered while running the model"})
}

func (ollamaWire) errorBody(status int, kind, message string) (int, any) {
	switch {
	case status == 529:
		status = http.StatusServiceUnavailable
	case kind == spendLimit:
		status = http.StatusPaymentRequired
	}
	return status, fields{"error": message}
}

func (ollamaWire) stopReason(f Fault, _ bool) string {
	switch f {
	case Truncated:
		return "length"
	case UnknownStop, Pause, Refusal, Filter:
		return "bored"
	}
	return "stop"
}
