package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/failpoint"
	unitagent "github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A noteServer is an MCP server with a tool that changes something: it posts a note.
type noteServer struct {
	url string

	mu      sync.Mutex
	posted  map[string]int    // how often, by the note
	posting func(note string) // called when a note is posted, before that is answered; may be nil
}

func newNoteServer(t *testing.T) *noteServer {
	n := &noteServer{posted: make(map[string]int)}
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{
		Name: "post", Description: "Posts a note.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"note":{"type":"string"}},"required":["note"],"additionalProperties":false}`),
	}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var in struct{ Note string }
		if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
			return nil, err
		}
		n.mu.Lock()
		n.posted[in.Note]++
		n.mu.Unlock()
		if n.posting != nil {
			n.posting(in.Note)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "posted"}}}, nil
	})
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	t.Cleanup(h.Close)
	n.url = h.URL
	return n
}

// posting is a model that reads a file a turn and posts a note in every second one, beside it.
// It answers in its twelfth turn.
func posting(c fakellm.Call) fakellm.Reply {
	if len(c.Tools) == 0 {
		return scout(c)
	}
	turn := 0
	for _, u := range c.Uses {
		turn = max(turn, u.Turn)
	}
	if turn == bridgeFiles {
		return scout(c)
	}
	r := fakellm.Reply{Calls: []fakellm.Use{{Name: "read", Input: json.RawMessage(fmt.Sprintf(`{"path":"%d.txt"}`, turn))}}}
	if turn%2 == 1 {
		r.Calls = append(r.Calls, fakellm.Use{Name: "notes_post", Input: json.RawMessage(fmt.Sprintf(`{"note":"note %d"}`, turn))})
	}
	return r
}

// agentTurns is how many turns the agent takes, and agentNotes how many notes it posts.
const (
	agentTurns = bridgeFiles + 1
	agentNotes = bridgeFiles / 2
)

// A posts is a run of one agent that reads files and posts notes.
type posts struct {
	*studio
	notes      *noteServer
	run, flags []string // of the program
}

func newPosts(t *testing.T, model func(fakellm.Call) fakellm.Reply) *posts {
	p := &posts{studio: newBridges(t, fakellm.Config{Model: model}), notes: newNoteServer(t)}
	for _, town := range []string{"b", "c"} { // one town is enough
		if err := os.Remove(p.path("docs/" + town + ".txt")); err != nil {
			t.Fatal(err)
		}
	}
	p.write("bridges.yaml", strings.Replace(bridgePipeline, "tools: [read]", `tools: [read, "mcp:notes/post"]`, 1))
	p.write("servers.json", fmt.Sprintf(`{"mcpServers":{"notes":{"url":%q}}}`, p.notes.url))
	p.flags = append(p.bridgeFlags(), "--mcp", p.path("servers.json"), "--allow-host", strings.TrimPrefix(p.notes.url, "http://"))
	p.run = append(p.askBridges("out"), p.flags[2:]...)
	return p
}

// postsKey is what the program needs of its environment.
func postsKey() []string { return []string{"ANTHROPIC_API_KEY=" + modelKey} }

// paid returns the tokens that were paid in all, and of the largest call.
func (p *posts) paid() (all, largest int64) {
	for _, e := range p.fake.Entries() {
		all += e.In() + e.Output
		largest = max(largest, e.In()+e.Output)
	}
	return all, largest
}

// A wholeRun is what a run comes to that nobody killed.
type wholeRun struct {
	bridgeResult
	cost, largest int64
}

// runWhole runs the agent, and nobody kills it.
func runWhole(t *testing.T) *wholeRun {
	p := newPosts(t, posting)
	if o := p.try(postsKey(), p.run...); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	w := &wholeRun{bridgeResult: p.bridges("out")}
	w.cost, w.largest = p.paid()
	if len(w.Citations) < 10 || len(p.notes.posted) != agentNotes || len(p.fake.Entries()) != agentTurns+1 {
		t.Fatalf("the agent shows too little: %d citations, %d calls of the model, notes %v", len(w.Citations), len(p.fake.Entries()), p.notes.posted)
	}
	return w
}

