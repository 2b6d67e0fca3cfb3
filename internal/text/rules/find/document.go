package find

import (
	"slices"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/api/schema/pattern"
	"github.com/coditect/mapreduce/internal/text/rules/field"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/page"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A Window is the part of a text that one record is looked for in.
type Window struct {
	form.Span
	First, Last bool // whether the window begins and ends where the document does
	Table       *Fit // of which the window is a row; nil of other text
}

// A Document is a text with its lines and the places where labels and
// phrases stand in it.
type Document struct {
	page.Page
	fields             []field.Field // of the program; read only
	CoreStart, CoreEnd int
	first              bool               // it begins where its document does
	labelMarks         [][]phrase.Mark    // by field, in order of position
	valueMarks         [][]phrase.Mark    // by field, in order of position
	allLabels          []phrase.Mark      // all labels, in order of position
	entryLabels        []bool             // by field: one of its labels heads a line and has a colon behind it
	Style              format.NumberStyle // of its numbers, as far as the text tells

	Fits       []*Fit // the tables that fit the fields
	ofTables   bool   // nothing else stands in the text, but headings
	headerEnd  int    // where the header of a mail ends; 0 if there is none
	headings   page.Headings
	sectionsOf map[*hint.Within][]form.Span // what hints allow of the text; nil until headings are read
	Reading    *Reading
}

// A Reading is one run over a text, which may be stopped.
type Reading struct {
	Stop func() error
	Err  error // why it ended early; what was found by then is of no use

	read   bool         // inText is there
	inText []page.Table // the tables of the text
	Cells  []table.Cell // of one row; reused
}

// tablesOf returns the tables of the text.
func (r *Reading) tablesOf(d *Document) []page.Table {
	if !r.read {
		r.read, r.inText = true, d.ReadTables(d.first)
	}
	return r.inText
}

// Stopped reports whether the run is over.
func (r *Reading) Stopped() bool {
	if r.Err == nil {
		r.Err = r.Stop()
	}
	return r.Err != nil
}

// WithoutCore returns d with all of the text as its core, for a record that
// begins in the core and may end behind it.
func (d *Document) WithoutCore() *Document {
	free := *d
	free.CoreStart, free.CoreEnd = 0, len(d.Text)+1
	return &free
}

// InCore reports whether a match at byte i is this unit's own.
func (d *Document) InCore(i int) bool { return i >= d.CoreStart && i < d.CoreEnd }

// NewReading begins a run, which is over when stop returns an error.
func NewReading(stop func() error) *Reading { return &Reading{Stop: stop} }

// NewDocument reads a text for some fields. first says that it begins where its document does, core
// which part of it is its own, and style how its numbers are written.
func NewDocument(text string, core form.Span, first bool, style format.NumberStyle, fields []field.Field, r *Reading) *Document {
	d := &Document{
		Page: page.Page{Text: text, Lines: page.SplitLines(text)}, fields: fields, CoreStart: core.Start, CoreEnd: core.End,
		labelMarks: make([][]phrase.Mark, len(fields)), valueMarks: make([][]phrase.Mark, len(fields)),
		entryLabels: make([]bool, len(fields)),
		first:       first, Style: style, Reading: r,
	}
	if first {
		d.headerEnd = d.ReadMailHeader()
	}
	return d
}

// FindTables looks for tables that fit the fields, if each row may be a record, or if there is nothing
// else in the text.
func (d *Document) FindTables(ofRows bool) {
	if d.ofTables = d.IsTables(d.Reading.tablesOf(d)); ofRows || d.ofTables {
		d.Fits = d.fitTables()
	}
}

// AssignMarks distributes marks to their fields. It drops a label inside a longer
// label of any field, and a phrase inside a longer phrase of the same field.
func (d *Document) AssignMarks(marks []phrase.Mark) {
	// Of marks that begin together the longest comes first, so that it hides the others.
	slices.SortFunc(marks, func(a, b phrase.Mark) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		if a.End != b.End {
			return b.End - a.End
		}
		return a.Phrase - b.Phrase
	})

	labelEnd := 0
	valueEnd := make([]int, len(d.valueMarks))
	var widest form.Span

	for _, m := range marks {
		f := m.Field
		if m.Value != phrase.Label {
			if m.End > valueEnd[f] {
				valueEnd[f] = m.End
				d.valueMarks[f] = append(d.valueMarks[f], m)
			}
			continue
		}

		if m.End <= labelEnd && m.Span != widest {
			// Two fields may have the same label: both keep their mark.
			continue
		}
		if m.End > labelEnd {
			labelEnd, widest = m.End, m.Span
		}

		d.labelMarks[f] = append(d.labelMarks[f], m)
		d.allLabels = append(d.allLabels, m)
		d.entryLabels[f] = d.entryLabels[f] || d.IsEntry(m)
	}
}

// endOfFolded returns where the value of a label in the header of a mail ends, which
// may go on in lines that begin with white space; 0 for other labels.
func (d *Document) endOfFolded(m phrase.Mark) int {
	if m.End > d.headerEnd || !d.IsEntry(m) {
		return 0
	}

	end := 0
	for i := d.LineAt(m.Start) + 1; i < len(d.Lines) && d.Lines[i].Start < d.headerEnd; i++ {
		line := d.Lines[i]
		if c := d.Text[line.Start]; c != ' ' && c != '\t' {
			break
		}

		end = form.Trim(d.Text, line).End
	}

	return end
}

// findAll calls yield with each match of p in r, as places in the text. After
// an error there are no more.
func (d *Document) findAll(p *pattern.Pattern, r form.Span, yield func(place []int)) {
	if d.Reading.Err != nil {
		return
	}

	d.Reading.Err = p.FindAll(d.Text[r.Start:r.End], d.Reading.Stop, func(place []int) bool {
		for i := range place {
			// A group that took no part has place -1, which stays.
			if place[i] >= 0 {
				place[i] += r.Start
			}
		}

		yield(place)
		return true
	})
}

// sections returns what stands below the headings that hold one of the phrases of
// within, up to the next heading of the same level or a higher one.
func (d *Document) sections(within *hint.Within) []form.Span {
	if d.sectionsOf == nil {
		d.headings, d.sectionsOf = d.ReadHeadings(), make(map[*hint.Within][]form.Span)
	}
	if parts, ok := d.sectionsOf[within]; ok {
		return parts
	}

	parts := d.headings.Below(within.Sections, len(d.Text))
	d.sectionsOf[within] = parts
	return parts
}
