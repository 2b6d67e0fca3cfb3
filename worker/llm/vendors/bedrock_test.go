package vendors_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// Parts of requests of Bedrock's format.
const (
	outputForm = `"outputConfig"`
	toolConfig = `"toolConfig"`
	toolChoice = `"toolChoice"`
	cachePoint = `"cachePoint"`
	systemPart = `"system":[`
	mostTokens = `"maxTokens":500`
)

// refusedByBedrock are words of Bedrock for what some of its models do not take, as users of several
// libraries met them.
var refusedByBedrock = []refused{
	{name: "schemas", vendor: "bedrock", sent: outputForm, status: 400, words: `{"message":"This model doesn't support the outputConfig field. Remove outputConfig and try again."}`},
	{name: "schemas, by their other name", vendor: "bedrock", sent: outputForm, status: 400, words: `{"message":"The model returned the following errors: Structured output is not supported for this model."}`},
	{name: "a keyword of schemas", vendor: "bedrock", sent: `format\":\"date`, status: 400, words: `{"message":"The model returned the following errors: output_config.format.schema: Invalid schema: For 'string' type, property 'format' is not supported"}`},
	{name: "a forced tool", vendor: "bedrock", tool: true, sent: toolChoice, status: 400, words: `{"message":"This model doesn't support the toolConfig.toolChoice.tool field. Remove toolConfig.toolChoice.tool and try again."}`},
	{name: "tools", vendor: "bedrock", tool: true, sent: toolConfig, status: 400, words: `{"message":"This model doesn't support tool use."}`},
	{name: "strict tools", vendor: "bedrock", tool: true, sent: strictly, status: 400, words: `{"message":"The model returned the following errors: tools.0.custom.strict: Extra inputs are not permitted"}`},
	{name: "instructions", vendor: "bedrock", sent: systemPart, status: 400, words: `{"message":"This model doesn't support system messages. Try again without a system message or use a model that supports system messages."}`},
	{name: "marks for the cache", vendor: "bedrock", sent: cachePoint, status: 403, words: `{"message":"You invoked an unsupported model or your request did not allow prompt caching. See the documentation for more information."}`},
	{name: "the length of an answer", vendor: "bedrock", sent: mostTokens, status: 400, words: `{"message":"The maximum tokens you requested exceeds the model limit of 400. Try again with a maximum tokens value that is lower than 400."}`},
}

// A model that calls tools only where its answer comes whole is asked so.
func TestToolsThatDoNotStream(t *testing.T) {
	p, fake := start(t, "bedrock", fakellm.Config{
		Model: says(goodReceipt),
		Rebuff: func(c fakellm.Call) *fakellm.Rebuff {
			if !c.Whole() && bytes.Contains(c.Body, []byte(toolConfig)) {
				return &fakellm.Rebuff{Status: 400, Body: `{"message":"This model doesn't support tool use in streaming mode."}`}
			}
			return nil
		},
	}, func(c *llm.Config) { c.ToolMode = true })
	res, err := p.Complete(t.Context(), ask(schema(t, receipt)))
	if err != nil || string(res.Answer) != goodReceipt || res.Stop != llm.StopTool || len(fake.Entries()) != 2 {
		t.Errorf("got %+v, %v after %d calls", res, err, len(fake.Entries()))
	}
}

// A stream of frames has sums over all of its bytes: whichever of them is changed, no other answer
// comes of it.
func TestDamagedFramesAreNoAnswer(t *testing.T) {
	whole := recorded(t, "bedrock")
	get := func(body []byte) (*llm.Response, error) {
		return offline(t, "bedrock", canned{media("bedrock"), bytes.NewReader(body)}).Complete(t.Context(), ask(nil))
	}
	want, err := get(whole)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x20
		got, err := get(damaged)
		if err == nil && !cmp.Equal(got, want) {
			t.Fatalf("with byte %d of %d changed, %+v is an answer", i, len(whole), got)
		}
	}
}

// What a model thought goes back as it came, and so do calls and results; speakers alternate, as the
// server wants, and nothing is blank.
func TestConversationsForBedrock(t *testing.T) {
	const answer = `application/json {"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"Hm {","signature":"c2ln"}}},` +
		`{"reasoningContent":{"redactedContent":"b3BhcXVl"}},{"text":"Let me look."},{"toolUse":{"toolUseId":"t1","name":"look_up","input":{"name":"a"}}}]}},` +
		`"stopReason":"tool_use","usage":{"inputTokens":3,"outputTokens":9,"cacheReadInputTokens":20,"cacheWriteInputTokens":30,"cacheDetails":[{"ttl":"1h","inputTokens":10},{"ttl":"5m","inputTokens":20}],"totalTokens":62}}`
	c := &caught{answer: answer}
	p := offline(t, "bedrock", c)
	req := ask(nil)
	req.Tools = []llm.Tool{{Name: "look_up", Schema: schema(t, `{"type":"object","properties":{"name":{"type":"string"}}}`)}}
	res, err := p.Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if want := (llm.Usage{Input: 3, CacheRead: 20, CacheWrite: 20, CacheWrite1h: 10, Output: 9, Reported: true}); res.Usage != want || res.Written != nil || res.Stop != llm.StopTool {
		t.Errorf("usage %+v, want %+v; %+v", res.Usage, want, res)
	}

	next := *req
	next.Messages = append(next.Messages,
		llm.Message{Role: llm.Assistant, Parts: append([]llm.Part{{Opaque: json.RawMessage(`{"thoughtSignature":"another vendor's"}`)}}, res.Parts...)},
		llm.Message{Role: llm.User, Parts: []llm.Part{{Result: &llm.ToolResult{ID: "t1", Name: "look_up", Error: true}}}},
		llm.Say(llm.User, "Go on."))
	if _, err := p.Complete(t.Context(), &next); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"Hm {","signature":"c2ln"}}},{"reasoningContent":{"redactedContent":"b3BhcXVl"}},{"text":"Let me look."},{"toolUse":{"toolUseId":"t1","name":"look_up","input":{"name":"a"}}}]}`,
		`{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":"(nothing)"}],"status":"error"}},{"text":"Go on."}]}`,
	} {
		if !strings.Contains(c.body, want) {
			t.Errorf("%s is missing in %s", want, c.body)
		}
	}
}
