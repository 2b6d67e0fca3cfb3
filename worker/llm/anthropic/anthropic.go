// Package anthropic asks the models of Anthropic, by the vendor's SDK.
package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A provider speaks version 2026-10-21 of the Messages API by the vendor's
// SDK, which is given nothing of the environment, does not retry and does not
// trace.
type provider struct {
	*wire.Dialer
	messages sdk.MessageService
}

// New returns the provider of a key. The error is an *llm.Error of the kind Auth if there
// is none, and Invalid if the address is no address.
func New(cfg llm.Config) (llm.Provider, error) {
	if cfg.Key.IsZero() {
		return nil, llm.NewError(llm.Auth, "there is no key for anthropic: set ANTHROPIC_API_KEY")
	}
	d, err := wire.NewDialer(cfg, "https://api.anthropic.com/", wire.Format{Whole: wholeStream, Stream: "text/event-stream", Limits: readLimits, Judge: judgeError})
	if err != nil {
		return nil, err
	}
	p := &provider{Dialer: d}
	p.messages = sdk.NewMessageService(
		option.WithBaseURL(d.Base.String()), option.WithAPIKey(redact.Secret(cfg.Key)),
		option.WithHTTPClient(d.Client), option.WithMaxRetries(0),
		option.WithoutOpenTelemetry(), // calls are traced by us, and vendors are sent no trace
	)
	return p, nil
}

// Name implements Provider.
func (*provider) Name() string { return "anthropic" }

// Can implements Provider.
func (*provider) Can() llm.Capabilities {
	return llm.Capabilities{Dialect: dialect(), ForceTool: true, Cache: true}
}

// dialect follows the schemas that the vendor's SDKs produce.
func dialect() llm.Dialect {
	return llm.Dialect{
		Name: "anthropic", Closed: true, AnyOf: true, OneType: true, SmallMin: true,
		Keywords: []string{"minItems", "format"},
		Formats:  []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
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
		sent := manners.Sent{Schema: req.Schema != nil, Tools: len(req.Tools) > 0, System: req.System != "", Cache: req.Cache != "", Bound: answerBound(req, with)}
		next, learned := c.Learn(err, req.Model, known, with, sent)
		if !learned || refusals == wire.MaxRefusals {
			return nil, err
		}
		known = next
	}
}

// ownForm returns manners by which answers are calls of a tool at least, if the job says so.
// There is no form between those and the prompt alone.
func (p *provider) ownForm(m manners.Manners) manners.Manners {
	if p.Config.ToolMode {
		m.Form = max(m.Form, manners.ByTool)
	}
	if m.Form == manners.ByObject {
		m.Form = manners.ByPrompt
	}
	return m
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
	stream := p.messages.NewStreaming(c.Context(), params, option.WithMiddleware(c.DoRequest))
	if stream.Err() != nil {
		return nil, c.FailError(stream.Err())
	}
	defer stream.Close()
	var t turn
	for stream.Next() {
		if err := t.takeEvent(stream.Current()); err != nil {
			return nil, t.noteWaste(c.FailError(err))
		}
	}
	if raw, ok := sentError(stream.Err()); ok {
		return nil, t.noteWaste(c.MidstreamError(raw))
	}
	if !t.stopped {
		return nil, t.noteWaste(c.CutError(stream.Err()))
	}
	return t.toResponse(c, req.Schema != nil && with.Form == manners.ByTool)
}

// sentError returns the error that the server sent, if that is what err is.
func sentError(err error) ([]byte, bool) {
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		return []byte(e.RawJSON()), true
	}
	return nil, false
}

// Count implements Counter.
func (p *provider) Count(ctx context.Context, req *llm.Request) (int64, error) {
	full, err := p.buildParams(req, p.ownForm(p.Manners(req.Model)))
	if err != nil {
		return 0, err
	}
	params := sdk.MessageCountTokensParams{
		Model: full.Model, Messages: full.Messages, ToolChoice: full.ToolChoice, OutputConfig: full.OutputConfig,
	}
	if full.System != nil {
		params.System.OfTextBlockArray = full.System
	}
	for _, t := range full.Tools {
		params.Tools = append(params.Tools, sdk.MessageCountTokensToolUnionParam{OfTool: t.OfTool})
	}
	c := p.BeginCall(ctx, req)
	defer c.EndCall()
	n, err := p.messages.CountTokens(c.Context(), params, option.WithMiddleware(c.DoRequest))
	if err != nil {
		return 0, c.FailError(err)
	}
	return n.InputTokens, nil
}

