// Package equation writes equations on a line, as people type them: (-b±√(b²-4ac))/(2a).
// It reads those of Office documents (OMML, ECMA-376 part 1, chapter 22.1) and of web pages,
// books and OpenDocument (MathML Core, and what of MathML 3 is in use). It follows
// UnicodeMath (Unicode Technical Note 28), with all the parentheses that a reader needs who
// sees the line alone. The letters of an equation without its structure would be another
// value.
package equation

import (
	"encoding/xml"
	"strings"

	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// maxDepth bounds the objects within each other, such as fractions. Those that are deeper
// are written as their letters. Each level copies the text of those within it, so this also
// bounds the work.
const maxDepth = 50

// Write writes the equation, or the paragraph of equations, that is the element e, whose
// start was the last token of d. Inline reads an element within a run of characters, and
// writes it to *text, which meanwhile is another.
//
// An equation has a few bytes for each element, and up to three for a character of them. An
// array of equations has a line for each, and so has a paragraph.
func Write(text **richtext.Runs, d *xmlread.Decoder, e xml.StartElement, inline func(xml.StartElement) error) error {
	if e.Name.Local == "oMath" {
		r := &reader{xml: d, text: text, inline: inline}
		t, err := r.readTerm()
		(*text).Equation(t.text)
		return err
	}

	(*text).Line()
	return d.Each(func(e xml.StartElement) error {
		defer (*text).Line()
		return inline(e)
	}, nil)
}

// A reader reads one equation.
type reader struct {
	xml    *xmlread.Decoder
	text   **richtext.Runs
	inline func(xml.StartElement) error
	depth  int // objects within each other
}

// readTerm reads what is within an element.
func (r *reader) readTerm() (term, error) {
	var s sequence
	err := r.readInto(&s)
	return s.term(), err
}

// readInto adds what is within an element to s.
func (r *reader) readInto(s *sequence) error {
	return r.xml.Each(func(e xml.StartElement) error { return r.readElement(e, s) }, nil)
}

// readElement adds an element to s. One that is not known counts as what is in it.
func (r *reader) readElement(e xml.StartElement, s *sequence) error {
	name := e.Name.Local
	switch {
	case name == "r":
		text, err := r.readRun()
		s.addText(text)
		return err
	case name == "t":
		text, err := r.readInline(e)
		s.addText(text)
		return err
	case isProperties(name), name == "del", name == "moveFrom", name == "Fallback":
		return r.xml.Skip()
	case written[name] != nil && r.depth < maxDepth:
		o, err := r.readObject(name)
		s.addTerm(written[name](o))
		s.addTerm(o.rest.term())
		return err
	}

	return r.readInto(s)
}

// isProperties reports whether an element says how others look.
func isProperties(name string) bool { return strings.HasSuffix(name, "Pr") }

// readRun reads a run of characters, unless they are hidden.
func (r *reader) readRun() (string, error) {
	var text strings.Builder
	hidden := false
	err := r.xml.Each(func(e xml.StartElement) error {
		if isProperties(e.Name.Local) {
			return r.xml.Each(func(e xml.StartElement) error {
				hidden = hidden || e.Name.Local == "vanish" && xmlread.IsOn(xmlread.Attr(e, "val"))
				return r.xml.Skip()
			}, nil)
		}
		s, err := r.readInline(e)
		text.WriteString(s)
		return err
	}, nil)

	// The text is read all the same, as its properties may stand behind it.
	if hidden {
		return "", err
	}
	return text.String(), err
}

// readInline returns the text of an element within a run.
func (r *reader) readInline(e xml.StartElement) (string, error) {
	whole := *r.text
	defer func() { *r.text = whole }()
	*r.text = new(richtext.Runs)
	err := r.inline(e)
	return (*r.text).String(), err
}

// An object is a fraction, a root or another part of an equation that has parts.
type object struct {
	name       string
	properties map[string]string
	parts      map[string][]term // by the name of their elements
	rows       [][]term          // of a matrix
	rest       sequence          // what belongs to no part
}

// readObject reads the object of an element.
func (r *reader) readObject(name string) (*object, error) {
	r.depth++
	defer func() { r.depth-- }()

	o := &object{name: name, properties: map[string]string{}, parts: map[string][]term{}}

	return o, r.xml.Each(func(e xml.StartElement) error {
		switch part := e.Name.Local; part {
		case name + "Pr":
			return r.xml.Each(func(e xml.StartElement) error {
				o.properties[e.Name.Local] = xmlread.Attr(e, "val")
				return r.xml.Skip()
			}, nil)
		case "e", "num", "den", "sub", "sup", "deg", "fName", "lim":
			t, err := r.readTerm()
			o.parts[part] = append(o.parts[part], t.asPart())
			return err
		case "mr":
			// A row is read as an object whose parts are its cells.
			row, err := r.readObject(part)
			o.rows = append(o.rows, row.parts["e"])
			return err
		}
		return r.readElement(e, &o.rest)
	}, nil)
}

// part returns the first part of a name.
func (o *object) part(name string) term {
	if parts := o.parts[name]; len(parts) > 0 {
		return parts[0]
	}
	return term{}
}

// is reports whether a property is on; ok is false if it is not said.
func (o *object) is(property string) (on, ok bool) {
	value, ok := o.properties[property]
	return ok && xmlread.IsOn(value), ok
}

// sign returns the character that a property has, which may be none.
func (o *object) sign(property, otherwise string) string {
	value, ok := o.properties[property]
	if !ok {
		return otherwise
	}
	for _, c := range value {
		return string(c) // one that is longer would be written once for each part
	}
	return ""
}
