// Package field is a property of a schema prepared for extraction: its labels, its compiled
// patterns and anchors, and how a text is read as a value of it.
//
// It is pure, and looks for nothing itself.
package field

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/api/schema/pattern"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A Field is a property prepared for extraction.
type Field struct {
	Path        string
	Property    *schema.Property // the field
	Element     *schema.Property // one value: the items of an array, else the field
	Most        int              // bytes of a text value
	Labels      []string
	LabelsGiven bool           // the schema names the labels; otherwise they are the field's name and title
	Patterns    []fieldPattern // the preferred first
	After       *pattern.Pattern
	Before      *pattern.Pattern
	replace     []replacement
	excluded    map[string]bool // folded quotes, and identities of values
	Values      []hint.Value
	Scan        form.Scanner // finds values by their form, nil if they have none
	Identifier  bool         // its values are numbers of things, such as that of an invoice
}

// New prepares a property.
func New(sf schema.Field) (Field, error) {
	p := sf.Property
	f := Field{Path: sf.Path, Property: p, Element: p, Labels: p.Hints.Labels, LabelsGiven: len(p.Hints.Labels) > 0}

	if p.Type == schema.Array {
		f.Element = p.Items
	}

	switch f.Element.Type {
	case schema.Object:
		f.Labels = nil
		return f, nil
	case schema.Array:
		return f, nil // a list of lists: there is no way to tell where one ends
	}

	if err := f.compileHints(&p.Hints); err != nil {
		return f, fmt.Errorf("%s: %w", f.Path, err)
	}

	f.Values = p.Hints.Values
	// Values of the enum that the hints say nothing of are found as they are written.
	for _, v := range f.Element.Enum {
		if f.Values == nil || !slices.ContainsFunc(f.Values, func(known hint.Value) bool { return known.Canonical == v }) {
			f.Values = append(slices.Clip(f.Values), hint.Value{Canonical: v, Phrases: []string{fmt.Sprint(v)}})
		}
	}

	if len(f.Values) == 0 {
		f.Scan = form.Of(f.Element)
	}

	if !f.LabelsGiven && f.takesNameAsLabel() {
		name := sf.Path[strings.LastIndexByte(sf.Path, '.')+1:]
		f.Labels = append(f.Labels, identifierWords(name))
		if p.Title != "" && p.Title != name {
			f.Labels = append(f.Labels, p.Title)
		}
	}

	f.Identifier = f.isIdentifier()
	return f, nil
}

// A fieldPattern is a pattern and the groups that hold values.
type fieldPattern struct {
	*pattern.Pattern
	Groups []int
}

// A replacement is done to what was found.
type replacement struct {
	*pattern.Pattern
	with string
}

// compileHints compiles the hints that are texts to be found.
func (f *Field) compileHints(h *hint.Hints) (err error) {
	for _, expr := range h.Patterns {
		p, err := pattern.Compile(expr)
		if err != nil {
			return fmt.Errorf("pattern: %w", err)
		}

		groups, err := pattern.ValueGroups(p.Groups(), f.Property.Type == schema.Array)
		if err != nil {
			return fmt.Errorf("pattern: %w", err)
		}
		f.Patterns = append(f.Patterns, fieldPattern{p, groups})
	}

	for _, r := range h.Replace {
		p, err := pattern.Compile(r.Pattern)
		if err != nil {
			return fmt.Errorf("replace: %w", err)
		}
		f.replace = append(f.replace, replacement{p, r.With})
	}

	if f.After, err = compileAnchor(h.After); err != nil {
		return fmt.Errorf("after: %w", err)
	}
	if f.Before, err = compileAnchor(h.Before); err != nil {
		return fmt.Errorf("before: %w", err)
	}

	f.exclude(h.Exclude)
	return nil
}

// exclude notes what is no value of the field, as it may stand in a text and as the
// value that it would be.
func (f *Field) exclude(texts []string) {
	f.excluded = make(map[string]bool, 2*len(texts))
	for _, text := range texts {
		f.excluded["quote "+format.Fold(text)] = true
		if v, err := f.Element.Normalize(text); err == nil {
			f.excluded["value "+f.Element.Identity(v)] = true
		}
	}
}

// takesNameAsLabel reports whether the field's name is a label: unless a hint says
// where the value stands or how it looks.
func (f *Field) takesNameAsLabel() bool {
	h := &f.Property.Hints
	if len(f.Patterns) > 0 || h.Lines != nil || f.After != nil || f.Before != nil {
		return false
	}
	return h.Within == nil || len(h.Within.Columns)+len(h.Within.Rows) == 0 && !f.IsText()
}

// IsText reports whether a value is whatever stands in its place.
func (f *Field) IsText() bool { return len(f.Patterns) == 0 && len(f.Values) == 0 && f.Scan == nil }

// TypeName names the type of one value, for people.
func (f *Field) TypeName() string {
	if f.Element.Format != "" {
		return fmt.Sprintf("%s (%s)", f.Element.Type, f.Element.Format)
	}
	return string(f.Element.Type)
}

// HoldsObjects reports whether a value is an object, or the field a list of objects. These have fields of
// their own.
func (f *Field) HoldsObjects() bool { return f.Element.Type == schema.Object }

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

// RecognisedAnywhere reports whether the field's values are recognised without a
// label. Labels then only say where to look first.
func (f *Field) RecognisedAnywhere() bool {
	return len(f.Patterns) > 0 || len(f.Values) > 0 || form.RecognisedAnywhere(f.Element)
}

