package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/agent"
)

// pipelineOf returns the pipeline of a job: the one that it brings with it, or one
// that comes with the program.
func pipelineOf(spec *mapreduce.JobSpec) (*pipeline.Pipeline, error) {
	if len(spec.Definition) == 0 {
		return pipeline.Preset(cmp.Or(spec.Pipeline, "extract"))
	}
	return pipeline.Parse("pipeline", spec.Definition)
}

// stages are the stages of a pipeline by the kinds of their units.
type stages struct {
	mapping *pipeline.Stage // of map units
	group   *pipeline.Stage // of reduces
	direct  *pipeline.Stage // of the direct unit; nil if there is none
}

// stagesOf returns the stages of a pipeline, or an error if it has none for map units
// or reduces.
func stagesOf(p *pipeline.Pipeline) (stages, error) {
	var s stages
	for _, stage := range p.Stages {
		switch stage.Each {
		case pipeline.EachDocument, pipeline.EachChunk:
			s.mapping = stage
		case pipeline.EachGroup:
			s.group = stage
		case pipeline.EachAll:
			s.direct = stage
		}
	}
	if s.mapping == nil || s.group == nil {
		return s, fmt.Errorf("the pipeline %s needs a stage with each: document or chunk, and one with each: group", p.Name)
	}
	return s, nil
}

// fixedOf is what the agent of a stage is told whatever its unit works on: the texts of
// the pipeline and what follows them, or what is told by default if it has none.
func (p *program) fixedOf(s *pipeline.Stage, vars map[string]string, then, otherwise string) (string, error) {
	if s.Agent == nil {
		return otherwise, nil
	}
	fixed, err := p.pipeline.Fixed(s.Name, vars)
	return fixed + then, err
}

// own is what the pipeline tells the agent of a stage of the unit's documents.
func (s *session) own(stage *pipeline.Stage, docs []pipeline.Document) (string, error) {
	text, err := s.pipeline.Own(stage.Name, s.task.Spec.Vars, docs)
	if err != nil {
		return "", agent.Permanent(err) // another attempt has the same document
	}
	return text, nil
}

// documentOf is what templates may say of the unit's document.
func documentOf(t *mapreduce.Text) []pipeline.Document {
	return []pipeline.Document{{ID: string(t.Document), Metadata: t.Metadata}}
}

const examplesHeading = "\nEXAMPLES. They show how to answer; nothing in them is of the document that you are given.\n"

// examples shows the few that a stage has, as answers in the form.
func (f *form) examples(s *pipeline.Stage) (string, error) {
	if len(s.Examples) == 0 {
		return "", nil
	}
	var b strings.Builder
	b.WriteString(examplesHeading)
	for i, e := range s.Examples {
		answer, err := json.Marshal(f.exemplary(e.Records))
		if err != nil {
			return "", err
		}
		mark := markFor(e.Document)
		fmt.Fprintf(&b, "EXAMPLE %d, between the lines <example %s> and </example %s>:\n<example %s>\n%s\n</example %s>\nITS ANSWER: %s\n",
			i+1, mark, mark, mark, e.Document, mark, answer)
	}
	return b.String(), nil
}

// exemplary is the answer that an example's records are.
func (f *form) exemplary(records []pipeline.Record) any {
	all := make([]dict, len(records))
	for i, r := range records {
		all[i] = f.exemplaryRecord(r)
	}
	if f.schema.Kind != schema.KindRecords {
		return all[0]
	}
	none := ""
	if len(all) == 0 {
		none = "the document has none"
	}
	return dict{{"records", all}, {"no_records", none}}
}

func (f *form) exemplaryRecord(r pipeline.Record) dict {
	var fields dict
	missing := []dict{}
	for _, field := range f.fields {
		p := field.Property
		if p.Type == schema.Array && p.Items != nil {
			p = p.Items
		}
		found := []dict{}
		for _, x := range r[field.Path] {
			value, err := p.Normalize(x.Value)
			if err != nil {
				value = x.Value // which was checked
			}
			found = append(found, dict{{"value", value}, {"quotes", []string{x.Quote}}, {"confidence", 1}})
		}
		fields = append(fields, pair{field.key, found})
		if len(found) == 0 {
			missing = append(missing, dict{{"field", field.key}, {"reason", "the document does not say"}})
		}
	}
	return dict{{"fields", fields}, {"not_found", missing}}
}
