package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
)

// answerTool is the tool that the model must call to give its answer.
const answerTool = "answer"

// anthropicProvider speaks version 2026-10-21 of the Messages API by the vendor's
// SDK, which is given nothing of the environment, does not retry and does not
// trace.
type anthropicProvider struct {
	*dialer
	messages anthropic.MessageService
}

func newAnthropic(cfg Config) (Provider, error) {
	if cfg.Key.IsZero() {
		return nil, newError(Auth, "there is no key for anthropic: set ANTHROPIC_API_KEY")
	}
	d, err := newDialer(cfg, "https://api.anthropic.com/")
	if err != nil {
		return nil, err
	}
	d.stream, d.limits, d.judge = "text/event-stream", anthropicLimits, judgeAnthropic
	p := &anthropicProvider{dialer: d}
	p.messages = anthropic.NewMessageService(
		option.WithBaseURL(d.base.String()), option.WithAPIKey(cfg.Key.secret),
		option.WithHTTPClient(d.client), option.WithMaxRetries(0),
		option.WithoutOpenTelemetry(), // calls are traced by us, and vendors are sent no trace
	)
	return p, nil
}

// Name implements Provider.
func (*anthropicProvider) Name() string { return "anthropic" }

// Can implements Provider.
func (*anthropicProvider) Can() Capabilities {
	return Capabilities{Dialect: anthropicDialect(), ForceTool: true, Cache: true}
}

// Complete implements Provider.
func (p *anthropicProvider) Complete(ctx context.Context, req *Request) (*Response, error) {
	params, err := p.buildParams(req)
	if err != nil {
		return nil, err
	}
	c := p.beginCall(ctx, req)
	defer c.endCall()
	stream := p.messages.NewStreaming(c.ctx, params, option.WithMiddleware(c.doRequest))
	if stream.Err() != nil {
		return nil, c.failError(stream.Err())
	}
	defer stream.Close()
	var t turn
	for stream.Next() {
		if err := t.takeEvent(stream.Current()); err != nil {
			return nil, t.noteWaste(c.failError(err))
		}
	}
	if raw, ok := sentError(stream.Err()); ok {
		return nil, t.noteWaste(c.midstreamError(raw))
	}
	if !t.stopped {
		return nil, t.noteWaste(c.cutError(stream.Err()))
	}
	return t.toResponse(c, req.Schema != nil && p.cfg.ToolMode)
}

// sentError returns the error that the server sent, if that is what err is.
func sentError(err error) ([]byte, bool) {
	if e, ok := errors.AsType[*anthropic.Error](err); ok {
		return []byte(e.RawJSON()), true
	}
	return nil, false
}

// Count implements Counter.
func (p *anthropicProvider) Count(ctx context.Context, req *Request) (int64, error) {
	full, err := p.buildParams(req)
	if err != nil {
		return 0, err
	}
	params := anthropic.MessageCountTokensParams{
		Model: full.Model, Messages: full.Messages, ToolChoice: full.ToolChoice, OutputConfig: full.OutputConfig,
	}
	if full.System != nil {
		params.System.OfTextBlockArray = full.System
	}
	for _, t := range full.Tools {
		params.Tools = append(params.Tools, anthropic.MessageCountTokensToolUnionParam{OfTool: t.OfTool})
	}
	c := p.beginCall(ctx, req)
	defer c.endCall()
	n, err := p.messages.CountTokens(c.ctx, params, option.WithMiddleware(c.doRequest))
	if err != nil {
		return 0, c.failError(err)
	}
	return n.InputTokens, nil
}

// buildParams puts a request into the vendor's words: tools, then instructions, then
// messages, which is the order in which it caches.
func (p *anthropicProvider) buildParams(req *Request) (anthropic.MessageNewParams, error) {
	var params anthropic.MessageNewParams
	if err := req.checkRequest(); err != nil {
		return params, err
	}
	params.Model = anthropic.Model(req.Model)
	params.MaxTokens = req.maxTokens()
	if err := p.addTools(req, &params); err != nil {
		return params, err
	}
	if req.System != "" {
		params.System = []anthropic.TextBlockParam{{Text: req.System, CacheControl: cacheControl(req.Cache)}}
	}
	for _, m := range req.Messages {
		blocks := make([]anthropic.ContentBlockParamUnion, 0, len(m.Parts))
		for _, part := range m.Parts {
			blocks = append(blocks, anthropicBlock(part))
		}
		params.Messages = append(params.Messages, anthropicMessage(m.Role, blocks))
	}
	return params, nil
}

func anthropicMessage(role Role, blocks []anthropic.ContentBlockParamUnion) anthropic.MessageParam {
	if role == Assistant {
		return anthropic.NewAssistantMessage(blocks...)
	}
	return anthropic.NewUserMessage(blocks...)
}

