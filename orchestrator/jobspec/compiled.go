package jobspec

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
)

// A Compiled is the stages of a job, with the schemas of the records that they
// make. It never changes.
type Compiled struct {
	Pipeline *pipeline.Pipeline
	Schemas  []*schema.Schema // by stage; nil of one that makes no records
}

// Compile returns the stages of a job. A schema that cannot be read becomes one that no
// record fits.
func Compile(spec *mapreduce.JobSpec) (*Compiled, error) {
	p, err := pipelineOf(spec)
	if err != nil {
		return nil, err
	}
	s := &Compiled{Pipeline: p, Schemas: make([]*schema.Schema, len(p.Stages))}
	for i, stage := range p.Stages {
		if stage.Output.Kind != pipeline.OutputRecords {
			continue
		}
		text := spec.Schema
		if stage.Output.Schema != nil {
			text = stage.Output.Schema
		}
		if s.Schemas[i], err = schema.Parse("schema", text); err != nil {
			s.Schemas[i] = new(schema.Schema) // no record fits it, and workers say what is wrong with it
		}
	}
	return s, nil
}
