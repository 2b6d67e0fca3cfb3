package oracle_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// anthropicBy returns the vendor's service behind a transport.
func anthropicBy(at string, transport http.RoundTripper) sdk.MessageService {
	return sdk.NewMessageService(
		option.WithBaseURL(at), option.WithAPIKey(key), option.WithHTTPClient(&http.Client{Transport: transport}),
		option.WithMaxRetries(0), option.WithoutOpenTelemetry(),
	)
}

// sendByAnthropic returns what the vendor's SDK sends.
func sendByAnthropic(t *rapid.T, at string, req *llm.Request, with manners.Manners) sent {
	params, err := anthropicParams(req, with)
	if err != nil {
		t.Fatal(err)
	}
	r := new(recorder)
	service := anthropicBy(at, r)
	if stream := service.NewStreaming(context.Background(), params); stream.Err() == nil {
		t.Fatal("the SDK sent nothing")
	}
	return r.last
}

// countByAnthropic returns how the vendor's SDK asks for the tokens of a request.
func countByAnthropic(t *rapid.T, at string, req *llm.Request) sent {
	full, err := anthropicParams(req, manners.Manners{})
	if err != nil {
		t.Fatal(err)
	}
	params := sdk.MessageCountTokensParams{
		Model: full.Model, Messages: full.Messages, ToolChoice: full.ToolChoice, OutputConfig: full.OutputConfig,
	}
	if full.System != nil {
		params.System.OfTextBlockArray = full.System
	}
	for _, tool := range full.Tools {
		params.Tools = append(params.Tools, sdk.MessageCountTokensToolUnionParam{OfTool: tool.OfTool})
	}
	r := new(recorder)
	service := anthropicBy(at, r)
	if _, err := service.CountTokens(context.Background(), params); err == nil {
		t.Fatal("the SDK sent nothing")
	}
	return r.last
}

// anthropicParams puts a request into the words of the SDK.
func anthropicParams(req *llm.Request, with manners.Manners) (sdk.MessageNewParams, error) {
	var params sdk.MessageNewParams
	if err := req.Check(); err != nil {
		return params, err
	}
	params.Model = sdk.Model(req.Model)
	params.MaxTokens = wire.AnswerBound(req, with)
	if with.NoCache {
		uncached := *req
		uncached.Cache, req = "", &uncached
	}
	if err := addAnthropicTools(req, with, &params); err != nil {
		return params, err
	}
	addAnthropicParameters(req, with, &params)
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

// addAnthropicParameters adds the parameters of the answer. The SDK has no temperature any more.
func addAnthropicParameters(req *llm.Request, with manners.Manners, params *sdk.MessageNewParams) {
	set := wire.ParametersOf(req, with)
	params.StopSequences = set.Stop
	params.ServiceTier = map[string]sdk.MessageNewParamsServiceTier{
		parameters.Standard: sdk.MessageNewParamsServiceTierStandardOnly, parameters.Priority: sdk.MessageNewParamsServiceTierAuto,
	}[set.Tier]
	if set.Effort != parameters.NoEffort {
		params.OutputConfig.Effort = sdk.OutputConfigEffort(set.Effort)
	}
	switch {
	case set.Thinking != nil && *set.Thinking > 0:
		params.Thinking = sdk.ThinkingConfigParamOfEnabled(*set.Thinking)
	case set.Thinking != nil, set.Effort == parameters.NoEffort:
		params.Thinking.OfDisabled = new(sdk.NewThinkingConfigDisabledParam())
	case set.Effort != "":
		params.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{}
	}
}

func messageParam(role llm.Role, blocks []sdk.ContentBlockParamUnion) sdk.MessageParam {
	if role == llm.Assistant {
		return sdk.NewAssistantMessage(blocks...)
	}
	return sdk.NewUserMessage(blocks...)
}

func addAnthropicTools(req *llm.Request, with manners.Manners, params *sdk.MessageNewParams) error {
	tools, force := req.Tools, req.Force
	switch {
	case req.Schema == nil:
	case with.Form == manners.ByTool:
		tools, force = wire.WithAnswer(req)
	case with.Form == manners.BySchema:
		schema, err := wire.SchemaMap(req.Schema, anthropicDialect(with))
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
	schema, strict, err := wire.ToolFields(t, anthropicDialect(with))
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
	case part.Picture != nil:
		block := sdk.NewImageBlockBase64(part.Picture.MediaType, base64.StdEncoding.EncodeToString(part.Picture.Data))
		block.OfImage.CacheControl = cacheControl(part.Cache)
		return block
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

// anthropicDialect returns the dialect of the vendor's schemas.
func anthropicDialect(with manners.Manners) llm.Dialect { return dialectOf("anthropic", with) }
