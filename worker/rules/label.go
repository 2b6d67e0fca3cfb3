package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
)

// addAfterLabel adds the candidates that stand after a label, on its line or below.
func (s *search) addAfterLabel(m mark) {
	less := 0
	if !m.exact {
		less = penaltyConfused
	}
	if s.followsWord(m) {
		less += scoreLabel - scoreApart
	}
	before := len(s.candidates)
	if s.isText() {
		s.addTextAfter(m)
	} else if !s.addOnLine(m) {
		s.addBelow(m)
	}
	for i := before; i < len(s.candidates); i++ {
		s.candidates[i].matchStart = m.start
		s.candidates[i].rank = m.rank
		s.candidates[i].score -= less
	}
}

// isEntry reports whether a label begins its line and a colon follows, as in a
// list of names and values.
func (d *document) isEntry(m mark) bool { return d.beginsLine(m) && d.labelDelimiter(m) == ':' }

func (d *document) beginsLine(m mark) bool {
	before := d.text[d.lines[d.lineAt(m.start)].start:m.start]
	return len(before) <= nearBytes && strings.TrimSpace(before) == ""
}

// labelDelimiter returns the sign that sets a label off from its value: a colon
// or the like, a tab or several spaces, the end of the line; 0 if there is none.
func (d *document) labelDelimiter(m mark) byte {
	line := d.lines[d.lineAt(m.start)]
	r := span{m.end, min(max(m.end, line.end), m.end+nearBytes)}
	rest := d.text[r.start:r.end]
	after := d.text[r.start:skipSeparators(d.text, r).start]
	switch {
	case strings.TrimSpace(rest) == "":
		return '\n'
	case strings.ContainsAny(after, ":=|"+wideColon):
		return ':'
	case strings.ContainsAny(after, "\t-") || strings.HasPrefix(rest, "  "):
		return '\t'
	default:
		return 0
	}
}

// followsWord reports whether a plain word stands right before a label, so that
// the two may mean something else together: TAX INCLUDED IN TOTAL.
func (s *search) followsWord(m mark) bool {
	line := s.lines[s.lineAt(m.start)]
	before := s.text[line.start:m.start]
	word := strings.TrimRight(before, " ")
	if len(before)-len(word) != 1 || word == "" {
		return false
	}
	start := strings.LastIndexByte(word, ' ') + 1
	return !strings.ContainsFunc(word[start:], func(c rune) bool { return !unicode.IsLetter(c) })
}

// restOfLine returns what follows a label on its line, up to the next label.
func (s *search) restOfLine(m mark) span {
	line := s.lines[s.lineAt(m.start)]
	rest := span{m.end, max(min(line.end, s.area.end), m.end)}
	rest.end = clampRune(s.text, rest, valueBytes)
	head := s.isEntry(m)
	for _, next := range marksBetween(s.allLabels, m.end, rest.end) {
		if s.endsValue(m, next, rest.end, head) {
			rest.end = next.start
			break
		}
	}
	return rest
}

// endsValue reports whether the value of label m ends where the label next
// begins. In a text value the next label must be set off by a gap or be
// followed by a colon. After "Name:" at the head of a line, which is one value
// as a rule, the next label needs a colon, and either a gap or never to head a
// line itself.
func (s *search) endsValue(m, next mark, end int, head bool) bool {
	between := s.text[m.end:next.start]
	gap := strings.HasSuffix(between, "  ") || strings.HasSuffix(between, "\t")
	colon := strings.HasPrefix(strings.TrimLeft(s.text[next.end:max(end, next.end)], " ."), ":")
	switch {
	case head:
		return colon && (gap || !s.entryLabels[next.field])
	case s.isText():
		return gap || colon
	default:
		return true
	}
}

