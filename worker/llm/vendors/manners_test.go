package vendors_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A refused is something that a server would not take, as users of several libraries met it.
type refused struct {
	name   string
	sent   string // what a request holds that is refused
	status int
	words  string // of the refusal
	tool   bool   // the job asks for answers by a tool
	vendor string // Defaults to openai
	calls  int    // that it takes to be answered. Defaults to 2
}

// Parts of requests.
const (
	streamOptions = `"stream_options"`
	streaming     = `"stream":true`
	bound         = `"max_tokens":500`
	anyBound      = `"max_tokens"`
	bySchema      = `"type":"json_schema"`
	anyFormat     = `"response_format"`
	anyTools      = `"tools":[`
	forced        = `"tool_choice":{`
	parallel      = `"parallel_tool_calls"`
	strictly      = `"strict"`
	systemRole    = `"role":"system"`
	minimum       = `"minimum"`
	cached        = `"cache_control"`
	outputConfig  = `"output_config"`
)

// refusedOnes are words of servers, shortened to what tells them apart.
var refusedOnes = []refused{
	// The name of the bound of an answer, and how long one may be.
	{name: "bound by its new name", sent: anyBound, status: 400, words: `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}`},
	{name: "bound, without a parameter", sent: anyBound, status: 400, words: `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"invalid_request_body"}}`},
	{name: "bound too large", sent: bound, status: 400, words: `{"error":{"message":"max_tokens is too large: 500. This model supports at most 400 completion tokens, whereas you provided 500.","param":"max_tokens"}}`},
	{name: "bound too large, in a field of its own", sent: bound, status: 400, words: `{"error":{"message":"Param Incorrect","type":"upstream_error","param":"max_tokens is too large: 500. This model supports at most 400 completion tokens","code":"400"}}`},
	{name: "bound too large, as a comparison", sent: bound, status: 400, words: `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 500 > 400, which is the maximum allowed number of output tokens"}}`, vendor: "anthropic"},
	{name: "bound out of a range", sent: bound, status: 400, words: `{"error":{"message":"<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 400]"}}`},
	{name: "bound, less or equal", sent: bound, status: 400, words: `{"error":{"message":"'max_tokens' must be less than or equal to '400', the maximum value for 'max_tokens' is less than the 'context_window' for this model","param":"max_tokens"}}`},

	// Usage of streams.
	{name: "extra_forbidden, nested", sent: streamOptions, status: 422, words: `{"error":{"code":"Invalid input","status":422,"message":"{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"stream_options\",\"include_usage\"],\"msg\":\"Extra inputs are not permitted\"}]}"}}`},
	{name: "extra_forbidden, as a message", sent: streamOptions, status: 422, words: `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options","include_usage"],"msg":"Extra inputs are not permitted","input":true}]},"type":"invalid_request_error","param":null}`},
	{name: "extra_forbidden, of Python", sent: streamOptions, status: 400, words: `{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted', 'input': {}}]","type":"BadRequestError","code":400}`},
	{name: "validation at a pointer", sent: streamOptions, status: 400, words: `{"error":{"requestid":"1","code":400,"message":"Validation error at #/stream_options: Extra inputs are not permitted"}}`},
	{name: "extra parameters", sent: streamOptions, status: 400, words: `{"detail":"Extra parameters ['stream_options'] are not allowed when extra-parameters is not set or set to be 'error'."}`},
	{name: "only with streams", sent: streamOptions, status: 400, words: `{"error":{"message":"The 'stream_options' parameter is only allowed when 'stream' is enabled."}}`},
	{name: "unknown parameter", sent: streamOptions, status: 400, words: `{"error":{"message":"Unknown parameter: 'stream_options'.","param":"stream_options"}}`},

	// Streams.
	{name: "streams forbidden", sent: streaming, status: 403, words: `{"message":"Streaming requests are not yet allowed."}`},
	{name: "streams for verified users", sent: streaming, status: 400, words: `{"error":{"message":"Your organization must be verified to stream this model.","param":"stream","code":"unsupported_value"}}`},
	{name: "streams, wrapped", sent: streaming, status: 400, words: `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"Your organization must be verified to stream this model.\",\"param\":\"stream\"}}"}}}`},
	{name: "streams, a value", sent: streaming, status: 400, words: `{"error":{"message":"Unsupported value: 'stream' does not support true with this model. Only the default (false) value is supported.","param":"stream"}}`},

	// Several calls of tools at once.
	{name: "parallel calls", sent: parallel, status: 400, tool: true, words: `{"error":{"message":"Unsupported parameter: 'parallel_tool_calls' is not supported with this model.","param":"parallel_tool_calls"}}`},
	{name: "parallel calls, only with tools", sent: parallel, status: 400, tool: true, words: `{"error":{"message":"Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified."}}`},
	{name: "parallel calls, of a backend", sent: parallel, status: 400, tool: true, words: `Validation error at body: Value error, parallel_tool_calls=False is not supported on this backend.`},
	{name: "parallel calls, in a list", sent: parallel, status: 400, tool: true, words: `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"parallel_tool_calls\": Cannot find field.","status":"INVALID_ARGUMENT"}}]`},
	{name: "parallel calls, of a proxy", sent: parallel, status: 502 - 2, tool: true, words: `{"error":"All variants failed: Unsupported parameter: 'parallel_tool_calls'"}`},

	// Instructions.
	{name: "role, a value", sent: systemRole, status: 400, words: `{"error":{"message":"Unsupported value: 'messages[0].role' does not support 'system' with this model.","param":"messages[0].role"}}`},
	{name: "role, in words", sent: systemRole, status: 400, words: `{"type":"error","error":{"message":"role 'system' is not supported on this model"}}`},
	{name: "role, of a template", sent: systemRole, status: 500, words: `{"error":{"code":500,"message":"Jinja Exception: System role not supported"}}`},
	{name: "role, not yet", sent: systemRole, status: 500, words: `ValueError: message role not supported yet: system`},
	{name: "role, of a list", sent: systemRole, status: 400, words: `{"errors":[{"loc":["body","messages",0,"role"],"msg":"Input should be 'user' or 'assistant'","type":"literal_error"}]}`},
	{name: "roles alternate", sent: systemRole, status: 500, words: `{"error":{"code":500,"message":"Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."}}`},
	{name: "system messages", sent: systemRole, status: 400, words: `{"error":{"message":"Developer instruction is not enabled for models/gemma-3"}}`},

	// Tools that are forced.
	{name: "choice, while it thinks", sent: forced, status: 400, tool: true, words: `{"error":{"message":"<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode"}}`},
	{name: "choice, incompatible", sent: forced, status: 400, tool: true, words: `{"error":{"message":"tool_choice specified is incompatible with thinking enabled"}}`},
	{name: "choice, of a mode", sent: forced, status: 400, tool: true, words: `{"error":{"message":"Thinking mode does not support this tool_choice"}}`},
	{name: "choice, of Anthropic", sent: forced, status: 400, tool: true, vendor: "anthropic", words: `{"type":"error","error":{"type":"invalid_request_error","message":"Thinking may not be enabled when tool_choice forces tool use."}}`},
	{name: "choice, not compatible", sent: forced, status: 400, tool: true, vendor: "anthropic", words: `{"type":"error","error":{"type":"invalid_request_error","message":"tool_choice forces tool use, which is not compatible with this model"}}`},
	{name: "choice, of few", sent: forced, status: 400, tool: true, words: `{"error":{"message":"tool_choice must either be 'auto' or 'none'"}}`},

	// Tools at all.
	{name: "no parser for tools", sent: anyTools, status: 400, tool: true, words: `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","code":400}`},
	{name: "no tools, of Ollama", sent: anyTools, status: 400, tool: true, words: `{"error":{"message":"registry.ollama.ai/library/gemma3:4b does not support tools","type":"api_error"}}`},
	{name: "no tools, of a router", sent: anyTools, status: 404, tool: true, words: `{"error":{"code":404,"message":"No endpoints found that support tool use."}}`},
	{name: "no tools, extra", sent: anyTools, status: 422, tool: true, words: `{"object":"Error","detail":[{"type":"extra_forbidden","loc":["body","tools"],"msg":"Extra inputs are not permitted"}]}`},
	{name: "tools, for no reason", sent: anyTools, status: 400, tool: true, words: `{"error":{"message":"invalid value for parameter 'tools'"}}`},
	{name: "schemas of tools", sent: anyTools, status: 400, tool: true, words: `{"error":{"message":"Invalid JSON payload received. Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters': Cannot find field."}}`},
	{name: "constants of tools", sent: anyTools, status: 400, tool: true, words: `{"error":{"message":"Invalid JSON payload received. Unknown name \"const\" at 'tools[0].function_declarations[5].parameters': Cannot find field."}}`},

	// What is strict.
	{name: "strict, not yet", sent: strictly, status: 400, tool: true, words: `"Invalid request content: ` + "`strict`" + ` mode on function call is currently not supported."`},
	{name: "strict, a value", sent: strictly, status: 400, tool: true, words: `{"error":{"message":"Invalid value: 'true'. The value 'true' isn't supported yet.","param":"tools[0].function.strict"}}`},
	{name: "strict, of a model", sent: strictly, status: 500, tool: true, words: `{"message":"Encountered a server error, please try again. strict=True is not supported for this model.","type":"server_error"}`},
	{name: "strict, unknown", sent: strictly, status: 400, tool: true, words: `{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"strict\" at 'request.tools[0].function_declarations[0]': Cannot find field."}}`},
	{name: "strict, extra", sent: strictly, status: 400, tool: true, vendor: "anthropic", words: `{"type":"error","error":{"type":"invalid_request_error","message":"tools.0.custom.strict: Extra inputs are not permitted"}}`},
	{name: "strict, too many", sent: strictly, status: 400, tool: true, words: `{"error":{"message":"Too many strict tools (73). The maximum number of strict tools supported is 20."}}`},
	{name: "strict, of a schema", sent: strictly, status: 400, words: `{"error":{"message":"Unknown name \"strict\" at 'response_format.json_schema': Cannot find field."}}`},

	// What schemas may hold.
	{name: "a keyword", sent: minimum, status: 400, words: `{"error":{"message":"Invalid schema for response_format 'receipt': In context=('properties', 'total'), 'minimum' is not permitted."}}`},
	{name: "bounds of numbers", sent: minimum, status: 400, words: `{"error":{"message":"output_config.format.schema: For 'number' type, properties maximum, minimum are not supported"}}`},
	{name: "a grammar", sent: minimum, status: 400, words: `{"error":{"code":400,"message":"Failed to initialize samplers: failed to parse grammar"}}`},
	{name: "schemas of functions", sent: minimum, status: 400, tool: true, words: `{"error":{"message":"Invalid schema for function 'answer': 'minimum' is not permitted.","param":"tools[0].function.parameters"}}`},
	{name: "a complex schema", sent: minimum, status: 400, words: `{"error":{"message":"The specified schema produces a constraint that has too many states for serving."}}`},

	// Answers by a schema.
	{name: "a version of a model", sent: bySchema, status: 400, words: `{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with model version gpt-4o.","param":"response_format"}}`},
	{name: "unavailable", sent: bySchema, status: 400, words: `{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error"}}`},
	{name: "of a model", sent: bySchema, status: 400, words: `{"error":{"message":"This model does not support response format ` + "`json_schema`" + `. See the list of models."}}`},
	{name: "an object is wanted", sent: bySchema, status: 400, words: `{"error":"'response_format.json_schema.schema' must be an object"}`},
	{name: "JSON mode", sent: anyFormat, status: 400, words: `{"error":{"message":"Json mode is not enabled for models/gemini-pro"}}`},
	{name: "moved elsewhere", sent: anyFormat, status: 400, words: `{"error":{"message":"Unsupported parameter: 'response_format'. In the Responses API, this parameter has moved to 'text.format'.","param":"response_format"}}`},
	{name: "of a proxy", sent: anyFormat, status: 400, words: `{"error":{"message":"together_ai does not support parameters: {'response_format': {'type': 'json_schema'}}, for model=m. To drop these, set drop_params"}}`},
	{name: "not at all", sent: anyFormat, status: 400, words: `{"error":{"message":"response_format is not supported","param":"response_format"}}`},
	{name: "extra input", sent: outputConfig, status: 400, vendor: "anthropic", words: `{"type":"error","error":{"type":"invalid_request_error","message":"The model returned the following errors: output_config.format: Extra inputs are not permitted"}}`},
	{name: "of an older model", sent: outputConfig, status: 400, vendor: "anthropic", words: `{"type":"error","error":{"type":"invalid_request_error","message":"'claude-3-haiku' does not support output format."}}`},
	{name: "a version of an interface", sent: bySchema, status: 400, words: `{"error":{"code":"BadRequest","message":"response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"}}`},

	// Marks for caches.
	{name: "marks, extra", sent: cached, status: 400, vendor: "anthropic", words: `{"type":"error","error":{"type":"invalid_request_error","message":"*.cache_control: Extra inputs are not permitted"}}`},
	{name: "marks of a system", sent: cached, status: 400, vendor: "anthropic", words: `{"type":"error","error":{"type":"invalid_request_error","message":"system.2.cache_control.ephemeral.scope: Extra inputs are not permitted"}}`},
	{name: "marks, of a field", sent: cached, status: 400, vendor: "anthropic", words: `{"error":{"object":"error","type":"invalid_request_error","message":"Error from provider: Extra inputs are not permitted, field: 'messages[0].cache_control'"}}`},

	// What is never sent.
	{name: "temperature", sent: `"temperature"`, status: 400, calls: 1},
	{name: "penalties", sent: `"frequency_penalty"`, status: 422, calls: 1},
	{name: "stop", sent: `"stop"`, status: 400, calls: 1},
	{name: "user", sent: `"user":`, status: 422, calls: 1},
	{name: "seed", sent: `"seed"`, status: 400, calls: 1},
	{name: "n", sent: `"n":`, status: 400, calls: 1},

	// No reason at all.
	{name: "bad request", sent: anyFormat, status: 400, words: `{"error":{"message":"Bad Request"}}`},
	{name: "unprocessable", sent: strictly, status: 422, words: `{"detail":"Unprocessable Entity"}`},
}

