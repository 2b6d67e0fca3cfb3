package jobspec_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
)

// Units whose calls go by batch need a worker that knows batches: the stage says so, else the job.
func TestRequirementsOfBatches(t *testing.T) {
	tier := func(word string) *pipeline.Stage {
		stage := new(pipeline.Stage)
		stage.Parameters.Tier = word
		return stage
	}
	reviewed := &pipeline.Stage{Review: waiting.Rule{When: []string{"unverified"}}}
	if !jobspec.Requirements(&mapreduce.JobSpec{}, reviewed).Reviewed || jobspec.Requirements(&mapreduce.JobSpec{}, tier("")).Reviewed {
		t.Error("values wait for a person, and any worker does; or none wait, and not every worker does")
	}
	batched := map[string]string{"tier": "batch"}

	for _, test := range []struct {
		name  string
		vars  map[string]string
		stage *pipeline.Stage
		want  bool
	}{
		{"no tier", nil, tier(""), false},
		{"the job's", batched, tier(""), true},
		{"the job's, of units that parse", batched, nil, false},
		{"the stage's", nil, tier("batch"), true},
		{"the stage's before the job's", batched, tier("flex"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			needs := jobspec.Requirements(&mapreduce.JobSpec{Provider: "openai", Vars: test.vars}, test.stage)
			if needs.Batched != test.want {
				t.Errorf("the units need a worker that knows batches: %t, want %t", needs.Batched, test.want)
			}
		})
	}
}