// compileAnchor returns a pattern that finds one of some texts, in any case, with
// any white space, quotation marks and hyphens.
func compileAnchor(texts []string) (*pattern.Pattern, error) {
	if len(texts) == 0 {
		return nil, nil
	}

	var b strings.Builder
	b.WriteString("(?i)(?:")
	for i, text := range texts {
		if i > 0 {
			b.WriteByte('|')
		}
		writeAnchor(&b, strings.TrimSpace(text))
	}

	b.WriteByte(')')

	return pattern.Compile(b.String())
}

// looseForms are the classes of characters that are written in several ways.
var looseForms = map[rune]string{
	'"': `["“”„«»]`, '“': `["“”„«»]`, '”': `["“”„«»]`,
	'\'': `['’‘]`, '’': `['’‘]`, '-': `[-–—‑]`, '–': `[-–—‑]`, '—': `[-–—‑]`,
}

func writeAnchor(b *strings.Builder, text string) {
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	if first < utf8.RuneSelf && phrase.IsWord(first) {
		b.WriteString(`\b`)
	}

	gap := false
	for _, c := range text {
		// White space of any length matches any other.
		if unicode.IsSpace(c) {
			gap = true
			continue
		}
		if gap {
			b.WriteString(`\s+`)
			gap = false
		}
		if form, ok := looseForms[c]; ok {
			b.WriteString(form)
			continue
		}
		b.WriteString(quoteMeta(c))
	}

	if last < utf8.RuneSelf && phrase.IsWord(last) {
		b.WriteString(`\b`)
	}
}

func quoteMeta(c rune) string {
	if strings.ContainsRune(`\.+*?()|[]{}^$`, c) {
		return `\` + string(c)
	}
	return string(c)
}

// MayGuess reports whether a value may be found by its form where the hints find none.
func (f *Field) MayGuess() bool { return f.Property.Hints.Otherwise == hint.OtherwiseForm }

// IsList reports whether the field has any number of values.
func (f *Field) IsList() bool { return f.Property.Type == schema.Array }

// ReadText normalises a text of some style, after what the schema wants to be replaced.
func (f *Field) ReadText(quote string, style format.NumberStyle, stop func() error) (any, error) {
	text := quote
	for _, r := range f.replace {
		var err error
		if text, err = r.Replace(text, r.with, 2*ValueBytes, stop); err != nil {
			return nil, fmt.Errorf("%q: replace: %w", Clip(quote), err)
		}
	}

	if f.Element.Numeric() && f.Element.Enum == nil {
		if readings := f.Element.Readings(text, style); len(readings) > 0 {
			return readings[0], nil
		}
	}

	v, err := f.Element.Normalize(text)
	if err == nil && v == nil {
		err = fmt.Errorf("%q is empty", Clip(text))
	}

	return v, err
}

// Clip shortens a text for a message.
func Clip(s string) string {
	return shorten.Text(format.Text(s), 60)
}

// ErrExcluded says that a candidate is one of those that the schema excludes.
var ErrExcluded = errors.New("is excluded by the schema")

// CellValue returns the value of a cell. Of one with two forms, the stored one is the value,
// and all of the cell its quote: the shown one alone may be read in other ways. For texts the
// shown one is both, and shown says so.
func (f *Field) CellValue(cell string, style format.NumberStyle, stop func() error) (value any, shown bool, err error) {
	form, stored := table.Forms(cell)
	switch {
	case stored == "":
		value, err = f.ReadText(cell, style, stop)
		return value, false, err
	case f.IsText():
		value, err = f.ReadText(form, style, stop)
		return value, true, err
	}

	value, err = f.ReadText(stored, storedStyle, stop)
	return value, false, err
}

// NoValue returns why a cell says nothing that could be a value.
func NoValue(cell string) string {
	switch {
	case table.IsError(cell):
		return fmt.Sprintf("the cell shows the error %s", cell)
	case table.IsFormula(cell):
		return fmt.Sprintf("the cell has the formula %s, whose result is not stored", Clip(cell))
	}
	return ""
}

// storedStyle is how the numbers are written that spreadsheets store.
var storedStyle = format.NumberStyle{Decimal: '.', Blanks: format.No}

// IsExcluded reports whether the schema says that a value, or its quote, is none.
func (f *Field) IsExcluded(quote string, value any) bool {
	return len(f.excluded) > 0 && (f.excluded["quote "+format.Fold(quote)] || f.excluded["value "+f.Element.Identity(value)])
}

// GivenNames are the names of columns that the schema gives for the field.
func (f *Field) GivenNames() []string {
	var names []string
	if f.LabelsGiven {
		names = slices.Clone(f.Labels)
	}
	if within := f.Property.Hints.Within; within != nil {
		names = append(names, within.Columns...)
	}
	return names
}

// OwnNames are the names of columns that the field's own name and title stand for.
func (f *Field) OwnNames() []string {
	name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
	return []string{identifierWords(name), name, f.Property.Title}
}

// ColumnNames are the headings that a column with the field's values may have.
func (f *Field) ColumnNames() []string {
	if f.HoldsObjects() {
		return nil
	}
	return append(f.GivenNames(), f.OwnNames()...)
}

// MayHold reports whether a cell has the form of a value of the field.
func (f *Field) MayHold(text string, cell form.Span, style format.NumberStyle) bool {
	switch {
	case f.Scan != nil:
		return len(f.Scan(text, cell.Start, cell.End, style)) > 0
	case f.Identifier:
		return CodeOf(cell.Of(text)) != ""
	default:
		return true
	}
}

// recordBytes bounds the texts of one record together, so that a schema whose fields all
// stand at one label does not make a thousand times the document of it.
const recordBytes = 4 << 20

// LongestValue returns how many bytes a text value may have of a record with so many
// fields: valueBytes, and less of one with more than 256.
func LongestValue(fields int) int { return min(ValueBytes, recordBytes/max(1, fields)) }

// ValueBytes bounds a value that is whatever stands in its place; see field.most.
const ValueBytes = 16384
