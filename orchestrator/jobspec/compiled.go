package jobspec

import (
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Compiled is what the spec of a job comes to: the graph of its pipeline, and the
// schemas of the records that its stages make. It never changes.
type Compiled struct {
	Spec    *mapreduce.JobSpec // as it was submitted: its budget may have been raised since
	Graph   *plan.Graph
	Schemas []*schema.Schema // by stage; nil of one that makes no records
}

// Compile compiles a job with the graph of its pipeline.
func Compile(spec *mapreduce.JobSpec, graph *plan.Graph) *Compiled {
	stages := graph.Pipeline().Stages
	c := &Compiled{Spec: spec, Graph: graph, Schemas: make([]*schema.Schema, len(stages))}
	for i, stage := range stages {
		if stage.Output.Kind != pipeline.OutputRecords {
			continue
		}

		text := spec.Schema
		if stage.Output.Schema != nil {
			text = stage.Output.Schema
		}

		var err error
		if c.Schemas[i], err = schema.Shared(text); err != nil {
			c.Schemas[i] = new(schema.Schema) // no record fits it, and workers say what is wrong with it
		}
	}
	return c
}

// DirectUnit returns the id of the unit that takes all documents, if the pipeline may
// have one; else "".
func (c *Compiled) DirectUnit() mapreduce.UnitID {
	if c.Graph.Bundles() < 0 {
		return ""
	}
	return c.Graph.First(c.Graph.Bundles()).Unit
}

// StageOf returns the stage of a unit of the job, and the schema of the records that it makes,
// if it makes any.
func (c *Compiled) StageOf(u *records.Unit) (*pipeline.Stage, *schema.Schema, error) {
	if u.Stage < 0 || u.Stage >= int64(len(c.Schemas)) {
		return nil, nil, errs.New(errs.DataLoss, "unit %s is of stage %d, and the pipeline has %d", u.ID, u.Stage, len(c.Schemas))
	}
	return c.Graph.Pipeline().Stages[u.Stage], c.Schemas[u.Stage], nil
}
