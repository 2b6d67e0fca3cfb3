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
	"github.com/coditect/mapreduce/worker/llm/manners"
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
	d, err := wire.NewDialer(cfg, vendorURL, wire.Format{
		Stream: "text/event-stream", Limits: wire.CompatibleLimits, Judge: wire.JudgeCompatible, Whole: wholeStream,
	})
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

// Complete implements Provider. What a server refuses of a request is left out of it, and of all
// later ones for the model: see package manners.
func (p *provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	known := p.Manners(req.Model)
	for refusals := 0; ; refusals++ {
		with := p.ownForm(known)
		c := p.BeginCall(ctx, req)
		res, err := p.ask(c, req, with)
		c.EndCall()
		if err == nil {
			p.Works(req.Model)
			return res, nil
		}
		next, learned := c.Learn(err, req.Model, known, with, p.sentBy(req, with))
		if !learned || refusals == wire.MaxRefusals {
			return nil, err
		}
		known = next
	}
}

// ownForm returns manners by which answers are calls of a tool at least, if the job says so.
func (p *provider) ownForm(m manners.Manners) manners.Manners {
	if p.Config.ToolMode {
		m.Form = max(m.Form, manners.ByTool)
	}
	return m
}

// sentBy says what a request holds that may be refused.
func (*provider) sentBy(req *llm.Request, with manners.Manners) manners.Sent {
	return manners.Sent{Schema: req.Schema != nil, Tools: len(req.Tools) > 0, Stream: !with.NoStream, System: req.System != "", Bound: answerBound(req, with)}
}

// answerBound returns the bound of an answer that a server takes.
func answerBound(req *llm.Request, with manners.Manners) int64 {
	if with.Most > 0 {
		return min(with.Most, req.AnswerBound())
	}
	return req.AnswerBound()
}

// ask makes one request.
func (p *provider) ask(c *wire.Call, req *llm.Request, with manners.Manners) (*llm.Response, error) {
	params, err := p.buildParams(req, with)
	if err != nil {
		return nil, err
	}
	opts := []option.RequestOption{option.WithMiddleware(c.DoRequest)}
	if with.NoStream {
		opts = []option.RequestOption{option.WithMiddleware(unstream), option.WithMiddleware(c.DoRequest)}
	}
	stream := p.chat.NewStreaming(c.Context(), params, opts...)
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
	if stream.Err() != nil || !t.isWhole(c.EndsWith("[DONE]")) {
		return nil, t.noteWaste(c.CutError(stream.Err()))
	}
	if kind := failedStop(t.finish); kind != 0 {
		return nil, t.noteWaste(c.FailError(llm.NewError(kind, "the server gave up in mid-stream: %s", redact.ShortenLine(t.finish))))
	}
	return t.toResponse(c, req.Schema != nil && with.Form == manners.ByTool)
}

// isWhole reports whether a stream that ended had ended what it said: it gave a reason, or the
// mark of the end behind something.
func (t *choice) isWhole(marked bool) bool {
	return t.finish != "" || marked && (t.text.Len() > 0 || len(t.calls) > 0)
}

// buildParams puts a request into the vendor's words, without what the server refuses.
func (p *provider) buildParams(req *llm.Request, with manners.Manners) (sdk.ChatCompletionNewParams, error) {
	params := sdk.ChatCompletionNewParams{Model: shared.ChatModel(req.Model)}
	if err := req.Check(); err != nil {
		return params, err
	}
	// Other servers know the old name only; the vendor's newer models refuse it.
	if p.own != with.OtherBound {
		params.MaxCompletionTokens = param.NewOpt(answerBound(req, with))
	} else {
		params.MaxTokens = param.NewOpt(answerBound(req, with))
	}
	if !with.NoUsage && !with.NoStream {
		params.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	messages := req.Messages
	system := req.System + wire.TellForm(req, with)
	if with.NoSystem {
		messages = wire.WithInstructions(system, messages)
	} else if system != "" {
		params.Messages = append(params.Messages, sdk.SystemMessage(system))
	}
	for _, m := range messages {
		params.Messages = append(params.Messages, messageParams(m)...)
	}
	return params, addTools(req, with, &params)
}

// dialectFor returns the dialect of a server's schemas.
func dialectFor(with manners.Manners) llm.Dialect {
	d := dialect()
	if with.Plain {
		d.Keywords = nil
	}
	return d
}

// addTools adds tools and the answer's schema.
func addTools(req *llm.Request, with manners.Manners, params *sdk.ChatCompletionNewParams) error {
	tools, force := req.Tools, req.Force
	switch {
	case req.Schema == nil:
	case with.Form == manners.ByTool:
		tools, force = wire.WithAnswer(req)
	case with.Form == manners.ByObject:
		params.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	case with.Form == manners.BySchema:
		schema, err := wire.SchemaMap(req.Schema, dialectFor(with))
		if err != nil {
			return err
		}
		form := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: req.Schema.Name(), Schema: schema}
		if !with.NoStrict {
			form.Strict = param.NewOpt(true)
		}
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: form}
	}
	for _, t := range tools {
		schema, strict, err := wire.ToolFields(t, dialectFor(with))
		if err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
		def := shared.FunctionDefinitionParam{Name: t.Name, Parameters: schema}
		if !with.NoStrict {
			def.Strict = param.NewOpt(strict)
		}
		if t.Description != "" {
			def.Description = param.NewOpt(t.Description)
		}
		params.Tools = append(params.Tools, sdk.ChatCompletionFunctionTool(def))
	}
	if with.FreeTools {
		return nil
	}
	if req.NoCalls && force == "" && len(tools) > 0 {
		params.ToolChoice.OfAuto = param.NewOpt(string(sdk.ChatCompletionToolChoiceOptionAutoNone))
	}
	if force != "" {
		params.ToolChoice = sdk.ToolChoiceOptionFunctionToolChoice(sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: force})
		if !with.NoParallel {
			params.ParallelToolCalls = param.NewOpt(false)
		}
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
		t.thinking = min(max(chunk.Usage.CompletionTokensDetails.ReasoningTokens, 0), t.usage.Output)
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

// usageOf subtracts the tokens of the cache from those of the prompt, which include them. What
// a server leaves out, or writes so that it is no count, it has not reported.
func usageOf(u sdk.CompletionUsage) llm.Usage {
	prompt, input := wire.ParseTokens(u.JSON.PromptTokens.Raw())
	answer, output := wire.ParseTokens(u.JSON.CompletionTokens.Raw())
	cache := u.PromptTokensDetails.JSON
	read, _ := wire.ParseTokens(cache.CachedTokens.Raw())
	write, _ := wire.ParseTokens(cache.CacheWriteTokens.Raw())
	return llm.Usage{
		Input: int64(prompt - read - write), CacheRead: int64(read), CacheWrite: int64(write),
		Output: int64(answer), Reported: input && output,
	}.IfPossible()
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
