package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// bridgePipeline has agents that read files, and a report of what they found.
const bridgePipeline = `name: bridges
stages:
  - name: look
    from: documents
    each: document
    agent: {role: Scout, goal: Find bridges}
    task: Find out when the bridges of the town were opened.
    tools: [read]
    output: {kind: items, schema: {type: object, properties: {facts: {type: array, items: {type: object, properties: {fact: {type: string}, refs: {type: array, items: {type: string}}}, required: [fact, refs]}}}, required: [facts]}}
  - {name: report, from: look, each: all, agent: {role: Writer}, task: Write it down., output: report}
`

// bridgeFiles is how many files one agent reads, one a turn.
const bridgeFiles = 11

func bridgeText(i int) string {
	return fmt.Sprintf("Bridge number %d was opened in %d.\n", i, 1800+i) + strings.Repeat("Nothing else is known of it. ", 60)
}

// newBridges returns a studio with three towns and a folder of files.
func newBridges(t *testing.T, script fakellm.Config) *studio {
	s := newStudio(t, script)
	for _, town := range []string{"a", "b", "c"} {
		s.write("docs/"+town+".txt", "The town of "+town+" has bridges.\n")
	}
	for i := range bridgeFiles {
		s.write(fmt.Sprintf("files/%d.txt", i), bridgeText(i))
	}
	s.write("bridges.yaml", bridgePipeline)
	return s
}

func (s *studio) bridgeFlags() []string {
	return []string{"--tool-root", s.path("files")}
}

func (s *studio) askBridges(output string) []string {
	return append([]string{
		"run", "--input", s.docs, "--pipeline", s.path("bridges.yaml"), "--output", s.path(output), "--capture", "full",
		"--provider", "anthropic", "--model", "claude-haiku-4-5", "--base-url", s.url, "--parallelism", "3",
	}, s.bridgeFlags()...)
}

var (
	evidenceName = regexp.MustCompile(`evidence_[0-9a-f]{16}`)
	openedIn     = regexp.MustCompile(`Bridge number \d+ was opened in \d+`)
	shownRef     = regexp.MustCompile(`REF_[0-9a-f]{8,}`)
)

// scout reads one file a turn, tries a tool that it does not have, and says what it found;
// the writer cites all that it is given.
func scout(c fakellm.Call) fakellm.Reply {
	encode := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(raw)
	}
	if len(c.Tools) == 0 {
		var b strings.Builder
		seen := map[string]bool{}
		for _, ref := range shownRef.FindAllString(c.Prompt(), -1) {
			if !seen[ref] {
				fmt.Fprintf(&b, "It was opened then [%s]. ", ref)
			}
			seen[ref] = true
		}
		return fakellm.Reply{Text: encode(map[string]string{"answer": b.String()})}
	}
	turn := 0
	for _, u := range c.Uses {
		turn = max(turn, u.Turn)
	}
	if turn < bridgeFiles {
		r := fakellm.Reply{Thinking: "One after the other.", Calls: []fakellm.Use{{Name: "read", Input: json.RawMessage(fmt.Sprintf(`{"path":"%d.txt"}`, turn))}}}
		if turn == 2 {
			r.Calls = append(r.Calls, fakellm.Use{Name: "grep", Input: json.RawMessage(`{"pattern":"x"}`)}, fakellm.Use{Name: "read", Input: json.RawMessage(`{"path":"../schema.yaml"}`)})
		}
		return r
	}
	var quotes, facts []any
	for _, u := range c.Uses {
		at, said := evidenceName.FindString(u.Result), openedIn.FindString(u.Result)
		if at != "" && said != "" {
			ref := fmt.Sprintf("REF_Q%d", len(quotes)+1)
			quotes = append(quotes, map[string]string{"ref": ref, "document": at, "quote": said})
			facts = append(facts, map[string]any{"fact": said, "refs": []string{ref}})
		}
	}
	return fakellm.Reply{Text: encode(map[string]any{"quotes": quotes, "value": map[string]any{"facts": facts}})}
}

// bridgeResult is what the tests look at of a job of bridges.
type bridgeResult struct {
	Report    json.RawMessage `json:"report"`
	Citations map[string]struct {
		Document string `json:"document_id"`
		Quote    string `json:"quote"`
		URI      string `json:"uri"`
	} `json:"citations"`
	Evidence []struct {
		Document string `json:"document_id"`
		URI      string `json:"uri"`
		Tool     string `json:"tool"`
	} `json:"evidence"`
}

