package oracle_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// responsesBy returns the vendor's service behind a transport.
func responsesBy(transport http.RoundTripper) sdk.ResponseService {
	return sdk.NewResponseService(
		option.WithBaseURL(base), option.WithAPIKey(key), option.WithHTTPClient(&http.Client{Transport: transport}), option.WithMaxRetries(0),
	)
}

// responsesParams puts a request into the words of the SDK.
func responsesParams(req *llm.Request, with manners.Manners) (sdk.ResponseNewParams, error) {
	params := sdk.ResponseNewParams{
		Model: shared.ResponsesModel(req.Model), MaxOutputTokens: param.NewOpt(wire.AnswerBound(req, with)), Store: param.NewOpt(false),
	}
	if len(req.Tools) > 0 && !with.NoSealed {
		params.Include = []sdk.ResponseIncludable{sdk.ResponseIncludableReasoningEncryptedContent}
	}
	messages, system := req.Messages, req.System+wire.TellForm(req, with)
	if with.NoSystem {
		messages = wire.WithInstructions(system, messages)
	} else if system != "" {
		params.Instructions = param.NewOpt(system)
	}
	for _, m := range messages {
		params.Input.OfInputItemList = append(params.Input.OfInputItemList, responsesItems(m)...)
	}
	set := wire.ParametersOf(req, with)
	params.Reasoning.Effort, params.Text.Verbosity = shared.ReasoningEffort(set.Effort), sdk.ResponseTextConfigVerbosity(set.Verbosity)
	if set.Temperature != nil {
		params.Temperature = param.NewOpt(*set.Temperature)
	}
	if set.TopP != nil {
		params.TopP = param.NewOpt(*set.TopP)
	}
	params.ServiceTier = map[string]sdk.ResponseNewParamsServiceTier{
		parameters.Flex: sdk.ResponseNewParamsServiceTierFlex, parameters.Standard: sdk.ResponseNewParamsServiceTierDefault, parameters.Priority: sdk.ResponseNewParamsServiceTierPriority,
	}[set.Tier]
	if name := wire.CacheKeyOf(req, with); name != "" {
		params.PromptCacheKey = param.NewOpt(name)
	}
	return params, addResponsesTools(req, with, &params)
}

// responsesItems returns a message as items of the input.
func responsesItems(m llm.Message) (items []sdk.ResponseInputItemUnionParam) {
	var list sdk.ResponseInputMessageContentListParam
	pictures, text := false, ""
	say := func() { // texts that follow each other are one
		if text != "" {
			list = append(list, sdk.ResponseInputContentParamOfInputText(text))
		}
		text = ""
	}
	flush := func() {
		if pictures {
			say()
			items = append(items, sdk.ResponseInputItemParamOfMessage(list, sdk.EasyInputMessageRole(m.Role)))
		} else if text != "" {
			items = append(items, sdk.ResponseInputItemParamOfMessage(text, sdk.EasyInputMessageRole(m.Role)))
		}
		list, pictures, text = nil, false, ""
	}
	for _, p := range m.Parts {
		switch {
		case p.Picture != nil:
			say()
			pictures = true
			list = append(list, sdk.ResponseInputContentUnionParam{OfInputImage: &sdk.ResponseInputImageParam{Detail: sdk.ResponseInputImageDetailHigh, ImageURL: param.NewOpt(p.Picture.URL())}})
		case p.Opaque != nil:
			flush()
			items = append(items, param.Override[sdk.ResponseInputItemUnionParam](p.Opaque))
		case p.Call != nil:
			flush()
			items = append(items, sdk.ResponseInputItemParamOfFunctionCall(string(p.Call.Input), p.Call.ID, p.Call.Name))
		case p.Result != nil:
			flush()
			result := sdk.ResponseInputItemParamOfFunctionCallOutput(p.Result.Text)
			result.OfFunctionCallOutput.CallID = param.NewOpt(p.Result.ID)
			items = append(items, result)
		default:
			text += p.Text
		}
	}
	flush()
	return slices.Clip(items)
}

// addResponsesTools adds tools and the answer's schema.
func addResponsesTools(req *llm.Request, with manners.Manners, params *sdk.ResponseNewParams) error {
	tools, force := req.Tools, req.Force
	switch {
	case req.Schema == nil:
	case with.Form == manners.ByTool:
		tools, force = wire.WithAnswer(req)
	case with.Form == manners.ByObject:
		params.Text.Format.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	case with.Form == manners.BySchema:
		schema, err := wire.SchemaMap(req.Schema, openaiDialect(with))
		if err != nil {
			return err
		}
		form := sdk.ResponseFormatTextJSONSchemaConfigParam{Name: req.Schema.Name(), Schema: schema}
		if !with.NoStrict {
			form.Strict = param.NewOpt(true)
		}
		params.Text.Format.OfJSONSchema = &form
	}
	for _, t := range tools {
		schema, strict, err := wire.ToolFields(t, openaiDialect(with))
		if err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
		f := sdk.FunctionToolParam{Name: t.Name, Parameters: schema, Strict: param.NewOpt(strict && !with.NoStrict)}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfFunction: &f})
	}
	if with.FreeTools {
		return nil
	}
	if req.NoCalls && force == "" && len(tools) > 0 {
		params.ToolChoice.OfToolChoiceMode = param.NewOpt(sdk.ToolChoiceOptionsNone)
	}
	if force != "" {
		params.ToolChoice.OfFunctionTool = &sdk.ToolChoiceFunctionParam{Name: force}
		if !with.NoParallel {
			params.ParallelToolCalls = param.NewOpt(false)
		}
	}
	return nil
}

