package ingest

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
)

// SketchedSizes returns what sizes texts for the plan of a submission, which are counted with count.
func SketchedSizes(count func(string) int) func(text string) int64 {
	k := &sketch{planning: new(planning)}
	k.planning.count = (&jobspec.Rules{Count: count}).Counter(new(mapreduce.JobSpec))
	return k.size
}
