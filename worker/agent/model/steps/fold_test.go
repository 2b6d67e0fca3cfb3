package steps_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

const chapters = `{"type":"object","properties":{"id":{"type":"string"},"about":{"type":"string","description":"What it does"}},"x-coditect":{"key":["id"]}}`

const chronicle = `
name: chronicle
stages:
- {name: map, each: chunk, agent: {role: Reader}, task: Read}
- {name: reduce, each: group, agent: {role: Chronicler}, task: Tell what happened in order, fold: true}
`

// event is what the i-th document tells of the company.
func event(i int) string {
	return fmt.Sprintf("In chapter %d the company %s, and nobody who was there ever forgot the sight of it or the noise that it made.", i, strings.Repeat("built rockets and sold springs ", 2))
}

var (
	messageForm = regexp.MustCompile(`message (\d+) of (\d+)\.`)
	chapterForm = regexp.MustCompile(`option \d+: "In chapter (\d+)`)
	padForm     = regexp.MustCompile(`(?s)<scratchpad \w+>\n(.*?)\n</scratchpad`)
	findingForm = regexp.MustCompile(`(?s)<findings \w+>\n(.*?)</findings`)
)

// A chronicler is a model that maps events, and folds what it found.
type chronicler struct {
	chapters [][]int  // of each message that was answered
	pads     []string // it was given
	findings []string
	ill      map[string]bool // messages that are answered with nonsense
}

func (c *chronicler) reply(call fakellm.Call) fakellm.Reply {
	prompt := call.Turns[0].Text
	m := messageForm.FindStringSubmatch(prompt)
	if m == nil {
		text := regexp.MustCompile(`about: (.*)\n`).FindStringSubmatch(prompt)[1]
		return fakellm.Reply{Text: answer(map[string]any{"id": say("C-1", "C-1"), "about": say(text, text)})}
	}
	if c.ill[m[1]] {
		return fakellm.Reply{Text: "nonsense"}
	}
	var chapters []int
	for _, found := range chapterForm.FindAllStringSubmatch(prompt, -1) {
		n, _ := strconv.Atoi(found[1])
		chapters = append(chapters, n)
	}
	pad := ""
	if found := padForm.FindStringSubmatch(prompt); found != nil {
		pad = found[1]
	}
	c.chapters, c.pads = append(c.chapters, chapters), append(c.pads, pad)
	c.findings = append(c.findings, findingForm.FindStringSubmatch(prompt)[1])
	ref := refForm.FindString(c.findings[len(c.findings)-1])
	out := map[string]any{"scratchpad": fmt.Sprintf("up to message %s [%s] [REF_deadbeef]", m[1], ref), "answers": []any{}}
	if m[1] == m[2] {
		out["scratchpad"] = ""
		first := refForm.FindString(pad)
		out["answers"] = []any{asked{number: 1}.answer(map[string]any{
			"text": "It built rockets from the first chapter on [" + first + "] to the last [" + ref + "].", "refs": []string{first, ref},
		})}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return fakellm.Reply{Text: string(raw)}
}

// folding maps n events, and returns the final reduce over them.
func (r *rig) folding(t *testing.T, n int) *agent.Task {
	t.Helper()
	r.spec.Schema = canonical(t, chapters)
	r.audited(t, chronicle)
	r.spec.TargetTokenBudget = new(int64(600))
	task := &agent.Task{Spec: &r.spec, Assignment: protocol.Assignment{
		Job: "mr_20260101_aaaaaa", Unit: "final", Attempt: 1, Kind: mapreduce.KindFinal, Level: 1,
	}}
	for i := range n {
		one := r.task("id: C-1\nabout: " + event(i) + "\n")
		name := fmt.Sprintf("%02d.txt", i)
		one.Unit, one.Index, one.Text.Document = mapreduce.UnitID(name), int64(i), mapreduce.DocumentID(name)
		res, err := r.agent.Run(t.Context(), one, r.purse)
		if err != nil {
			t.Fatal(err)
		}
		task.Inputs = append(task.Inputs, protocol.Input{Unit: one.Unit, First: int64(i), End: int64(i) + 1, Data: res.Output})
	}
	return task
}

// TestFoldsKeepTheOrderAndTheBudget: what is open is read in the order of the
// input, as much at a time as the budget allows, with what was noted before; and
// an attempt that breaks off is gone on with, not begun again.
func TestFoldsKeepTheOrderAndTheBudget(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai", "ollama"} {
		t.Run(provider, func(t *testing.T) {
			c := &chronicler{ill: map[string]bool{"3": true}}
			r := newRig(t, provider, fakellm.Config{Model: func(call fakellm.Call) fakellm.Reply { return c.reply(call) }})
			task := r.folding(t, 24)
			for attempt := 1; ; attempt++ {
				res, err := r.agent.Run(t.Context(), task, r.purse)
				if err == nil {
					if attempt == 1 {
						t.Error("nonsense was taken for an answer")
					}
					c.check(t, r, res)
					return
				}
				if attempt > 1 {
					t.Fatal(err)
				}
				c.ill = nil
				r.purse.retry(task)
			}
		})
	}
}

