package steps_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

var chapterName = regexp.MustCompile(`In chapter (\d+) the company`)

// TestOutputsThatDoNotPair is B16's fold where it happens: 100 outputs of 5,100
// tokens each, of which no two fit a budget of 10,000. The final reduce compares
// all of them, in calls that are each within the budget.
func TestOutputsThatDoNotPair(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	const outputs, size, budget = 100, 5100, 10_000
	counter := token.New()
	long := strings.Repeat("built rockets and sold springs ", 2*size/31) // a value and its quote
	var calls []int64
	read := make(map[string]bool)
	r := newRig(t, "anthropic", fakellm.Config{Model: func(call fakellm.Call) fakellm.Reply {
		prompt := call.Turns[0].Text
		if !strings.Contains(prompt, "QUESTION 1") {
			text := regexp.MustCompile(`about: (.*)\n`).FindStringSubmatch(prompt)[1]
			return fakellm.Reply{Text: answer(map[string]any{"id": say("C-1", "C-1"), "about": say(text, text)})}
		}
		calls = append(calls, int64(counter.Count(call.System)+counter.Count(string(call.Schema))+counter.Count(call.Prompt())))
		for _, found := range chapterName.FindAllStringSubmatch(prompt, -1) {
			read[found[1]] = true
		}
		return fakellm.Reply{Text: `{"answers":[{"question":1,"option":1,"text":"","same":false,"refs":[],"confidence":0.5,"reason":""}]}`}
	}})
	r.spec.Schema = canonical(t, chapters)
	task := &agent.Task{Spec: &r.spec, Assignment: protocol.Assignment{
		Job: "mr_20260101_aaaaaa", Unit: "final", Attempt: 1, Kind: mapreduce.KindFinal, Level: 1,
	}}
	for i := range outputs {
		one := r.task(fmt.Sprintf("id: C-1\nabout: In chapter %d the company %s.\n", i, long))
		name := fmt.Sprintf("%03d.txt", i)
		one.Unit, one.Index, one.Text.Document = mapreduce.UnitID(name), int64(i), mapreduce.DocumentID(name)
		res, err := r.agent.Run(t.Context(), one, r.purse)
		if err != nil {
			t.Fatal(err)
		}
		if res.Size < size {
			t.Fatalf("output %d has %d tokens, want %d", i, res.Size, size)
		}
		task.Inputs = append(task.Inputs, protocol.Input{Unit: one.Unit, First: int64(i), End: int64(i) + 1, Data: res.Output})
	}
	r.keepTo(t, budget)
	if _, err := r.agent.Run(t.Context(), task, r.purse); err != nil {
		t.Fatal(err)
	}
	if len(calls) < 2 || slices.Max(calls)+*r.spec.ReservedOutput > budget {
		t.Errorf("calls read %v, and %d are kept free; want several within %d", calls, *r.spec.ReservedOutput, budget)
	}
	if len(read) != outputs {
		t.Errorf("%d outputs were compared, want all %d: %v", len(read), outputs, slices.Sorted(maps.Keys(read)))
	}
}
