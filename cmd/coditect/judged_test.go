package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

var lineForm = regexp.MustCompile(`(?m)^(id|seat): (.+)$`)

// registrar is a model that reads the entries of a register, and of two seats
// takes the second.
func registrar(c fakellm.Call) fakellm.Reply {
	var said any = map[string]any{"answers": []any{map[string]any{
		"question": 1, "option": 2, "text": "", "same": false, "refs": []string{}, "confidence": 0.7, "reason": "it is the newer entry",
	}}}
	if !strings.Contains(c.System, "Synthesis Agent") {
		fields := map[string]any{"id": []any{}, "seat": []any{}}
		for _, m := range lineForm.FindAllStringSubmatch(c.Turns[0].Text, -1) {
			fields[m[1]] = []any{map[string]any{"value": m[2], "quotes": []string{m[0]}, "confidence": 0.9}}
		}
		said = map[string]any{"fields": fields, "not_found": []any{}}
	}
	raw, err := json.Marshal(said)
	if err != nil {
		panic(err) // texts and numbers
	}
	return fakellm.Reply{Text: string(raw)}
}

// TestWhatAModelDecides stands in the result as a conflict, with both values, what
// is cited for each, and the model's reason.
func TestWhatAModelDecides(t *testing.T) {
	s := newStudio(t, fakellm.Config{Model: registrar, Key: modelKey})
	s.write("schema.yaml", "type: object\nproperties:\n  id: {type: string}\n  seat: {type: string}\nx-coditect: {key: [id]}\n")
	s.write("docs/a.txt", "id: C-1\nseat: Berlin\n")
	s.write("docs/b.txt", "id: C-1\nseat: Hamburg\n")
	if o := s.ask("out"); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	r := s.result("out")
	s.cites(r)
	data, err := os.ReadFile(s.path(filepath.Join("out", "result.json")))
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Conflicts []struct {
			Field, Strategy, Rationale string
			Key                        map[string]any
			Chosen                     any
			Unit                       string `json:"unit_id"`
			Candidates                 []struct {
				Value     any
				Citations []string
			}
		} `json:"conflict_resolutions"`
	}
	s.decode(string(data), &said)
	if len(r.Records) != 1 || len(said.Conflicts) != 1 {
		t.Fatalf("%d records and conflicts %+v, want one of each", len(r.Records), said.Conflicts)
	}
	c := said.Conflicts[0]
	if c.Field != "seat" || c.Strategy != "model" || c.Rationale != "a model chose: it is the newer entry" || c.Key["id"] != "C-1" || c.Unit == "" {
		t.Errorf("conflict: %+v", c)
	}
	if len(c.Candidates) != 2 || c.Chosen != r.Records[0]["seat"] {
		t.Fatalf("chosen %v of %+v, and the record has %v", c.Chosen, c.Candidates, r.Records[0]["seat"])
	}
	for _, one := range c.Candidates {
		if len(one.Citations) != 1 || r.Cited[one.Citations[0]].Quote != "seat: "+one.Value.(string) {
			t.Errorf("%v cites %v", one.Value, one.Citations)
		}
	}
}

// TestCallsAreCounted in metrics.json, of each unit and level, with their tokens: as
// many as the model answered.
func TestCallsAreCounted(t *testing.T) {
	s := newStudio(t, fakellm.Config{Model: registrar, Key: modelKey, Fault: fakellm.First(1, fakellm.Prose)})
	s.write("schema.yaml", "type: object\nproperties:\n  id: {type: string}\n  seat: {type: string}\nx-coditect: {key: [id]}\n")
	s.write("docs/a.txt", "id: C-1\nseat: Berlin\n")
	s.write("docs/b.txt", "id: C-1\nseat: Hamburg\n")
	if o := s.ask("out"); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	data, err := os.ReadFile(s.path(filepath.Join("out", "metrics.json")))
	if err != nil {
		t.Fatal(err)
	}
	type sums struct {
		Calls int64 `json:"model_calls"`
		In    int64 `json:"tokens_in"`
		Out   int64 `json:"tokens_out"`
	}
	var said struct {
		Job    sums
		Levels []sums
		Calls  []sums
	}
	s.decode(string(data), &said)
	var want sums
	for _, e := range s.fake.Entries() {
		want.Calls, want.In, want.Out = want.Calls+1, want.In+e.In(), want.Out+e.Output
	}
	for name, all := range map[string][]sums{"levels": said.Levels, "calls": said.Calls} {
		var got sums
		for _, one := range all {
			got.Calls, got.In, got.Out = got.Calls+one.Calls, got.In+one.In, got.Out+one.Out
		}
		if got != want {
			t.Errorf("%s add up to %+v, and the model counts %+v", name, got, want)
		}
	}
	if said.Job.In != want.In || said.Job.Out != want.Out {
		t.Errorf("the job has %+v, and the model counts %+v", said.Job, want)
	}
}
