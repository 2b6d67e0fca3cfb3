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
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// The tests of this file run jobs whose reduces depend on the order.

const folded = `
name: chronicle
stages:
- {name: map, each: chunk, agent: {role: Reader}, task: Read}
- {name: reduce, each: group, agent: {role: Chronicler}, task: Tell it in order, fold: true}
`

// TestFoldedTreesKeepTheOrder: with the rules too each reduce of a fold takes
// neighbours, which packing by size alone does not.
func TestFoldedTreesKeepTheOrder(t *testing.T) {
	n := checkedRules(t)
	docs, order := keyed(24)
	for i, id := range order {
		docs[id] = strings.Repeat(fmt.Sprintf("ORDER: K-%d\nTOTAL: %d\n", i%7, i), 1+i%4*3)
	}
	apart := func(id mapreduce.JobID) (found bool) {
		position := make(map[mapreduce.UnitID]int)
		for i, u := range n.tasks(id) {
			position[u.Unit] = i
			for k := 1; k < len(u.DependsOn); k++ {
				found = found || position[u.DependsOn[k]] != position[u.DependsOn[k-1]]+1
			}
		}
		return found
	}
	var records []string
	for _, tt := range []struct {
		name  string
		ask   ask
		apart bool
	}{
		{"by size", ask{budget(60)}, true},
		{"in order", ask{piped(folded), budget(60)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := extracting(t, listOfOrders)
			for _, a := range tt.ask {
				a(&spec)
			}
			id, got := n.run(spec, texts(docs, order...))
			if units := len(n.tasks(id)); units < 24+4 {
				t.Fatalf("%d units: it shows too little", units)
			}
			if got := apart(id); got != tt.apart {
				t.Errorf("reduces take what is no neighbours: %t, want %t", got, tt.apart)
			}
			var rows []string
			for _, r := range got.bare() {
				rows = append(rows, fmt.Sprint(r["order"], r["total"], r["_sources"]))
			}
			if records == nil {
				records = rows
			}
			if diff := cmp.Diff(records, rows); diff != "" {
				t.Errorf("records (-by size +in order):\n%s", diff)
			}
		})
	}
	n.sound()
}

const listOfOrders = `
title: orders
type: array
items:
  type: object
  properties:
    order: {type: string, x-coditect: {labels: [ORDER]}}
    total: {type: number, x-coditect: {labels: [TOTAL]}}
x-coditect: {key: [order, total]}
`

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
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	c.workerFor("anthropic", newCashier(t, "anthropic", fake), worker.Config{Slots: 4}, n)
	docs, order := make(map[string]string), []string(nil)
	var want []string
	for i := range 16 {
		id := fmt.Sprintf("%02d.txt", i)
		docs[id] = fmt.Sprintf("id: C-1\nabout: In chapter %d the company %s, and nobody ever forgot the noise that it made.\n", i, strings.Repeat("built rockets and sold springs ", 2))
		order, want = append(order, id), append(want, strconv.Itoa(i))
	}
	spec := extracting(t, `{"type":"object","properties":{"id":{"type":"string"},"about":{"type":"string","description":"What it does"}},"x-coditect":{"key":["id"]}}`)
	spec.Provider, spec.Model = "anthropic", "m"
	piped(folded)(&spec)
	spec.Vars = nil
	budget(600)(&spec)
	id, got := n.run(spec, texts(docs, order...))
	got.cited(t, map[string]string{})
	if broken == 0 {
		t.Error("no attempt broke off: it shows too little")
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("chapters in the order in which they were read (-want +got):\n%s", diff)
	}
	if len(got.records) != 1 || !strings.HasPrefix(fmt.Sprint(got.records[0]["about"]), "It was built in the end [REF_") {
		t.Errorf("records are %v", got.records)
	}
	final := n.units(id)[mapreduce.FinalUnit]
	if final == nil || final.Attempts != 2 || slices.Contains(final.Errors, "") {
		t.Errorf("final unit: %+v, want a second attempt", final)
	}
	n.sound()
}

func reply(answer any) fakellm.Reply {
	raw, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return fakellm.Reply{Text: string(raw)}
}
