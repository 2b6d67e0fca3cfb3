package step

import (
	"cmp"
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/worker/agent"
)

// PipelineOf returns the pipeline of a job: the one that it brings with it, or one
// that comes with the program.
func PipelineOf(spec *mapreduce.JobSpec) (p *pipeline.Pipeline, err error) {
	if len(spec.Definition) == 0 {
		p, err = pipeline.Preset(cmp.Or(spec.Pipeline, "extract"))
	} else {
		p, err = pipeline.Parse("pipeline", spec.Definition)
	}
	if err != nil {
		return nil, err
	}

	p, _ = p.Bind(spec.Vars) // whoever took the job has warned of what is wrong
	return p, nil
}

// Specify returns what the pipeline of a job says of a stage; nil of no stage.
func Specify(spec *mapreduce.JobSpec, stage string) (*agent.StageSpec, error) {
	if stage == "" {
		return nil, nil
	}

	p, err := PipelineOf(spec)
	if err != nil {
		return nil, err
	}

	s := p.Stage(stage)
	if s == nil {
		return nil, fmt.Errorf("the pipeline %s has no stage %q", p.Name, stage)
	}

	out := &agent.StageSpec{
		Name: s.Name, Documents: s.From == pipeline.Documents, Group: s.Each == pipeline.EachGroup,
		Each: s.Each, Order: s.Order, Passage: s.Passage, Tokens: s.Limits.Tokens, Context: s.Limits.Context, Tools: s.Tools, Turns: s.Limits.Turns, ToolCalls: s.Limits.ToolCalls, Output: agent.OutputKind(s.Output.Kind), Schema: s.Output.Form(), Merge: s.Merge,
		Passages: p.ReadsPassages(s), Query: p.Texts(spec.Vars).Query(s), Size: s.Size, Check: s.Check, Choices: p.Choices(s),
		Parameters: s.Parameters, Cascade: s.Cascade, Review: s.Review,
	}

	// A stage without a query of its own is about the question of the job.
	if question, ok := spec.Vars["question"]; ok && out.Query == "" {
		out.Query = question
	}

	for _, name := range s.Sources() {
		if from := p.Stage(name); from != nil && from.Output.Kind == pipeline.OutputRecords {
			out.Reads = append(out.Reads, orElse(from.Output.Schema, spec.Schema))
		}
	}

	return out, nil
}

func orElse(a, b []byte) []byte {
	if len(a) > 0 {
		return a
	}
	return b
}

// Needs returns the kind of step that units of a stage need, beside the parsing of
// documents, so that a job can be refused whose provider has none.
func (r *Registry) Needs(spec *mapreduce.JobSpec, stage string) (Kind, error) {
	s, err := Specify(spec, stage)
	if err != nil {
		return "", err
	}
	return r.KindOf(mapreduce.KindMap, s)
}
