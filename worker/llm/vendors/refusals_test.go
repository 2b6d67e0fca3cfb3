package vendors_test

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A refusal is what a server said to a request that held something it does not take. The words are
// the server's, shortened to what tells them apart; a public issue quotes them.
type refusal struct {
	from   string   // the issue: OWNER/NAME#NUMBER
	like   bool     // the issue is of another field than sent, which no request here has
	server string   // whose words they are
	vendor string   // the provider that asks. Defaults to openai
	model  string   // Defaults to m-1
	given  []string // parameters of the answer, by their names and values
	tool   bool     // the job asks for answers by a tool
	agent  bool     // the model may call a tool besides
	seals  bool     // the request is made by Responses
	sent   string   // a part of the request that is refused
	status int      // Defaults to 400
	words  string
	told   string // the end of the line that is announced
	then   string // a part of the request that is answered. Defaults to any
	calls  int    // before the answer, with it. Defaults to 2: one more than if the server had told beforehand
}

// allRefusals are the refusals that were found, by what is refused.
func allRefusals() []refusal {
	return slices.Concat(refusedBounds, refusedForms, refusedTools, refusedLevels, refusedChoices, refusedRest, refusedAfresh)
}

// fromIssue is how a refusal says where it was found.
var fromIssue = regexp.MustCompile(`^[\w.-]+/[\w.-]+#\d+$`)

// What public issues quote as refusals costs a job one call, once for an address and a model: the
// answer comes by the second call, later answers by one each, and one line says what was learned.
func TestRefusalsThatUsersMet(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range allRefusals() {
		if !fromIssue.MatchString(r.from) {
			t.Errorf("%q names no issue", r.from)
		}
		if seen[r.server+r.words] {
			t.Errorf("%s: the words are there twice: %s", r.from, r.words)
		}
		seen[r.server+r.words] = true
		t.Run(r.from+" "+r.server+" "+r.sent, func(t *testing.T) { testRefusal(t, r) })
	}
	if len(seen) < 70 {
		t.Errorf("%d refusals, want at least 70", len(seen))
	}
}

// testRefusal asks a server twice that refuses something.
func testRefusal(t *testing.T, r refusal) {
	var told []string
	script := fakellm.Config{Model: says(goodReceipt), Lax: true, Rebuff: func(c fakellm.Call) *fakellm.Rebuff {
		if !bytes.Contains(c.Body, []byte(r.sent)) {
			return nil
		}
		return &fakellm.Rebuff{Status: cmp.Or(r.status, 400), Body: r.words}
	}}
	if r.agent {
		script.Model = answerWithTools
	}
	p, fake := start(t, orDefault(r.vendor, "openai"), script, func(c *llm.Config) {
		c.ToolMode = r.tool
		c.Manners = manners.NewStore(func(line string) { told = append(told, line) })
		if r.seals {
			byResponses(c)
		}
	})
	req := askFor(t, r)

	want := max(r.calls, 2)
	for round, calls := range []int{want, want + 1} {
		res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), req)
		if err != nil || string(res.Answer) != goodReceipt {
			t.Fatalf("round %d: got %v, %v; told %q", round, res, err, told)
		}
		all := fake.Entries()
		if last := string(all[len(all)-1].Body); len(all) != calls || !strings.Contains(last, r.then) {
			t.Errorf("round %d: %d calls in all, want %d, the last with %s: %s", round, len(all), calls, r.then, last)
		}
	}
	if len(told) != want-1 || !strings.HasSuffix(told[len(told)-1], ": "+r.told) {
		t.Errorf("told %q, want %d lines, the last with %q", told, want-1, r.told)
	}
}

