package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"
)

const openaiURL = "https://api.openai.com/v1/"

// openaiProvider speaks Chat Completions by the vendor's SDK, which is given
// nothing of the environment and does not retry. Other servers that speak it are
// reached by their base URL, and may need no key.
type openaiProvider struct {
	*dialer
	own  bool // the vendor itself answers
	chat openai.ChatCompletionService
}

func newOpenAI(cfg Config) (Provider, error) {
	own := cfg.BaseURL == "" || strings.HasPrefix(cfg.BaseURL, "https://api.openai.com/")
	if cfg.Key.IsZero() && own {
		return nil, newError(Auth, "there is no key for openai: set OPENAI_API_KEY")
	}
	d, err := newDialer(cfg, openaiURL)
	if err != nil {
		return nil, err
	}
	d.stream, d.limits, d.judge = "text/event-stream", openaiLimits, judgeOpenAI
	opts := []option.RequestOption{
		option.WithBaseURL(d.base.String()), option.WithHTTPClient(d.client), option.WithMaxRetries(0),
	}
	if !cfg.Key.IsZero() {
		opts = append(opts, option.WithAPIKey(cfg.Key.secret))
	}
	return &openaiProvider{dialer: d, own: own, chat: openai.NewChatCompletionService(opts...)}, nil
}

// Name implements Provider.
func (*openaiProvider) Name() string { return "openai" }

// Can implements Provider.
func (*openaiProvider) Can() Capabilities {
	return Capabilities{Dialect: openaiDialect(), ForceTool: true}
}

// Complete implements Provider.
func (p *openaiProvider) Complete(ctx context.Context, req *Request) (*Response, error) {
	params, err := p.buildParams(req)
	if err != nil {
		return nil, err
	}
	c := p.beginCall(ctx, req)
	defer c.endCall()
	stream := p.chat.NewStreaming(c.ctx, params, option.WithMiddleware(c.doRequest))
	if stream.Err() != nil {
		return nil, c.failError(stream.Err())
	}
	defer stream.Close()
	var t choice
	for stream.Next() {
		if err := t.takeChunk(stream.Current()); err != nil {
			return nil, t.noteWaste(c.failError(err))
		}
	}
	if sent, ok := errors.AsType[*ssestream.StreamError](stream.Err()); ok {
		return nil, t.noteWaste(c.midstreamError(sent.Event.Data))
	}
	if stream.Err() != nil || t.finish == "" || !c.body.endsWith("[DONE]") {
		return nil, t.noteWaste(c.cutError(stream.Err()))
	}
	return t.toResponse(c, req.Schema != nil && p.cfg.ToolMode)
}

// buildParams puts a request into the vendor's words.
func (p *openaiProvider) buildParams(req *Request) (openai.ChatCompletionNewParams, error) {
	params := openai.ChatCompletionNewParams{Model: shared.ChatModel(req.Model)}
	if err := req.checkRequest(); err != nil {
		return params, err
	}
	// Other servers know the old name only; the vendor's newer models refuse it.
	if p.own {
		params.MaxCompletionTokens = param.NewOpt(req.maxTokens())
	} else {
		params.MaxTokens = param.NewOpt(req.maxTokens())
	}
	params.StreamOptions.IncludeUsage = param.NewOpt(true)
	if req.System != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(req.System))
	}
	for _, m := range req.Messages {
		params.Messages = append(params.Messages, openaiMessages(m)...)
	}
	return params, p.addTools(req, &params)
}

// addTools adds tools and the answer's schema.
func (p *openaiProvider) addTools(req *Request, params *openai.ChatCompletionNewParams) error {
	tools, force := req.Tools, req.Force
	if req.Schema != nil && p.cfg.ToolMode {
		tools, force = withAnswer(req)
	} else if req.Schema != nil {
		schema, err := schemaMap(req.Schema, openaiDialect())
		if err != nil {
			return err
		}
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: req.Schema.name, Strict: param.NewOpt(true), Schema: schema,
			},
		}
	}
	for _, t := range tools {
		schema, strict, err := toolFields(t, openaiDialect())
		if err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
		def := shared.FunctionDefinitionParam{Name: t.Name, Strict: param.NewOpt(strict), Parameters: schema}
		if t.Description != "" {
			def.Description = param.NewOpt(t.Description)
		}
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(def))
	}
	if force != "" {
		params.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: force})
		params.ParallelToolCalls = param.NewOpt(false)
	}
	return nil
}

// openaiMessages returns a message as the vendor has it: each result of a tool
// is a message of its own.
func openaiMessages(m Message) []openai.ChatCompletionMessageParamUnion {
	var out []openai.ChatCompletionMessageParamUnion
	var text strings.Builder
	var calls []openai.ChatCompletionMessageToolCallUnionParam
	for _, p := range m.Parts {
		text.WriteString(p.Text)
		if p.Result != nil {
			out = append(out, openai.ToolMessage(p.Result.Text, p.Result.ID))
		}
		if p.Call != nil {
			calls = append(calls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID:       p.Call.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: p.Call.Name, Arguments: string(p.Call.Input)},
			}})
		}
	}
	switch {
	case m.Role == Assistant:
		said := openai.ChatCompletionAssistantMessageParam{ToolCalls: calls}
		if text.Len() > 0 {
			said.Content.OfString = param.NewOpt(text.String())
		}
		out = append(out, openai.ChatCompletionMessageParamUnion{OfAssistant: &said})
	case text.Len() > 0:
		out = append(out, openai.UserMessage(text.String()))
	}
	return out
}

// A choice is put together from the chunks of a stream.
type choice struct {
	model   string
	text    strings.Builder
	refusal strings.Builder
	calls   []openaiCall
	finish  string
	usage   Usage

	thinking int64 // of the output of usage
}

