// Package infer proposes a schema for documents: from labels with values behind them,
// from tables, and from values that are recognised by their form. It is pure.
package infer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/table"
)

// Bounds on a proposal.
const (
	leastShare  = 0.3 // of the documents must have a label
	maxFields   = 60
	maxObserved = 1000 // values that are kept of a label
	maxLine     = 2000 // bytes; longer lines have no labels
	maxWords    = 6    // of a label
)

// ErrNothing says that nothing was found that a schema could be made of.
var ErrNothing = errors.New("there is nothing in the documents that a schema could be made of: no labels with values, no tables, no dates, durations or addresses")

// A Proposal gathers what documents have in common. The zero value is ready for use.
type Proposal struct {
	documents int
	tables    int // documents that are one table
	labels    observations
	columns   observations // of documents that are one table
	loose     observations // labels with nothing but a blank between them and their values
	lists     map[string]*list
	listOrder []*list // in the order of sight
	forms     [len(forms)]observation
	valued    map[string]bool // the values of labels in the document that is looked at
}

// observations are what was seen by folded label, in the order of sight.
type observations struct {
	list  []*observation
	index map[string]*observation
}

// An observation is a label, or a form, and the values that were seen with it.
type observation struct {
	label     string
	documents int // that have it
	last      int // the last of them
	count     int
	values    []string
	in        []int    // documents
	labels    []string // all of them, if several were put together
	most      int      // documents of the one that gives the name
	sure      bool     // a colon, an equals sign or the edge of a cell stands behind a label
	code      bool     // the label does not say that the values are numbers of things: that it stands before them does
}

func (o *observations) add(label, value string, document int) {
	key := strings.Join(strings.FieldsFunc(format.Fold(label), notWord), " ")
	if key == "" {
		return
	}

	seen := o.index[key]
	// The list keeps the order in which labels are first seen.
	if seen == nil {
		if o.index == nil {
			o.index = map[string]*observation{}
		}
		seen = &observation{label: label}
		o.index[key] = seen
		o.list = append(o.list, seen)
	}

	seen.add(value, document)
}

func (o *observation) add(value string, document int) {
	if o.last != document {
		o.last = document
		o.documents++
		o.most++
		o.in = append(o.in, document)
	}
	o.count++
	if len(o.values) < maxObserved && value != "" {
		o.values = append(o.values, value)
	}
}

func notWord(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }

// Add looks at one more document.
func (p *Proposal) Add(text string) {
	p.documents++

	lines := strings.Split(text, "\n")
	if p.addTable(lines) {
		p.tables++
		return
	}

	// A value with a label is not counted once more by its form.
	p.valued = map[string]bool{}
	p.addEntries(text)

	for i, f := range forms {
		for _, s := range f.scan(text, 0, len(text), format.NumberStyle{}) {
			if value := s.Of(text); !p.valued[value] {
				p.forms[i].add(value, p.documents)
			}
		}
	}
}

// addEntries notes the labels of lines and of tables, in the order in which they stand.
func (p *Proposal) addEntries(text string) {
	lines := strings.Split(text, "\n")
	tables := table.Read(text)
	at := 0
	for i, line := range lines {
		start := at
		at += len(line) + 1
		// A table that has ended is noted before the line below it: fields keep the order
		// of the text.
		for len(tables) > 0 && tables[0].End <= start {
			p.addInnerTable(text, &tables[0])
			tables = tables[1:]
		}

		if len(line) > maxLine || len(tables) > 0 && start >= tables[0].Start {
			continue
		}

		next := ""
		if i+1 < len(lines) && len(lines[i+1]) <= maxLine {
			next = lines[i+1]
		}

		for _, e := range entriesOf(line, next) {
			p.addEntry(e)
		}
	}

	for i := range tables {
		p.addInnerTable(text, &tables[i])
	}
}

// addEntry notes a label with its value.
func (p *Proposal) addEntry(e entry) {
	label := strings.TrimSpace(e.label)
	if !e.sure && p.valued[e.value] {
		return // it stands behind a label of its own as well
	}
	p.valued[e.value] = true
	if e.sure {
		p.labels.add(label, e.value, p.documents)
	} else {
		p.loose.add(label, e.value, p.documents)
	}
}

