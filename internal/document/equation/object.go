package equation

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/document/richtext"
)

// written has how each object is written, by the name of its element.
var written = map[string]func(*object) term{
	"acc": (*object).accentTerm, "bar": (*object).barTerm, "groupChr": (*object).braceTerm,
	"box": (*object).base, "borderBox": (*object).base, "phant": (*object).phantomTerm,
	"d": (*object).delimited, "m": (*object).matrix, "eqArr": (*object).equationArray,
	"f": (*object).fraction, "rad": (*object).radicalTerm, "func": (*object).functionTerm, "nary": (*object).naryTerm,
	"limLow": (*object).limitTerm, "limUpp": (*object).limitTerm,
	"sSub": (*object).scripts, "sSup": (*object).scripts, "sSubSup": (*object).scripts, "sPre": (*object).prescripts,
}

func (o *object) base() term { return o.part("e") }

// phantomTerm is a term that takes its place, and often is not shown.
func (o *object) phantomTerm() term {
	if shown, said := o.is("show"); said && !shown {
		return term{}
	}
	return o.base()
}

// fraction is a/b. One without a bar, such as a binomial coefficient, is a¦b.
func (o *object) fraction() term {
	over, under := o.part("num"), o.part("den")
	if o.properties["type"] == "noBar" {
		return term{text: over.inParentheses(product) + "¦" + under.inParentheses(product), kind: sum}
	}

	// Of a numerator with a space only the last part would seem to be divided.
	most := product
	if strings.Contains(over.text, " ") {
		most = script
	}

	text := over.inParentheses(most) + "/"
	if isDifferential(under.text) {
		text += under.text
	} else {
		text += under.inParentheses(script)
	}

	return term{text: text, kind: quotient, apart: true}
}

// isDifferential reports whether a text is one such as dx.
func isDifferential(text string) bool {
	rest, ok := strings.CutPrefix(text, "d")
	if !ok {
		rest, ok = strings.CutPrefix(text, "∂")
	}
	return ok && utf8.RuneCountInString(rest) == 1
}

// radicalTerm is a root. A degree stands in brackets behind the sign, as x³√(y) could be two
// things.
func (o *object) radicalTerm() term {
	degree := o.part("deg").text
	if hidden, _ := o.is("degHide"); hidden {
		degree = ""
	}

	sign := "√"

	// Two degrees have signs of their own.
	switch degree {
	case "", "2":
	case "3":
		sign = "∛"
	case "4":
		sign = "∜"
	default:
		sign += "[" + degree + "]"
	}

	return term{text: sign + "(" + o.base().text + ")"}
}

// scripts is a term with a subscript, a superscript or both.
func (o *object) scripts() term { return withScripts(o.base(), o.part("sub"), o.part("sup")) }

// withScripts writes scripts behind a base. They are lowered and raised characters if there
// are such for all of a script, but x_i² might have a squared subscript: it is x_i^2.
func withScripts(base, sub, sup term) term {
	t := term{text: groupedBase(base, sub), kind: script, limit: base.limit}
	t.open = base.open && t.text == base.text
	t.word, t.apart = base.word && base.apart, base.word && base.apart // log₂ x
	if t.text == base.text {
		t.nested = base.nested
	}

	if sub.text != "" {
		form, ok := richtext.Form(sub.text, richtext.Lowered)
		if !ok || t.open {
			form, t.open = markedScript(sub.text, richtext.Lowered)
		}
		t.text += form
	}

	if sup.text == "" {
		return t
	}

	t.raised = true

	form, ok := raisedForm(sup.text)
	if !ok || t.open {
		form, t.open = markedScript(sup.text, richtext.Raised)
	}
	t.text += form

	return t
}

// groupedBase returns a base for scripts. Those of a word, as in cm² and sin⁻¹, belong to
// all of it.
func groupedBase(base, sub term) string {
	switch {
	case base.kind == product && base.word:
		return base.text
	case base.kind == script && !base.raised && sub.text == "":
		return base.text
	case endsBrackets(base.text): // of which the rest stands in front
		return base.text
	}
	return base.inParentheses(simple)
}

