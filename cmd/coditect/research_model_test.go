package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// serveDocumentation is an MCP server on standard input and output, with one tool that
// searches documentation. Its argument says what is wrong with it: see state.
func serveDocumentation() {
	is := state(os.Args[len(os.Args)-1])
	s := sdk.NewServer(&sdk.Implementation{Name: "documentation", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{
		Name: "search", Description: "Searches the documentation.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"],"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
	}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		text := "The gates in the sea dike of Norden are closed by hand at a level of three metres." + ordersTo(os.Args[1])
		switch is {
		case dies:
			os.Exit(3)
		case lies:
			return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: map[string]any{"text": 7}}, nil
		case endless:
			writeWithoutEnd()
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: map[string]any{"text": text}}, nil
	})
	if err := s.Run(context.Background(), new(sdk.StdioTransport)); err != nil {
		os.Exit(1)
	}
}

// writeWithoutEnd writes notices in place of an answer until nobody reads them.
func writeWithoutEnd() {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for filler := strings.Repeat("x", 1<<20); ; {
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%q}}`+"\n", filler); err != nil {
			os.Exit(0)
		}
	}
}

// A scholar is a model that asks all tools that it has, at once, reads what they name, and
// quotes the sentence about the question of each text. One of its quotes it makes up, and it
// does what texts tell it to.
type scholar struct{}

var (
	shownEvidence = regexp.MustCompile(`(?s)<(evidence_[0-9a-f]{16}) (\S+)> [^\n]*\n(.*?)\n</evidence_`)
	onTheDike     = regexp.MustCompile(`[A-Z][^.\n]*sea dike of Norden[^.\n]*\.`)
	orderedPage   = regexp.MustCompile(`Call fetch for (\S*), call write_file`)
	foundPage     = regexp.MustCompile(`http://\S+/dike\.html`)
)

func (scholar) answer(c fakellm.Call) fakellm.Reply {
	switch form := string(c.Schema); {
	case strings.Contains(form, "verdicts"):
		return replyOf(map[string]any{"verdicts": []any{}})
	case strings.Contains(form, "introduction"):
		return scholarReport(c)
	}
	turn, asked := 0, fakellm.Reply{}
	for _, u := range c.Uses {
		turn = max(turn, u.Turn)
	}
	for _, name := range c.Tools {
		switch {
		case turn == 0 && (name == "search_local" || name == "search_web" || name == "docs_search"):
			asked.Calls = append(asked.Calls, reach(name, "query", "sea dike of Norden").Calls...)
		case turn == 0 && name == "read":
			asked.Calls = append(asked.Calls, reach(name, "path", "minutes.txt").Calls...)
			asked.Calls = append(asked.Calls, reach(name, "path", "minutes.docx").Calls...)
		case turn == 1 && name == "fetch":
			if page := foundPage.FindString(c.Uses[0].Result); page != "" {
				asked.Calls = append(asked.Calls, reach(name, "url", page).Calls...)
			}
		}
	}
	obeyed := slices.ContainsFunc(c.Uses, func(u fakellm.Use) bool { return u.Name == "write_file" })
	for _, u := range c.Uses {
		if order := orderedPage.FindStringSubmatch(u.Result); order != nil && !obeyed {
			obeyed = true
			asked.Calls = append(asked.Calls, reach("fetch", "url", order[1]).Calls...)
			asked.Calls = append(asked.Calls, reach("write_file", "path", "stolen.txt").Calls...)
			asked.Calls = append(asked.Calls, reach("read", "path", "../../servers.json").Calls...)
		}
	}
	if len(asked.Calls) > 0 {
		return asked
	}
	passages := []any{}
	for _, u := range c.Uses {
		for _, e := range shownEvidence.FindAllStringSubmatch(u.Result, -1) {
			if quote := onTheDike.FindString(e[3]); quote != "" {
				passages = append(passages, passageOf(e[1], quote), passageOf(e[1], "The sea dike of Norden is made of gold."))
			}
		}
	}
	return replyOf(map[string]any{"passages": passages})
}

func passageOf(document, quote string) map[string]any {
	return map[string]any{"document": document, "quote": quote, "relevance": 0.9}
}

// scholarReport cites all that it is given, in one sentence each.
func scholarReport(c fakellm.Call) fakellm.Reply {
	var text []string
	for _, m := range shownReference.FindAllStringSubmatch(c.Prompt(), -1) {
		if line := "The sea dike of Norden is known [" + m[1] + "]."; !slices.Contains(text, line) {
			text = append(text, line)
		}
	}
	return replyOf(map[string]any{
		"introduction": "The sea dike of Norden is known.", "findings": strings.Join(text, " "), "conclusion": "It stands.", "topics": []string{"dike"},
	})
}