// buildParams puts a request into the vendor's words: tools, then instructions, then
// messages, which is the order in which it caches.
func (p *provider) buildParams(req *llm.Request, with manners.Manners) (sdk.MessageNewParams, error) {
	var params sdk.MessageNewParams
	if err := req.Check(); err != nil {
		return params, err
	}
	params.Model = sdk.Model(req.Model)
	params.MaxTokens = answerBound(req, with)
	if with.NoCache {
		uncached := *req
		uncached.Cache, req = "", &uncached
	}
	if err := addTools(req, with, &params); err != nil {
		return params, err
	}
	if system := req.System + wire.TellForm(req, with); system != "" {
		params.System = []sdk.TextBlockParam{{Text: system, CacheControl: cacheControl(req.Cache)}}
	}
	for _, m := range req.Messages {
		blocks := make([]sdk.ContentBlockParamUnion, 0, len(m.Parts))
		for _, part := range m.Parts {
			if with.NoCache {
				part.Cache = ""
			}
			blocks = append(blocks, blockParam(part))
		}
		params.Messages = append(params.Messages, messageParam(m.Role, blocks))
	}
	return params, nil
}

func messageParam(role llm.Role, blocks []sdk.ContentBlockParamUnion) sdk.MessageParam {
	if role == llm.Assistant {
		return sdk.NewAssistantMessage(blocks...)
	}
	return sdk.NewUserMessage(blocks...)
}

// addTools adds tools and the answer's schema.
// dialectFor returns the dialect of a server's schemas.
func dialectFor(with manners.Manners) llm.Dialect {
	d := dialect()
	if with.Plain {
		d.Keywords = nil
	}
	return d
}

func addTools(req *llm.Request, with manners.Manners, params *sdk.MessageNewParams) error {
	tools, force := req.Tools, req.Force
	switch {
	case req.Schema == nil:
	case with.Form == manners.ByTool:
		tools, force = wire.WithAnswer(req)
	case with.Form == manners.BySchema:
		schema, err := wire.SchemaMap(req.Schema, dialectFor(with))
		if err != nil {
			return err
		}
		params.OutputConfig.Format.Schema = schema
	}
	for i, t := range tools {
		tool, err := toolParam(t, with)
		if err != nil {
			return err
		}
		if i == len(tools)-1 && req.System == "" {
			tool.CacheControl = cacheControl(req.Cache)
		}
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfTool: tool})
	}
	if req.NoCalls && force == "" && len(tools) > 0 {
		params.ToolChoice.OfNone = &sdk.ToolChoiceNoneParam{}
	}
	if force != "" && !with.FreeTools {
		choice := &sdk.ToolChoiceToolParam{Name: force}
		if !with.NoParallel {
			choice.DisableParallelToolUse = param.NewOpt(true)
		}
		params.ToolChoice.OfTool = choice
	}
	return nil
}

func toolParam(t llm.Tool, with manners.Manners) (*sdk.ToolParam, error) {
	schema, strict, err := wire.ToolFields(t, dialectFor(with))
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	delete(schema, "type")
	tool := &sdk.ToolParam{Name: t.Name}
	if !with.NoStrict {
		tool.Strict = param.NewOpt(strict)
	}
	tool.InputSchema.ExtraFields = schema
	if t.Description != "" {
		tool.Description = param.NewOpt(t.Description)
	}
	return tool, nil
}

func cacheControl(ttl llm.TTL) sdk.CacheControlEphemeralParam {
	if ttl == "" {
		return sdk.CacheControlEphemeralParam{}
	}
	control := sdk.NewCacheControlEphemeralParam()
	control.TTL = sdk.CacheControlEphemeralTTL(ttl)
	return control
}

func blockParam(part llm.Part) sdk.ContentBlockParamUnion {
	switch {
	case part.Opaque != nil:
		return param.Override[sdk.ContentBlockParamUnion](part.Opaque)
	case part.Call != nil:
		return sdk.NewToolUseBlock(part.Call.ID, part.Call.Input, part.Call.Name)
	case part.Result != nil:
		block := sdk.NewToolResultBlock(part.Result.ID, part.Result.Text, part.Result.Error)
		block.OfToolResult.CacheControl = cacheControl(part.Cache)
		return block
	default:
		text := sdk.TextBlockParam{Text: part.Text, CacheControl: cacheControl(part.Cache)}
		return sdk.ContentBlockParamUnion{OfText: &text}
	}
}

