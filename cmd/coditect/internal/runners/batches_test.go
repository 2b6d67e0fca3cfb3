package runners_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/worker/step"
)

// What is asked in real time though a job goes by batch is said, and nothing of a job that does not.
func TestAdviseOnBatches(t *testing.T) {
	for name, c := range map[string]struct {
		vars map[string]string
		want string // in its only line; "" if there is none
	}{
		"no batch":               {map[string]string{"see": "auto"}, ""},
		"a batch":                {map[string]string{"tier": "batch"}, ""},
		"a batch, and no pages":  {map[string]string{"tier": "batch", "see": "never"}, ""},
		"a batch, and pictures":  {map[string]string{"tier": "batch", "see": "auto"}, "--see auto"},
		"a batch, and all pages": {map[string]string{"tier": "batch", "see": "always"}, "--see always"},
	} {
		spec := &mapreduce.JobSpec{Pipeline: "extract", Provider: "openai", Model: "gpt-4.1-mini", Schema: []byte(`{"type":"object","properties":{"total":{"type":"number"}}}`), Vars: c.vars}
		lines := runners.AdviseOnBatches(spec)
		if (len(lines) > 0) != (c.want != "") || len(lines) == 1 && !strings.Contains(lines[0], c.want) || len(lines) > 1 {
			t.Errorf("%s: %q, want %q", name, lines, c.want)
		}
	}

	tools := []byte("name: own\nstages:\n- {name: look, from: documents, each: all, tools: [fetch], agent: {role: reader}, task: Find, output: {kind: items, schema: {type: object, properties: {a: {type: string}}}}}\n")
	if _, err := step.PipelineOf(&mapreduce.JobSpec{Pipeline: "own", Definition: tools}); err != nil {
		t.Fatal(err)
	}
	if _, err := step.PipelineOf(&mapreduce.JobSpec{Pipeline: "own", Definition: tools}); err != nil {
		t.Fatal(err)
	}
	lines := runners.AdviseOnBatches(&mapreduce.JobSpec{Pipeline: "own", Definition: tools, Provider: "openai", Model: "gpt-4.1-mini", Vars: map[string]string{"tier": "batch"}})
	if len(lines) != 1 || !strings.Contains(lines[0], "stage look has tools") {
		t.Errorf("a stage with tools: %q", lines)
	}
}

// What an account may have of batches is what its vendor gives anybody, unless it is set: for a model, or for all of its
// provider.
func TestBatchRoom(t *testing.T) {
	var r runners.Runners
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	r.Limits.AddFlags(f)
	if err := f.Parse([]string{"--rate", "openai/gpt-4.1-mini=batch-tokens:2000000", "--rate", "openai=batch-tokens:90000", "--rate", "openai=batches:7", "--rate", "anthropic=batch-calls:500000", "--rate", "gemini=batches-hour:3"}); err != nil {
		t.Fatal(err)
	}
	limits, err := r.Limits.ModelLimits()
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]protocol.BatchRoom{
		"openai/gpt-4.1-mini":        {Tokens: 2_000_000, Batches: 7, Creates: 2000},
		"openai/gpt-4.1":             {Tokens: 90_000, Batches: 7, Creates: 2000},
		"anthropic/claude-haiku-4-5": {Lines: 500_000},
		"gemini/gemini-2.5-flash":    {Batches: 100, Creates: 3},
		"groq/m":                     {},
		"mistral/m":                  {},
	} {
		if got := limits(model).Batches; got != want {
			t.Errorf("%s: %+v, want %+v", model, got, want)
		}
	}
}
