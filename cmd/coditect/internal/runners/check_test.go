package runners_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners/asked"
	"github.com/coditect/mapreduce/orchestrator"
)

// TestSpecCheck: the service refuses what the command line refuses, with the field.
func TestSpecCheck(t *testing.T) {
	const good = `{"type":"object","properties":{"a":{"type":"string"}}}`
	r := runners.Runners{Getenv: func(string) string { return "" }}
	r.Models.Fleet = true
	check, err := r.SpecCheck()
	if err != nil {
		t.Fatal(err)
	}
	anthropic := func(vars map[string]string) mapreduce.JobSpec {
		return mapreduce.JobSpec{Schema: []byte(good), Provider: "anthropic", Model: "claude-sonnet-4-5", Vars: vars}
	}
	// A job whose second stage has parameters, and a model of its own by an alias.
	staged := func(set, alias string, vars ...string) mapreduce.JobSpec {
		spec := anthropic(make(map[string]string))
		for i := 0; i < len(vars); i += 2 {
			spec.Vars[vars[i]] = vars[i+1]
		}
		spec.Models = map[string]string{"big": "anthropic/claude-opus-5", "small": "anthropic/claude-haiku-4-5", "google": "gemini/gemini-3-flash", "none": "rules/"}
		spec.Pipeline, spec.Definition = "own", []byte("name: own\nstages:\n- {name: map, each: document}\n- {name: reduce, each: group, model: "+alias+", parameters: "+set+"}\n")
		return spec
	}
	// A job with two agents; one has models of its own.
	agents := func(set, own string, vars ...string) mapreduce.JobSpec {
		spec := staged("{}", "big", vars...)
		spec.Model = "claude-opus-5"
		spec.Definition = []byte("name: own\nagents:\n  one: {role: One, goal: Find}\n  two: {role: Two, goal: Find, model: '" + own + "'}\nstages:\n" +
			"- {name: look, from: documents, each: agent, agents: [one, two], tools: [fetch], task: Find, parameters: " + set + ", output: {kind: items, schema: {type: object, properties: {a: {type: string}}}}}\n" +
			"- {name: report, from: look, each: all, agent: {role: Writer}, task: Write, output: report}\n")
		return spec
	}
	tests := []struct {
		name  string
		spec  mapreduce.JobSpec
		field string // "" if the job is accepted
	}{
		{"a good job", mapreduce.JobSpec{Schema: []byte(good)}, ""},
		{"a good job of a model", anthropic(nil), ""},
		{"no schema", mapreduce.JobSpec{}, "schema"},
		{"a schema that is no JSON", mapreduce.JobSpec{Schema: []byte(`{"type":`)}, "schema"},
		{"a schema without properties", mapreduce.JobSpec{Schema: []byte(`{"type":"object","additionalProperties":false}`)}, "schema"},
		{"an unknown hint", mapreduce.JobSpec{Schema: []byte(`{"type":"object","properties":{"a":{"type":"string","x-coditect":{"lable":"A"}}}}`)}, "schema"},
		{"a pattern that is none", mapreduce.JobSpec{Schema: []byte(`{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}`)}, "schema"},
		{"a hostile hint", mapreduce.JobSpec{Schema: []byte(`{"type":"object","properties":{"a":{"type":"string","x-coditect":{"pattern":"` + strings.Repeat("(a?)", 3000) + `"}}}}`)}, "schema"},
		{"a hostile pattern", mapreduce.JobSpec{Schema: []byte(`{"type":"object","properties":{"a":{"type":"string","pattern":"` + strings.Repeat("(?=", 300) + `"}}}`)}, "schema"},
		{"an unknown provider", mapreduce.JobSpec{Schema: []byte(good), Provider: "clippy"}, "provider"},
		{"no model", mapreduce.JobSpec{Schema: []byte(good), Provider: "openai"}, "model"},
		{"a model for rules", mapreduce.JobSpec{Schema: []byte(good), Model: "gpt"}, "model"},
		{"reviews by rules", mapreduce.JobSpec{Schema: []byte(good), Vars: map[string]string{"glean": "1"}}, "vars.glean"},
		{"a setting that is no number", anthropic(map[string]string{"glean": "many"}), "vars.glean"},
		{"an answer of no tokens", anthropic(map[string]string{"max_answer": "1"}), "vars.max_answer"},
		{"an unknown way to merge", anthropic(map[string]string{"merge": "magic"}), "vars.merge"},
		{"a window without room", anthropic(map[string]string{"window": "64"}), "vars.window"},
		{"an effort that is none", anthropic(map[string]string{"effort": "hard"}), "vars.effort"},
		{"an effort of a model that has none", anthropic(map[string]string{"effort": "low"}), "vars.effort"},
		{"a budget of a model that has one", anthropic(map[string]string{"thinking_budget": "2000"}), ""},
		{"an effort of the first of two models", mapreduce.JobSpec{Schema: []byte(good), Model: "anthropic/claude-opus-5,anthropic/claude-haiku-4-5", Vars: map[string]string{"effort": "low"}}, ""},
		{"an effort of the second of two models", mapreduce.JobSpec{Schema: []byte(good), Model: "anthropic/claude-haiku-4-5,anthropic/claude-opus-5", Vars: map[string]string{"effort": "low"}}, "vars.effort"},
		{"a stage's effort of the second model", staged("{effort: low}", "'small,big'"), "stages[1].parameters.effort"},
		{"a stage's effort of the first model", staged("{effort: low}", "'big,small'"), ""},
		{"a temperature of rules", mapreduce.JobSpec{Schema: []byte(good), Vars: map[string]string{"temperature": "0"}}, "vars.temperature"},
		{"an effort of one stage's model", staged("{effort: low}", "big", "effort", "high"), ""},
		{"an effort of no model", staged("{}", "small", "effort", "high"), "vars.effort"},
		{"a stage with another's effort", staged("{effort: minimal}", "big"), "stages[1].parameters.effort"},
		{"a stage of rules with an effort", staged("{effort: low}", "none"), "stages[1].parameters"},
		{"an effort and a budget", staged("{effort: low, thinking_budget: 9}", "google"), "stages[1].parameters.thinking_budget"},
		{"a budget beside the run's effort", staged("{thinking_budget: 9}", "google", "effort", "low"), "stages[1].parameters.thinking_budget"},
		{"agents of two models", agents("{}", "small"), ""},
		{"an effort of a stage that one agent's model does not take", agents("{effort: low}", "small"), "stages[0].parameters.effort"},
		{"an effort of a stage that both agents' models take", agents("{effort: low}", "big"), ""},
		{"an effort of a stage that the first of an agent's models takes", agents("{effort: low}", "big,small"), ""},
		{"an effort of the run that an agent's model takes", func() mapreduce.JobSpec {
			spec := agents("{}", "big", "effort", "low")
			spec.Model = "claude-haiku-4-5"
			return spec
		}(), ""},
		{"an effort of the run that no model takes", func() mapreduce.JobSpec {
			spec := agents("{}", "small", "effort", "low")
			spec.Model = "claude-haiku-4-5"
			return spec
		}(), "vars.effort"},
		{"an agent's model by a provider that is none", agents("{}", "anthropic/claude-opus-5,clippy/one"), "agents.two.model[1]"},
		{"an agent's model that thinks for longer than the window", func() mapreduce.JobSpec {
			spec := agents("{}", "big", "effort", "max", "window", "60000")
			spec.Model = "claude-haiku-4-5"
			return spec
		}(), "vars.window"},
		{"dollars for a model with a price", mapreduce.JobSpec{Schema: []byte(good), Provider: "anthropic", Model: "claude-haiku-4-5", Budget: 1_000_000, BudgetIn: mapreduce.InDollars}, ""},
		{"dollars for a model without a price", mapreduce.JobSpec{Schema: []byte(good), Provider: "openai", Model: "gpt-of-tomorrow", Budget: 1_000_000, BudgetIn: mapreduce.InDollars}, "max_cost"},
		{"dollars for a model whose price the job brings", mapreduce.JobSpec{
			Schema: []byte(good), Provider: "openai", Model: "gpt-of-tomorrow", Budget: 1_000_000, BudgetIn: mapreduce.InDollars,
			Vars: map[string]string{"prices": "openai: {gpt-of-tomorrow: {input: 1, output: 2}}"},
		}, ""},
		{"dollars, and a model without a price stands for the other", mapreduce.JobSpec{Schema: []byte(good), Model: "anthropic/claude-haiku-4-5,openai/gpt-of-tomorrow", Budget: 1, BudgetIn: mapreduce.InDollars}, "max_cost"},
		{"tokens for a model without a price", mapreduce.JobSpec{Schema: []byte(good), Provider: "openai", Model: "gpt-of-tomorrow", Budget: 1_000_000}, ""},
		{"a tier that is none", anthropic(map[string]string{"tier": "cheap"}), "vars.tier"},
		{"flex of a vendor that has none", anthropic(map[string]string{"tier": "flex"}), "vars.tier"},
		{"a tier of rules", mapreduce.JobSpec{Schema: []byte(good), Vars: map[string]string{"tier": "flex"}}, "vars.tier"},
		{"flex of a model that has it", mapreduce.JobSpec{Schema: []byte(good), Provider: "openai", Model: "gpt-5.5", Vars: map[string]string{"tier": "flex"}}, ""},
		{"flex where it has room", mapreduce.JobSpec{Schema: []byte(good), Provider: "openai", Model: "gpt-5.5", Vars: map[string]string{"tier": "flex,standard"}}, ""},
		{"flex where it has room, of an older model", mapreduce.JobSpec{Schema: []byte(good), Provider: "openai", Model: "gpt-4.1", Vars: map[string]string{"tier": "flex,standard"}}, "vars.tier"},
		{"flex of an older model", mapreduce.JobSpec{Schema: []byte(good), Provider: "openai", Model: "gpt-4.1", Vars: map[string]string{"tier": "flex"}}, "vars.tier"},
		{"a stage's flex of a model without it", staged("{tier: flex}", "small"), "stages[1].parameters.tier"},
		{"a stage's flex of a model that has it", staged("{tier: flex}", "google"), ""},
		{"dollars in a tier with a price", mapreduce.JobSpec{
			Schema: []byte(good), Provider: "openai", Model: "gpt-5-mini", Budget: 1_000_000, BudgetIn: mapreduce.InDollars, Vars: map[string]string{"tier": "priority"},
		}, ""},
		{"dollars in a tier without a price", mapreduce.JobSpec{
			Schema: []byte(good), Provider: "openai", Model: "gpt-6.2-sol", Budget: 1_000_000, BudgetIn: mapreduce.InDollars, Vars: map[string]string{"tier": "priority"},
		}, "max_cost"},
		{"an alias for nothing", mapreduce.JobSpec{Schema: []byte(good), Models: map[string]string{"cheap": "haiku"}}, "model_aliases"},
		{"an unknown pipeline", mapreduce.JobSpec{Schema: []byte(good), Pipeline: "magic"}, "pipeline"},
		{"a tree with two budgets", mapreduce.JobSpec{Schema: []byte(good), TargetTokenBudget: new(int64(9)), ContextWindow: new(int64(9))}, "context_window"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			none := func(func(*mapreduce.Document, error) bool) {}
			_, err := orchestrator.Plan(t.Context(), orchestrator.Config{Check: check}, mapreduce.PlanQuery{Spec: tt.spec}, none)
			var e *errs.Error
			if tt.field == "" {
				tt.field = "documents" // of which there are none
			}
			if !errors.As(err, &e) || e.Kind != errs.Invalid || e.Field != tt.field {
				t.Errorf("got %v, want an invalid field %s", err, tt.field)
			}
		})
	}
}

