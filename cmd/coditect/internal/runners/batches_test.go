package runners_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
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