// An openaiCall is a call of a tool as it grows.
type openaiCall struct {
	id, name string
	input    strings.Builder
}

// maxCalls bounds the calls of one turn: a chunk names one by its index.
const maxCalls = 256

// takeChunk adds a chunk. The one that holds the usage has no choices.
func (t *choice) takeChunk(chunk openai.ChatCompletionChunk) error {
	if chunk.Model != "" {
		t.model = chunk.Model
	}
	if chunk.JSON.Usage.Valid() {
		t.usage = openaiUsage(chunk.Usage)
		t.thinking = max(chunk.Usage.CompletionTokensDetails.ReasoningTokens, 0)
	}
	for _, c := range chunk.Choices {
		if c.Index != 0 {
			continue
		}
		t.text.WriteString(c.Delta.Content)
		t.refusal.WriteString(c.Delta.Refusal)
		if c.FinishReason != "" {
			t.finish = c.FinishReason
		}
		for _, d := range c.Delta.ToolCalls {
			if d.Index < 0 || d.Index >= maxCalls {
				return newError(Garbled, "a call of a tool has the index %d", d.Index)
			}
			for int64(len(t.calls)) <= d.Index {
				t.calls = append(t.calls, openaiCall{})
			}
			call := &t.calls[d.Index]
			call.id += d.ID
			call.name += d.Function.Name
			call.input.WriteString(d.Function.Arguments)
		}
	}
	return nil
}

// openaiUsage subtracts the tokens of the cache from those of the prompt, which
// include them.
func openaiUsage(u openai.CompletionUsage) Usage {
	read, write := max(u.PromptTokensDetails.CachedTokens, 0), max(u.PromptTokensDetails.CacheWriteTokens, 0)
	return Usage{
		Input: u.PromptTokens - read - write, CacheRead: read, CacheWrite: write,
		Output: u.CompletionTokens, Reported: true,
	}.nonNegative()
}

// noteWaste adds to an error the usage of the failed turn.
func (t *choice) noteWaste(e *Error) *Error {
	e.Usage = t.usage
	return e
}

// toResponse is the finished turn.
func (t *choice) toResponse(c *call, tool bool) (*Response, error) {
	r := &Response{
		Model: Model(t.model), RequestID: c.requestID(), Stop: openaiStop(t.finish),
		Usage: t.usage, Limits: c.parseLimits(),
	}
	if t.usage.Reported {
		r.Written = new(max(0, t.usage.Output-t.thinking))
	}
	if t.refusal.Len() > 0 {
		r.Stop, r.Reason = StopRefusal, c.d.cleanText(t.refusal.String())
	}
	if t.text.Len() > 0 {
		r.Parts = append(r.Parts, Part{Text: t.text.String()})
	}
	for i := range t.calls {
		call, err := t.calls[i].finishedCall(i)
		if err != nil && r.Stop.Cut() {
			continue
		}
		if err != nil {
			return nil, t.noteWaste(c.failError(err))
		}
		r.Parts = append(r.Parts, Part{Call: call})
	}
	if len(r.Calls()) > 0 && r.Stop == StopEnd {
		r.Stop = StopTool // a forced tool ends with "stop"
	}
	r.Answer = answerOf(r, tool)
	return r, nil
}

// finishedCall returns the call. Some servers give it no id.
func (c *openaiCall) finishedCall(i int) (*ToolCall, error) {
	input := json.RawMessage(c.input.String())
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	if !json.Valid(input) {
		return nil, newError(Garbled, "the input for tool %s is no JSON", shortenLine(c.name))
	}
	if c.id == "" {
		c.id = fmt.Sprintf("call_%d", i)
	}
	return &ToolCall{ID: c.id, Name: c.name, Input: input}, nil
}

// openaiStop translates the vendor's word.
func openaiStop(s string) Stop {
	switch s {
	case "stop":
		return StopEnd
	case "length":
		return StopMax
	case "tool_calls", "function_call":
		return StopTool
	case "content_filter":
		return StopFilter
	default:
		return Stop("openai:" + s)
	}
}

// judgeOpenAI reads {"error":{"message","type","param","code"}}; the error may
// be a plain text in servers that are only alike. A quota that is used up comes
// with the status of a rate limit, and waiting does not mend it.
func judgeOpenAI(status int, raw []byte) (Kind, string) {
	var body struct{ Error json.RawMessage }
	if json.Unmarshal(raw, &body) != nil || len(body.Error) == 0 || string(body.Error) == "null" {
		return 0, ""
	}
	var e struct {
		Message, Type string
		Code          any
	}
	if json.Unmarshal(body.Error, &e) != nil && json.Unmarshal(body.Error, &e.Message) != nil {
		return 0, ""
	}
	names := []string{e.Type, fmt.Sprint(e.Code)}
	has := func(name string) bool { return slices.Contains(names, name) }
	switch {
	case has("insufficient_quota"), has("billing_hard_limit_reached"), has("billing_not_active"):
		return Billing, e.Message
	case has("invalid_api_key"), has("authentication_error"):
		return Auth, e.Message
	case has("model_not_found"):
		return NotFound, e.Message
	case has("context_length_exceeded"), has("string_above_max_length"):
		return TooLarge, e.Message
	case has("content_filter"), has("content_policy_violation"):
		return Filtered, e.Message
	case has("rate_limit_exceeded"), has("rate_limit_error"), has("tokens"), has("requests"):
		return RateLimited, e.Message
	case has("overloaded_error"), has("engine_overloaded"):
		return Overloaded, e.Message
	case status < 300:
		return Server, e.Message
	}
	kind := byStatus(status)
	if kind == Invalid {
		kind = judgeInvalid(e.Message)
	}
	return kind, e.Message
}