// askFor returns a request that holds what is refused.
func askFor(t *testing.T, r refusal) *llm.Request {
	t.Helper()
	req := ask(schema(t, receipt))
	req.Cache, req.CacheKey = llm.FiveMinutes, "of-a-job"
	req.Model = llm.Model(orDefault(r.model, "m-1"))
	req.Parameters = set(t, r.given...)
	if r.agent {
		req.Tools = []llm.Tool{{Name: "look_up", Schema: schema(t, `{"type":"object","properties":{"name":{"type":"string"}}}`)}}
	}
	return req
}

// answerWithTools answers by the tool that takes answers if there is one, and as text otherwise.
func answerWithTools(c fakellm.Call) fakellm.Reply {
	if slices.Contains(c.Tools, llm.AnswerTool) {
		return fakellm.Reply{Calls: []fakellm.Use{{Name: llm.AnswerTool, Input: []byte(goodReceipt)}}}
	}
	return fakellm.Reply{Text: goodReceipt}
}

// What a model thought goes back to a server that showed it. One that refuses it is told no more; one
// that demands it is not taken for that.
func TestThoughtsThatServersRefuse(t *testing.T) {
	for from, words := range map[string]string{
		"charmbracelet/crush#1590":     `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",2,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted","input":"\n"}]}}`,
		"CherryHQ/cherry-studio#16790": `{"message":"messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported","type":"invalid_request_error","param":"validation_error","code":"wrong_api_format"}`,
		"janhq/jan#8136":               `{"error":{"message":"'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]","type":"invalid_request_error"}}`,
	} {
		calls, told, err := goOn(t, func(body []byte) string {
			if bytes.Contains(body, []byte(`"reasoning_content"`)) {
				return words
			}
			return ""
		})
		if err != nil || calls != 3 || len(told) != 1 || !strings.HasSuffix(told[0], ": it does not take back what a model thought") {
			t.Errorf("%s: %v after %d calls, told %q", from, err, calls, told)
		}
	}

	const demanded = `{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API.","type":"invalid_request_error"}}`
	calls, told, err := goOn(t, func(body []byte) string {
		if bytes.Contains(body, []byte(`"tool_call_id"`)) {
			return demanded
		}
		return ""
	})
	if err == nil || calls != 2 || len(told) > 0 {
		t.Errorf("bytedance/deer-flow#2990: %v after %d calls, told %q; want that it stands", err, calls, told)
	}
}

// goOn has a model think and call a tool, and tells it the result. refuse returns what the server says
// to a request that it refuses; "" takes it.
func goOn(t *testing.T, refuse func(body []byte) string) (calls int, told []string, err error) {
	t.Helper()
	p, fake := start(t, "openai", fakellm.Config{
		Lax: true, Forgets: true,
		Model: func(c fakellm.Call) fakellm.Reply {
			if len(c.Uses) > 0 {
				return fakellm.Reply{Text: "on the shelf"}
			}
			return fakellm.Reply{Thinking: "Where is it?", Calls: []fakellm.Use{{Name: "look", Input: []byte(`{"name":"it"}`)}}}
		},
		Rebuff: func(c fakellm.Call) *fakellm.Rebuff {
			if words := refuse(c.Body); words != "" {
				return &fakellm.Rebuff{Status: 400, Body: words}
			}
			return nil
		},
	}, func(c *llm.Config) { c.Manners = manners.NewStore(func(line string) { told = append(told, line) }) })
	req := ask(nil)
	req.Tools = []llm.Tool{{Name: "look", Schema: schema(t, `{"type":"object","properties":{"name":{"type":"string"}}}`)}}
	first, err := p.Complete(t.Context(), req)
	if err != nil || len(first.Calls()) != 1 {
		t.Fatalf("%+v, %v", first, err)
	}

	call := first.Calls()[0]
	result := llm.Part{Result: &llm.ToolResult{ID: call.ID, Name: call.Name, Text: "shelf"}}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: first.Parts}, llm.Message{Role: llm.User, Parts: []llm.Part{result}})
	_, err = p.Complete(t.Context(), req)
	return len(fake.Entries()), told, err
}