// endsBrackets reports whether a text is a bracket that closes others.
func endsBrackets(text string) bool {
	c, size := utf8.DecodeRuneInString(text)
	return size > 0 && size == len(text) && (unicode.Is(unicode.Pe, c) || strings.ContainsRune(bars, c))
}

// bars are brackets that look alike on both sides.
const bars = "|‖∣∥"

// raisedForm returns a superscript in raised characters. Primes and degrees are raised as
// they are.
func raisedForm(text string) (string, bool) {
	if text == "∘" {
		return "°", true
	}
	if strings.Trim(text, "′″‴'°") == "" {
		return text, true
	}
	return richtext.Form(text, richtext.Raised)
}

// markedScript returns a script behind its sign, and whether it lacks parentheses.
func markedScript(text string, at richtext.Position) (script string, open bool) {
	script, bracketed := richtext.Marked(text, at)
	return script, !bracketed
}

// prescripts are those in front of a term, as of isotopes.
func (o *object) prescripts() term {
	sub, lowered := richtext.Form(o.part("sub").text, richtext.Lowered)
	sup, raised := richtext.Form(o.part("sup").text, richtext.Raised)
	base := o.base().inParentheses(script)
	if lowered && raised {
		return term{text: sub + sup + base, kind: script, raised: true, apart: true}
	}
	return term{text: "(" + withScripts(term{}, o.part("sub"), o.part("sup")).text + ")" + base, kind: script, raised: true, apart: true}
}

// limitTerm is a term with another below or above it. That is no power of it, and not raised.
func (o *object) limitTerm() term {
	base, at := o.base(), richtext.Lowered
	if o.name == "limUpp" {
		at = richtext.Raised
	}

	t := term{text: groupedBase(base, term{}), kind: script, raised: true, limit: true, apart: base.word && base.apart}
	if limit := o.part("lim").text; limit != "" {
		limit, t.open = markedScript(limit, at)
		t.text += limit
	}

	return t
}

// functionTerm is one with its argument: cos x, sin(x+1), lim_(x→0) f(x).
func (o *object) functionTerm() term {
	name, argument := o.part("fName"), o.base()
	t := term{text: name.text, kind: applied, apart: true, open: name.open}
	if argument.text == "" {
		return t
	}

	most := product

	switch {
	case name.limit:
		most = applied
	case strings.HasPrefix(argument.text, "("): // the rest would not seem to be of the argument
		most = simple
	}

	// An argument in parentheses needs no space behind the name.
	text := argument.inParentheses(most)
	if strings.HasPrefix(text, "(") && !name.limit && !name.open {
		t.kind = product
	} else {
		t.text += " "
	}

	t.text += text
	t.open = false
	return t
}

// naryTerm is a sum, a product, an integral or the like.
func (o *object) naryTerm() term {
	var sub, sup term
	if hidden, _ := o.is("subHide"); !hidden {
		sub = o.part("sub")
	}
	if hidden, _ := o.is("supHide"); !hidden {
		sup = o.part("sup")
	}

	sign := term{text: o.sign("chr", "∫")}
	t := withScripts(sign, sub, sup)

	if operand := o.base().inParentheses(applied); operand != "" {
		// Behind limits a space parts the operand from them.
		if t.text != sign.text {
			t.text += " "
		}
		t.text += operand
		t.open = false
	}

	t.kind, t.raised, t.apart = applied, false, true
	return t
}

// delimited is a list of terms in brackets. Those of a matrix stand for its own.
func (o *object) delimited() term {
	begin, end := o.sign("begChr", "("), o.sign("endChr", ")")

	terms := o.parts["e"]
	t := term{kind: simple}
	if begin == "" || end == "" {
		t.kind = sum
	}

	// The brackets around a matrix take the place of its own.
	if len(terms) == 1 && terms[0].inner != "" && begin+end != "" {
		t.text = begin + terms[0].inner + end
		return t
	}

	texts := make([]string, len(terms))
	for i := range terms {
		texts[i] = terms[i].text
	}
	t.text = begin + strings.Join(texts, o.sign("sepChr", "|")) + end
	return t
}

