package oracle_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdkanthropic "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	sdkopenai "github.com/openai/openai-go/v3"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A heard is what a client makes of an answer.
type heard struct {
	Model, Text, Thinking, Refusal string
	Calls                          []called
	Stop                           llm.Stop
	In, CacheRead, Output          int64
}

type called struct {
	ID, Name string
	Input    any
}

// stops are the vendors' words for the end of an answer, and ours.
var stops = map[string]map[string]llm.Stop{
	"anthropic": {
		"end_turn": llm.StopEnd, "max_tokens": llm.StopMax, "stop_sequence": llm.StopSequence, "tool_use": llm.StopTool,
		"pause_turn": llm.StopPause, "refusal": llm.StopRefusal, "model_context_window_exceeded": llm.StopWindow, "bored": "anthropic:bored",
	},
	"openai": {
		"stop": llm.StopEnd, "length": llm.StopMax, "tool_calls": llm.StopTool, "content_filter": llm.StopFilter, "bored": "openai:bored",
	},
}

// A canned is a server's answer without a network.
type canned struct{ media, body string }

// RoundTrip implements http.RoundTripper.
func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {c.media}}, Body: io.NopCloser(strings.NewReader(c.body)), Request: r,
	}, nil
}

// hearOurs returns what our provider makes of an answer.
func hearOurs(t *rapid.T, vendor, at string, answer canned) heard {
	p, err := newProvider[vendor](llm.Config{Key: llm.NewKey(key), BaseURL: at, Transport: answer})
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Complete(context.Background(), &llm.Request{Model: "m", Messages: []llm.Message{llm.Say(llm.User, "x")}})
	if err != nil {
		t.Fatalf("%v, of %s", err, answer.body)
	}
	h := heard{
		Model: string(res.Model), Text: res.Text(), Stop: res.Stop, Refusal: res.Reason,
		In: res.Usage.In(), CacheRead: res.Usage.CacheRead, Output: res.Usage.Output,
	}
	for _, part := range res.Parts {
		var block struct{ Thinking string }
		if part.Opaque != nil && json.Unmarshal(part.Opaque, &block) == nil {
			h.Thinking += block.Thinking
		}
	}
	for _, c := range res.Calls() {
		h.Calls = append(h.Calls, called{c.ID, c.Name, decoded(t, c.Input)})
	}
	return h
}

func decoded(t *rapid.T, raw []byte) (v any) {
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v, of %s", err, raw)
	}
	return v
}

func encoded(t *rapid.T, v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func compareHeard(t *rapid.T, ours, theirs heard) {
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Fatalf("answers differ (-theirs +ours):\n%s", diff)
	}
}

// A stream is a body of events as it grows.
type stream struct {
	strings.Builder
	end string // of lines
}

func drawStream(t *rapid.T) *stream {
	return &stream{end: rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end of lines")}
}

// add adds an event.
func (s *stream) add(t *rapid.T, name string, data any) {
	if rapid.IntRange(0, 9).Draw(t, "comment") == 0 {
		s.WriteString(": keep-alive" + s.end + s.end)
	}
	if name != "" {
		s.WriteString("event: " + name + s.end)
	}
	s.WriteString("data: " + encoded(t, data) + s.end + s.end)
}

// pieces cuts a text where characters end.
func pieces(t *rapid.T, text string) []string {
	var out []string
	for text != "" {
		n := rapid.IntRange(1, len(text)).Draw(t, "piece")
		for n < len(text) && text[n]&0xC0 == 0x80 {
			n++
		}
		out, text = append(out, text[:n]), text[n:]
	}
	return out
}

// clean are texts that arrive as they are sent.
var clean = texts.Filter(func(s string) bool { return strings.ToValidUTF8(s, "") == s })

type object = map[string]any

// drawBlock returns a block of an answer of Anthropic's.
func drawBlock(t *rapid.T) object {
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return object{"type": "thinking", "thinking": clean.Draw(t, "thinking"), "signature": "c2ln"}
	case 1:
		return object{"type": "redacted_thinking", "data": "ZGF0YQ=="}
	case 2:
		return object{"type": "tool_use", "id": "toolu_" + names.Draw(t, "id"), "name": names.Draw(t, "name"), "input": object{"q": clean.Draw(t, "input"), "n": 1.5}}
	}
	return object{"type": "text", "text": clean.Draw(t, "text")}
}

