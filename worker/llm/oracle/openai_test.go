package oracle_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

const openaiURL = "https://api.openai.com/v1/"

// openaiBy returns the vendor's service behind a transport.
func openaiBy(at string, transport http.RoundTripper) sdk.ChatCompletionService {
	return sdk.NewChatCompletionService(
		option.WithBaseURL(cmp.Or(at, openaiURL)), option.WithAPIKey(key), option.WithHTTPClient(&http.Client{Transport: transport}),
		option.WithMaxRetries(0),
	)
}

// sendByOpenAI returns what the vendor's SDK sends. It cannot ask for an answer that comes whole by
// a field; only a call of another method does.
func sendByOpenAI(t *rapid.T, at string, req *llm.Request, with manners.Manners) sent {
	own := at == "" || strings.HasPrefix(at, "https://api.openai.com/")
	params, err := openaiParams(req, with, own)
	if err != nil {
		t.Fatal(err)
	}
	r := new(recorder)
	service := openaiBy(at, r)
	if with.NoStream {
		params.SetExtraFields(map[string]any{"stream": false})
		_, err = service.New(context.Background(), params)
	} else {
		err = service.NewStreaming(context.Background(), params).Err()
	}
	if err == nil {
		t.Fatal("the SDK sent nothing")
	}
	return r.last
}

// openaiParams puts a request into the words of the SDK.
func openaiParams(req *llm.Request, with manners.Manners, own bool) (sdk.ChatCompletionNewParams, error) {
	params := sdk.ChatCompletionNewParams{Model: shared.ChatModel(req.Model)}
	if err := req.Check(); err != nil {
		return params, err
	}
	// Other servers know the old name only; the vendor's newer models refuse it.
	if own != with.OtherBound {
		params.MaxCompletionTokens = param.NewOpt(wire.AnswerBound(req, with))
	} else {
		params.MaxTokens = param.NewOpt(wire.AnswerBound(req, with))
	}
	if !with.NoUsage && !with.NoStream {
		params.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	addOpenAIParameters(req, with, own, &params)
	messages := req.Messages
	system := req.System + wire.TellForm(req, with)
	if with.NoSystem {
		messages = wire.WithInstructions(system, messages)
	} else if system != "" {
		params.Messages = append(params.Messages, sdk.SystemMessage(system))
	}
	for _, m := range messages {
		params.Messages = append(params.Messages, openaiMessages(m)...)
	}
	return params, addOpenAITools(req, with, &params)
}

// addOpenAIParameters adds the parameters of the answer. The vendor alone is told what requests have in
// common.
func addOpenAIParameters(req *llm.Request, with manners.Manners, own bool, params *sdk.ChatCompletionNewParams) {
	set := wire.ParametersOf(req, with)
	params.ReasoningEffort, params.Verbosity = shared.ReasoningEffort(set.Effort), sdk.ChatCompletionNewParamsVerbosity(set.Verbosity)
	params.Stop.OfStringArray = set.Stop
	if set.Temperature != nil {
		params.Temperature = param.NewOpt(*set.Temperature)
	}
	params.ServiceTier = map[string]sdk.ChatCompletionNewParamsServiceTier{
		parameters.Flex: sdk.ChatCompletionNewParamsServiceTierFlex, parameters.Standard: sdk.ChatCompletionNewParamsServiceTierDefault, parameters.Priority: sdk.ChatCompletionNewParamsServiceTierPriority,
	}[set.Tier]
	if set.TopP != nil {
		params.TopP = param.NewOpt(*set.TopP)
	}
	if set.Seed != nil {
		params.Seed = param.NewOpt(*set.Seed)
	}
	if name := wire.CacheKeyOf(req, with); name != "" && own {
		params.PromptCacheKey = param.NewOpt(name)
	}
}

func addOpenAITools(req *llm.Request, with manners.Manners, params *sdk.ChatCompletionNewParams) error {
	tools, force := req.Tools, req.Force
	switch {
	case req.Schema == nil:
	case with.Form == manners.ByTool:
		tools, force = wire.WithAnswer(req)
	case with.Form == manners.ByObject:
		params.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	case with.Form == manners.BySchema:
		schema, err := wire.SchemaMap(req.Schema, openaiDialect(with))
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
		schema, strict, err := wire.ToolFields(t, openaiDialect(with))
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

func openaiMessages(m llm.Message) []sdk.ChatCompletionMessageParamUnion {
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
	switch shown := openaiContent(m.Parts); {
	case shown != nil:
		out = append(out, sdk.UserMessage(shown))
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

// openaiContent returns what a message with pictures holds; nil of one without.
func openaiContent(parts []llm.Part) (shown []sdk.ChatCompletionContentPartUnionParam) {
	pictures := false
	for _, p := range parts {
		switch {
		case p.Picture != nil:
			pictures = true
			shown = append(shown, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: p.Picture.URL(), Detail: "high"}))
		case p.Text != "":
			shown = append(shown, sdk.TextContentPart(p.Text))
		}
	}
	if !pictures {
		return nil
	}
	return shown
}

func thinkingOf(parts []llm.Part) map[string]any {
	for _, p := range parts {
		var fields map[string]any
		if p.Opaque != nil && json.Unmarshal(p.Opaque, &fields) == nil {
			return fields
		}
	}
	return nil
}

// openaiDialect returns the dialect of the vendor's schemas.
func openaiDialect(with manners.Manners) llm.Dialect { return dialectOf("openai", with) }
