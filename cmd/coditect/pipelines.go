package main

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/worker/agent/model"
)

// extractPipeline is the pipeline that comes with the program.
const extractPipeline = "extract"

// readPipeline enters the pipeline that --pipeline names in a job.
func (j *jobFlags) readPipeline(s *mapreduce.JobSpec) error {
	if j.pipeline == extractPipeline {
		s.Pipeline = extractPipeline
		return nil
	}
	data, err := os.ReadFile(j.pipeline)
	if err != nil {
		return usage("--pipeline: is neither %s nor a file that can be read: %w", extractPipeline, err)
	}
	p, err := pipeline.Parse(j.pipeline, data)
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Field == "pipeline" {
		return usage("--pipeline: %s", e.Message)
	}
	if err != nil {
		return usage("--pipeline: %s: %v", j.pipeline, err) // whose field is none of the command's
	}
	s.Pipeline, s.Definition = p.Name, p.Canonical()
	return knownVariables(p, s)
}

// knownVariables refuses variables that nothing of a job with a pipeline of its
// own would look at: one that is misspelled would else be without effect.
func knownVariables(p *pipeline.Pipeline, s *mapreduce.JobSpec) error {
	if s.Provider == scriptedProvider {
		return nil // its script is in variables
	}
	known := slices.Concat(slices.Sorted(maps.Keys(p.Inputs)), model.Variables())
	for _, v := range slices.Sorted(maps.Keys(s.Vars)) {
		if !slices.Contains(known, v) {
			return usage("--var: %q is neither an input of the pipeline %s nor a setting of models; there is %s", v, p.Name, strings.Join(known, ", "))
		}
	}
	for _, v := range model.Variables() {
		if _, both := p.Inputs[v]; both {
			return usage("--pipeline: inputs: %q is the name of a setting of models; give the input another", v)
		}
	}
	return nil
}