func (c *chronicler) check(t *testing.T, r *rig, res *agent.Result) {
	t.Helper()
	if len(c.chapters) < 4 {
		t.Fatalf("%d calls: it shows too little", len(c.chapters))
	}
	want := make([]int, 24)
	for i := range want {
		want[i] = i
	}
	if diff := cmp.Diff(want, slices.Concat(c.chapters...)); diff != "" {
		t.Errorf("chapters in the order in which they were read, none twice (-want +got):\n%s", diff)
	}
	counter := token.New()
	for i, text := range c.findings {
		if n := counter.Count(text) + counter.Count(c.pads[i]); n > 600 {
			t.Errorf("message %d has %d tokens of findings and notes, above the budget", i+1, n)
		}
		if i > 0 && !strings.HasPrefix(c.pads[i], fmt.Sprintf("up to message %d [REF_", i)) {
			t.Errorf("message %d was given the scratchpad %q", i+1, c.pads[i])
		}
		if strings.Contains(c.pads[i], "deadbeef") {
			t.Errorf("message %d was given a reference that nobody has", i+1)
		}
	}
	if !slices.ContainsFunc(res.Errors, func(e string) bool { return strings.Contains(e, "never given") }) {
		t.Errorf("notes of the unit are %q; want the reference that was made up", res.Errors)
	}
	out, err := output.Decode(res.Output)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Parse("s.json", r.spec.Schema)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Entries) != 1 {
		t.Fatalf("%d entries", len(out.Entries))
	}
	about := merge.Resolve(s, out.Entries[0].Accumulator)
	if text := fmt.Sprint(about.Values["about"]); !strings.HasPrefix(text, "It built rockets from the first chapter on [REF_") || len(about.Citations["about"]) != 2 {
		t.Errorf("decided: %q, citing %d", text, len(about.Citations["about"]))
	}
}

// TestScratchpadsAreBounded: notes that are longer than may be carried are cut,
// and the unit says so.
func TestScratchpadsAreBounded(t *testing.T) {
	c := &chronicler{}
	r := newRig(t, "anthropic", fakellm.Config{Model: func(call fakellm.Call) fakellm.Reply {
		reply := c.reply(call)
		if strings.Contains(reply.Text, "scratchpad") {
			reply.Text = strings.Replace(reply.Text, "up to message", strings.Repeat("many words about nothing ", 200)+"up to message", 1)
		}
		return reply
	}})
	res, err := r.agent.Run(t.Context(), r.folding(t, 12), r.purse)
	if err != nil {
		t.Fatal(err)
	}
	counter := token.New()
	for i, pad := range c.pads {
		if n := counter.Count(pad); n > 150 {
			t.Errorf("message %d was given a scratchpad of %d tokens, of a budget of 600", i+1, n)
		}
	}
	if !slices.ContainsFunc(res.Errors, func(e string) bool { return strings.Contains(e, "scratchpad was cut to 150 tokens") }) {
		t.Errorf("notes of the unit are %q", res.Errors)
	}
}

// TestReducesKeepToTheBudgetOfTheTree: without a fold too a call reads no more
// than the tree allows it.
func TestReducesKeepToTheBudgetOfTheTree(t *testing.T) {
	var read []int
	counter := token.New()
	c := &chronicler{}
	r := newRig(t, "anthropic", fakellm.Config{Model: func(call fakellm.Call) fakellm.Reply {
		if !strings.Contains(call.Turns[0].Text, "QUESTION 1") {
			return c.reply(call)
		}
		read = append(read, counter.Count(call.Prompt()))
		return fakellm.Reply{Text: `{"answers":[{"question":1,"option":1,"text":"","same":false,"refs":[],"confidence":0.5,"reason":""}]}`}
	}})
	task := r.folding(t, 24)
	r.audited(t, strings.Replace(chronicle, ", fold: true", "", 1))
	if _, err := r.agent.Run(t.Context(), task, r.purse); err != nil {
		t.Fatal(err)
	}
	if len(read) < 4 || slices.Max(read) > 600+150 { // the marks around questions
		t.Errorf("calls read %v tokens; want several, each about 600 at most", read)
	}
}