// addTable notes the columns of a document that is one table with a head, and reports
// whether it is.
func (p *Proposal) addTable(lines []string) bool {
	lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.TrimSpace(l) == "" })
	for len(lines) > 0 && strings.HasPrefix(lines[0], "#") { // the name of a sheet
		lines = lines[1:]
	}

	if len(lines) < 2 {
		return false
	}

	style := form.StyleOf(lines[0])
	if style == form.None || style == form.Gaps {
		return false
	}

	lines = slices.DeleteFunc(lines, func(l string) bool { return form.IsRule(strings.TrimSpace(l)) })
	if len(lines) == 0 {
		return false
	}

	head := cellsOf(lines[0], style)
	// Nine rows of ten have as many cells as the head: a few may be damaged.
	even := 0
	for _, line := range lines[1:] {
		if len(cellsOf(line, style)) == len(head) {
			even++
		}
	}

	if even*10 < 9*(len(lines)-1) || slices.ContainsFunc(head, func(name string) bool { return name == "" || !startsWithLetter(name) }) {
		return false
	}

	for _, line := range lines[1:] {
		for i, cell := range cellsOf(line, style) {
			if i < len(head) {
				p.columns.add(head[i], cell, p.documents)
			}
		}
	}

	return true
}

func startsWithLetter(s string) bool {
	c, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(c)
}

func cellsOf(line string, style form.Style) []string {
	var cells []string
	for _, c := range form.Split(line, form.NewSpan(0, len(line)), style) {
		cells = append(cells, c.Of(line))
	}
	return cells
}

// Schema returns the proposed schema as YAML, with a comment for each field, or
// ErrNothing.
func (p *Proposal) Schema() (string, error) {
	if 2*p.tables > p.documents {
		return p.render(p.columnFields(), true)
	}

	observed := together(p.labels.list, p.loose.list)
	fields := p.labelFields(observed)
	many := false
	// A document holds many records if all of several labels stand in it twice or more.
	if len(fields) > 0 {
		repeated := slices.ContainsFunc(fields, func(f field) bool { return f.perDocument < 2 })
		many = !repeated && len(fields) > 1
	}

	if !many {
		fields = append(fields, p.looseFields(observed, fields)...)
		fields = append(fields, p.formFields(fields)...)
	}

	return p.render(fields, many)
}

// A field is one property of the proposal.
type field struct {
	name, label string
	labels      []string // all of them
	kind        kind
	list        bool
	documents   int
	perDocument float64 // how often it occurs in a document that has it
	sample      string
}

func (o *observation) field() field {
	k := kindOf(o.values)
	isCounted := k.typ == schema.Integer || k.typ == schema.Number || k.format == schema.Date
	if (o.code || namesCode(o.label)) && isCounted { // 2019-03 is no month there
		k = kind{typ: schema.String}
	}

	labels := o.labels
	if labels == nil {
		labels = []string{o.label}
	}

	return field{
		name: identifier(o.label), label: o.label, labels: labels, kind: k, documents: o.documents,
		perDocument: float64(o.count) / float64(max(o.documents, 1)), sample: sample(o.values),
	}
}

func sample(values []string) string {
	if len(values) == 0 {
		return ""
	}
	const most = 40
	return shorten.Text(format.Text(values[0]), most)
}

func (p *Proposal) columnFields() []field {
	var fields []field
	for _, o := range p.columns.list {
		fields = append(fields, o.field())
	}
	return fields
}

// isLoose reports whether nothing but a blank stands between all labels of an observation and their values.
func (o *observation) isLoose() bool { return !o.sure }

// labelFields returns the labels that enough documents have, in the order in which
// they stand.
func (p *Proposal) labelFields(observed []*observation) []field {
	var fields []field
	for _, o := range observed {
		if o.isLoose() {
			continue // see looseFields
		}
		if float64(o.documents) >= leastShare*float64(p.documents) && (o.documents > 1 || p.documents == 1) {
			fields = append(fields, o.field())
		}
	}
	return fields
}

