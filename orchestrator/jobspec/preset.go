package jobspec

import (
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
)

// PresetOf returns the preset that a job runs, or "custom": what users name their own
// pipelines is not for labels.
func PresetOf(spec *mapreduce.JobSpec) string {
	isIt := func(p pipeline.PresetInfo) bool { return p.Name == spec.Pipeline }
	if len(spec.Definition) == 0 && slices.ContainsFunc(pipeline.Presets(), isIt) {
		return spec.Pipeline
	}
	return "custom"
}
