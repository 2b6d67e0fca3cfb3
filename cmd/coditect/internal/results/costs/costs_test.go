package costs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
)

// A cost is known only if the prices of all models are that the job asks; nothing is shown for free
// because nobody knows its price.
func TestCostOfModelsWithoutPrices(t *testing.T) {
	staged := []byte("name: own\nstages:\n- {name: map, each: document}\n- {name: reduce, each: group, model: mistral/large}\n")
	for name, c := range map[string]struct {
		spec     mapreduce.JobSpec
		micros   int64
		unpriced []string
		known    bool
	}{
		"rules":                   {mapreduce.JobSpec{Provider: "rules"}, 0, nil, true},
		"a price":                 {mapreduce.JobSpec{Provider: "anthropic", Model: "claude-haiku-4-5"}, 7, nil, true},
		"a price, and a date":     {mapreduce.JobSpec{Provider: "anthropic", Model: "claude-haiku-4-5-20251001"}, 7, nil, true},
		"a machine of one's own":  {mapreduce.JobSpec{Provider: "vllm", Model: "any"}, 0, nil, true},
		"none":                    {mapreduce.JobSpec{Provider: "openai", Model: "mine"}, 0, []string{"openai/mine"}, false},
		"none of another vendor":  {mapreduce.JobSpec{Provider: "gemini", Model: "gemini-9"}, 0, []string{"gemini/gemini-9"}, false},
		"a worker's own":          {mapreduce.JobSpec{Provider: "gemini", Model: "gemini-9"}, 7, []string{"gemini/gemini-9"}, true},
		"one of two":              {mapreduce.JobSpec{Provider: "anthropic", Model: "claude-haiku-4-5", Fallbacks: []string{"groq/llama"}}, 7, []string{"groq/llama"}, false},
		"another stage's":         {mapreduce.JobSpec{Provider: "anthropic", Model: "claude-haiku-4-5", Pipeline: "own", Definition: staged}, 7, []string{"mistral/large"}, false},
		"given with the job":      {mapreduce.JobSpec{Provider: "gemini", Model: "gemini-9", Vars: map[string]string{settings.VarPrices: "gemini: {gemini-9: {input: 0, output: 0}}"}}, 0, nil, true},
		"given for another model": {mapreduce.JobSpec{Provider: "gemini", Model: "gemini-9", Vars: map[string]string{settings.VarPrices: "gemini: {gemini-8: {input: 1, output: 1}}"}}, 0, []string{"gemini/gemini-9"}, false},
	} {
		if diff := cmp.Diff(c.unpriced, costs.PricingOf(&c.spec).Unpriced); diff != "" {
			t.Errorf("%s: unpriced (-want +got):\n%s", name, diff)
		}
		cost := costs.PricingOf(&c.spec).Cost(mapreduce.Tokens{In: 10}, c.micros)
		if (cost != nil) != c.known || cost != nil && *cost != float64(c.micros)/1e6 {
			t.Errorf("%s: cost %v, want it known: %v", name, cost, c.known)
		}
		if free := costs.PricingOf(&c.spec).Cost(mapreduce.Tokens{}, 0); free == nil || *free != 0 {
			t.Errorf("%s: no tokens cost %v", name, free)
		}
	}
	if got, want := costs.PriceAdvice([]string{"a/1", "b/2", "c/3", "d/4", "e/5"}), "a/1, b/2, c/3, d/4 and 1 more have no price here; run with --prices FILE, which sets it"; got != want {
		t.Errorf("advice %q, want %q", got, want)
	}
}