// What a server refuses is left out, once and for all that follows: each request is answered, with
// one call more than a server would have taken that told beforehand.
func TestWhatServersRefuseIsLearned(t *testing.T) {
	if len(refusedOnes) < 60 {
		t.Errorf("%d refusals, want at least 60", len(refusedOnes))
	}
	for _, r := range slices.Concat(refusedOnes, refusedByGoogle, refusedByBedrock) {
		t.Run(r.name, func(t *testing.T) {
			var told []string
			p, fake := start(t, orDefault(r.vendor, "openai"), fakellm.Config{
				Model: says(goodReceipt), Lax: true,
				Rebuff: func(c fakellm.Call) *fakellm.Rebuff {
					if !bytes.Contains(c.Body, []byte(r.sent)) {
						return nil
					}
					return &fakellm.Rebuff{Status: r.status, Body: r.words}
				},
			}, func(c *llm.Config) {
				c.ToolMode = r.tool
				c.Manners = manners.NewStore(func(line string) { told = append(told, line) })
			})
			req := ask(schema(t, receipt))
			req.Cache = llm.FiveMinutes
			want := max(r.calls, 1)
			if r.calls == 0 {
				want = 2
			}
			for round, calls := range []int{want, want + 1} {
				res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), req)
				if err != nil || string(res.Answer) != goodReceipt {
					t.Fatalf("round %d: got %v, %v; told %q", round, res, err, told)
				}
				if n := len(fake.Entries()); n != calls {
					t.Errorf("round %d: %d calls in all, want %d; told %q", round, n, calls, told)
				}
			}
			if len(told) != want-1 {
				t.Errorf("told %q, want %d lines", told, want-1)
			}
		})
	}
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// A server that takes neither schemas nor tools nor JSON is asked by the prompt alone, which then
// has the schema.
func TestFormsOfAnswersAreTriedInOrder(t *testing.T) {
	steps := []string{`"json_schema"`, anyTools, `"json_object"`}
	p, fake := start(t, "openai", fakellm.Config{
		Model: says("```json\n" + goodReceipt + "\n```"), Lax: true,
		Rebuff: func(c fakellm.Call) *fakellm.Rebuff {
			for _, s := range steps {
				if bytes.Contains(c.Body, []byte(s)) {
					return &fakellm.Rebuff{Status: 400, Body: fmt.Sprintf(`{"error":{"message":"%s is not supported: response_format, tools"}}`, strings.Trim(s, `":[`))}
				}
			}
			return nil
		},
	})
	res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), ask(schema(t, receipt)))
	if err != nil || string(res.Answer) != goodReceipt {
		t.Fatalf("got %v, %v", res, err)
	}
	all := fake.Entries()
	if last := all[len(all)-1]; len(all) != 4 || !strings.Contains(last.System, `"minLength":1`) {
		t.Errorf("%d calls, want 4, the last with the schema in its prompt: %s", len(all), last.Body)
	}
}

