package oracle_test

import (
	"encoding/json"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// schemas are of answers and of inputs of tools, as strict dialects can say them or not.
var schemas = []string{
	`{"type":"object","properties":{"filter":{"type":"object","additionalProperties":{"type":"string"}}}}`,
	`{"type":"object","required":["total"],"properties":{"total":{"type":"number","minimum":0},"zone":{"type":["string","null"]}}}`,
	`{"type":"object","required":["b","a"],"properties":{"b":{"type":"array","minItems":1,"items":{"enum":["x","<y>"]}},"a":{"anyOf":[{"type":"integer"},{"type":"string","format":"date"}],"description":"a & b"}}}`,
	`{"type":"object","properties":{}}`,
	`{"type":"object","properties":{"list":{"type":"array","maxItems":3,"items":{"type":"object","required":["n"],"properties":{"n":{"type":"string","pattern":"^[a-z]+$"}}}}}}`,
}

// texts hold what encoders treat in ways of their own.
var texts = rapid.OneOf(
	rapid.SampledFrom([]string{"GARDENIA BAKERIES\nTOTAL 60.30", "<a href=\"x\">&amp;</a>", "\u2028\u2029", "\x00\x1f\x7f", "金額 🧾", `{"stream":true}`, "\\", "\xff\xfe broken"}),
	rapid.StringN(1, 40, 120),
)

var names = rapid.StringMatching(`[a-zA-Z0-9_-]{1,20}`)

// loose is the index of the schema that no strict dialect can say: it is of tools alone.
const loose = 0

func drawSchema(t *rapid.T, from []string) *llm.Schema {
	s, err := llm.NewSchema("receipt", []byte(rapid.SampledFrom(from).Draw(t, "schema")))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func drawTools(t *rapid.T) []llm.Tool {
	var out []llm.Tool
	for _, name := range rapid.SliceOfNDistinct(names, 0, 3, rapid.ID).Draw(t, "tools") {
		tool := llm.Tool{Name: name, Schema: drawSchema(t, schemas)}
		if rapid.Bool().Draw(t, "described") {
			tool.Description = texts.Draw(t, "description")
		}
		out = append(out, tool)
	}
	return out
}

func drawTTL(t *rapid.T) llm.TTL {
	return rapid.SampledFrom([]llm.TTL{"", "", llm.FiveMinutes, llm.OneHour}).Draw(t, "cache")
}

// drawRequest returns a request that vendors take. Parts of the model's that are not our own are
// drawn from opaque.
func drawRequest(t *rapid.T, opaque []string) *llm.Request {
	req := &llm.Request{
		Model: llm.Model(rapid.StringMatching(`[a-z0-9./:-]{1,30}`).Draw(t, "model")),
		Tools: drawTools(t), Cache: drawTTL(t),
		MaxTokens: rapid.SampledFrom([]int64{0, 1, 500, 200_000}).Draw(t, "bound"),
	}
	if rapid.Bool().Draw(t, "instructed") {
		req.System = texts.Draw(t, "instructions")
	}
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 1:
		req.Schema = drawSchema(t, schemas[loose+1:])
	case 2:
		if len(req.Tools) > 0 {
			req.Force = req.Tools[len(req.Tools)-1].Name
		}
	}
	req.NoCalls = req.Force == "" && rapid.Bool().Draw(t, "no calls")

	for turn := range rapid.IntRange(0, 2).Draw(t, "turns before") {
		req.Messages = append(req.Messages, llm.Message{Role: llm.User, Parts: drawTexts(t)})
		req.Messages = append(req.Messages, drawTurn(t, turn, opaque)...)
	}
	req.Messages = append(req.Messages, llm.Message{Role: llm.User, Parts: drawTexts(t)})
	return req
}

func drawTexts(t *rapid.T) []llm.Part {
	var parts []llm.Part
	for _, text := range rapid.SliceOfN(texts, 1, 3).Draw(t, "texts") {
		parts = append(parts, llm.Part{Text: text, Cache: drawTTL(t)})
		if rapid.IntRange(0, 3).Draw(t, "shown") == 0 {
			data := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "picture")
			parts = append(parts, llm.Part{Cache: drawTTL(t), Picture: llm.NewPicture(rapid.SampledFrom([]string{"image/jpeg", "image/png"}).Draw(t, "type"), 3, 4, 50, data)})
		}
	}
	return parts
}

