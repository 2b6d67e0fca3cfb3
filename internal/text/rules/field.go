package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/pattern"
	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// A field is a property prepared for extraction.
type field struct {
	path        string
	property    *schema.Property // the field
	element     *schema.Property // one value: the items of an array, else the field
	most        int              // bytes of a text value
	labels      []string
	labelsGiven bool           // the schema names the labels; otherwise they are the field's name and title
	patterns    []fieldPattern // the preferred first
	after       *pattern.Pattern
	before      *pattern.Pattern
	replace     []replacement
	excluded    map[string]bool // folded quotes, and identities of values
	values      []schema.Value
	scan        form.Scanner // finds values by their form, nil if they have none
	identifier  bool         // its values are numbers of things, such as that of an invoice
	rowProgram  *Program     // extracts the elements of a list of objects; nil for other fields
}

func newField(sf schema.Field) (field, error) {
	p := sf.Property
	f := field{path: sf.Path, property: p, element: p, labels: p.Hints.Labels, labelsGiven: len(p.Hints.Labels) > 0}

	if p.Type == schema.Array {
		f.element = p.Items
	}

	if f.element.Type == schema.Object || f.element.Type == schema.Array {
		return f.withRows()
	}

	if err := f.compileHints(&p.Hints); err != nil {
		return f, fmt.Errorf("%s: %w", f.path, err)
	}

	f.values = p.Hints.Values
	// Values of the enum that the hints say nothing of are found as they are written.
	for _, v := range f.element.Enum {
		if f.values == nil || !slices.ContainsFunc(f.values, func(known schema.Value) bool { return known.Canonical == v }) {
			f.values = append(slices.Clip(f.values), schema.Value{Canonical: v, Phrases: []string{fmt.Sprint(v)}})
		}
	}

	if len(f.values) == 0 {
		f.scan = form.Of(f.element)
	}

	if !f.labelsGiven && f.takesNameAsLabel() {
		name := sf.Path[strings.LastIndexByte(sf.Path, '.')+1:]
		f.labels = append(f.labels, identifierWords(name))
		if p.Title != "" && p.Title != name {
			f.labels = append(f.labels, p.Title)
		}
	}

	f.identifier = f.isIdentifier()
	return f, nil
}

// A fieldPattern is a pattern and the groups that hold values.
type fieldPattern struct {
	*pattern.Pattern
	groups []int
}

// A replacement is done to what was found.
type replacement struct {
	*pattern.Pattern
	with string
}

// compileHints compiles the hints that are texts to be found.
func (f *field) compileHints(h *schema.Hints) (err error) {
	for _, expr := range h.Patterns {
		p, err := pattern.Compile(expr)
		if err != nil {
			return fmt.Errorf("pattern: %w", err)
		}

		groups, err := pattern.ValueGroups(p.Groups(), f.property.Type == schema.Array)
		if err != nil {
			return fmt.Errorf("pattern: %w", err)
		}
		f.patterns = append(f.patterns, fieldPattern{p, groups})
	}

	for _, r := range h.Replace {
		p, err := pattern.Compile(r.Pattern)
		if err != nil {
			return fmt.Errorf("replace: %w", err)
		}
		f.replace = append(f.replace, replacement{p, r.With})
	}

	if f.after, err = compileAnchor(h.After); err != nil {
		return fmt.Errorf("after: %w", err)
	}
	if f.before, err = compileAnchor(h.Before); err != nil {
		return fmt.Errorf("before: %w", err)
	}

	f.exclude(h.Exclude)
	return nil
}

// exclude notes what is no value of the field, as it may stand in a text and as the
// value that it would be.
func (f *field) exclude(texts []string) {
	f.excluded = make(map[string]bool, 2*len(texts))
	for _, text := range texts {
		f.excluded["quote "+format.Fold(text)] = true
		if v, err := f.element.Normalize(text); err == nil {
			f.excluded["value "+f.element.Identity(v)] = true
		}
	}
}

// takesNameAsLabel reports whether the field's name is a label: unless a hint says
// where the value stands or how it looks.
func (f *field) takesNameAsLabel() bool {
	h := &f.property.Hints
	if len(f.patterns) > 0 || h.Lines != nil || f.after != nil || f.before != nil {
		return false
	}
	return h.Within == nil || len(h.Within.Columns)+len(h.Within.Rows) == 0 && !f.isText()
}

// isText reports whether a value is whatever stands in its place.
func (f *field) isText() bool { return len(f.patterns) == 0 && len(f.values) == 0 && f.scan == nil }

// typeName names the type of one value, for people.
func (f *field) typeName() string {
	if f.element.Format != "" {
		return fmt.Sprintf("%s (%s)", f.element.Type, f.element.Format)
	}
	return string(f.element.Type)
}