// A request that is wrong in itself is not made again, and neither is one for which the key is.
func TestOtherRefusalsStand(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		words  string
		kind   llm.Kind
	}{
		"a wrong key":    {401, `{"error":{"message":"Incorrect API key provided; response_format","code":"invalid_api_key"}}`, llm.Auth},
		"no money":       {429, `{"error":{"message":"tools, stream","code":"insufficient_quota"}}`, llm.Billing},
		"a long prompt":  {400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 8256 tokens (64 in the messages, 8192 in max_tokens).","code":"context_length_exceeded"}}`, llm.TooLarge},
		"another model":  {404, `{"error":{"message":"The model m-1 does not exist","code":"model_not_found"}}`, llm.NotFound},
		"a region":       {403, `{"error":{"message":"Country, region, or territory not supported","code":"unsupported_country_region_territory"}}`, llm.Permission},
		"a vendor's day": {500, `{"error":{"message":"Internal server error"}}`, llm.Server},
	} {
		p, fake := start(t, "openai", fakellm.Config{Rebuff: func(fakellm.Call) *fakellm.Rebuff { return &fakellm.Rebuff{Status: c.status, Body: c.words} }})
		_, err := p.Complete(t.Context(), ask(schema(t, receipt)))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != c.kind || len(fake.Entries()) != 1 {
			t.Errorf("%s: %v after %d calls, want %v after one", name, err, len(fake.Entries()), c.kind)
		}
	}
}

