package rules

import (
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/find"
	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// A unitText is the text of a unit as it is read for the fields of a program.
type unitText struct {
	*find.Document
	notes *notes
	lists []*unitText // by field: the same text as it is read for the fields of a list of objects; nil until then
}

// notes are what one run over a text says of its tables.
type notes struct {
	tables  []Table   // those that records were taken from
	leftOut []LeftOut // rows of these that are none
}

// readText reads the text of a unit for the fields of the program.
func (p *Program) readText(u Unit, r *find.Reading, n *notes) *unitText {
	style := u.Style
	if style == nil {
		counted := format.CountNumbers(u.Text).Style()
		style = &counted
	}

	d := find.NewDocument(u.Text, form.NewSpan(u.CoreStart, u.CoreEnd), u.First, *style, p.fields, r)
	d.AssignMarks(p.phrases.Find(u.Text))
	d.FindTables(p.many)
	return &unitText{Document: d, notes: n, lists: make([]*unitText, len(p.fields))}
}

// whole returns the text with all of it as its core, for a record that begins in the core and may end
// behind it.
func (t *unitText) whole() *unitText {
	all := *t
	all.Document = t.WithoutCore()
	return &all
}