func (s *studio) bridges(output string) (r bridgeResult) {
	s.t.Helper()
	data, err := os.ReadFile(s.path(filepath.Join(output, "result.json")))
	if err != nil {
		s.t.Fatal(err)
	}
	s.decode(string(data), &r)
	return r
}

// Agents read files through the whole program: what they cite is evidence that the server has
// checked, and the trace has every turn and every call, those that were refused as well.
func TestAgentsWithTools(t *testing.T) {
	testenv.Raced(t)

	s := newBridges(t, fakellm.Config{Key: modelKey, Model: scout})
	o := s.try([]string{"ANTHROPIC_API_KEY=" + modelKey}, s.askBridges("out")...)
	if o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	r := s.bridges("out")
	if len(r.Citations) != bridgeFiles || len(r.Evidence) != bridgeFiles {
		t.Errorf("%d citations, %d pieces of evidence: %.2000s", len(r.Citations), len(r.Evidence), r.Report)
	}
	for id, c := range r.Citations {
		if !evidenceName.MatchString(c.Document) || !openedIn.MatchString(c.Quote) {
			t.Errorf("%s cites %q of %s", id, c.Quote, c.Document)
		}
	}
	var trace struct {
		Tasks []struct {
			ID    string `json:"id"`
			Turns int    `json:"llmCallCount"`
			Tools int    `json:"toolCallCount"`
			Calls []struct{ Model, Tool, Error string }
		} `json:"tasks"`
		Metrics struct {
			Tools int `json:"toolCallCount"`
		} `json:"metrics"`
	}
	data, err := os.ReadFile(s.path("out/trace.json"))
	if err != nil {
		t.Fatal(err)
	}
	s.decode(string(data), &trace)
	for _, task := range trace.Tasks {
		if strings.HasPrefix(task.ID, "report") || task.ID == "final" {
			continue
		}
		models, tools, refused := 0, 0, 0
		for _, c := range task.Calls {
			switch {
			case c.Model != "":
				models++
			case strings.Contains(c.Error, "is refused"):
				refused++
			default:
				tools++
			}
		}
		if task.Turns != bridgeFiles+1 || models != bridgeFiles+1 || task.Tools != bridgeFiles+1 || tools+refused != bridgeFiles+2 || refused == 0 {
			t.Errorf("%s: %d turns, %d calls of tools; traced are %d turns, %d calls and %d refused", task.ID, task.Turns, task.Tools, models, tools, refused)
		}
	}
	if want := 3 * (bridgeFiles + 1); trace.Metrics.Tools != want {
		t.Errorf("%d calls of tools in all, want %d", trace.Metrics.Tools, want)
	}
	for _, e := range s.fake.Entries() { // D2: no context holds what another unit's document says
		if town := regexp.MustCompile(`The town of (\w)`).FindAllStringSubmatch(string(e.Body), -1); len(town) > 1 {
			t.Errorf("a context has %d towns", len(town))
		}
	}
	s.nowhere(o)
}