// matrix is [a b; c d]. An empty cell is a box, so that those behind it keep their columns.
func (o *object) matrix() term {
	rows := make([]string, len(o.rows))
	for i, row := range o.rows {
		cells := make([]string, len(row))
		for j, cell := range row {
			switch cells[j] = cell.text; {
			case cells[j] == "":
				cells[j] = "□"
			case len(row) > 1 && strings.Contains(cells[j], " "):
				cells[j] = "(" + cells[j] + ")"
			}
		}
		rows[i] = strings.Join(cells, " ")
	}

	inner := strings.Join(rows, "; ")
	return term{text: "[" + inner + "]", inner: inner}
}

// alignment are the characters at which the equations of an array are aligned, and the one
// in front of the number of an equation.
var alignment = strings.NewReplacer("&", "", "#", " ")

// equationArray is several equations.
func (o *object) equationArray() term {
	lines := make([]string, len(o.parts["e"]))
	for i, e := range o.parts["e"] {
		lines[i] = alignment.Replace(e.text)
	}
	return term{text: strings.Join(lines, "\n"), kind: sum}
}

// combining are the marks that look like a character that stands alone.
var combining = map[string]string{
	"^": "\u0302", "ˆ": "\u0302", "~": "\u0303", "˜": "\u0303", "¯": overline, "‾": overline, "_": underline, "˘": "\u0306",
	"˙": "\u0307", ".": "\u0307", "¨": "\u0308", "ˇ": "\u030c", "`": "\u0300", "´": "\u0301", "→": "\u20d7", "←": "\u20d6",
	"ˉ": overline, "⎯": overline, "˚": "\u030a", "⇀": "\u20d1", "↼": "\u20d0", "↔": "\u20e1",
}

// The marks of bars.
const (
	overline  = "\u0305"
	underline = "\u0332"
)

// accentTerm is a term with a mark, such as x̂.
func (o *object) accentTerm() term {
	mark := o.sign("chr", "\u0302")
	if m, ok := combining[mark]; ok {
		mark = m
	}

	base := o.base()

	// A mark belongs to one character; a longer term is put in parentheses.
	switch first, _ := utf8.DecodeRuneInString(mark); {
	case mark == "\u0304" || mark == overline:
		return barredTerm(base, overline, "¯")
	case mark == underline:
		return barredTerm(base, underline, "▁")
	case !unicode.IsMark(first):
		return term{text: mark + "(" + base.text + ")"}
	}

	if characters(base.text) == 1 {
		return term{text: base.text + mark}
	}
	return term{text: "(" + base.text + ")" + mark}
}

// barTerm is a term with a line above or below it.
func (o *object) barTerm() term {
	if o.properties["pos"] == "top" {
		return barredTerm(o.base(), overline, "¯")
	}
	return barredTerm(o.base(), underline, "▁")
}

// maxBarred bounds the characters that have a bar each.
const maxBarred = 20

// barredTerm returns a short word or number with a bar at each character, as in 0.1̅6̅, and other
// terms behind a sign.
func barredTerm(t term, bar, sign string) term {
	isPlain := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }
	if n := characters(t.text); n == 0 || n > maxBarred || strings.TrimFunc(t.text, isPlain) != "" {
		return term{text: sign + "(" + t.text + ")"}
	}

	var text strings.Builder
	for _, c := range t.text {
		text.WriteRune(c)
		text.WriteString(bar)
	}

	return term{text: text.String(), kind: t.kind, word: t.word, digits: true}
}

// characters counts characters without their marks.
func characters(text string) int {
	n := 0
	for _, c := range text {
		if !unicode.IsMark(c) {
			n++
		}
	}
	return n
}

// braceTerm is a term with a brace or another sign along it.
func (o *object) braceTerm() term {
	return term{text: o.sign("chr", "⏟") + "(" + o.base().text + ")"}
}