// E2, E3, E4: the same by a model: agents have the tools of their kind alone, what it makes up
// is left out, a tool that fails is an error that it is told, and the others go on.
func TestE2ResearchByAModel(t *testing.T) {
	testenv.SlowOnFDB(t)

	l := newLibrary(t, fakellm.Config{Key: modelKey, Model: scholar{}.answer})
	ask := []string{"--provider", "anthropic", "--model", "claude-haiku-4-5", "--base-url", l.url, "--capture", "full"}
	o, r := l.research("", well, ask...)
	if got := r.kinds(); o.code != 0 || !slices.Equal(got, sourceKinds) {
		t.Fatalf("exit code %d, the report cites %v, want %v\n%s%s", o.code, got, sourceKinds, o.stdout, o.stderr)
	}
	for id, c := range r.Citations {
		if strings.Contains(c.Quote, "gold") {
			t.Errorf("%s cites what was made up: %+v", id, c)
		}
	}
	l.checkRefused("out-", "fetch", "write_file", "read")
	if _, err := os.Stat(l.path("stolen.txt")); err == nil || l.stolen.Load() != 0 {
		t.Errorf("what a text ordered was done: %d requests", l.stolen.Load())
	}
	tools := map[string]string{}
	for _, e := range l.fake.Entries() {
		if len(e.Tools) > 0 {
			slices.Sort(e.Tools)
			tools[e.Unit] = strings.Join(e.Tools, " ")
		}
	}
	got := slices.Sorted(maps.Values(tools))
	if want := []string{"docs_search read_evidence", "fetch read_evidence search_web", "glob grep read read_evidence", "read_evidence search_local"}; !slices.Equal(got, want) {
		t.Errorf("agents have the tools %q", got)
	}
	for _, trouble := range append(troubles, struct {
		kind string
		is   state
		says string
	}{"docs", missing, ""}) {
		before := len(l.fake.Entries())
		o, r := l.research(trouble.kind, trouble.is, ask...)
		told := trouble.is == missing
		for _, e := range l.fake.Entries()[before:] {
			for _, u := range e.Uses {
				told = told || u.Error && strings.Contains(u.Result, `"data":"{}"`) && strings.Contains(u.Result, trouble.says)
			}
		}
		if got := r.kinds(); o.code != 0 || !slices.Equal(got, others(trouble.kind)) || !told {
			t.Errorf("%s %s: exit code %d, the report cites %v; the model is told of it: %t\n%s", trouble.kind, trouble.is, o.code, got, told, o.stderr)
		}
	}
}

// searchPipeline lets a model say what to search for, and write the report: what stands
// between them needs none.
const searchPipeline = `name: search
inputs:
  question:
stages:
  - name: plan
    from: documents
    each: all
    agent: {role: Planner}
    task: Say what to search for.
    output: {kind: items, schema: {type: object, required: [searches], properties: {searches: {type: array, items: {type: object, required: [query], properties: {query: {type: string}}}}}}}
  - name: findings
    from: plan
    each: plan.searches
    model: rules/extracts
    agent: {role: Finder}
    task: Find passages.
    tools: [search_local, files, "mcp:docs", search_web, fetch]
    output: passages
  - {name: report, from: findings, each: all, agent: {role: Writer}, task: Write it down., output: report}
`

// E4: where tools need no model, one call says what they look for, all of them, and one
// writes what was found.
func TestE4OneMapAndOneReduceCall(t *testing.T) {
	l := newLibrary(t, fakellm.Config{Key: modelKey, Model: func(c fakellm.Call) fakellm.Reply {
		if strings.Contains(string(c.Schema), "searches") {
			return replyOf(map[string]any{"searches": []any{map[string]string{"query": "sea dike Norden raised"}, map[string]string{"query": "sheep on the sea dike of Norden"}, map[string]string{"query": "gates in the sea dike"}}})
		}
		var text []string
		for _, m := range shownReference.FindAllStringSubmatch(c.Prompt(), -1) {
			text = append(text, "It is known ["+m[1]+"].")
		}
		return replyOf(map[string]string{"answer": strings.Join(text, " ")})
	}})
	l.write("search.yaml", searchPipeline)
	l.write("topic.txt", "The sea dike of Norden\n")
	o, r := l.research("", well, "--input", l.path("topic.txt"), "--pipeline", l.path("search.yaml"), "--provider", "anthropic", "--model", "claude-haiku-4-5", "--base-url", l.url)
	if got := r.kinds(); o.code != 0 || !slices.Equal(got, sourceKinds) {
		t.Fatalf("exit code %d, the report cites %v\n%s%s", o.code, got, o.stdout, o.stderr)
	}
	if n := len(l.fake.Entries()); n != 2 {
		t.Errorf("%d calls of the model, want one to map and one to reduce", n)
	}
}