// Each turn and each call of a tool is shown while it happens: the model waits with an answer
// until the watcher has shown the call before it. The trace has all of them afterwards, in
// turns, although nothing was to be captured.
func TestTurnsAreShownAsTheyHappen(t *testing.T) {
	testenv.Raced(t)

	begin, shown := make(chan struct{}), make(chan struct{})
	s := newBridges(t, fakellm.Config{Key: modelKey, Model: func(c fakellm.Call) fakellm.Reply {
		switch c.N {
		case 1:
			<-begin
		case 4:
			<-shown
		}
		return scout(c)
	}})
	s.write("docs/b.txt", "") // one town is enough
	s.write("docs/c.txt", "")
	key := []string{"ANTHROPIC_API_KEY=" + modelKey}
	serve := s.start(key, "serve", "--listen", "127.0.0.1:0", "--tool-root", s.path("files"), "--endpoint", "anthropic="+s.url)
	address := serve.said.await(t, `msg=serving address=(\S+)`)
	o := s.try(nil, "run", "--server", address, "--detach", "--input", s.path("docs/a.txt"), "--pipeline", s.path("bridges.yaml"),
		"--provider", "anthropic", "--model", "claude-haiku-4-5", "-o", "json")
	if o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	id := regexp.MustCompile(`mr_\d{8}_\w{6}`).FindString(o.stdout)
	watch := func(flags ...string) *daemon {
		d := &daemon{cmd: s.command(nil, append([]string{"mapreduce", "watch", id, "--server", address}, flags...)...), said: &output{more: make(chan struct{})}}
		d.cmd.Stderr, d.cmd.Stdout = d.said, d.said
		if err := d.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return d
	}
	lines, objects := watch(), watch("-o", "json")
	lines.said.await(t, `(mapping|units)`)
	objects.said.await(t, `("job_id")`)
	close(begin)
	lines.said.await(t, `a.txt: (turn 3 of 25: read 2.txt)`)
	lines.said.await(t, `a.txt: (turn 3 of 25: grep failed: )`)
	lines.said.await(t, `a.txt: (turn 4 of 25: \S+ thinks)`)
	objects.said.await(t, `"unit_id":\s*"a.txt",\s*"attempt":\s*1,\s*"number":\s*\d+,\s*"tokens":\s*[1-9]\d*,\s*("note":\s*"turn 3 of 25: read 2.txt")`)
	close(shown)
	for _, w := range []*daemon{lines, objects} {
		if err := w.cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, w.said)
		}
	}
	if o := s.try(nil, "result", id, "--server", address, "--output", s.path("out")); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	var trace struct {
		Tasks []struct {
			Stage  string
			Prompt int `json:"largestPrompt_bytes"`
			Calls  []struct {
				Model, Tool, Prompt, Answer string
				Turn                        int
			}
		}
	}
	data, err := os.ReadFile(s.path("out/trace.json"))
	if err != nil {
		t.Fatal(err)
	}
	s.decode(string(data), &trace)
	turns, calls := 0, 0
	for _, c := range trace.Tasks[0].Calls {
		switch {
		case c.Prompt != "" || c.Answer != "":
			t.Errorf("it was captured what was said: %+v", c)
		case c.Model != "":
			turns++
			if c.Turn != turns {
				t.Errorf("the model's call %d is of turn %d", turns, c.Turn)
			}
		case c.Turn != turns:
			t.Errorf("a call of %s stands in turn %d, and is of %d", c.Tool, turns, c.Turn)
		default:
			calls++
		}
	}
	if turns != bridgeFiles+1 || calls != bridgeFiles+2 || trace.Tasks[0].Stage != "look" || trace.Tasks[0].Prompt < 1000 {
		t.Errorf("the trace has %d turns and %d calls: %+v", turns, calls, trace.Tasks[0])
	}
}

// The program is killed while agents take their turns. What is resumed comes to the same, and
// pays again for no more than one interval of the journal and the turn under way, an agent.
func TestKilledWhileAgentsWork(t *testing.T) {
	t.Parallel()
	whole := newBridges(t, fakellm.Config{Model: scout})
	if o := whole.try([]string{"ANTHROPIC_API_KEY=" + modelKey}, whole.askBridges("out")...); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	want := whole.bridges("out")
	var cost, largest int64
	for _, e := range whole.fake.Entries() {
		cost += e.In() + e.Output
		largest = max(largest, e.In()+e.Output)
	}
	for _, at := range []int{7, 22, 34} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			reached, hold := make(chan struct{}), make(chan struct{})
			s := newBridges(t, fakellm.Config{Model: func(c fakellm.Call) fakellm.Reply {
				if c.N == at {
					close(reached)
					<-hold
				}
				return scout(c)
			}})
			cmd := s.command([]string{"ANTHROPIC_API_KEY=" + modelKey}, append([]string{"mapreduce"}, s.askBridges("out")...)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-reached:
			case <-time.After(patience):
				t.Error("the model was not asked often enough")
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			close(hold)
			o := s.try([]string{"ANTHROPIC_API_KEY=" + modelKey}, append([]string{"resume", "--job-id", s.only(), "--output", s.path("out")}, s.bridgeFlags()...)...)
			if o.code != 0 {
				t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
			}
			if got := s.bridges("out"); string(got.Report) != string(want.Report) || len(got.Citations) != len(want.Citations) || len(got.Evidence) != len(want.Evidence) {
				t.Errorf("it came to %.1000s, want %.1000s", got.Report, want.Report)
			}
			var paid int64
			for _, e := range s.fake.Entries() {
				paid += e.In() + e.Output
			}
			t.Logf("killed at turn %d of all: %d tokens were paid twice, of %d", at, paid-cost, cost)
			if paid-cost > 3*(10_000+largest) {
				t.Errorf("%d tokens were paid twice", paid-cost)
			}
		})
	}
}
