package reviewfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
)

// Bounds of examples, as pipelines have them.
const (
	maxExamples = 16
	maxDocument = 16 << 10 // bytes
)

// Examples are what was made of what people have decided.
type Examples struct {
	Count int            // of documents that are examples
	Left  map[string]int // documents that somebody has decided about and that are none, by why
}

// String says how many there are, and why not more.
func (e Examples) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "examples: %d", e.Count)
	for _, why := range slices.Sorted(maps.Keys(e.Left)) {
		fmt.Fprintf(&text, "; left out: %d, %s", e.Left[why], why)
	}
	return text.String()
}

// WriteExamples writes documents of a complete job as examples for a stage of a pipeline, in YAML: those of
// which people have decided about every field, with the passages on which the right values rest. A model learns
// from an example what is not to be found as well, so one of which some fields are undecided is none. There are
// at most as many as a stage may have, in the order of the result. If there is none it writes nothing and
// returns errs.Precondition, which says why.
func WriteExamples(ctx context.Context, out io.Writer, jobs mapreduce.Client, j *mapreduce.Job) (Examples, error) {
	made := Examples{Left: make(map[string]int)}
	s, err := schema.Parse("schema", j.Spec.Schema)
	if err != nil {
		return made, errs.New(errs.Precondition, "job %s has no schema, so nothing of it is an example", j.ID)
	}
	documents, err := exemplary(s, func(sink func(*mapreduce.ResultPart) error) error { return jobs.GetResult(ctx, j.ID, false, sink) })
	if err != nil {
		return made, err
	}

	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, d := range documents {
		if made.Count == maxExamples {
			made.Left[fmt.Sprintf("as a stage has at most %d", maxExamples)]++
			continue
		}
		node, why, err := d.example(ctx, jobs, j.ID, s)
		if err != nil {
			return made, err
		}
		if why != "" {
			made.Left[why]++
			continue
		}
		list.Content = append(list.Content, node)
		made.Count++
	}

	if made.Count == 0 {
		return made, errs.New(errs.Precondition, "no document is an example: people must have decided about each of its fields, with a passage for each value; %s", made)
	}
	return made, write(out, j.ID, list)
}

// write writes the examples as they stand below a stage.
func write(out io.Writer, id mapreduce.JobID, list *yaml.Node) error {
	file := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Value: "examples", HeadComment: "# Reviewed values of job " + string(id) + ", for a stage of a pipeline that reads documents."}, list,
	}}
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	return errors.Join(encoder.Encode(file), encoder.Close())
}

// A exemplaryDocument is a document with all of its records that somebody has decided about.
type exemplaryDocument struct {
	name      string
	records   []*record
	undecided bool // it has a record about which nobody has decided
}

// exemplary returns the documents of a result that somebody has decided about.
func exemplary(s *schema.Schema, read func(func(*mapreduce.ResultPart) error) error) ([]*exemplaryDocument, error) {
	all := make(map[string]*exemplaryDocument)
	var order []*exemplaryDocument
	plain := make(map[string]bool) // documents with records that nobody has decided about
	err := foldRecords(s, read, func(r *record) error {
		switch {
		case r.document == "":
			return nil
		case len(r.verdicts) == 0:
			plain[r.document] = true
			return nil
		}

		d := all[r.document]
		if d == nil {
			d = &exemplaryDocument{name: r.document}
			all[r.document], order = d, append(order, d)
		}
		d.records = append(d.records, r)
		return nil
	})
	for _, d := range order {
		d.undecided = plain[d.name]
	}
	return order, err
}

// example returns the document as an example, or why it is none.
func (d *exemplaryDocument) example(ctx context.Context, jobs mapreduce.Client, id mapreduce.JobID, s *schema.Schema) (node *yaml.Node, why string, err error) {
	if d.undecided {
		return nil, "with records that nobody has decided about", nil
	}
	for _, r := range d.records {
		if why := r.undecided(s); why != "" {
			return nil, why, nil
		}
	}

	text, err := d.read(ctx, jobs, id)
	if errors.Is(err, errLarge) {
		return nil, fmt.Sprintf("larger than %d KiB", maxDocument>>10), nil
	}
	if err != nil {
		return nil, "", err
	}

	e := pipeline.Example{Document: text, Records: []pipeline.Record{}}
	for _, r := range d.records {
		found, why := r.findings(s, text)
		if why != "" {
			return nil, why, nil
		}
		e.Records = append(e.Records, found)
	}

	// What a pipeline would refuse is no example, whatever the reason.
	one := &pipeline.Pipeline{Stages: pipeline.Stages{{Examples: []pipeline.Example{e}}}}
	if one.CheckExamples(s) != nil {
		return nil, "with values that do not stand in the text as they are", nil
	}
	return exampleNode(e), "", nil
}