// goOn goes on with what was killed, and reports what is wrong with what it comes to. It
// returns how many tokens were paid twice.
func (p *posts) goOn(t *testing.T, want *wholeRun) (twice int64) {
	t.Helper()
	var o outcome
	switch job, found := p.job(); {
	case found && job.Status == "complete": // and its results are not written
		o = p.try(nil, "result", "--job-id", job.JobID, "--output", p.path("out"))
	case found:
		o = p.try(postsKey(), append([]string{"resume", "--job-id", job.JobID, "--output", p.path("out")}, p.flags...)...)
	default:
		o = p.try(postsKey(), p.run...)
	}
	if o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	if got := p.bridges("out"); string(got.Report) != string(want.Report) || len(got.Citations) != len(want.Citations) {
		t.Errorf("it came to %.1000s, want %.1000s", got.Report, want.Report)
	}
	for note, times := range p.notes.posted {
		if times > 1 {
			t.Errorf("%q was posted %d times", note, times)
		}
	}
	all, _ := p.paid()
	bound := max(unitagent.KeepEvery, want.largest)
	if twice = all - want.cost; twice > bound {
		t.Errorf("%d tokens were paid twice, more than %d", twice, bound)
	}
	if o := p.try(nil, "doctor"); o.code != 0 {
		t.Errorf("doctor: %d\n%s", o.code, o.stdout)
	}
	return twice
}

