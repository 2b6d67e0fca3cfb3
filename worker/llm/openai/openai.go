// Package openai asks the models of OpenAI, and of other servers with the same interface,
// by the vendor's SDK.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

const vendorURL = "https://api.openai.com/v1/"

// A provider speaks Chat Completions by the vendor's SDK, which is given
// nothing of the environment and does not retry. Other servers that speak it are
// reached by their base URL, and may need no key.
type provider struct {
	*wire.Dialer
	own  bool // the vendor itself answers
	chat sdk.ChatCompletionService
}

// New returns the provider. The error is an *llm.Error of the kind Auth if the vendor itself
// is to be asked without a key, and Invalid if the address is no address.
func New(cfg llm.Config) (llm.Provider, error) {
	own := cfg.BaseURL == "" || strings.HasPrefix(cfg.BaseURL, "https://api.openai.com/")
	if cfg.Key.IsZero() && own {
		return nil, llm.NewError(llm.Auth, "there is no key for openai: set OPENAI_API_KEY")
	}
	d, err := wire.NewDialer(cfg, vendorURL, wire.Format{Stream: "text/event-stream", Limits: wire.CompatibleLimits, Judge: wire.JudgeCompatible})
	if err != nil {
		return nil, err
	}
	opts := []option.RequestOption{
		option.WithBaseURL(d.Base.String()), option.WithHTTPClient(d.Client), option.WithMaxRetries(0),
	}
	if !cfg.Key.IsZero() {
		opts = append(opts, option.WithAPIKey(redact.Secret(cfg.Key)))
	}
	return &provider{Dialer: d, own: own, chat: sdk.NewChatCompletionService(opts...)}, nil
}

// Name implements Provider.
func (*provider) Name() string { return "openai" }

// Can implements Provider.
func (*provider) Can() llm.Capabilities {
	return llm.Capabilities{Dialect: dialect(), ForceTool: true}
}

// dialect returns the dialect of the mode "strict".
func dialect() llm.Dialect {
	return llm.Dialect{
		Name: "openai", Closed: true, AllRequired: true, AnyOf: true, NoAllOf: true,
		Keywords: []string{
			"minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
			"multipleOf", "pattern", "format",
		},
		Formats: []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
	}
}

// Complete implements Provider.
func (p *provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	params, err := p.buildParams(req)
	if err != nil {
		return nil, err
	}
	c := p.BeginCall(ctx, req)
	defer c.EndCall()
	stream := p.chat.NewStreaming(c.Context(), params, option.WithMiddleware(c.DoRequest))
	if stream.Err() != nil {
		return nil, c.FailError(stream.Err())
	}
	defer stream.Close()
	var t choice
	for stream.Next() {
		if err := t.takeChunk(stream.Current()); err != nil {
			return nil, t.noteWaste(c.FailError(err))
		}
	}
	if sent, ok := errors.AsType[*ssestream.StreamError](stream.Err()); ok {
		return nil, t.noteWaste(c.MidstreamError(sent.Event.Data))
	}
	if stream.Err() != nil || t.finish == "" || !c.EndsWith("[DONE]") {
		return nil, t.noteWaste(c.CutError(stream.Err()))
	}
	return t.toResponse(c, req.Schema != nil && p.Config.ToolMode)
}

// buildParams puts a request into the vendor's words.
func (p *provider) buildParams(req *llm.Request) (sdk.ChatCompletionNewParams, error) {
	params := sdk.ChatCompletionNewParams{Model: shared.ChatModel(req.Model)}
	if err := req.Check(); err != nil {
		return params, err
	}
	// Other servers know the old name only; the vendor's newer models refuse it.
	if p.own {
		params.MaxCompletionTokens = param.NewOpt(req.AnswerBound())
	} else {
		params.MaxTokens = param.NewOpt(req.AnswerBound())
	}
	params.StreamOptions.IncludeUsage = param.NewOpt(true)
	if req.System != "" {
		params.Messages = append(params.Messages, sdk.SystemMessage(req.System))
	}
	for _, m := range req.Messages {
		params.Messages = append(params.Messages, messageParams(m)...)
	}
	return params, p.addTools(req, &params)
}

// addTools adds tools and the answer's schema.
func (p *provider) addTools(req *llm.Request, params *sdk.ChatCompletionNewParams) error {
	tools, force := req.Tools, req.Force
	if req.Schema != nil && p.Config.ToolMode {
		tools, force = wire.WithAnswer(req)
	} else if req.Schema != nil {
		schema, err := wire.SchemaMap(req.Schema, dialect())
		if err != nil {
			return err
		}
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: req.Schema.Name(), Strict: param.NewOpt(true), Schema: schema,
			},
		}
	}
	for _, t := range tools {
		schema, strict, err := wire.ToolFields(t, dialect())
		if err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
		def := shared.FunctionDefinitionParam{Name: t.Name, Strict: param.NewOpt(strict), Parameters: schema}
		if t.Description != "" {
			def.Description = param.NewOpt(t.Description)
		}
		params.Tools = append(params.Tools, sdk.ChatCompletionFunctionTool(def))
	}
	if req.NoCalls && force == "" && len(tools) > 0 {
		params.ToolChoice.OfAuto = param.NewOpt(string(sdk.ChatCompletionToolChoiceOptionAutoNone))
	}
	if force != "" {
		params.ToolChoice = sdk.ToolChoiceOptionFunctionToolChoice(sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: force})
		params.ParallelToolCalls = param.NewOpt(false)
	}
	return nil
}