// looseFields returns the labels that half of the documents have, and two at least, with
// values of a form behind a blank, and that are not known.
func (p *Proposal) looseFields(observed []*observation, known []field) []field {
	var fields []field
	for _, o := range observed {
		if !o.isLoose() {
			continue
		}

		f := o.field()
		isKnown := slices.ContainsFunc(known, func(k field) bool { return k.name == f.name })
		if 2*o.documents >= p.documents && o.documents > 1 && !isKnown && f.perDocument < 2 {
			fields = append(fields, f)
		}
	}
	return fields
}

// formFields returns fields for values that at least half of the documents have
// without a label, if no known field is of their kind.
func (p *Proposal) formFields(known []field) []field {
	var fields []field
	for i, o := range p.forms {
		labelled := slices.ContainsFunc(known, func(f field) bool { return f.kind.format == forms[i].kind.format })
		if 2*o.documents >= p.documents && o.documents > 0 && !labelled {
			f := o.field()
			f.name, f.kind, f.label = forms[i].name, forms[i].kind, ""
			f.list = f.perDocument > 1.5
			if f.list {
				f.name = forms[i].plural
			}
			fields = append(fields, f)
		}
	}

	return fields
}

// render writes the schema.
func (p *Proposal) render(fields []field, many bool) (string, error) {
	fields = unique(fields[:min(len(fields), maxFields)])
	lists := ""
	if !many {
		lists = p.listDefinitions(fields)
	}

	if len(fields) == 0 && lists == "" {
		return "", ErrNothing
	}

	var b strings.Builder
	indent := ""
	if many {
		b.WriteString("type: array\nitems:\n")
		indent = "  "
	}

	b.WriteString(indent + "type: object\n")

	if required := p.required(fields); len(required) > 0 {
		b.WriteString(indent + "required: [" + strings.Join(required, ", ") + "]\n")
	}

	b.WriteString(indent + "properties:\n")

	for _, f := range fields {
		fmt.Fprintf(&b, "%s  # in %d of %d documents, such as %s\n", indent, f.documents, p.documents, quote(f.sample))
		fmt.Fprintf(&b, "%s  %s: %s\n", indent, f.name, f.definition())
	}

	b.WriteString(lists)
	return b.String(), nil
}

// required returns the names of the labelled fields that all documents have.
func (p *Proposal) required(fields []field) []string {
	var names []string
	for _, f := range fields {
		if f.documents == p.documents && f.label != "" && !f.list {
			names = append(names, f.name)
		}
	}
	return names
}

// definition returns the schema of a field as a YAML mapping on one line.
func (f *field) definition() string {
	text := f.kind.definition()
	if f.list {
		text = "type: array, items: {" + text + "}"
	}
	if f.label != "" {
		quoted := make([]string, len(f.labels))
		for i, label := range f.labels {
			quoted[i] = quote(label)
		}
		text += ", x-coditect: {labels: [" + strings.Join(quoted, ", ") + "]}"
	}
	return "{" + text + "}"
}

// quote returns s as a string of JSON, which is one of YAML too.
func quote(s string) string {
	data, _ := json.Marshal(s) // a string cannot fail
	return string(data)
}

// identifier makes the name of a property of a label.
func identifier(label string) string {
	name := strings.Join(strings.FieldsFunc(format.Fold(label), notWord), "_")
	if c, _ := utf8.DecodeRuneInString(name); !unicode.IsLetter(c) {
		name = "field_" + name
	}
	switch name {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		name += "_" // words that YAML reads as something else
	}
	return name
}

// unique gives fields that would have one name different ones.
func unique(fields []field) []field {
	seen := map[string]int{}
	for i := range fields {
		name := fields[i].name
		if seen[name]++; seen[name] > 1 {
			fields[i].name = fmt.Sprintf("%s_%d", name, seen[name])
		}
	}
	return fields
}

// sortedDistinct returns the different values, the most frequent first.
func sortedDistinct(values []string) []string {
	counts := map[string]int{}
	var list []string
	for _, v := range values {
		if counts[v] == 0 {
			list = append(list, v)
		}
		counts[v]++
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	return list
}