// Capacity that is short, and answers that are empty, are faults of the moment.
func TestFaultsOfTheMoment(t *testing.T) {
	for status, kind := range map[int]llm.Kind{http.StatusFailedDependency: llm.Overloaded, 498: llm.Overloaded, http.StatusOK: llm.Server} {
		body := `{"error":{"message":"capacity exceeded","type":"invalid_request_error","code":"capacity_exceeded"}}`
		if status == http.StatusOK {
			body = ""
		}
		p, _ := start(t, "openai", fakellm.Config{Rebuff: func(fakellm.Call) *fakellm.Rebuff { return &fakellm.Rebuff{Status: status, Body: body} }})
		_, err := p.Complete(t.Context(), ask(schema(t, receipt)))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != kind || e.Class != kind.Class() {
			t.Errorf("status %d: %v, want %v", status, err, kind)
		}
	}
}

// Answers are read in whatever style a server writes them.
func TestStylesOfServers(t *testing.T) {
	thinks := func(fakellm.Call) fakellm.Reply { return fakellm.Reply{Text: goodReceipt, Thinking: "thinking {"} }
	for name, c := range map[string]struct {
		style fakellm.Style
		model func(fakellm.Call) fakellm.Reply
	}{
		"whole":                      {style: fakellm.Style{Whole: true}},
		"without its end":            {style: fakellm.Style{NoDone: true}},
		"without a reason":           {style: fakellm.Style{NoFinish: true}},
		"without usage":              {style: fakellm.Style{NoUsage: true}},
		"whole and without usage":    {style: fakellm.Style{Whole: true, NoUsage: true}},
		"another word for the end":   {style: fakellm.Style{Finish: "eos"}},
		"no type":                    {style: fakellm.Style{Type: "text/plain"}},
		"a comment first":            {style: fakellm.Style{Comment: true}},
		"a comment, and no type":     {style: fakellm.Style{Comment: true, Type: "application/octet-stream"}},
		"a piece without text":       {style: fakellm.Style{NullContent: true}},
		"no choices beside usage":    {style: fakellm.Style{NullChoices: true}},
		"thinking apart":             {model: thinks},
		"thinking apart, and whole":  {model: thinks, style: fakellm.Style{Whole: true}},
		"thinking in the text":       {model: says("<think>The vendor is {maybe} …</think>\n" + goodReceipt)},
		"prose around a code block":  {model: says("Here is the JSON:\n```json\n" + goodReceipt + "\n```\nHope this helps!")},
		"a trailing comma":           {model: says(strings.TrimSuffix(goodReceipt, "}") + ",}")},
		"in a call that nobody made": {model: says(`{"name":"answer","arguments":` + goodReceipt + `}`)},
	} {
		t.Run(name, func(t *testing.T) {
			model := c.model
			if model == nil {
				model = says(goodReceipt)
			}
			p, fake := start(t, "openai", fakellm.Config{Model: model, Style: func(fakellm.Call) fakellm.Style { return c.style }})
			res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), ask(schema(t, receipt)))
			if err != nil || string(res.Answer) != goodReceipt || len(fake.Entries()) != 1 {
				t.Fatalf("got %v, %v after %d calls", res, err, len(fake.Entries()))
			}
			if res.Usage.Reported == c.style.NoUsage || res.Stop != llm.StopEnd {
				t.Errorf("usage %v, reported %v, stop %q", res.Usage, res.Usage.Reported, res.Stop)
			}
		})
	}
}