// undecided says what keeps the record from being a part of an example; empty if nothing does.
func (r *record) undecided(s *schema.Schema) string {
	for _, f := range s.Fields() {
		if f.Property.Hints.Derived {
			continue // they follow from the others
		}
		switch r.verdicts[f.Path] {
		case mapreduce.ReviewAccept, mapreduce.ReviewCorrect, mapreduce.ReviewAbsent:
		case mapreduce.ReviewReject:
			return "with a value that is wrong and has no right one"
		default:
			return "without a decision about " + f.Path
		}
	}
	return ""
}

var errLarge = errors.New("too large for an example")

// read returns the text of the document.
func (d *exemplaryDocument) read(ctx context.Context, jobs mapreduce.Client, id mapreduce.JobID) (string, error) {
	unit := mapreduce.MapUnit(mapreduce.DocumentID(d.name))
	for _, r := range d.records {
		for _, c := range r.cited {
			if c.Unit != "" {
				unit = c.Unit
			}
		}
	}

	var text strings.Builder
	err := jobs.ReadText(ctx, id, unit, mapreduce.DocumentID(d.name), func(part []byte) error {
		if text.Len()+len(part) > maxDocument {
			return errLarge
		}
		text.Write(part)
		return nil
	})
	return text.String(), err
}

// findings returns the values of the record with their passages, or why one has none.
func (r *record) findings(s *schema.Schema, text string) (pipeline.Record, string) {
	found := make(pipeline.Record)
	for _, f := range s.Fields() {
		value := r.values[f.Path]
		if value == nil || f.Property.Hints.Derived {
			continue
		}

		list, several := value.([]any)
		property := f.Property
		if several && property.Items != nil {
			property = property.Items
		}
		if !several {
			list = []any{value}
		}
		for _, v := range list {
			quote := r.quoteOf(f.Path, property, v, text)
			if quote == "" {
				return nil, "with a value of " + f.Path + " without a passage"
			}
			found[f.Path] = append(found[f.Path], pipeline.Finding{Value: v, Quote: quote})
		}
	}
	return found, ""
}

// quoteOf returns the passage of a value: of the passages of the field the one that reads as the value, as
// it stands in the text. Of a field with one passage that is it, however it reads. A value that was typed has
// none, but where the text has it letter by letter.
func (r *record) quoteOf(field string, p *schema.Property, value any, text string) string {
	var quotes []string
	for _, ref := range r.refs[field] {
		c := r.cited[ref]
		if c != nil && c.ByteStart >= 0 && c.ByteStart < c.ByteEnd && c.ByteEnd <= int64(len(text)) {
			quotes = append(quotes, text[c.ByteStart:c.ByteEnd])
		}
	}

	want := textOf(value)
	for _, quote := range quotes {
		read, err := p.Normalize(quote)
		if err == nil && textOf(read) == want || strings.Contains(quote, want) {
			return quote
		}
	}
	_, several := r.values[field].([]any)
	switch {
	case len(quotes) == 1 && !several:
		return quotes[0]
	case len(quotes) == 0 && want != "" && strings.Contains(text, want):
		return want
	}
	return ""
}

// textOf is a value as it is written.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, _ := json.Marshal(v) // it was decoded from JSON
	return string(data)
}

// exampleNode is an example as it stands in a pipeline's file.
func exampleNode(e pipeline.Example) *yaml.Node {
	records := &yaml.Node{Kind: yaml.SequenceNode}
	for _, r := range e.Records {
		one := &yaml.Node{Kind: yaml.MappingNode}
		for _, field := range slices.Sorted(maps.Keys(r)) {
			found := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
			for _, f := range r[field] {
				found.Content = append(found.Content, &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: []*yaml.Node{
					textNode("value", 0), valueNode(f.Value), textNode("quote", 0), textNode(f.Quote, yaml.DoubleQuotedStyle),
				}})
			}
			one.Content = append(one.Content, textNode(field, 0), found)
		}
		records.Content = append(records.Content, one)
	}

	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{textNode("document", 0), documentNode(e.Document), textNode("records", 0), records}}
}

// documentNode is a text on lines of its own, if it is the same text when it is read again.
func documentNode(text string) *yaml.Node {
	lines := textNode(text, yaml.LiteralStyle)
	var again string
	data, err := yaml.Marshal(lines)
	if err == nil && yaml.Unmarshal(data, &again) == nil && again == text {
		return lines
	}
	return textNode(text, yaml.DoubleQuotedStyle)
}

func textNode(text string, style yaml.Style) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: style}
}

// valueNode is a value of JSON, with numbers as they are written.
func valueNode(v any) *yaml.Node {
	switch v := v.(type) {
	case string:
		return textNode(v, yaml.DoubleQuotedStyle)
	case []any:
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, one := range v {
			list.Content = append(list.Content, valueNode(one))
		}
		return list
	case map[string]any:
		object := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			object.Content = append(object.Content, textNode(name, yaml.DoubleQuotedStyle), valueNode(v[name]))
		}
		return object
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: textOf(v)}
}
