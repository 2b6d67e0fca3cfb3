package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

var (
	foldMessage = regexp.MustCompile(`message (\d+) of (\d+)\.`)
	foldOption  = regexp.MustCompile(`option \d+: "In chapter (\d+)`)
	foldRef     = regexp.MustCompile(`REF_[0-9a-f]+`)
	foldText    = regexp.MustCompile(`about: (.*)\n`)
)

// TestFoldThroughTheEngine: a final reduce that takes several calls, and breaks
// off among them, goes on in its next attempt: every finding was read once, in
// order, and each call was paid once.
func TestFoldThroughTheEngine(t *testing.T) {
	var mu sync.Mutex // guards read and broken
	var read []string
	broken := 0
	fake := fakellm.New(fakellm.Config{Model: func(c fakellm.Call) fakellm.Reply {
		prompt := c.Turns[0].Text
		say := func(value string) []any {
			return []any{map[string]any{"value": value, "quotes": []string{value}, "confidence": 0.9}}
		}
		m := foldMessage.FindStringSubmatch(prompt)
		if m == nil {
			return reply(map[string]any{"not_found": []any{}, "fields": map[string]any{"id": say("C-1"), "about": say(foldText.FindStringSubmatch(prompt)[1])}})
		}
		mu.Lock()
		defer mu.Unlock()
		if m[1] == "2" && c.Attempt == 1 {
			broken++
			return fakellm.Reply{Text: "nonsense"}
		}
		for _, found := range foldOption.FindAllStringSubmatch(prompt, -1) {
			read = append(read, found[1])
		}
		ref := foldRef.FindString(prompt)
		answers := []any{}
		if m[1] == m[2] {
			answers = append(answers, map[string]any{
				"question": 1, "option": 0, "text": "It was built in the end [" + ref + "].", "same": false, "refs": []string{ref}, "confidence": 0.8, "reason": "told last",
			})
		}
		return reply(map[string]any{"scratchpad": "seen up to " + m[1] + " [" + ref + "]", "answers": answers})
	}})
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.WorkerFor("anthropic", newCashier(t, "anthropic", fake), worker.Config{Slots: 4}, n)
	docs, order := make(map[string]string), []string(nil)
	var want []string
	for i := range 16 {
		id := fmt.Sprintf("%02d.txt", i)
		docs[id] = fmt.Sprintf("id: C-1\nabout: In chapter %d the company %s, and nobody ever forgot the noise that it made.\n", i, strings.Repeat("built rockets and sold springs ", 2))
		order, want = append(order, id), append(want, strconv.Itoa(i))
	}
	spec := enginetest.Extracting(t, `{"type":"object","properties":{"id":{"type":"string"},"about":{"type":"string","description":"What it does"}},"x-coditect":{"key":["id"]}}`)
	spec.Provider, spec.Model = "anthropic", "m"
	enginetest.Piped(enginetest.Folded)(&spec)
	spec.Vars = nil
	enginetest.Budget(600)(&spec)
	id, got := n.Run(spec, enginetest.Texts(docs, order...))
	got.Cited(t, map[string]string{})
	if broken == 0 {
		t.Error("no attempt broke off: it shows too little")
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("chapters in the order in which they were read (-want +got):\n%s", diff)
	}
	if len(got.Records) != 1 || !strings.HasPrefix(fmt.Sprint(got.Records[0]["about"]), "It was built in the end [REF_") {
		t.Errorf("records are %v", got.Records)
	}
	final := n.Units(id)[mapreduce.FinalUnit]
	if final == nil || final.Attempts != 2 || slices.Contains(final.Errors, "") {
		t.Errorf("final unit: %+v, want a second attempt", final)
	}
	n.Sound()
}

func reply(answer any) fakellm.Reply {
	raw, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return fakellm.Reply{Text: string(raw)}
}