// addTools adds tools and the answer's schema.
func (p *anthropicProvider) addTools(req *Request, params *anthropic.MessageNewParams) error {
	tools, force := req.Tools, req.Force
	if req.Schema != nil && p.cfg.ToolMode {
		tools, force = withAnswer(req)
	} else if req.Schema != nil {
		schema, err := schemaMap(req.Schema, anthropicDialect())
		if err != nil {
			return err
		}
		params.OutputConfig.Format.Schema = schema
	}
	for i, t := range tools {
		tool, err := anthropicTool(t)
		if err != nil {
			return err
		}
		if i == len(tools)-1 && req.System == "" {
			tool.CacheControl = cacheControl(req.Cache)
		}
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: tool})
	}
	if force != "" {
		params.ToolChoice.OfTool = &anthropic.ToolChoiceToolParam{Name: force, DisableParallelToolUse: param.NewOpt(true)}
	}
	return nil
}

func anthropicTool(t Tool) (*anthropic.ToolParam, error) {
	schema, strict, err := toolFields(t, anthropicDialect())
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	delete(schema, "type")
	tool := &anthropic.ToolParam{Name: t.Name, Strict: param.NewOpt(strict)}
	tool.InputSchema.ExtraFields = schema
	if t.Description != "" {
		tool.Description = param.NewOpt(t.Description)
	}
	return tool, nil
}

func cacheControl(ttl TTL) anthropic.CacheControlEphemeralParam {
	if ttl == "" {
		return anthropic.CacheControlEphemeralParam{}
	}
	control := anthropic.NewCacheControlEphemeralParam()
	control.TTL = anthropic.CacheControlEphemeralTTL(ttl)
	return control
}

func anthropicBlock(part Part) anthropic.ContentBlockParamUnion {
	switch {
	case part.Opaque != nil:
		return param.Override[anthropic.ContentBlockParamUnion](part.Opaque)
	case part.Call != nil:
		return anthropic.NewToolUseBlock(part.Call.ID, part.Call.Input, part.Call.Name)
	case part.Result != nil:
		return anthropic.NewToolResultBlock(part.Result.ID, part.Result.Text, part.Result.Error)
	default:
		text := anthropic.TextBlockParam{Text: part.Text, CacheControl: cacheControl(part.Cache)}
		return anthropic.ContentBlockParamUnion{OfText: &text}
	}
}

