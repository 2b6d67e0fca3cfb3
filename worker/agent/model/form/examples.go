package form

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/agent/model/prompt"
)

const examplesHeading = "\nEXAMPLES. They show how to answer; nothing in them is of the document that you are given.\n"

// ShowExamples shows the few that a stage has, as answers in the form.
func (f *Form) ShowExamples(s *pipeline.Stage) (string, error) { return f.showExamples(s, false) }

// ShowShortExamples shows them as short answers.
func (f *Form) ShowShortExamples(s *pipeline.Stage) (string, error) { return f.showExamples(s, true) }

func (f *Form) showExamples(s *pipeline.Stage, short bool) (string, error) {
	if len(s.Examples) == 0 {
		return "", nil
	}

	var b strings.Builder
	b.WriteString(examplesHeading)
	for i, e := range s.Examples {
		answer, err := json.Marshal(f.exampleAnswer(e.Records, short))
		if err != nil {
			return "", err
		}

		mark := prompt.Mark(e.Document)
		fmt.Fprintf(&b, "EXAMPLE %d, between the lines <example %s> and </example %s>:\n<example %s>\n%s\n</example %s>\nITS ANSWER: %s\n",
			i+1, mark, mark, mark, e.Document, mark, answer)
	}

	return b.String(), nil
}

// exampleAnswer is the answer that an example's records are.
func (f *Form) exampleAnswer(records []pipeline.Record, short bool) any {
	all := make([]dict, len(records))
	for i, r := range records {
		all[i] = f.exemplaryRecord(r, short)
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

func (f *Form) exemplaryRecord(r pipeline.Record, short bool) dict {
	var fields dict
	missing := []dict{}
	for _, field := range f.Fields {
		p := field.Property
		if p.Type == schema.Array {
			p = p.Items
		}

		found := []any{}
		for _, x := range r[field.Path] {
			value, err := p.Normalize(x.Value)
			if err != nil {
				value = x.Value // which was checked
			}

			told := []any{Told(p, value)}
			if entries, ok := told[0].([]any); ok && p.Type == schema.Map {
				told = entries
			}

			for _, one := range told {
				if short && !field.Property.Hints.Derived {
					found = append(found, one)
					continue
				}
				found = append(found, dict{{"value", one}, {"quotes", []string{x.Quote}}, {"confidence", 1}})
			}
		}

		fields = append(fields, pair{field.Key, found})
		if len(found) == 0 {
			missing = append(missing, dict{{"field", field.Key}, {"reason", "the document does not say"}})
		}
	}

	if short {
		return dict{{"fields", fields}}
	}
	return dict{{"fields", fields}, {"not_found", missing}}
}
