// Package rules extracts records from text by the hints of a schema (labels,
// patterns, lines and phrases) and by the form of dates, numbers, addresses and
// the like. It needs no model and no network, spends nothing, and gives equal
// output for equal input.
//
// The work is linear in the length of any text: regular expressions are RE2 of
// bounded size, one automaton finds labels and phrases, and the text searched after
// a label is bounded. A caller can stop a run at any time.
//
// Package phrase below it finds labels and phrases, page what lines look like, field is a property
// prepared, and find finds its values; here these become records: of a whole text, of its paragraphs, or
// of the rows of its tables.
//
// It is pure. Of the project it imports api/schema with its packages, api/plural,
// internal/text/table and its own packages.
package rules

import (
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/field"
	"github.com/coditect/mapreduce/internal/text/rules/find"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
)

// A Unit is the text of one unit of work: a document, or a piece of one with
// context around its core. A value belongs to the core in which its quote begins,
// and one of many records to the core in which the record begins. A record that
// leaves the core is read to the end of Text.
type Unit struct {
	Text               string
	CoreStart, CoreEnd int  // bytes of Text; only what begins in [CoreStart, CoreEnd) counts
	First, Last        bool // whether Text begins and ends where the document does

	// Style is how the numbers of Text are written, as format.CountNumbers has it; nil has them
	// counted.
	Style *format.NumberStyle
}

// Document returns the unit of a whole document.
func Document(text string) Unit {
	return Unit{Text: text, CoreEnd: len(text), First: true, Last: true}
}

// An Output is what was found in a unit.
type Output struct {
	// Records holds one record for a schema of one record a document, even if
	// nothing was found. Otherwise it holds those that begin in the core.
	Records []Record
	Reason  string    // why there are no records
	Tables  []Table   // whose rows are records, or elements of lists, in order
	LeftOut []LeftOut // rows of these that are none, in the core, in order
}

// A Record is the fields of one record.
type Record struct {
	Start   int          // byte of Text at which the record begins
	Found   []find.Found // by field in the order of the schema, then by position
	Missing []Missing    // in the order of the schema
}

// A Missing is a field that was not found, and why.
type Missing struct {
	Field, Reason string
}

// A Program is a schema compiled for extraction. It is immutable and safe for
// concurrent use.
type Program struct {
	many    bool // a document holds many records
	fields  []field.Field
	lists   []*Program // by field: extracts the elements of a list of objects; nil for other fields
	phrases *phrase.Set
	derived []string // paths of the fields whose values stand nowhere
}

// Compile prepares a schema. It fails when the schema's phrases are together
// too large to search for at once.
func Compile(s *schema.Schema) (*Program, error) {
	p := &Program{many: s.Kind == schema.KindRecords}
	if err := p.compileFields(s.Fields()); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return p, nil
}

func (p *Program) compileFields(fields []schema.Field) error {
	var b phrase.Builder

	isDerived := func(f schema.Field) bool { return f.Property.Hints.Derived }
	for _, f := range fields {
		if isDerived(f) {
			p.derived = append(p.derived, f.Path)
		}
	}

	// No text holds a derived value, so it is not looked for.
	fields = slices.DeleteFunc(slices.Clone(fields), isDerived)
	for i, sf := range fields {
		f, err := field.New(sf)
		if err != nil {
			return err
		}

		f.Most = field.LongestValue(len(fields))

		// The elements of a list of objects are found like the records of a schema that has many records
		// in a document.
		var list *Program
		if f.HoldsObjects() {
			list = &Program{many: true}
			if err := list.compileFields(f.Element.Fields()); err != nil {
				return err
			}
		}

		// A label that stands first in the schema has the lowest rank, and is preferred.
		for rank, label := range f.Labels {
			b.Add(label, i, phrase.Label, rank)
		}
		for v, value := range f.Values {
			for _, phrase := range value.Phrases {
				b.Add(phrase, i, v, 0)
			}
		}

		p.fields, p.lists = append(p.fields, f), append(p.lists, list)
	}

	var err error
	p.phrases, err = b.Build()
	return err
}

// Extract runs the program on a unit. It asks stop every few milliseconds and
// returns what stop returns, if that is an error. It also fails for a text that is
// too long for one of the patterns, see pattern.MaxWork.
func (p *Program) Extract(u Unit, stop func() error) (Output, error) {
	t := p.readText(u, find.NewReading(stop), new(notes))
	out := p.extractUnit(t, find.Window{Span: form.NewSpan(0, len(u.Text)), First: u.First, Last: u.Last})
	if err := t.Reading.Err; err != nil {
		return Output{}, err
	}
	out.Tables, out.LeftOut = t.notes.tables, t.notes.leftOut
	return out, nil
}

func (p *Program) extractUnit(t *unitText, w find.Window) Output {
	if !p.many {
		return Output{Records: []Record{p.extractRecord(t, w)}}
	}

	windows, reason := p.findRecords(t, w)
	var out Output
	// A record reaches beyond the core of the unit when it begins within it.
	whole := t.whole()
	for _, w := range windows {
		if t.InCore(w.Start) {
			out.Records = append(out.Records, p.extractRecord(whole, w))
		}
	}

	if len(out.Records) == 0 {
		out.Reason = reason
	}

	return out
}

// extractRecord extracts the fields of the record in w.
func (p *Program) extractRecord(t *unitText, w find.Window) Record {
	if w.Table != nil {
		return p.rowRecord(t, w)
	}

	r := Record{Start: w.Start}

	// Extract returns the error of a reading that was stopped, and no record.
	for i := range p.fields {
		if t.Reading.Stopped() {
			break
		}

		found, reason := p.extractValues(t, i, w)
		if len(found) == 0 {
			r.Missing = append(r.Missing, Missing{Field: p.fields[i].Path, Reason: reason})
		}
		r.Found = append(r.Found, found...)
	}

	return p.withoutDerived(r)
}

// withoutDerived says of a record why it has no derived values.
func (p *Program) withoutDerived(r Record) Record {
	for _, path := range p.derived {
		r.Missing = append(r.Missing, Missing{Field: path, Reason: "the field is derived, and rules find only what stands in a document"})
	}
	return r
}

// Values returns the values of a record by field path, elements gathered in lists.
func (p *Program) Values(r *Record) map[string]any {
	values := make(map[string]any, len(r.Found))
	for _, found := range r.Found {
		i := slices.IndexFunc(p.fields, func(f field.Field) bool { return f.Path == found.Field })
		if i >= 0 && p.fields[i].Property.Type == schema.Array {
			list, _ := values[found.Field].([]any)
			values[found.Field] = append(list, found.Value)
			continue
		}

		values[found.Field] = found.Value
	}

	return values
}
