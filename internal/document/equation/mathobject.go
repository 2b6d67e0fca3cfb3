package equation

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// as returns the object of OMML that an element is, by the name of that. Parts that are
// empty count as none.
func as(name string, terms map[string]term, properties ...string) *object {
	o := &object{name: name, properties: map[string]string{}, parts: map[string][]term{}}
	for part, t := range terms {
		o.parts[part] = []term{t}
	}

	for i := 0; i+1 < len(properties); i += 2 {
		o.properties[properties[i]] = properties[i+1]
	}
	return o
}

// part returns a part by its number.
func (e *element) part(i int) term {
	if i < len(e.parts) {
		return e.parts[i]
	}
	return term{}
}

func (e *element) nothing() term { return term{} }

func (e *element) first() term { return e.part(0) }

// shownMeaning is an equation as it is shown, or in TeX if that is all there is.
func (e *element) shownMeaning() term {
	if t := e.part(0); t.text != "" || e.tex == "" {
		return t
	}
	return term{text: e.tex, kind: sum}
}

func (e *element) fraction() term {
	bar := "bar"
	if isZero(e.attributes["linethickness"]) {
		bar = "noBar"
	}
	return as("f", map[string]term{"num": e.part(0), "den": e.part(1)}, "type", bar).fraction()
}

// root is one with a degree, or one of what is in the element.
func (e *element) root() term {
	if e.name == "msqrt" {
		return as("rad", map[string]term{"e": e.row.term().asPart()}).radicalTerm()
	}
	return as("rad", map[string]term{"e": e.part(0), "deg": e.part(1)}).radicalTerm()
}

// enclosedTerm is what lines are drawn around, which may be those of a root.
func (e *element) enclosedTerm() term {
	if strings.Contains(e.attributes["notation"], "radical") {
		return as("rad", map[string]term{"e": e.row.term().asPart()}).radicalTerm()
	}
	return e.row.term()
}

// loweredScript and raised return the scripts of an element, which has one or both.
func (e *element) loweredScript() term {
	if e.name == "msup" || e.name == "mover" {
		return term{}
	}
	return e.part(1)
}

func (e *element) raisedScript() term {
	if e.name == "msup" || e.name == "mover" {
		return e.part(1)
	}
	return e.part(2)
}

func (e *element) scripts() term {
	if isNary(e.part(0).text) {
		return as("nary", map[string]term{"sub": e.loweredScript(), "sup": e.raisedScript()}, "chr", e.part(0).text).naryTerm()
	}
	return withScripts(e.part(0), e.loweredScript(), e.raisedScript())
}

// limits are terms below and above another. A sign there is an accent or a brace.
func (e *element) limits() term {
	base, below, above := e.part(0), e.loweredScript(), e.raisedScript()
	switch {
	case isNary(base.text), below.text != "" && above.text != "":
		return e.scripts()
	case below.text == "" && above.text == "":
		return base
	case isBrace(below.text + above.text):
		return as("groupChr", map[string]term{"e": base}, "chr", below.text+above.text).braceTerm()
	case below.text != "" && (combining[below.text] == overline || combining[below.text] == underline):
		return as("bar", map[string]term{"e": base}).barTerm()
	case above.text != "" && combining[above.text] != "", isMark(below.text + above.text):
		return as("acc", map[string]term{"e": base}, "chr", below.text+above.text).accentTerm()
	case below.text != "":
		return as("limLow", map[string]term{"e": base, "lim": below}).limitTerm()
	}
	return as("limUpp", map[string]term{"e": base, "lim": above}).limitTerm()
}

// isBrace reports whether a text is a brace along another.
func isBrace(text string) bool {
	return utf8.RuneCountInString(text) == 1 && strings.Contains("⏞⏟⏜⏝⎴⎵⏠⏡", text)
}

// isMark reports whether a text is a mark of a character.
func isMark(text string) bool {
	c, size := utf8.DecodeRuneInString(text)
	return size == len(text) && unicode.IsMark(c)
}

// multiscripts is a term with several scripts, some of which may stand in front of it. They
// come in pairs.
func (e *element) multiscripts() term {
	behind, front := e.parts, []term(nil)
	if e.prescripts > 0 {
		behind, front = e.parts[:e.prescripts], e.parts[e.prescripts:]
	}

	base := e.part(0)
	if len(behind) > 1 {
		base = withScripts(base, joinSeconds(behind[1:]), joinSeconds(behind[2:]))
	}

	if len(front) == 0 {
		return base
	}

	// Pairs are of a lowered and a raised script.
	sub, sup := joinSeconds(front), joinSeconds(front[1:])
	if sub.text == "" && sup.text == "" {
		return base
	}
	return as("sPre", map[string]term{"e": base, "sub": sub, "sup": sup}).prescripts()
}

// joinSeconds joins every second term.
func joinSeconds(terms []term) term {
	var r mathRow
	for i := 0; i < len(terms); i += 2 {
		r.add(terms[i])
	}
	return r.term()
}

// fencedTerm is a list of terms in brackets.
func (e *element) fencedTerm() term {
	o := as("d", nil, "sepChr", ",")
	o.parts["e"] = e.parts

	for attribute, property := range map[string]string{"open": "begChr", "close": "endChr", "separators": "sepChr"} {
		if value, ok := e.attributes[attribute]; ok {
			o.properties[property] = strings.TrimSpace(squeeze(value))
		}
	}
	return o.delimited()
}

func (e *element) isTable() bool { return e.name == "mtable" && e.kind.shape == parts }

func (e *element) isRow() bool {
	return (e.name == "mtr" || e.name == "mlabeledtr") && e.kind.shape == parts
}

// addRow adds a row to a table. The label of one is the number of an equation, which stands
// behind it.
func (e *element) addRow(child *element) {
	cells := child.parts
	if child.name == "mlabeledtr" && len(cells) > 0 {
		label := cells[0]
		label.plain, label.apart = false, true
		cells = append(cells[1:], label)
	}
	e.rows = append(e.rows, cells)
}

// tableRow is a row that is in no table.
func (e *element) tableRow() term {
	return (&object{rows: [][]term{e.parts}}).matrix()
}

// table is a matrix, or an array of equations, whose columns are the sides of them.
func (e *element) table() term {
	wide, aligned := false, e.attributes["displaystyle"] == "true" || strings.HasPrefix(strings.TrimSpace(e.attributes["columnalign"]), "right left")
	lines := make([]string, len(e.rows))
	for i, row := range e.rows {
		wide = wide || len(row) > 1
		if aligned {
			e.rows[i] = []term{joined(row)}
		}
		if len(e.rows[i]) > 0 {
			lines[i] = e.rows[i][0].text
		}
	}

	// An array that is all of an equation stands on several lines.
	t := (&object{rows: e.rows}).matrix()
	if aligned || !wide {
		t.lines = strings.TrimSpace(strings.Join(lines, "\n"))
	}

	return t
}

// joined returns the cells of a row as one term.
func joined(cells []term) term {
	var r mathRow
	for _, c := range cells {
		r.add(c)
	}
	return r.term().asPart()
}