// drawTurn returns a turn of the model, with the results of what it called.
func drawTurn(t *rapid.T, turn int, opaque []string) []llm.Message {
	said := llm.Message{Role: llm.Assistant}
	if len(opaque) > 0 && rapid.Bool().Draw(t, "thought") {
		said.Parts = append(said.Parts, llm.Part{Opaque: json.RawMessage(rapid.SampledFrom(opaque).Draw(t, "opaque"))})
	}
	if rapid.Bool().Draw(t, "spoke") {
		said.Parts = append(said.Parts, llm.Part{Text: texts.Draw(t, "said")})
	}

	results := llm.Message{Role: llm.User}
	for i := range rapid.IntRange(0, 2).Draw(t, "calls") {
		input, err := json.Marshal(map[string]string{"name": texts.Draw(t, "input")})
		if err != nil {
			t.Fatal(err)
		}
		call := llm.ToolCall{ID: fmt.Sprintf("toolu_%d_%d", turn, i), Name: names.Draw(t, "called"), Input: input}
		said.Parts = append(said.Parts, llm.Part{Call: &call})
		results.Parts = append(results.Parts, llm.Part{Cache: drawTTL(t), Result: &llm.ToolResult{
			ID: call.ID, Name: call.Name, Text: texts.Draw(t, "result"), Error: rapid.Bool().Draw(t, "failed"),
		}})
	}
	if len(results.Parts) == 0 {
		return []llm.Message{said}
	}
	return []llm.Message{said, results}
}

// drawParameters gives a request parameters of answers, of those with some names, and what it has in
// common with others.
func drawParameters(t *rapid.T, req *llm.Request, names ...parameters.Name) {
	values := map[parameters.Name][]string{
		parameters.Effort: parameters.Efforts(), parameters.Thinking: {"0", "1024", "20000"}, parameters.Verbosity: {"low", "medium", "high"}, parameters.Temperature: {"0", "0.7", "2"},
		parameters.TopP: {"0.01", "1"}, parameters.Seed: {"0", "2147483647"}, parameters.Stop: {"END", `["<a>","\n"]`}, parameters.Tier: parameters.Tiers(),
	}
	for _, name := range names {
		if !rapid.Bool().Draw(t, string(name)) {
			continue
		}
		if err := req.Parameters.Put(name, rapid.SampledFrom(values[name]).Draw(t, "value")); err != nil {
			t.Fatal(err)
		}
	}
	req.CacheKey = rapid.SampledFrom([]string{"", "of-a-job"}).Draw(t, "key of the cache")
}

// drawManners returns what may have been learned of a server, among some forms of answers.
func drawManners(t *rapid.T, forms ...manners.Form) manners.Manners {
	refused := func(what string) bool { return rapid.IntRange(0, 3).Draw(t, what) == 0 }
	return manners.Manners{
		Form:  rapid.SampledFrom(slices.Clone(forms)).Draw(t, "form"),
		Plain: refused("keywords"), NoStrict: refused("strict"), FreeTools: refused("forced tools"), NoParallel: refused("parallel"),
		NoUsage: refused("usage"), NoStream: refused("stream"), OtherBound: refused("bound's name"),
		Most: rapid.SampledFrom([]int64{0, 0, 400}).Draw(t, "longest answer"), NoSystem: refused("system"), NoCache: refused("marks"),
		Omit: manners.Parameters(rapid.SampledFrom([]uint16{0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 255}).Draw(t, "parameters")),
	}
}