// drawMessage returns an answer of Anthropic's that came whole.
func drawMessage(t *rapid.T) object {
	count := func(name string) int { return rapid.IntRange(0, 100_000).Draw(t, name) }
	usage := object{"input_tokens": count("input"), "output_tokens": count("output")}
	if rapid.Bool().Draw(t, "caches") {
		five, hour := count("written for minutes"), count("written for an hour")
		usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"] = count("read"), five+hour
		usage["cache_creation"] = object{"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour}
	}
	blocks := []any{}
	for range rapid.IntRange(0, 4).Draw(t, "blocks") {
		blocks = append(blocks, drawBlock(t))
	}
	stop := rapid.SampledFrom(slices.Sorted(maps.Keys(stops["anthropic"]))).Draw(t, "stop")
	m := object{"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": blocks, "stop_reason": stop, "stop_sequence": nil, "usage": usage}
	if stop == "refusal" {
		m["stop_details"] = object{"type": "refusal", "category": "cyber", "explanation": "No."}
	}
	return m
}

// streamOf returns an answer of Anthropic's as a stream.
func streamOf(t *rapid.T, m object) string {
	s := drawStream(t)
	usage := m["usage"].(object)
	first := maps.Clone(usage)
	first["output_tokens"] = 1
	s.add(t, "message_start", object{"type": "message_start", "message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": m["model"], "content": []any{}, "stop_reason": nil, "usage": first}})
	for i, b := range m["content"].([]any) {
		if rapid.IntRange(0, 4).Draw(t, "ping") == 0 {
			s.add(t, "ping", object{"type": "ping"})
		}
		addBlock(t, s, i, b.(object))
	}

	last := object{"output_tokens": usage["output_tokens"]}
	if rapid.Bool().Draw(t, "usage again") {
		for _, name := range []string{"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"} {
			last[name] = usage[name]
		}
	}
	s.add(t, "message_delta", object{"type": "message_delta", "delta": object{"stop_reason": m["stop_reason"], "stop_details": m["stop_details"]}, "usage": last})
	s.add(t, "message_stop", object{"type": "message_stop"})
	return s.String()
}

// addBlock adds a block: its beginning, its pieces and its end.
func addBlock(t *rapid.T, s *stream, i int, b object) {
	first, deltas := maps.Clone(b), []object{}
	cut := func(field, kind, as, text string, left any) {
		first[field] = left
		for _, p := range pieces(t, text) {
			deltas = append(deltas, object{"type": kind, as: p})
		}
	}
	switch b["type"] {
	case "text":
		cut("text", "text_delta", "text", b["text"].(string), "")
	case "thinking":
		cut("thinking", "thinking_delta", "thinking", b["thinking"].(string), "")
		cut("signature", "signature_delta", "signature", b["signature"].(string), "")
	case "tool_use":
		cut("input", "input_json_delta", "partial_json", encoded(t, b["input"]), object{})
	}
	s.add(t, "content_block_start", object{"type": "content_block_start", "index": i, "content_block": first})
	for _, d := range deltas {
		s.add(t, "content_block_delta", object{"type": "content_block_delta", "index": i, "delta": d})
	}
	s.add(t, "content_block_stop", object{"type": "content_block_stop", "index": i})
}

// heardByAnthropic returns what the vendor's SDK makes of an answer.
func heardByAnthropic(t *rapid.T, m *sdkanthropic.Message) heard {
	u := m.Usage
	h := heard{
		Model: string(m.Model), Stop: stops["anthropic"][string(m.StopReason)],
		In: u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens, CacheRead: u.CacheReadInputTokens, Output: u.OutputTokens,
	}
	if m.StopDetails.Category != "" {
		h.Refusal = string(m.StopDetails.Category) + ": " + m.StopDetails.Explanation
	}
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			h.Text += b.Text
		case "thinking":
			h.Thinking += b.Thinking
		case "tool_use":
			h.Calls = append(h.Calls, called{b.ID, b.Name, decoded(t, b.Input)})
		}
	}
	return h
}

func TestAnswersOfAnthropic(t *testing.T) {
	params, err := anthropicParams(&llm.Request{Model: "m", Messages: []llm.Message{llm.Say(llm.User, "x")}}, manners.Manners{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		message := drawMessage(t)
		answer := canned{"text/event-stream", streamOf(t, message)}
		var theirs sdkanthropic.Message
		service := anthropicBy(base, answer)
		events := service.NewStreaming(context.Background(), params)
		for events.Next() {
			if err := theirs.Accumulate(events.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if events.Err() != nil {
			t.Fatal(events.Err())
		}
		compareHeard(t, hearOurs(t, "anthropic", base, answer), heardByAnthropic(t, &theirs))

		answer = canned{"application/json", encoded(t, message)}
		service = anthropicBy(base, answer)
		whole, err := service.New(context.Background(), params)
		if err != nil {
			t.Fatal(err)
		}
		compareHeard(t, hearOurs(t, "anthropic", base, answer), heardByAnthropic(t, whole))
	})
}

// drawCompletion returns an answer of OpenAI's that came whole.
func drawCompletion(t *rapid.T) object {
	message := object{"role": "assistant", "content": nil, "refusal": nil}
	if rapid.Bool().Draw(t, "speaks") {
		message["content"] = clean.Draw(t, "content")
	}
	if rapid.IntRange(0, 4).Draw(t, "refuses") == 0 {
		message["refusal"] = "I will not."
	}
	calls := []any{}
	for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
		input := encoded(t, object{"q": clean.Draw(t, "input"), "n": i})
		calls = append(calls, object{"id": "call_" + names.Draw(t, "id"), "type": "function", "function": object{"name": names.Draw(t, "name"), "arguments": input}})
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}

	prompt := rapid.IntRange(0, 100_000).Draw(t, "prompt")
	usage := object{"prompt_tokens": prompt, "completion_tokens": rapid.IntRange(0, 100_000).Draw(t, "completion")}
	if rapid.Bool().Draw(t, "details") {
		usage["prompt_tokens_details"] = object{"cached_tokens": rapid.IntRange(0, prompt).Draw(t, "cached"), "audio_tokens": 0}
		usage["completion_tokens_details"] = object{"reasoning_tokens": 3}
	}
	stop := rapid.SampledFrom(slices.Sorted(maps.Keys(stops["openai"]))).Draw(t, "stop")
	return object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m-1", "usage": usage,
		"choices": []any{object{"index": 0, "message": message, "logprobs": nil, "finish_reason": stop}},
	}
}

