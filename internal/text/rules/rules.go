// Package rules extracts records from text by the hints of a schema (labels,
// patterns, lines and phrases) and by the form of dates, numbers, addresses and
// the like. It needs no model and no network, spends nothing, and gives equal
// output for equal input.
//
// The work is linear in the length of any text: regular expressions are RE2 of
// bounded size, one automaton finds labels and phrases, and the text searched after
// a label is bounded. A caller can stop a run at any time.
//
// It is pure. Of the project it imports api/schema with its packages, api/plural,
// internal/text/table and its own packages.
package rules

import (
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A Unit is the text of one unit of work: a document, or a piece of one with
// context around its core. A value belongs to the core in which its quote begins,
// and one of many records to the core in which the record begins. A record that
// leaves the core is read to the end of Text.
type Unit struct {
	Text               string
	CoreStart, CoreEnd int  // bytes of Text; only what begins in [CoreStart, CoreEnd) counts
	First, Last        bool // whether Text begins and ends where the document does
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
	Start   int       // byte of Text at which the record begins
	Found   []Found   // by field in the order of the schema, then by position
	Missing []Missing // in the order of the schema
}

// A Found is one value and the place that it was read from. A field of type
// array has one for each element.
type Found struct {
	Field      string // path
	Value      any    // normalised, see schema.Property.Normalize
	Quote      string // Text[Start:End]
	Start, End int    // bytes of Text
	Confidence float64
	Basis      Basis
	Rivals     int // other values that the same rule found and that say something else
}

// A Basis is what a value was found by.
type Basis string

// The bases, the best first.
const (
	ByHint   Basis = ""       // labels, a pattern, lines or phrases of the schema
	ByColumn Basis = "column" // the name of the property, as that of a column of a table whose head fits the schema
	ByEntry  Basis = "entry"  // the name of the property, at the head of a line and with a colon behind it
	ByName   Basis = "name"   // the name of the property elsewhere
	ByBlock  Basis = "block"  // its place in a block of values, of labels of which the name is one
	ByType   Basis = "type"   // nothing but the form of the value
	ByGuess  Basis = "guess"  // a label of the schema in a sentence, with words that may change what it means
)

// A Missing is a field that was not found, and why.
type Missing struct {
	Field, Reason string
}

// A Program is a schema compiled for extraction. It is immutable and safe for
// concurrent use.
type Program struct {
	many    bool // a document holds many records
	fields  []field
	phrases *phrases
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
	var b phraseBuilder

	isDerived := func(f schema.Field) bool { return f.Property.Hints.Derived }
	for _, f := range fields {
		if isDerived(f) {
			p.derived = append(p.derived, f.Path)
		}
	}

	// No text holds a derived value, so it is not looked for.
	fields = slices.DeleteFunc(slices.Clone(fields), isDerived)
	for i, sf := range fields {
		f, err := newField(sf)
		if err != nil {
			return err
		}

		f.most = longestValue(len(fields))

		// A label that stands first in the schema has the lowest rank, and is preferred.
		for rank, label := range f.labels {
			b.add(label, i, labelPhrase, rank)
		}
		for v, value := range f.values {
			for _, phrase := range value.Phrases {
				b.add(phrase, i, v, 0)
			}
		}

		p.fields = append(p.fields, f)
	}

	var err error
	p.phrases, err = b.build()
	return err
}

// Extract runs the program on a unit. It asks stop every few milliseconds and
// returns what stop returns, if that is an error. It also fails for a text that is
// too long for one of the patterns, see pattern.MaxWork.
func (p *Program) Extract(u Unit, stop func() error) (Output, error) {
	d := p.readDocument(u, &reading{stop: stop})
	out := p.extractUnit(d, window{Span: form.NewSpan(0, len(u.Text)), first: u.First, last: u.Last})
	if err := d.reading.err; err != nil {
		return Output{}, err
	}
	out.Tables, out.LeftOut = d.reading.tables, d.reading.leftOut
	return out, nil
}

func (p *Program) extractUnit(d *document, w window) Output {
	if !p.many {
		return Output{Records: []Record{p.extractRecord(d, w)}}
	}

	windows, reason := p.findRecords(d, w)
	var out Output
	// A record reaches beyond the core of the unit when it begins within it.
	free := d.withoutCore()
	for _, w := range windows {
		if d.inCore(w.Start) {
			out.Records = append(out.Records, p.extractRecord(free, w))
		}
	}

	if len(out.Records) == 0 {
		out.Reason = reason
	}

	return out
}

// extractRecord extracts the fields of the record in w.
func (p *Program) extractRecord(d *document, w window) Record {
	if w.table != nil {
		return p.rowRecord(d, w)
	}

	r := Record{Start: w.Start}

	// Extract returns the error of a reading that was stopped, and no record.
	for i := range p.fields {
		if d.reading.stopped() {
			break
		}

		f := &p.fields[i]
		found, reason := f.extractValues(d, i, w)
		if len(found) == 0 {
			r.Missing = append(r.Missing, Missing{Field: f.path, Reason: reason})
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
		i := slices.IndexFunc(p.fields, func(f field) bool { return f.path == found.Field })
		if i >= 0 && p.fields[i].property.Type == schema.Array {
			list, _ := values[found.Field].([]any)
			values[found.Field] = append(list, found.Value)
			continue
		}

		values[found.Field] = found.Value
	}

	return values
}

// A window is the part of a text that one record is looked for in.
type window struct {
	form.Span
	first, last bool // whether the window begins and ends where the document does
	table       *fit // of which the window is a row; nil of other text
}

// A document is a text with its lines and the places where labels and
// phrases stand in it.
type document struct {
	linedText
	fields             []field // of the schema; read only
	coreStart, coreEnd int
	first              bool               // it begins where its document does
	labelMarks         [][]mark           // by field, in order of position
	valueMarks         [][]mark           // by field, in order of position
	allLabels          []mark             // all labels, in order of position
	entryLabels        []bool             // by field: one of its labels heads a line and has a colon behind it
	style              format.NumberStyle // of its numbers, as far as the text tells

	rowDocuments []*document  // by field, for lists of objects: the text as read by rowProgram
	fits         []*fit       // the tables that fit the fields
	ofTables     bool         // nothing else stands in the text, but headings
	headerEnd    int          // where the header of a mail ends; 0 if there is none
	headings     *headingList // nil until they are read
	reading      *reading
}

// A reading is one run over a text, which may be stopped.
type reading struct {
	stop func() error
	err  error // why it ended early; what was found by then is of no use

	read    bool         // inText is there
	inText  []textTable  // the tables of the text
	tables  []Table      // those that records were taken from
	leftOut []LeftOut    // rows of these that are none
	cells   []table.Cell // of one row; reused
}

// tablesOf returns the tables of the text.
func (r *reading) tablesOf(d *document) []textTable {
	if !r.read {
		r.read, r.inText = true, readTables(d)
	}
	return r.inText
}

// stopped reports whether the run is over.
func (r *reading) stopped() bool {
	if r.err == nil {
		r.err = r.stop()
	}
	return r.err != nil
}

func (p *Program) readDocument(u Unit, r *reading) *document {
	d := &document{
		linedText: linedText{u.Text, splitLines(u.Text)}, fields: p.fields, coreStart: u.CoreStart, coreEnd: u.CoreEnd,
		labelMarks: make([][]mark, len(p.fields)), valueMarks: make([][]mark, len(p.fields)),
		entryLabels: make([]bool, len(p.fields)), rowDocuments: make([]*document, len(p.fields)),
		first: u.First, style: format.CountNumbers(u.Text).Style(), reading: r,
	}

	d.assignMarks(p.phrases.find(u.Text))

	if u.First {
		d.headerEnd = d.readMailHeader()
	}

	// Tables are looked at if each row may be a record, or if there is nothing else.
	if d.ofTables = d.isTables(); p.many || d.ofTables {
		d.fits = p.fitTables(d)
	}

	return d
}

// withoutCore returns d with all of the text as its core, for a record that
// begins in the core and may end behind it.
func (d *document) withoutCore() *document {
	free := *d
	free.coreStart, free.coreEnd = 0, len(d.text)+1
	return &free
}

// inCore reports whether a match at byte i is this unit's own.
func (d *document) inCore(i int) bool { return i >= d.coreStart && i < d.coreEnd }
