package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// Derived values go through the engine with their formulas: those that follow stand in the
// record and under _derived, never under _citations; those that do not are refused with what
// was computed.
func TestDerivedValuesThroughTheEngine(t *testing.T) {
	finding := func(value any, formula string, quotes ...string) []any {
		return []any{map[string]any{"value": value, "quotes": quotes, "formula": formula, "confidence": 0.99}}
	}
	fake := fakellm.New(fakellm.Config{Model: func(c fakellm.Call) fakellm.Reply {
		if !strings.Contains(c.System, "total, term, wrong, kind") || !strings.Contains(c.System, "percent(part, whole)") {
			t.Errorf("the model is not told of derived fields: %.400s", c.System)
		}
		return reply(map[string]any{"not_found": []any{}, "fields": map[string]any{
			"rent":  []any{map[string]any{"value": 1200.5, "quotes": []string{"Rent: 1,200.50"}, "confidence": 0.9}},
			"total": finding(1500.75, "1200.50 + 300.25", "Rent: 1,200.50", "Heating: 300.25"),
			"term":  finding("P1Y", "duration(2025-01-01, 2025-12-31)", "1 January 2025", "31 December 2025"),
			"wrong": finding(1600, "sum(1200.50, 300.25)", "Rent: 1,200.50", "Heating: 300.25"),
			"kind":  finding("lease", "", "Rent: 1,200.50"),
		}})
	}})
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.WorkerFor("anthropic", newCashier(t, "anthropic", fake), worker.Config{}, n)
	spec := enginetest.Extracting(t, `{"type":"object","properties":{"rent":{"type":"number"},
		"total":{"type":"number","x-coditect":{"derived":true}},
		"term":{"type":"string","format":"duration","x-coditect":{"derived":true}},
		"wrong":{"type":"number","x-coditect":{"derived":true}},
		"kind":{"enum":["lease","sale"],"x-coditect":{"derived":true}}}}`)
	spec.Provider, spec.Model = "anthropic", "m"
	_, got := n.Run(spec, enginetest.Texts(map[string]string{
		"a.txt": "Rent: 1,200.50\nHeating: 300.25\nFrom 1 January 2025 to 31 December 2025.\n",
	}, "a.txt"))

	record := got.Records[0]
	if record["total"] != json.Number("1500.75") && fmt.Sprint(record["total"]) != "1500.75" || record["term"] != "P1Y" || record["wrong"] != nil || record["kind"] != "lease" {
		t.Errorf("the record is %v", record)
	}
	cited, _ := record["_citations"].(map[string]any)
	if len(cited) != 1 || cited["rent"] == nil {
		t.Errorf("as quoted count %v", cited)
	}
	derived, _ := record["_derived"].(map[string]any)
	shown := map[string]string{}
	for field, v := range derived {
		one := v.(map[string]any)
		shown[field] = fmt.Sprintf("%v = %v by %d", one["formula"], one["computed"], len(one["citations"].([]any)))
	}
	want := map[string]string{
		"total": "1200.50 + 300.25 = 1500.75 by 2", "term": "duration(2025-01-01, 2025-12-31) = P1Y by 2", "kind": "<nil> = <nil> by 1",
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("derived (-want +got):\n%s", diff)
	}
	refused, _ := record["_unverified"].(map[string]any)["wrong"].(map[string]any)
	if refused["constraint"] != "derived" || !strings.Contains(fmt.Sprint(refused["message"]), "gives 1500.75, not 1600") {
		t.Errorf("what does not follow is shown as %v", refused)
	}
	sure, _ := record["_confidence"].(map[string]any)
	if of := func(field string) string { return fmt.Sprint(sure[field]) }; of("total") != "0.85" || of("kind") != "0.4" {
		t.Errorf("confidences are %v", sure)
	}
	n.Sound()
}
