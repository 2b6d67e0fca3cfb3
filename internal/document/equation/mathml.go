package equation

import (
	"encoding/xml"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// ReadMathML returns the text of the equation that is the element e, called math, whose
// start was the last token of d.
func ReadMathML(d *xmlread.Decoder, e xml.StartElement) (string, error) {
	m := new(mathML)
	var child func(xml.StartElement) error
	child = func(e xml.StartElement) error {
		name := e.Name.Local
		m.start(name, attributesOf(e))
		err := d.Each(child, m.addText)
		m.end(name)
		return err
	}

	err := child(e)
	return m.text(), err
}

// attributesOf returns the attributes of an element that say how an equation is written.
func attributesOf(e xml.StartElement) map[string]string {
	var values map[string]string
	for _, a := range e.Attr {
		if isAttribute(a.Name.Local) {
			if values == nil {
				values = map[string]string{}
			}
			values[a.Name.Local] = a.Value
		}
	}
	return values
}

// isAttribute reports whether an attribute says how an equation is written.
func isAttribute(name string) bool {
	switch name {
	case "linethickness", "open", "close", "separators", "width", "linebreak", "encoding", "columnalign", "displaystyle", "notation":
		return true
	}
	return false
}

// A shape is what an element consists of.
type shape int8

const (
	transparent shape = iota // what is in it belongs to the row around it
	row                      // elements beside each other, which are one term
	token                    // text
	parts                    // elements that each have their place
)

// An elementKind is what is known of the elements of a name.
type elementKind struct {
	shape shape
	parts int // at most; 0 if there may be any number
	term  func(*element) term
}

// elementKinds has the elements of MathML. What is in others belongs to the elements around
// them.
var elementKinds = map[string]elementKind{
	"mrow": {}, "mstyle": {}, "mpadded": {}, "merror": {},
	"math": {shape: row}, "mtd": {shape: row}, "menclose": {shape: row, term: (*element).enclosedTerm},
	"msqrt":    {shape: row, term: (*element).root},
	"mphantom": {shape: row, term: (*element).nothing}, "annotation-xml": {shape: row, term: (*element).nothing},
	"mi": {shape: token}, "mn": {shape: token}, "mo": {shape: token}, "mtext": {shape: token}, "ms": {shape: token},
	"mspace": {shape: token}, "none": {shape: token}, "mprescripts": {shape: token}, "annotation": {shape: token},
	"mfrac": {shape: parts, parts: 2, term: (*element).fraction}, "mroot": {shape: parts, parts: 2, term: (*element).root},
	"msub": {shape: parts, parts: 2, term: (*element).scripts}, "msup": {shape: parts, parts: 2, term: (*element).scripts},
	"msubsup": {shape: parts, parts: 3, term: (*element).scripts}, "munderover": {shape: parts, parts: 3, term: (*element).limits},
	"munder": {shape: parts, parts: 2, term: (*element).limits}, "mover": {shape: parts, parts: 2, term: (*element).limits},
	"semantics": {shape: parts, parts: 1, term: (*element).shownMeaning}, "maction": {shape: parts, parts: 1, term: (*element).first},
	"mmultiscripts": {shape: parts, term: (*element).multiscripts}, "mfenced": {shape: parts, term: (*element).fencedTerm},
	"mtable": {shape: parts, term: (*element).table}, "mtr": {shape: parts, term: (*element).tableRow}, "mlabeledtr": {shape: parts, term: (*element).tableRow},
}

// maxElements bounds the elements of an equation. Those behind are written as their letters.
const maxElements = 100_000

// A mathML is an equation in MathML, which takes its tags and its text in order. The tags
// need not fit together. As in OMML, objects that are deeper than maxDepth are written as
// their letters.
type mathML struct {
	open     []*element     // within each other; the first is the equation
	names    map[string]int // how many of open have a name
	elements int
	depth    int // of open that are not transparent
}

// An element is one that is open.
type element struct {
	name       string
	kind       elementKind
	attributes map[string]string
	owner      *element // the element itself, or for one that is transparent the one whose row it adds to

	row         mathRow         // what belongs to no part
	characters  strings.Builder // of a token
	parts       []term
	rows        [][]term // of a table
	prescripts  int      // how many parts are in front of those of scripts that stand in front of the base
	tex         string   // the equation in TeX
	outer       int      // elements of HTML that were open before it
	transparent bool
}

// start begins an element, and reports whether it did: what is in a token is text of it.
func (m *mathML) start(name string, attributes map[string]string) bool {
	kind, ok := elementKinds[name]
	if m.elements++; !ok || m.elements > maxElements || len(m.open) > 0 && m.last().kind.shape == token {
		return false
	}

	e := &element{name: name, kind: kind, attributes: attributes}
	e.owner = e
	if m.depth >= maxDepth && kind.shape != token {
		e.kind = elementKinds["mrow"]
	}

	if e.kind.shape == transparent && len(m.open) > 0 {
		around := m.last().owner
		e.transparent = around.kind.shape != parts
		if e.transparent {
			e.owner = around
		}
	}

	// Objects that are too deep are like rows, and count no more.
	if !e.transparent && e.kind.shape != token && len(m.open) > 0 {
		m.depth++
	}

	if m.names == nil {
		m.names = map[string]int{}
	}

	m.names[name]++
	m.open = append(m.open, e)
	return true
}

// last returns the element that is innermost.
func (m *mathML) last() *element { return m.open[len(m.open)-1] }

// end ends an element with those that are open in it, and returns it. The end of one that is
// not open says nothing, and that of the equation is where its text is asked for.
func (m *mathML) end(name string) *element {
	if m.names[name] == 0 {
		return nil
	}
	for len(m.open) > 1 {
		if e := m.closeLast(); e.name == name {
			return e
		}
	}
	return nil
}

// closeLast ends the innermost element, and returns it.
func (m *mathML) closeLast() *element {
	e := m.last()
	m.open = m.open[:len(m.open)-1]
	m.names[e.name]--

	switch {
	case e.transparent:
	case e.kind.shape == token:
		m.last().owner.addToken(e)
	default:
		m.depth--
		m.last().owner.addElement(e)
	}
	return e
}

// text ends the equation, and returns it as text.
func (m *mathML) text() string {
	if len(m.open) == 0 {
		return ""
	}
	for len(m.open) > 1 {
		m.closeLast()
	}

	t := m.open[0].row.term()
	if t.lines != "" {
		return t.lines
	}
	return strings.TrimSpace(t.text)
}

// addText adds characters. Outside of tokens there should be none but white space.
func (m *mathML) addText(s string) {
	if len(m.open) == 0 {
		return
	}
	if e := m.last(); e.kind.shape == token {
		e.characters.WriteString(s)
	} else if s = squeeze(s); s != "" {
		e.owner.row.addText(s)
	}
}

// squeeze makes one space of several that do not count, and leaves out those at the ends.
// Characters without a width have no meaning in text.
func squeeze(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(c rune) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }), " ")
	return strings.Map(func(c rune) rune {
		switch {
		case c == 0, '\u200b' <= c && c <= '\u200f', c == '\ufeff':
			return -1
		case unicode.IsSpace(c):
			return ' '
		}
		return c
	}, s)
}