// A turn is put together from the events of a stream.
type turn struct {
	model   string
	blocks  []block
	stop    anthropic.StopReason
	reason  string
	usage   Usage
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
func (t *turn) takeEvent(e anthropic.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		t.model = string(e.Message.Model)
		t.usage = anthropicUsage(e.Message.Usage)
	case "content_block_start":
		if e.Index != int64(len(t.blocks)) {
			return newError(Garbled, "block %d follows %d others", e.Index, len(t.blocks))
		}
		b := block{kind: e.ContentBlock.Type, first: json.RawMessage(e.ContentBlock.RawJSON())}
		b.name, b.id = e.ContentBlock.Name, e.ContentBlock.ID
		t.blocks = append(t.blocks, b)
		t.blocks[e.Index].text.WriteString(e.ContentBlock.Text)
	case "content_block_delta":
		if e.Index < 0 || e.Index >= int64(len(t.blocks)) {
			return newError(Garbled, "a piece of block %d, which never began", e.Index)
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

// setUsage sets the usage so far. It is cumulative; numbers that u leaves out stay.
func (t *turn) setUsage(u anthropic.MessageDeltaUsage) {
	t.usage.Output = u.OutputTokens
	if u.JSON.InputTokens.Valid() {
		t.usage.Input = u.InputTokens
	}
	if u.JSON.CacheReadInputTokens.Valid() {
		t.usage.CacheRead = u.CacheReadInputTokens
	}
	if u.JSON.CacheCreationInputTokens.Valid() {
		t.usage.CacheWrite = u.CacheCreationInputTokens - t.usage.CacheWrite1h
	}
	t.usage.Reported = true
	t.usage = t.usage.nonNegative()
}

func anthropicUsage(u anthropic.Usage) Usage {
	hour := u.CacheCreation.Ephemeral1hInputTokens
	return Usage{
		Input: u.InputTokens, CacheWrite: u.CacheCreationInputTokens - hour, CacheWrite1h: hour,
		CacheRead: u.CacheReadInputTokens, Output: u.OutputTokens,
	}.nonNegative()
}

// add takes a piece.
func (b *block) add(d anthropic.MessageStreamEventUnionDelta) {
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
func (b *block) finishedPart() (Part, error) {
	switch b.kind {
	case "text":
		return Part{Text: b.text.String()}, nil
	case "tool_use":
		input := json.RawMessage(b.text.String())
		if len(input) == 0 {
			input = json.RawMessage("{}")
		}
		if !json.Valid(input) {
			return Part{}, newError(Garbled, "the input for tool %s is no JSON", b.name)
		}
		return Part{Call: &ToolCall{ID: b.id, Name: b.name, Input: input}}, nil
	case "thinking":
		raw, err := json.Marshal(map[string]string{"type": b.kind, "thinking": b.text.String(), "signature": b.sign.String()})
		return Part{Opaque: raw}, err
	case "server_tool_use":
		return Part{Opaque: withInput(b.first, b.text.String())}, nil
	default:
		return Part{Opaque: b.first}, nil
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
func (t *turn) noteWaste(e *Error) *Error {
	e.Usage = t.usage
	return e
}

// toResponse is the finished turn. Input of a tool that was cut off by the bound
// of the answer is dropped: Stop says so.
func (t *turn) toResponse(c *call, tool bool) (*Response, error) {
	r := &Response{
		Model: Model(t.model), RequestID: c.requestID(), Stop: anthropicStop(t.stop),
		Reason: c.d.cleanText(t.reason), Usage: t.usage, Limits: c.parseLimits(),
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
			return nil, t.noteWaste(c.failError(err))
		}
		if t.blocks[i].kind == "text" && part.Text == "" {
			continue // handed back, it would be refused
		}
		r.Parts = append(r.Parts, part)
	}
	r.Answer = answerOf(r, tool)
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

// anthropicStop translates the vendor's word.
func anthropicStop(s anthropic.StopReason) Stop {
	switch s {
	case anthropic.StopReasonEndTurn:
		return StopEnd
	case anthropic.StopReasonStopSequence:
		return StopSequence
	case anthropic.StopReasonToolUse:
		return StopTool
	case anthropic.StopReasonMaxTokens:
		return StopMax
	case anthropic.StopReasonModelContextWindowExceeded:
		return StopWindow
	case anthropic.StopReasonPauseTurn:
		return StopPause
	case anthropic.StopReasonRefusal:
		return StopRefusal
	default:
		return Stop("anthropic:" + string(s))
	}
}

// judgeAnthropic reads {"type":"error","error":{"type","message","details"}}. An
// account without money is also told of by an invalid request, in words, and by a
// rate limit, in details.error_code.
func judgeAnthropic(status int, raw []byte) (Kind, string) {
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
	if kind := judgeAnthropicCode(body.Error.Details); kind != 0 {
		return kind, message
	}
	switch body.Error.Type {
	case "authentication_error":
		return Auth, message
	case "permission_error":
		return Permission, message
	case "billing_error":
		return Billing, message
	case "not_found_error":
		return NotFound, message
	case "request_too_large":
		return TooLarge, message
	case "rate_limit_error":
		return RateLimited, message
	case "timeout_error":
		return Timeout, message
	case "overloaded_error":
		return Overloaded, message
	case "api_error":
		return Server, message
	case "invalid_request_error":
		return judgeInvalid(message), message
	}
	if status < 300 {
		return Server, message
	}
	return byStatus(status), message
}

// judgeAnthropicCode reads {"error_code"}, and returns 0 for a code that says no
// more than the type of its error. A spend limit comes as a rate limit, but it
// does not pass while a job waits.
func judgeAnthropicCode(details []byte) Kind {
	var d struct {
		Code anthropic.ErrorCode `json:"error_code"`
	}
	if json.Unmarshal(details, &d) != nil {
		return 0
	}
	switch d.Code {
	case anthropic.ErrorCodeEnforcedSpendLimitReached, anthropic.ErrorCodeContractSpendLimitReached,
		anthropic.ErrorCodeLinkedOrganizationSpendLimitReached, anthropic.ErrorCodeLinkedOrganizationBillingUnavailable,
		anthropic.ErrorCodeUserProfileBillingNotAuthorized, anthropic.ErrorCodeUserProfileNotBillable:
		return Billing
	case anthropic.ErrorCodeOrganizationOnHold, anthropic.ErrorCodeUserProfileRequired,
		anthropic.ErrorCodeUserProfileNotFound:
		return Permission
	}
	return 0
}

// judgeInvalid tells apart what vendors call an invalid request.
func judgeInvalid(message string) Kind {
	low := strings.ToLower(message)
	switch {
	case strings.Contains(low, "credit balance"), strings.Contains(low, "billing"):
		return Billing
	case strings.Contains(low, "prompt is too long"), strings.Contains(low, "context length"),
		strings.Contains(low, "context window"), strings.Contains(low, "exceed context limit"):
		return TooLarge
	}
	return Invalid
}