// messageParams returns a message as the vendor has it: each result of a tool
// is a message of its own.
func messageParams(m llm.Message) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	var text strings.Builder
	var calls []sdk.ChatCompletionMessageToolCallUnionParam
	for _, p := range m.Parts {
		text.WriteString(p.Text)
		if p.Result != nil {
			out = append(out, sdk.ToolMessage(p.Result.Text, p.Result.ID))
		}
		if p.Call != nil {
			calls = append(calls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID:       p.Call.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: p.Call.Name, Arguments: string(p.Call.Input)},
			}})
		}
	}
	switch {
	case m.Role == llm.Assistant:
		said := sdk.ChatCompletionAssistantMessageParam{ToolCalls: calls}
		if len(calls) > 0 {
			said.SetExtraFields(thinkingOf(m.Parts))
		}
		if text.Len() > 0 {
			said.Content.OfString = param.NewOpt(text.String())
		}
		out = append(out, sdk.ChatCompletionMessageParamUnion{OfAssistant: &said})
	case text.Len() > 0:
		out = append(out, sdk.UserMessage(text.String()))
	}
	return out
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

// thinkingFields are the names that servers give to what a model thinks. The vendor itself
// does not show it.
func thinkingFields() []string { return []string{"reasoning_content", "reasoning"} }

// A choice is put together from the chunks of a stream.
type choice struct {
	model   string
	text    strings.Builder
	refusal strings.Builder
	calls   []toolCall
	finish  string
	usage   llm.Usage

	thinking int64 // of the output of usage
	thoughts strings.Builder
	field    string // of thoughts
}

// A toolCall is a call of a tool as it grows.
type toolCall struct {
	id, name string
	input    strings.Builder
}

// maxCalls bounds the calls of one turn: a chunk names one by its index.
const maxCalls = 256

// takeChunk adds a chunk. The one that holds the usage has no choices.
func (t *choice) takeChunk(chunk sdk.ChatCompletionChunk) error {
	if chunk.Model != "" {
		t.model = chunk.Model
	}
	if chunk.JSON.Usage.Valid() {
		t.usage = usageOf(chunk.Usage)
		t.thinking = max(chunk.Usage.CompletionTokensDetails.ReasoningTokens, 0)
	}
	for _, c := range chunk.Choices {
		if c.Index != 0 {
			continue
		}
		t.text.WriteString(c.Delta.Content)
		t.takeThinking(c.Delta)
		t.refusal.WriteString(c.Delta.Refusal)
		if c.FinishReason != "" {
			t.finish = c.FinishReason
		}
		for _, d := range c.Delta.ToolCalls {
			if d.Index < 0 || d.Index >= maxCalls {
				return llm.NewError(llm.Garbled, "a call of a tool has the index %d", d.Index)
			}
			for int64(len(t.calls)) <= d.Index {
				t.calls = append(t.calls, toolCall{})
			}
			call := &t.calls[d.Index]
			call.id += d.ID
			call.name += d.Function.Name
			call.input.WriteString(d.Function.Arguments)
		}
	}
	return nil
}

// takeThinking adds what the model thinks aloud.
func (t *choice) takeThinking(d sdk.ChatCompletionChunkChoiceDelta) {
	for _, name := range thinkingFields() {
		var text string
		raw := d.JSON.ExtraFields[name].Raw()
		if raw == "" || json.Unmarshal([]byte(raw), &text) != nil || text == "" || t.field != "" && t.field != name {
			continue
		}
		t.field = name
		t.thoughts.WriteString(text)
	}
}

// usageOf subtracts the tokens of the cache from those of the prompt, which
// include them.
func usageOf(u sdk.CompletionUsage) llm.Usage {
	read, write := max(u.PromptTokensDetails.CachedTokens, 0), max(u.PromptTokensDetails.CacheWriteTokens, 0)
	return llm.Usage{
		Input: u.PromptTokens - read - write, CacheRead: read, CacheWrite: write,
		Output: u.CompletionTokens, Reported: true,
	}.NonNegative()
}

// noteWaste adds to an error the usage of the failed turn.
func (t *choice) noteWaste(e *llm.Error) *llm.Error {
	e.Usage = t.usage
	return e
}

// toResponse is the finished turn.
func (t *choice) toResponse(c *wire.Call, tool bool) (*llm.Response, error) {
	r := &llm.Response{
		Model: llm.Model(t.model), RequestID: c.RequestID(), Stop: stopOf(t.finish),
		Usage: t.usage, Limits: c.ParseLimits(),
	}
	if t.usage.Reported {
		r.Written = new(max(0, t.usage.Output-t.thinking))
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
		call, err := t.calls[i].finishedCall(i)
		if err != nil && r.Stop.Cut() {
			continue
		}
		if err != nil {
			return nil, t.noteWaste(c.FailError(err))
		}
		r.Parts = append(r.Parts, llm.Part{Call: call})
	}
	if len(r.Calls()) > 0 && r.Stop == llm.StopEnd {
		r.Stop = llm.StopTool // a forced tool ends with "stop"
	}
	r.Answer = wire.AnswerOf(r, tool)
	return r, nil
}

// finishedCall returns the call. Some servers give it no id.
func (c *toolCall) finishedCall(i int) (*llm.ToolCall, error) {
	input := json.RawMessage(c.input.String())
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	if !json.Valid(input) {
		return nil, llm.NewError(llm.Garbled, "the input for tool %s is no JSON", redact.ShortenLine(c.name))
	}
	if c.id == "" {
		c.id = fmt.Sprintf("call_%d", i)
	}
	return &llm.ToolCall{ID: c.id, Name: c.name, Input: input}, nil
}

// stopOf translates the vendor's word.
func stopOf(s string) llm.Stop {
	switch s {
	case "stop":
		return llm.StopEnd
	case "length":
		return llm.StopMax
	case "tool_calls", "function_call":
		return llm.StopTool
	case "content_filter":
		return llm.StopFilter
	default:
		return llm.Stop("openai:" + s)
	}
}