// add adds a term: to the parts of an element, as long as it has a place for it, or to its
// row.
func (e *element) add(t term) {
	switch {
	case e.isTable():
		e.rows = append(e.rows, []term{t.asPart()})
	case e.kind.shape == parts && (e.kind.parts == 0 || len(e.parts) < e.kind.parts):
		e.parts = append(e.parts, t.asPart())
	default:
		e.row.add(t)
	}
}

// addElement adds an element within e.
func (e *element) addElement(child *element) {
	if e.isTable() && child.isRow() {
		e.addRow(child)
	} else {
		e.add(child.term())
	}
	e.row.add(child.rest())
}

// term returns an element as a term.
func (e *element) term() term {
	if e.kind.term != nil {
		return e.kind.term(e)
	}
	return e.row.term()
}

// rest returns what is in an element with parts and belongs to none of them.
func (e *element) rest() term {
	if e.kind.shape != parts {
		return term{}
	}
	return e.row.term()
}

// addToken adds a token within e.
func (e *element) addToken(token *element) {
	text := squeeze(token.characters.String())

	switch token.name {
	case "annotation":
		if e.tex == "" && isTeX(token.attributes["encoding"]) {
			e.tex = strings.TrimSpace(text)
		}
		return
	case "mprescripts":
		e.prescripts = len(e.parts)
		return
	case "ms":
		text = `"` + text + `"`
	}

	if e.kind.shape == parts {
		e.add(tokenTerm(token.name, strings.TrimSpace(text)))
		return
	}

	e.row.addToken(token.name, text+spaceOf(token))
}

// isTeX reports whether an encoding is that of TeX.
func isTeX(encoding string) bool {
	encoding = strings.ToLower(encoding)
	return encoding == "application/x-tex" || encoding == "application/x-latex" || encoding == "tex" || encoding == "latex"
}