// Calls of tools in an answer that came whole are told apart as in a stream.
func TestToolsInAnswersThatCameWhole(t *testing.T) {
	tool := llm.Tool{Name: "look", Schema: schema(t, `{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}`)}
	reply := fakellm.Reply{Calls: []fakellm.Use{{Name: "look", Input: json.RawMessage(`{"at":"a"}`)}, {Name: "look", Input: json.RawMessage(`{'at': 'b',}`)}}}
	for _, whole := range []bool{false, true} {
		p, _ := start(t, "openai", fakellm.Config{
			Model: func(fakellm.Call) fakellm.Reply { return reply },
			Style: func(fakellm.Call) fakellm.Style { return fakellm.Style{Whole: whole} },
		})
		req := ask(nil)
		req.Tools = []llm.Tool{tool}
		res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), req)
		if err != nil || len(res.Calls()) != 2 || string(res.Calls()[0].Input) != `{"at":"a"}` || string(res.Calls()[1].Input) != `{"at":"b"}` {
			t.Errorf("whole %v: got %v, %v", whole, res, err)
		}
	}
}

// An answer of Anthropic's that came whole is read as the stream that was asked for: its parts, its
// end and its usage.
func TestWholeAnswersOfAnthropic(t *testing.T) {
	const message = `{"id":"msg_1","type":"message","role":"assistant","model":"m-1","stop_reason":"tool_use","stop_sequence":null,` +
		`"content":[{"type":"thinking","thinking":"so {","signature":"s"},{"type":"text","text":"Let me look."},{"type":"tool_use","id":"t1","name":"look","input":{"at":"a"}}],` +
		`"usage":{"input_tokens":7,"cache_read_input_tokens":5,"cache_creation_input_tokens":0,"output_tokens":3}}`
	p := offline(t, "anthropic", canned{"application/json", strings.NewReader(message)})
	req := ask(nil)
	req.Tools = []llm.Tool{{Name: "look", Schema: schema(t, `{"type":"object","properties":{"at":{"type":"string"}}}`)}}
	res, err := p.Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	calls := res.Calls()
	if res.Text() != "Let me look." || len(calls) != 1 || string(calls[0].Input) != `{"at":"a"}` || res.Parts[0].Opaque == nil {
		t.Errorf("got %+v", res.Parts)
	}
	if res.Stop != llm.StopTool || res.Usage.In() != 12 || res.Usage.Output != 3 || !res.Usage.Reported {
		t.Errorf("stop %q, usage %+v", res.Stop, res.Usage)
	}
}