// chunksOf returns an answer of OpenAI's as a stream.
func chunksOf(t *rapid.T, whole object) string {
	s := drawStream(t)
	choice := whole["choices"].([]any)[0].(object)
	message := choice["message"].(object)
	add := func(delta object, finish any, usage any) {
		chunk := object{"id": whole["id"], "object": "chat.completion.chunk", "created": 1, "model": whole["model"], "choices": []any{}, "usage": usage}
		if delta != nil {
			chunk["choices"] = []any{object{"index": 0, "delta": delta, "finish_reason": finish}}
		}
		s.add(t, "", chunk)
	}

	add(object{"role": "assistant", "content": "", "refusal": nil}, nil, nil)
	for _, field := range []string{"content", "refusal"} {
		text, _ := message[field].(string)
		for _, p := range pieces(t, text) {
			add(object{field: p}, nil, nil)
		}
	}
	calls, _ := message["tool_calls"].([]any)
	for i, c := range calls {
		call := c.(object)
		f := call["function"].(object)
		add(object{"tool_calls": []any{object{"index": i, "id": call["id"], "type": "function", "function": object{"name": f["name"], "arguments": ""}}}}, nil, nil)
		for _, p := range pieces(t, f["arguments"].(string)) {
			add(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": p}}}}, nil, nil)
		}
	}
	add(object{}, choice["finish_reason"], nil)
	add(nil, nil, whole["usage"])
	s.WriteString("data: [DONE]" + s.end + s.end)
	return s.String()
}

// heardByOpenAI returns what the vendor's SDK makes of an answer.
func heardByOpenAI(t *rapid.T, c *sdkopenai.ChatCompletion) heard {
	one := c.Choices[0]
	h := heard{
		Model: c.Model, Text: one.Message.Content, Refusal: one.Message.Refusal, Stop: stops["openai"][one.FinishReason],
		In: c.Usage.PromptTokens, CacheRead: c.Usage.PromptTokensDetails.CachedTokens, Output: c.Usage.CompletionTokens,
	}
	for _, call := range one.Message.ToolCalls {
		h.Calls = append(h.Calls, called{call.ID, call.Function.Name, decoded(t, []byte(call.Function.Arguments))})
	}
	if len(h.Calls) > 0 && h.Stop == llm.StopEnd {
		h.Stop = llm.StopTool // as ours says it of a tool that was forced
	}
	if h.Refusal != "" {
		h.Stop = llm.StopRefusal // which the vendor says beside the reason for the end
	}
	return h
}

func TestAnswersOfOpenAI(t *testing.T) {
	params, err := openaiParams(&llm.Request{Model: "m", Messages: []llm.Message{llm.Say(llm.User, "x")}}, manners.Manners{}, false)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		completion := drawCompletion(t)
		answer := canned{"text/event-stream", chunksOf(t, completion)}
		var theirs sdkopenai.ChatCompletionAccumulator
		service := openaiBy(base, answer)
		chunks := service.NewStreaming(context.Background(), params)
		for chunks.Next() {
			if !theirs.AddChunk(chunks.Current()) {
				t.Fatalf("the SDK refuses a chunk: %s", chunks.Current().RawJSON())
			}
		}
		if chunks.Err() != nil {
			t.Fatal(chunks.Err())
		}
		compareHeard(t, hearOurs(t, "openai", base, answer), heardByOpenAI(t, &theirs.ChatCompletion))

		answer = canned{"application/json", encoded(t, completion)}
		service = openaiBy(base, answer)
		whole, err := service.New(context.Background(), params)
		if err != nil {
			t.Fatal(err)
		}
		compareHeard(t, hearOurs(t, "openai", base, answer), heardByOpenAI(t, whole))
	})
}