// The program is killed in each of the twelve turns of an agent: while the model answers, and
// while a note is posted, which is done and not answered. It goes on; no note is posted twice;
// and what is paid twice is no more than one interval of the journal, with the turn under way.
// Two turns are tried, or all if trials are asked for.
func TestSoakKillsInEachTurn(t *testing.T) {
	testenv.Lengthy(t)

	want := runWhole(t)
	most, kills := int64(0), 0
	for turn := 1; turn <= agentTurns; turn++ {
		if os.Getenv("CODITECT_SOAK_TRIALS") == "" && turn != 5 && turn != agentTurns-2 {
			continue
		}
		for _, during := range []string{"answer", "post"} {
			if during == "post" && (turn%2 == 1 || turn == agentTurns) { // no note is posted in it
				continue
			}
			kills++
			t.Run(fmt.Sprintf("turn %d %s", turn, during), func(t *testing.T) {
				reached, hold := make(chan struct{}), make(chan struct{})
				wait := sync.OnceFunc(func() { close(reached); <-hold })
				p := newPosts(t, func(c fakellm.Call) fakellm.Reply {
					if during == "answer" && c.N == turn {
						wait()
					}
					return posting(c)
				})
				p.notes.posting = func(note string) {
					if during == "post" && note == fmt.Sprintf("note %d", turn-1) {
						wait()
					}
				}
				cmd := p.command(postsKey(), append([]string{"mapreduce"}, p.run...)...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				select {
				case <-reached:
				case <-time.After(patience):
					t.Error("the turn was not reached")
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // it was killed
				close(hold)
				most = max(most, p.goOn(t, want))
			})
		}
	}
	t.Logf("killed %d times in the turns of an agent of %d: at most %d tokens were paid twice, of %d (interval %d, largest turn %d); no note was posted twice",
		kills, agentTurns, most, want.cost, unitagent.KeepEvery, want.largest)
}

// agentPoints are the points that agents with tools reach, some of them again and again.
func agentPoints() []string {
	var all []string
	for pass := 1; pass <= 6; pass++ {
		for _, s := range []failpoint.Step{failpoint.Journal, failpoint.Evidence} {
			all = append(all, fmt.Sprintf("%s:%d", s.Before(), pass), fmt.Sprintf("%s:%d", s.After(), pass))
		}
	}
	for _, s := range []failpoint.Step{
		failpoint.Turn, failpoint.Assign, failpoint.Plan, failpoint.Complete, failpoint.Bind, failpoint.Publish, failpoint.Stage, failpoint.Begin,
		failpoint.Answer, failpoint.Beat,
	} {
		all = append(all, string(s.Before()), string(s.After()))
	}
	return all
}

// The program is killed at each point that agents with tools reach, while one reads files and
// posts notes. What is resumed comes to the report of a run that nobody killed; no note is
// posted twice; and what is paid for twice is no more than one interval of the journal, with
// the turn under way. Six points are tried, or as many as trials are asked for.
func TestSoakKillsOfAgents(t *testing.T) {
	testenv.SlowOnFDB(t)

	t.Parallel()
	want := runWhole(t)
	points := agentPoints()
	n := 6
	if os.Getenv("CODITECT_SOAK_TRIALS") != "" {
		n = min(trials(t), len(points))
	}
	most := int64(0)
	for i := range n {
		point := points[i]
		if n < len(points) { // some before what is done, some after
			point = points[i*len(points)/n/2*2+i%2]
		}
		t.Run(point, func(t *testing.T) {
			p := newPosts(t, posting)
			o := p.try(append(postsKey(), failpoint.Variable+"="+point), p.run...)
			if !o.killed {
				t.Fatalf("it was not killed, and ended with %d\n%s%s", o.code, o.stdout, o.stderr)
			}
			most = max(most, p.goOn(t, want))
		})
	}
	t.Logf("%d points: at most %d tokens were paid twice, of %d (interval %d, largest turn %d); no note was posted twice", n, most, want.cost, unitagent.KeepEvery, want.largest)
}

// recordPipeline has agents that find the records of a schema in files.
const recordPipeline = `name: openings
stages:
  - name: look
    from: documents
    each: document
    agent: {role: Scout, goal: Find bridges}
    task: Find out when the bridges of the town were opened.
    tools: [read]
    output: records
  - {name: merged, from: look, each: group, merge: typed}
`

// Records of agents rest on evidence, all the way: each value has a citation of a text that a
// tool brought, the result says where it is from, the page shows the quote in that text, a made
// up quote leads to no value, and the job can be repeated from what it has kept, without the
// model and without the files.
func TestRecordsCiteEvidence(t *testing.T) {
	t.Parallel()
	s := newBridges(t, fakellm.Config{Key: modelKey, Model: func(c fakellm.Call) fakellm.Reply {
		if len(c.Uses) == 0 {
			return fakellm.Reply{Calls: []fakellm.Use{{Name: "read", Input: json.RawMessage(`{"path":"3.txt"}`)}}}
		}
		at := evidenceName.FindString(c.Uses[0].Result)
		value := func(value any, quote string) []any {
			return []any{map[string]any{"value": value, "quotes": []any{map[string]any{"document": at, "quote": quote}}, "confidence": 0.9}}
		}
		raw, err := json.Marshal(map[string]any{"records": []any{map[string]any{"fields": map[string]any{
			"bridge": value("3", "Bridge number 3 was opened"), "year": value(1803, "was opened in 1803"), "builder": value("Eiffel", "It was built by Eiffel"),
		}, "not_found": []any{}}}, "no_records": ""})
		if err != nil {
			panic(err)
		}
		return fakellm.Reply{Text: string(raw)}
	}})
	for _, town := range []string{"b", "c"} {
		if err := os.Remove(s.path("docs/" + town + ".txt")); err != nil {
			t.Fatal(err)
		}
	}
	s.write("bridges.yaml", recordPipeline)
	s.write("bridge.json", `{"title":"bridge","type":"array","items":{"type":"object","properties":{"bridge":{"type":"string"},"year":{"type":"integer"},"builder":{"type":"string"}}},"x-coditect":{"key":["bridge"]}}`)
	o := s.try([]string{"ANTHROPIC_API_KEY=" + modelKey}, append(s.askBridges("out"), "--schema", s.path("bridge.json"))...)
	if o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	var r struct {
		Data      []map[string]any `json:"aggregated_data"`
		Citations map[string]struct {
			Document string `json:"document_id"`
			Quote    string `json:"quote"`
			URI      string `json:"uri"`
		} `json:"citations"`
		Evidence []heldEvidence `json:"evidence"`
	}
	data, err := os.ReadFile(s.path("out/result.json"))
	if err != nil {
		t.Fatal(err)
	}
	s.decode(string(data), &r)
	if len(r.Data) != 1 || r.Data[0]["year"] != 1803.0 || r.Data[0]["builder"] != nil || len(r.Evidence) != 1 {
		t.Fatalf("records %v, evidence %v", r.Data, r.Evidence)
	}
	cited := r.Data[0]["_citations"].(map[string]any)
	for field, quote := range map[string]string{"bridge": "Bridge number 3 was opened", "year": "was opened in 1803"} {
		refs, _ := cited[field].([]any)
		if len(refs) != 1 {
			t.Errorf("%s has the citations %v", field, refs)
			continue
		}
		c := r.Citations[refs[0].(string)]
		if c.Quote != quote || c.Document != r.Evidence[0].Document || c.URI == "" || c.URI != r.Evidence[0].URI {
			t.Errorf("%s cites %+v, and the evidence is %+v", field, c, r.Evidence[0])
		}
	}
	page, err := os.ReadFile(s.path("out/report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{r.Evidence[0].Document, "Bridge number 3 was opened in 1803", "Nothing else is known of it."} {
		if !strings.Contains(string(page), part) {
			t.Errorf("report.html does not show %q", part)
		}
	}
	if o := s.try(nil, "doctor"); o.code != 0 {
		t.Errorf("doctor: %d\n%s", o.code, o.stdout)
	}
	if err := os.RemoveAll(s.path("files")); err != nil {
		t.Fatal(err)
	}
	s.write("files/other.txt", "Nothing.\n")
	asked := len(s.fake.Entries())
	o = s.try(nil, append([]string{"replay", "last", "--output", s.path("again")}, s.bridgeFlags()...)...)
	if o.code != 0 || len(s.fake.Entries()) != asked {
		t.Errorf("replay: exit code %d, %d calls of the model\n%s%s", o.code, len(s.fake.Entries())-asked, o.stdout, o.stderr)
	}
	again, err := os.ReadFile(s.path("again/report.html"))
	if err != nil || !regexp.MustCompile(`Bridge number 3 was opened in 1803`).Match(again) {
		t.Errorf("the page of the repetition does not show the evidence: %v", err)
	}
}
