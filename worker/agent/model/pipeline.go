package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/agent"
)

// The steps of a pipeline, by the kinds of their units.
const (
	mapStep    = "map"
	reduceStep = "reduce"
	directStep = "direct"
)

// pipelineOf returns the pipeline that a job brings with it; nil if it has one
// that comes with the program.
func pipelineOf(spec *mapreduce.JobSpec) (*pipeline.Pipeline, error) {
	if len(spec.Definition) == 0 {
		return nil, nil
	}
	return pipeline.Parse("pipeline", spec.Definition)
}

// fixedOf is what the pipeline tells the agent of a step whatever it works on,
// or what it is told without a pipeline.
func fixedOf(p *pipeline.Pipeline, step string, vars map[string]string, otherwise, then string) (string, error) {
	if p == nil {
		return otherwise, nil
	}
	fixed, err := p.Fixed(step, vars)
	return fixed + then, err
}

// own is what the pipeline tells the agent of the unit's document.
func (s *session) own(step string, docs []pipeline.Document) (string, error) {
	if s.pipeline == nil {
		return "", nil
	}
	text, err := s.pipeline.Own(step, s.task.Spec.Vars, docs)
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

// examples shows the few that a pipeline has, as answers in the form.
func (f *form) examples(p *pipeline.Pipeline) (string, error) {
	if p == nil || len(p.Map.Examples) == 0 {
		return "", nil
	}
	if err := p.CheckExamples(f.schema); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(examplesHeading)
	for i, e := range p.Map.Examples {
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