// A turn is put together from the events of a stream.
type turn struct {
	model   string
	blocks  []block
	stop    sdk.StopReason
	reason  string
	usage   llm.Usage
	stopped bool // by message_stop, without which nothing is whole
}

// A block is a part of the turn as it grows.
type block struct {
	kind  string
	first json.RawMessage // as it was when it began
	name  string
	id    string
	text  strings.Builder // of text, of input or of thinking
	sign  strings.Builder
}

// takeEvent adds an event. Kinds that are not known are passed over, as the vendor
// asks of its clients.
func (t *turn) takeEvent(e sdk.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		t.model = string(e.Message.Model)
		t.usage = usageOf(e.Message.Usage)
	case "content_block_start":
		if e.Index != int64(len(t.blocks)) {
			return llm.NewError(llm.Garbled, "block %d follows %d others", e.Index, len(t.blocks))
		}
		b := block{kind: e.ContentBlock.Type, first: json.RawMessage(e.ContentBlock.RawJSON())}
		b.name, b.id = e.ContentBlock.Name, e.ContentBlock.ID
		t.blocks = append(t.blocks, b)
		t.blocks[e.Index].text.WriteString(e.ContentBlock.Text)
	case "content_block_delta":
		if e.Index < 0 || e.Index >= int64(len(t.blocks)) {
			return llm.NewError(llm.Garbled, "a piece of block %d, which never began", e.Index)
		}
		t.blocks[e.Index].add(e.Delta)
	case "message_delta":
		t.stop = e.Delta.StopReason
		t.reason = joinWords(string(e.Delta.StopDetails.Category), e.Delta.StopDetails.Explanation)
		if e.JSON.Usage.Valid() { // else nobody knows what was written
			t.setUsage(e.Usage)
		}
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
func (t *turn) setUsage(u sdk.MessageDeltaUsage) {
	if u.JSON.OutputTokens.Valid() {
		t.usage.Output, t.usage.Reported = u.OutputTokens, true
	}
	if u.JSON.InputTokens.Valid() {
		t.usage.Input = u.InputTokens
	}
	if u.JSON.CacheReadInputTokens.Valid() {
		t.usage.CacheRead = u.CacheReadInputTokens
	}
	if u.JSON.CacheCreationInputTokens.Valid() {
		t.usage.CacheWrite = u.CacheCreationInputTokens - t.usage.CacheWrite1h
	}
	t.usage = t.usage.IfPossible()
}

func usageOf(u sdk.Usage) llm.Usage {
	hour := u.CacheCreation.Ephemeral1hInputTokens
	return llm.Usage{
		Input: u.InputTokens, CacheWrite: u.CacheCreationInputTokens - hour, CacheWrite1h: hour,
		CacheRead: u.CacheReadInputTokens, Output: u.OutputTokens,
	}.IfPossible()
}

// add takes a piece.
func (b *block) add(d sdk.MessageStreamEventUnionDelta) {
	switch d.Type {
	case "text_delta":
		b.text.WriteString(d.Text)
	case "input_json_delta":
		b.text.WriteString(d.PartialJSON)
	case "thinking_delta":
		b.text.WriteString(d.Thinking)
	case "signature_delta":
		b.sign.WriteString(d.Signature)
	}
}

// finishedPart is the finished block.
func (b *block) finishedPart() (llm.Part, error) {
	switch b.kind {
	case "text":
		return llm.Part{Text: b.text.String()}, nil
	case "tool_use":
		input, ok := wire.ToolInput(b.text.String())
		if !ok && b.name == llm.AnswerTool {
			return llm.Part{Text: b.text.String()}, nil
		}
		if !ok {
			return llm.Part{}, llm.NewError(llm.Garbled, "the input for tool %s is no JSON", b.name)
		}
		return llm.Part{Call: &llm.ToolCall{ID: b.id, Name: b.name, Input: input}}, nil
	case "thinking":
		raw, err := json.Marshal(map[string]string{"type": b.kind, "thinking": b.text.String(), "signature": b.sign.String()})
		return llm.Part{Opaque: raw}, err
	case "server_tool_use":
		return llm.Part{Opaque: withInput(b.first, b.text.String())}, nil
	default:
		return llm.Part{Opaque: b.first}, nil
	}
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
		Reason: c.CleanText(t.reason), Usage: t.usage, Limits: c.ParseLimits(),
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
		if t.blocks[i].kind == "text" && part.Text == "" {
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
		if strings.Contains(t.blocks[i].kind, "thinking") {
			return true
		}
	}
	return false
}

// stopOf translates the vendor's word.
func stopOf(s sdk.StopReason) llm.Stop {
	switch s {
	case sdk.StopReasonEndTurn:
		return llm.StopEnd
	case sdk.StopReasonStopSequence:
		return llm.StopSequence
	case sdk.StopReasonToolUse:
		return llm.StopTool
	case sdk.StopReasonMaxTokens:
		return llm.StopMax
	case sdk.StopReasonModelContextWindowExceeded:
		return llm.StopWindow
	case sdk.StopReasonPauseTurn:
		return llm.StopPause
	case sdk.StopReasonRefusal:
		return llm.StopRefusal
	default:
		return llm.Stop("anthropic:" + string(s))
	}
}

// judgeError reads {"type":"error","error":{"type","message","details"}}. An
// account without money is also told of by an invalid request, in words, and by a
// rate limit, in details.error_code.
func judgeError(status int, raw []byte) (llm.Kind, string) {
	var body struct {
		Error struct {
			Type, Message string
			Details       json.RawMessage
		}
	}
	if json.Unmarshal(raw, &body) != nil || body.Error.Type == "" {
		return 0, ""
	}
	message := body.Error.Message
	if kind := judgeCode(body.Error.Details); kind != 0 {
		return kind, message
	}
	switch body.Error.Type {
	case "authentication_error":
		return llm.Auth, message
	case "permission_error":
		return llm.Permission, message
	case "billing_error":
		return llm.Billing, message
	case "not_found_error":
		return llm.NotFound, message
	case "request_too_large":
		return llm.TooLarge, message
	case "rate_limit_error":
		return llm.RateLimited, message
	case "timeout_error":
		return llm.Timeout, message
	case "overloaded_error":
		return llm.Overloaded, message
	case "api_error":
		return llm.Server, message
	case "invalid_request_error":
		return wire.JudgeInvalid(message), message
	}
	if status < 300 {
		return llm.Server, message
	}
	return wire.ByStatus(status), message
}

// judgeCode reads {"error_code"}, and returns 0 for a code that says no
// more than the type of its error. A spend limit comes as a rate limit, but it
// does not pass while a job waits.
func judgeCode(details []byte) llm.Kind {
	var d struct {
		Code sdk.ErrorCode `json:"error_code"`
	}
	if json.Unmarshal(details, &d) != nil {
		return 0
	}
	switch d.Code {
	case sdk.ErrorCodeEnforcedSpendLimitReached, sdk.ErrorCodeContractSpendLimitReached,
		sdk.ErrorCodeLinkedOrganizationSpendLimitReached, sdk.ErrorCodeLinkedOrganizationBillingUnavailable,
		sdk.ErrorCodeUserProfileBillingNotAuthorized, sdk.ErrorCodeUserProfileNotBillable:
		return llm.Billing
	case sdk.ErrorCodeOrganizationOnHold, sdk.ErrorCodeUserProfileRequired,
		sdk.ErrorCodeUserProfileNotFound:
		return llm.Permission
	}
	return 0
}

// readLimits reads headers whose resets are points in time.
func readLimits(h http.Header, now time.Time) llm.Limits {
	read := func(name string) llm.Bucket {
		name = "anthropic-ratelimit-" + name
		b := wire.ParseBucket(h.Get(name+"-limit"), h.Get(name+"-remaining"))
		if at, err := time.Parse(time.RFC3339, h.Get(name+"-reset")); err == nil && b.Known {
			b.Reset = max(at.Sub(now), 0)
		}
		return b
	}
	return llm.Limits{
		Requests: read("requests"), Input: read("input-tokens"),
		Output: read("output-tokens"), Tokens: read("tokens"),
	}
}