// addTextAfter takes the rest of the line, or the line below when nothing follows.
func (s *search) addTextAfter(m mark) {
	score := scoreLabel
	switch {
	case s.isEntry(m):
		score = scoreEntry
	case s.labelDelimiter(m) != 0:
	case s.beginsLine(m):
		score = scoreNextLine
	case s.followsWord(m):
		return
	default:
		score = scoreProse
	}
	rest := s.restOfLine(m)
	v := trimSpan(s.text, skipSeparators(s.text, rest))
	if v.start < v.end {
		v.end = max(v.end, s.endOfFolded(m))
		s.candidates = append(s.candidates, candidate{span: v, score: score, value: -1})
		return
	}
	first := s.lineAt(m.start) + 1
	for i := first; i < min(len(s.lines), first+blankLines) && s.lines[i].start < s.area.end; i++ {
		line := span{s.lines[i].start, min(s.lines[i].end, s.area.end)}
		v := trimSpan(s.text, span{line.start, clampRune(s.text, line, valueBytes)})
		if v.start == v.end {
			continue
		}
		if len(marksBetween(s.allLabels, v.start, v.start+1)) == 0 {
			s.candidates = append(s.candidates, candidate{span: v, score: scoreNextLine, value: -1})
		}
		return
	}
}

// clampRune returns the end of r, at most limit bytes after its start and not
// inside a character.
func clampRune(text string, r span, limit int) int {
	if r.end-r.start <= limit {
		return r.end
	}
	end := r.start + limit
	for end > r.start && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

// clampWord returns the end of r, at most limit bytes after its start but for the
// rest of a word that would be cut.
func clampWord(text string, r span, limit int) int {
	end := clampRune(text, r, limit)
	for far := min(r.end, end+maxAddress); end < far && !isSpace(text[end]); {
		end++
	}
	return end
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// wideColon is the colon of East Asian texts.
const wideColon = "\uff1a"

// skipSeparators moves over what stands between a label and its value: a point
// or number sign of the label, a unit in parentheses before a colon, one colon
// or the like.
func skipSeparators(text string, r span) span {
	rest := strings.TrimLeft(text[r.start:r.end], " \t.#")
	if strings.HasPrefix(rest, "(") {
		if i := strings.IndexByte(rest, ')'); i > 0 && strings.HasPrefix(strings.TrimLeft(rest[i+1:], " "), ":") {
			rest = strings.TrimLeft(rest[i+1:], " ")
		}
	}
	switch {
	case rest == "":
	case strings.IndexByte(":=|", rest[0]) >= 0:
		rest = rest[1:]
	case strings.HasPrefix(rest, wideColon):
		rest = rest[len(wideColon):]
	case strings.HasPrefix(rest, "- ") || strings.HasPrefix(rest, "-\t"):
		rest = rest[2:]
	}
	r.start = r.end - len(rest)
	return r
}

// addOnLine adds the values that follow on the label's line, and reports whether
// there are any.
func (s *search) addOnLine(m mark) bool {
	rest := s.restOfLine(m)
	if c, ok := s.wholeAddress(rest); ok {
		c.score = scoreLabel
		if s.isEntry(m) {
			c.score = scoreEntry
		}
		s.candidates = append(s.candidates, c)
		return true
	}
	rest.end = clampWord(s.text, rest, nearBytes)
	before := len(s.candidates)
	for i, c := range s.candidatesIn(rest) {
		switch {
		case i == 0 && !isGap(s.text[m.end:c.start]) || i > 0 && s.candidates[before].score <= scoreApart:
			c.score = scoreApart
		case i == 0 && s.isEntry(m):
			c.score = scoreEntry
		case s.property.Type == schema.Array:
			c.score = scoreLabel
		default:
			c.score = scoreLabel - min(i, 3)*penaltyLater
		}
		c.score -= s.coarsePenalty(c.span)
		s.candidates = append(s.candidates, c)
	}
	return len(s.candidates) > before
}

// wholeAddress reads everything that follows a label as one address, including
// punctuation at its end. Within a sentence such punctuation would be left out.
func (s *search) wholeAddress(rest span) (candidate, bool) {
	if len(s.patterns) > 0 || len(s.values) > 0 || s.element.Format != schema.URI {
		return candidate{}, false
	}
	v := trimSpan(s.text, skipSeparators(s.text, rest))
	if v.end-v.start > maxAddress {
		return candidate{}, false
	}
	_, err := s.element.Normalize(s.text[v.start:v.end])
	return candidate{span: v, value: -1}, err == nil
}

// isGap reports whether s holds nothing but separators, currencies and remarks
// in parentheses.
func isGap(s string) bool {
	for {
		open := strings.IndexByte(s, '(')
		if open < 0 {
			break
		}
		shut := strings.IndexByte(s[open:], ')')
		if shut < 0 {
			break
		}
		s = s[:open] + " " + s[open+shut+1:]
	}
	for _, w := range findWords(s, 0, len(s)) {
		n := numberToken{text: s}
		if !n.isCurrency(w.end) {
			return false
		}
	}
	return true
}

// coarsePenalty returns what a number without decimals loses in a field of
// amounts, where decimals are usual.
func (s *search) coarsePenalty(v span) int {
	if s.element.Type == schema.Number && !strings.ContainsAny(s.text[v.start:v.end], ".,") {
		return penaltyCoarse
	}
	return 0
}

// addBelow adds the value that stands on the lines below the label.
func (s *search) addBelow(m mark) {
	line := s.lineAt(m.start)
	rest := s.restOfLine(m)
	if s.element.Numeric() && len(s.patterns) == 0 && len(s.values) == 0 && !s.element.Hints.NumberWords && s.element.Hints.Units == nil {
		s.addFromBlock(line, rest.end-rest.start <= nearBytes && isGap(s.text[rest.start:rest.end]))
		return
	}
	seen := 0
	for i := line + 1; i < min(len(s.lines), line+blankLines) && seen < nearLines && s.lines[i].start < s.area.end; i++ {
		r := span{s.lines[i].start, min(s.lines[i].end, s.area.end)}
		if strings.TrimSpace(s.text[r.start:r.end]) == "" {
			continue
		}
		r.end = clampWord(s.text, r, nearBytes)
		if found := s.candidatesIn(r); len(found) > 0 {
			found[0].score = scoreNextLine - 5*seen
			s.candidates = append(s.candidates, found[0])
			return
		}
		seen++
	}
}

// addFromBlock adds the number below a label. When several labels without values
// stand above each other, and as many numbers stand below them, the numbers
// belong to the labels in order. clean is false if other words follow the label
// on its line.
func (s *search) addFromBlock(line int, clean bool) {
	labels := 1
	i := s.skipEmpty(line + 1)
	for labels <= blockLines && s.lineKindAt(i) == textLine {
		labels++
		i = s.skipEmpty(i + 1)
	}
	var numbers []span
	for len(numbers) < 2*blockLines && s.lineKindAt(i) == numberLine {
		numbers = append(numbers, s.scan(s.text, s.lines[i].start, s.lines[i].end)[0])
		i = s.skipEmpty(i + 1)
	}
	above := len(numbers) - labels
	c := candidate{value: -1, score: scoreBlock}
	switch {
	case len(numbers) == 0:
		return
	case labels == 1:
		c.span = numbers[0]
		if len(numbers) == 1 {
			c.score = scoreNextLine
		}
	case above >= 0 && s.textLinesAbove(line, above):
		c.span = numbers[above]
	default:
		return
	}
	if !clean {
		c.score = min(c.score, scoreApart)
	}
	c.score -= s.coarsePenalty(c.span)
	s.candidates = append(s.candidates, c)
}

// skipEmpty returns the first line from i on that is not empty. After blankLines
// empty lines it gives up and returns the line it has reached.
func (s *search) skipEmpty(i int) int {
	for last := i + blankLines; i < last && s.lineKindAt(i) == emptyLine; {
		i++
	}
	return i
}

// textLinesAbove reports whether n lines without numbers stand above line.
func (s *search) textLinesAbove(line, n int) bool {
	for i := range n {
		if s.lineKindAt(line-1-i) != textLine {
			return false
		}
	}
	return true
}

// A lineKind tells lines that hold a number and nothing else from lines of text.
type lineKind int

const (
	noLine    lineKind = iota // beyond the area, or text and numbers mixed
	emptyLine                 // separators and currencies at most
	textLine
	numberLine
)

func (s *search) lineKindAt(i int) lineKind {
	if i < 0 || i >= len(s.lines) || s.lines[i].start < s.area.start || s.lines[i].start >= s.area.end {
		return noLine
	}
	line := span{s.lines[i].start, min(s.lines[i].end, s.area.end)}
	if line.end-line.start > nearBytes {
		return noLine
	}
	numbers := scanAmounts(s.text, line.start, line.end)
	switch {
	case len(numbers) == 0 && isGap(s.text[line.start:line.end]):
		return emptyLine
	case len(numbers) == 0:
		return textLine
	case len(numbers) == 1 && isGap(s.text[line.start:numbers[0].start]) && len(strings.TrimFunc(s.text[numbers[0].end:line.end], notWord)) <= maxTaxCode:
		return numberLine
	default:
		return noLine
	}
}

func notWord(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }
