package chat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// The body of a request.
type (
	body struct {
		Model               string    `json:"model"`
		Messages            []message `json:"messages"`
		Tools               []tool    `json:"tools,omitempty"`
		ToolChoice          any       `json:"tool_choice,omitempty"` // "none", or a tool
		ParallelToolCalls   *bool     `json:"parallel_tool_calls,omitempty"`
		ResponseFormat      any       `json:"response_format,omitempty"`
		MaxCompletionTokens int64     `json:"max_completion_tokens,omitempty"`
		MaxTokens           int64     `json:"max_tokens,omitempty"`
		Stream              bool      `json:"stream"`
		StreamOptions       any       `json:"stream_options,omitempty"`
		PromptCacheKey      string    `json:"prompt_cache_key,omitempty"`
		Verbosity           string    `json:"verbosity,omitempty"`
		Temperature         *float64  `json:"temperature,omitempty"`
		TopP                *float64  `json:"top_p,omitempty"`
		Seed                *int64    `json:"seed,omitempty"`
		RandomSeed          *int64    `json:"random_seed,omitempty"` // the same for Mistral
		Stop                []string  `json:"stop,omitempty"`
		ServiceTier         string    `json:"service_tier,omitempty"`
		Thinking
	}
	tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	function struct {
		Name        string         `json:"name"`
		Description string         `json:"description,omitempty"`
		Strict      *bool          `json:"strict,omitempty"`
		Parameters  map[string]any `json:"parameters"`
	}
)

// A message has what its role has, and thinking under the name that its server gave it.
type message map[string]any

// newBody puts a request into the vendor's words, without what the server refuses.
func (p *provider) newBody(req *llm.Request, with manners.Manners) (*body, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	b := &body{Model: string(req.Model), Messages: []message{}, Stream: !with.NoStream}
	// OtherBound is set once the server has refused the name that is usual for it.
	if p.server.NewBound != with.OtherBound {
		b.MaxCompletionTokens = wire.AnswerBound(req, with)
	} else {
		b.MaxTokens = wire.AnswerBound(req, with)
	}
	if !with.NoUsage && !with.NoStream {
		b.StreamOptions = map[string]bool{"include_usage": true}
	}

	p.addParameters(b, req, with)

	messages, system := req.Messages, req.System+wire.TellForm(req, with)
	if with.NoSystem {
		messages = wire.WithInstructions(system, messages)
	} else if system != "" {
		b.Messages = append(b.Messages, message{"role": "system", "content": system})
	}
	for _, m := range messages {
		b.Messages = append(b.Messages, messagesOf(m, with)...)
	}
	return b, b.addTools(req, with, p.dialectFor(with))
}

// dialectFor returns the dialect of a server's schemas.
func (p *provider) dialectFor(with manners.Manners) llm.Dialect {
	d := *p.server.Dialect
	if with.Plain {
		d.Keywords = nil
	}
	return d
}

// addTools adds tools and the answer's schema.
func (b *body) addTools(req *llm.Request, with manners.Manners, d llm.Dialect) error {
	tools, force := req.Tools, req.Force
	switch {
	case req.Schema == nil:
	case with.Form == manners.ByTool:
		tools, force = wire.WithAnswer(req)
	case with.Form == manners.ByObject:
		b.ResponseFormat = map[string]any{"type": "json_object"}
	case with.Form == manners.BySchema:
		schema, err := wire.SchemaMap(req.Schema, d)
		if err != nil {
			return err
		}
		form := map[string]any{"name": req.Schema.Name(), "schema": schema}
		if !with.NoStrict {
			form["strict"] = true
		}
		b.ResponseFormat = map[string]any{"type": "json_schema", "json_schema": form}
	}

	for _, t := range tools {
		schema, strict, err := wire.ToolFields(t, d)
		if err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
		f := function{Name: t.Name, Description: t.Description, Parameters: schema}
		if !with.NoStrict {
			f.Strict = &strict
		}
		b.Tools = append(b.Tools, tool{"function", f})
	}
	if !with.FreeTools {
		b.chooseTool(req, force, with)
	}
	return nil
}

// chooseTool says which tool has to be called, if one has, or that none may be.
func (b *body) chooseTool(req *llm.Request, force string, with manners.Manners) {
	if req.NoCalls && force == "" && len(b.Tools) > 0 {
		b.ToolChoice = "none"
	}
	if force == "" {
		return
	}
	b.ToolChoice = map[string]any{"type": "function", "function": map[string]string{"name": force}}
	if !with.NoParallel {
		b.ParallelToolCalls = new(false)
	}
}

// messagesOf returns a message as the vendor has it: each result of a tool
// is a message of its own.
func messagesOf(m llm.Message, with manners.Manners) []message {
	var out []message
	var text strings.Builder
	var calls []any
	for _, p := range m.Parts {
		text.WriteString(p.Text)
		if p.Result != nil {
			out = append(out, message{"role": "tool", "content": p.Result.Text, "tool_call_id": p.Result.ID})
		}
		if p.Call != nil {
			calls = append(calls, map[string]any{
				"id": p.Call.ID, "type": "function",
				"function": map[string]string{"name": p.Call.Name, "arguments": string(p.Call.Input)},
			})
		}
	}

	said := message{"role": m.Role}
	switch shown := contentOf(m.Parts); {
	case shown != nil:
		said["content"] = shown
	case text.Len() > 0:
		said["content"] = text.String()
	}
	if len(calls) > 0 && m.Role == llm.Assistant {
		said["tool_calls"] = calls
		if !with.NoThoughts {
			maps.Copy(said, thinkingOf(m.Parts))
		}
	}
	// What held nothing but results is no message of its own.
	if said["content"] != nil || m.Role == llm.Assistant {
		out = append(out, said)
	}
	return out
}

// contentOf returns what a message with pictures says and shows, in its order; nil of one without:
// many servers take nothing but a text where there is no picture.
func contentOf(parts []llm.Part) (shown []any) {
	if !slices.ContainsFunc(parts, func(p llm.Part) bool { return p.Picture != nil }) {
		return nil
	}

	for _, p := range parts {
		switch {
		case p.Picture != nil:
			shown = append(shown, map[string]any{"type": "image_url", "image_url": map[string]string{"url": p.Picture.URL(), "detail": llm.PictureDetail}})
		case p.Text != "":
			shown = append(shown, map[string]string{"type": "text", "text": p.Text})
		}
	}
	return shown
}

// thinkingOf returns what a model thought before it called tools, under the name that its
// server gave it: servers that show it want it back with the calls, and only then.
func thinkingOf(parts []llm.Part) map[string]any {
	for _, p := range parts {
		var fields map[string]any
		if p.Opaque != nil && json.Unmarshal(p.Opaque, &fields) == nil {
			return fields
		}
	}
	return nil
}