func TestRequestsByResponses(t *testing.T) {
	opaque := []string{`{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"gAAAA=="}`}
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t, opaque)
		drawParameters(t, req, parameters.Names()...) // of which the interface has no seed, stop and thinking_budget
		with := drawManners(t, manners.BySchema, manners.ByTool, manners.ByObject, manners.ByPrompt)
		with.NoSealed = rapid.Bool().Draw(t, "not sealed")
		params, err := responsesParams(req, with)
		if err != nil {
			t.Fatal(err)
		}
		r := new(recorder)
		service := responsesBy(r)
		if with.NoStream {
			params.SetExtraFields(map[string]any{"stream": false})
			_, err = service.New(context.Background(), params)
		} else {
			err = service.NewStreaming(context.Background(), params).Err()
		}
		if err == nil {
			t.Fatal("the SDK sent nothing")
		}
		compare(t, sendOurs(t, "openai", base+"responses", req, with), r.last)
	})
}

// responseStops are the ends of answers in the vendor's words, and ours.
var responseStops = map[string]llm.Stop{"completed": llm.StopEnd, "max_output_tokens": llm.StopMax, "content_filter": llm.StopFilter}

// drawOutput returns an item of an answer.
func drawOutput(t *rapid.T, i int) object {
	id := fmt.Sprint("item_", i)
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return object{"id": id, "type": "reasoning", "summary": []any{}, "encrypted_content": "gAAAA=="}
	case 1:
		return object{
			"id": id, "type": "function_call", "status": "completed", "call_id": "call_" + names.Draw(t, "id"), "name": names.Draw(t, "name"),
			"arguments": encoded(t, object{"q": clean.Draw(t, "input")}),
		}
	}
	return object{"id": id, "type": "message", "role": "assistant", "status": "completed", "content": []any{
		object{"type": "output_text", "text": clean.Draw(t, "text"), "annotations": []any{}},
	}}
}

// drawResponse returns an answer that came whole.
func drawResponse(t *rapid.T) object {
	input := rapid.IntRange(0, 100_000).Draw(t, "input")
	output := []any{}
	for i := range rapid.IntRange(0, 4).Draw(t, "items") {
		output = append(output, drawOutput(t, i))
	}
	r := object{
		"id": "resp_1", "object": "response", "created_at": 1, "model": "m-1", "output": output, "error": nil, "status": "completed", "incomplete_details": nil,
		"usage": object{
			"input_tokens": input, "input_tokens_details": object{"cached_tokens": rapid.IntRange(0, input).Draw(t, "cached")},
			"output_tokens": rapid.IntRange(0, 100_000).Draw(t, "output"), "output_tokens_details": object{"reasoning_tokens": 3},
		},
	}
	if stop := rapid.SampledFrom([]string{"completed", "max_output_tokens", "content_filter"}).Draw(t, "stop"); stop != "completed" {
		r["status"], r["incomplete_details"] = "incomplete", object{"reason": stop}
	}
	return r
}

// heardByResponses returns what the vendor's SDK makes of an answer.
func heardByResponses(t *rapid.T, r *sdk.Response) heard {
	stop := string(r.Status)
	if r.IncompleteDetails.Reason != "" {
		stop = r.IncompleteDetails.Reason
	}
	h := heard{
		Model: r.Model, Text: r.OutputText(), Stop: responseStops[stop],
		In: r.Usage.InputTokens, CacheRead: r.Usage.InputTokensDetails.CachedTokens, Output: r.Usage.OutputTokens,
	}
	for _, item := range r.Output {
		if item.Type == "function_call" {
			call := item.AsFunctionCall()
			h.Calls = append(h.Calls, called{call.CallID, call.Name, decoded(t, []byte(call.Arguments))})
		}
	}
	if len(h.Calls) > 0 && h.Stop == llm.StopEnd {
		h.Stop = llm.StopTool
	}
	return h
}

func TestAnswersByResponses(t *testing.T) {
	params, err := responsesParams(&llm.Request{Model: "m", Messages: []llm.Message{llm.Say(llm.User, "x")}}, manners.Manners{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		whole := drawResponse(t)
		service := responsesBy(canned{"application/json", encoded(t, whole)})
		theirs, err := service.New(context.Background(), params)
		if err != nil {
			t.Fatal(err)
		}
		want := heardByResponses(t, theirs)
		compareHeard(t, hearOurs(t, "openai", base+"responses", canned{"application/json", encoded(t, whole)}), want)

		s := drawStream(t)
		s.add(t, "response.created", object{"type": "response.created", "response": object{"status": "in_progress", "output": []any{}}})
		for i, item := range whole["output"].([]any) {
			s.add(t, "response.output_item.added", object{"type": "response.output_item.added", "output_index": i, "item": item})
			s.add(t, "response.output_item.done", object{"type": "response.output_item.done", "output_index": i, "item": item})
		}
		end := "response." + whole["status"].(string)
		s.add(t, end, object{"type": end, "response": whole})
		compareHeard(t, hearOurs(t, "openai", base+"responses", canned{"text/event-stream", s.String()}), want)
	})
}