// TestAdviceOnParameters: each model that is asked otherwise than the job says has one line.
func TestAdviceOnParameters(t *testing.T) {
	const opus, haiku, mini = "anthropic/claude-opus-5", "anthropic/claude-haiku-4-5", "openai/gpt-5-mini"
	for name, c := range map[string]struct {
		models    string
		vars      map[string]string
		endpoints map[string]string
		want      []string
	}{
		"all are taken":          {opus + "," + mini, map[string]string{"effort": "low"}, nil, nil},
		"nothing is given":       {opus + "," + haiku, nil, nil, nil},
		"one is left out":        {opus + "," + haiku, map[string]string{"effort": "low"}, nil, []string{haiku + " is asked without effort, since it takes no other"}},
		"the nearest is sent":    {opus + "," + mini + "," + haiku, map[string]string{"effort": "max", "stop": "END"}, nil, []string{mini + " is asked with effort high in place of max and without stop, since it takes no other", haiku + " is asked without effort, since it takes no other"}},
		"another's server":       {opus + "," + mini, map[string]string{"effort": "max"}, map[string]string{"openai": "http://localhost:1/v1"}, nil},
		"the address of a first": {opus + "," + mini, map[string]string{"effort": "max", "base_url": "http://localhost:1"}, nil, []string{mini + " is asked with effort high in place of max, since it takes no other"}},
	} {
		spec := mapreduce.JobSpec{Schema: []byte(`{"type":"object"}`), Vars: c.vars}
		if err := spec.SetModels(strings.Split(c.models, ",")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, asked.AdviseOnParameters(&spec, c.endpoints)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