// spaceOf returns the white space that a token is, of which only one called mspace is any.
func spaceOf(token *element) string {
	width := strings.TrimSpace(token.attributes["width"])
	switch {
	case token.name != "mspace":
	case token.attributes["linebreak"] == "newline":
		return "\n"
	case width != "" && !isZero(width) && !strings.HasPrefix(width, "-") && !strings.HasPrefix(width, "negative"):
		return " "
	}
	return ""
}

// isZero reports whether a length is none.
func isZero(length string) bool {
	return strings.HasPrefix(length, "0") && strings.Trim(length, "0. abcdefghijklmnopqrstuvwxyz%") == ""
}

// tokenTerm returns the term of a token. Words stand apart from others, as sin from x.
func tokenTerm(name, text string) term {
	if name == "mo" && isNary(text) {
		return term{text: text, kind: applied, apart: true}
	}

	var s sequence
	s.addText(text)
	t := s.term()
	t.plain = true
	t.apart = name == "mtext" && strings.ContainsFunc(text, unicode.IsLetter) || t.word && characters(text) > 1
	return t
}

// isNary reports whether a text is the sign of a sum, a product, an integral or the like.
func isNary(text string) bool {
	c, size := utf8.DecodeRuneInString(text)
	return size > 1 && size == len(text) && ('∫' <= c && c <= '∳' || strings.ContainsRune("∏∐∑⋀⋁⋂⋃⨀⨁⨂⨃⨄⨅⨆⨌", c))
}

// A mathRow is a sequence that holds back a table behind a bracket, until it is known if
// another bracket follows. Then these are its brackets.
type mathRow struct {
	sequence
	held term
}

// maxRecounted bounds a text that is counted again in the row around it.
const maxRecounted = 200

// add adds a term. What is mere text joins that beside it, such as the digits of a number.
func (r *mathRow) add(t term) {
	if t.text == "" {
		return
	}

	// The brackets around a table are known only when what follows it is there.
	first, _ := utf8.DecodeRuneInString(t.text)
	r.release(endsBrackets(string(first)))

	last, _ := utf8.DecodeLastRuneInString(r.sequence.text.String())

	switch {
	case t.inner != "" && (unicode.Is(unicode.Ps, last) || strings.ContainsRune(bars, last)):
		r.held = t
	case t.plain && !t.apart && len(t.text) <= maxRecounted:
		r.sequence.addText(t.text)
	default:
		r.addTerm(t)
	}
}

// release adds the table that is held back.
func (r *mathRow) release(bracketed bool) {
	t := r.held
	if r.held = (term{}); bracketed {
		t = term{text: t.inner}
	}
	r.addTerm(t)
}

// addText adds characters that are in no token.
func (r *mathRow) addText(text string) {
	r.release(false)
	r.sequence.addText(text)
}

// addToken adds the text of a token, with the white space around it.
func (r *mathRow) addToken(name, text string) {
	if first := firstOf(text); string(first) == text && '\u2061' <= first && first <= '\u2064' {
		r.addInvisible(first)
		return
	}

	trimmed := strings.TrimSpace(text)
	before, after, _ := strings.Cut(text, trimmed)
	r.addSpace(before)
	r.add(tokenTerm(name, trimmed))
	r.addSpace(after)
}

// addSpace adds white space, unless there is some.
func (r *mathRow) addSpace(space string) {
	if space == "" || r.held.text != "" || r.sequence.text.Len() == 0 || strings.HasSuffix(r.sequence.text.String(), " ") {
		return // behind a table that is held back, it may stand in front of the bracket
	}
	r.sequence.text.WriteString(space[:1])
	r.number, r.other, r.last, r.only = false, true, term{}, term{}
}

// addInvisible adds an operator that is not shown. A space may have to stand for it: sin x,
// and 2 3 for a product.
func (r *mathRow) addInvisible(sign rune) {
	r.release(false)
	if sign == '\u2061' {
		r.last.apart, r.last.word = true, true
	} else {
		r.last.object = true
	}
}

// term returns the row as one term. An absolute value is one that holds together.
func (r *mathRow) term() term {
	r.release(true)
	t := r.sequence.term()

	if t.kind != sum || !strings.ContainsRune(bars, firstOf(t.text)) {
		return t
	}

	bar := string(firstOf(t.text))
	if len(t.text) > 2*len(bar) && strings.HasSuffix(t.text, bar) && strings.Count(t.text, bar) == 2 {
		t.kind = simple
	}

	return t
}

func firstOf(text string) rune {
	c, _ := utf8.DecodeRuneInString(text)
	return c
}