// withRows prepares a list of objects. Its elements are found like the records
// of a schema that has many records in a document.
func (f field) withRows() (field, error) {
	if f.element.Type != schema.Object {
		return f, nil // a list of lists: there is no way to tell where one ends
	}
	f.rowProgram = &Program{many: true}
	f.labels = nil
	return f, f.rowProgram.compileFields(f.element.Fields())
}

// identifierWords turns a property's name into words: invoice_number, invoiceNumber.
func identifierWords(name string) string {
	var b strings.Builder
	for i, c := range name {
		switch {
		case c == '_' || c == '-' || c == '.':
			c = ' '
		case unicode.IsUpper(c) && i > 0 && unicode.IsLower(rune(name[i-1])):
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}

	return b.String()
}

// recognisedAnywhere reports whether the field's values are recognised without a
// label. Labels then only say where to look first.
func (f *field) recognisedAnywhere() bool {
	return len(f.patterns) > 0 || len(f.values) > 0 || form.RecognisedAnywhere(f.element)
}

// extractValues returns the values of the field in w, or why there are none.
func (f *field) extractValues(d *document, index int, w window) ([]Found, string) {
	if f.rowProgram != nil {
		return f.extractRows(d, index, w)
	}

	switch f.element.Type {
	case schema.Array:
		return nil, "lists of lists are not extracted by rules"
	case schema.Map, schema.Tuple:
		return nil, "names that the schema does not give, and lists whose places differ, are not extracted by rules"
	}

	areas, reason := f.areas(d, w)
	if reason != "" {
		return nil, reason
	}

	s := search{document: d, field: f, index: index, areas: areas}
	s.collectCandidates()
	return s.chooseValues()
}

// extractRows returns the elements of a list of objects.
func (f *field) extractRows(d *document, index int, w window) ([]Found, string) {
	inner := d.rowDocuments[index]
	if inner == nil {
		inner = f.rowProgram.readDocument(Unit{Text: d.text, CoreStart: d.coreStart, CoreEnd: d.coreEnd, First: true}, d.reading)
		d.rowDocuments[index] = inner
	}

	windows, reason := f.rowProgram.findRecords(inner, w)
	var found []Found
	for _, w := range windows {
		// A row that begins in the overlap is of the unit beside this one.
		if !d.inCore(w.Start) {
			continue
		}
		if row, ok := f.rowFromRecord(f.rowProgram.extractRecord(inner.withoutCore(), w), d.text); ok {
			found = append(found, row)
		}
	}

	return found, reason
}

// rowFromRecord makes one element of the list from a record. The quote of the
// element spans all of its values.
func (f *field) rowFromRecord(r Record, text string) (Found, bool) {
	if len(r.Found) == 0 {
		return Found{}, false
	}

	one := Found{Field: f.path, Start: r.Found[0].Start, End: r.Found[0].End, Confidence: 1}
	for _, part := range r.Found {
		one.Start, one.End = min(one.Start, part.Start), max(one.End, part.End)
		one.Confidence = min(one.Confidence, part.Confidence)
	}

	one.Quote = text[one.Start:one.End]

	value, err := f.element.Normalize(f.element.Nest(f.rowProgram.Values(&r)))
	one.Value = value
	return one, err == nil
}

// hintedArea returns the part of w that the lines hint allows, or why there is none.
func (f *field) hintedArea(d *document, w window) (area form.Span, reason string) {
	area = form.NewSpan(w.Start, w.End)
	l := f.property.Hints.Lines
	if l == nil {
		return area, ""
	}

	if l.From < 0 && !w.last || l.From >= 0 && l.To >= 0 && l.To != schema.End && !w.first {
		// Lines count from the ends of the document, which other pieces of it have.
		return form.Span{}, "the lines to look at are not in this piece of the document"
	}

	if w.Start >= w.End {
		return form.Span{}, noSuchLines
	}

	first, end := d.lineAt(w.Start), d.lineAt(w.End-1)+1
	from, to := first, end
	// An end of the range that another piece has leaves this side of the piece open.
	if l.From < 0 {
		from = end + l.From
	} else if w.first {
		from = first + l.From
	}

	if l.To < 0 && w.last {
		to = end + l.To
	} else if l.To >= 0 && l.To < end-first && w.first {
		to = first + l.To
	}

	from = max(from, first)
	if from >= to {
		return form.Span{}, noSuchLines
	}

	return form.NewSpan(max(d.lines[from].Start, w.Start), min(d.lines[to-1].End, w.End)), ""
}

const noSuchLines = "the lines to look at do not exist"
