package rules

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// addAfterLabel adds the candidates that stand after a label, on its line or below.
func (s *search) addAfterLabel(m mark) {
	less := 0
	if !m.exact {
		less = penaltyConfused
	}

	switch s.bondBefore(m) {
	case firm:
	case loose:
		less += scoreLabel - scoreApart
	case foreign:
		s.passOver(m)
		return
	}

	before := len(s.candidates)
	cells, sure := s.headCells(m)
	stacked, isHead := s.stackAt(m)
	switch {
	case isHead:
		s.addStacked(&stacked, s.hasLabels(m))
	case sure: // what stands beside it is another head
		s.addColumn(cells, s.hasLabels(m))
	case s.isRepeated(m): // the value stands behind the last of its cells
	case s.isText():
		s.addTextAfter(m)
	case !s.addOnLine(m) && !s.addFromCells(cells):
		s.addBelow(m)
	}

	for i := before; i < len(s.candidates); i++ {
		s.candidates[i].matchStart = m.Start
		s.candidates[i].rank = m.rank
		s.candidates[i].score -= less
	}
}

// isRepeated reports whether the cell of a label stands once more beside it: what reaches across
// several columns of a table is written in each of them.
func (s *search) isRepeated(m mark) bool {
	if !s.inBars(m) {
		return false
	}

	begin, end := s.beginOfCell(m.Start), s.lines[s.lineAt(m.Start)].End
	begin = end - len(strings.TrimLeft(s.text[begin:end], "| "))
	cell, rest, _ := strings.Cut(s.text[begin:end], "|")
	cell = strings.TrimRight(cell, " ")
	next, _, _ := strings.Cut(rest, "|")
	return strings.TrimSpace(next) == cell && s.isLabelCell(form.NewSpan(begin, begin+len(cell)), m)
}

// isEntry reports whether a label begins its line and a colon follows, as in a
// list of names and values.
func (d *document) isEntry(m mark) bool { return d.beginsLine(m) && d.labelDelimiter(m) == ':' }

func (t *linedText) beginsLine(m mark) bool {
	before := t.text[t.lines[t.lineAt(m.Start)].Start:m.Start]
	return len(before) <= nearBytes && strings.TrimSpace(before) == ""
}

// labelDelimiter returns the sign that sets a label off from its value: a colon
// or the like, a tab or several spaces, the end of the line; 0 if there is none.
func (t *linedText) labelDelimiter(m mark) byte {
	line := t.lines[t.lineAt(m.Start)]
	r := form.NewSpan(m.End, min(max(m.End, line.End), m.End+nearBytes))
	rest := t.text[r.Start:r.End]
	after := t.text[r.Start:skipSeparators(t.text, r).Start]

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
func (t *linedText) followsWord(m mark) bool {
	line := t.lines[t.lineAt(m.Start)]
	before := t.text[line.Start:m.Start]
	word := strings.TrimRight(before, " ")
	if len(before)-len(word) != 1 || word == "" {
		return false
	}
	word = strings.TrimLeft(word[strings.LastIndexAny(word, " \t|")+1:], "*_")
	return word != "" && !strings.ContainsFunc(word, func(c rune) bool { return !unicode.IsLetter(c) })
}

// restOfLine returns what follows a label on its line, up to the next label.
func (s *search) restOfLine(m mark) form.Span {
	line := s.lines[s.lineAt(m.Start)]
	rest := form.NewSpan(m.End, max(min(line.End, s.area.End), m.End))
	rest.End = clampRune(s.text, rest, s.most)
	head := s.isEntry(m)

	for _, next := range marksBetween(s.allLabels, m.End, rest.End) {
		if s.endsValue(m, next, rest.End, head) {
			rest.End = next.Start
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
	between := s.text[m.End:next.Start]
	gap := strings.HasSuffix(between, "  ") || strings.HasSuffix(between, "\t")
	colon := strings.HasPrefix(strings.TrimLeft(s.text[next.End:max(end, next.End)], " ."), ":")

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

	v := form.Trim(s.text, s.withinCell(skipSeparators(s.text, s.restOfLine(m))))
	v = form.Trim(s.text, form.NewSpan(v.Start, endOfCell(s.text, v)))
	if v.Start == v.End {
		s.addTextBelow(m)
		return
	}

	v = s.cutIdentifier(v)
	if s.isSplit(v) || s.onlySeparators(v) || s.isNoCode(m, v) {
		return // a part of a value, or none
	}

	v.End = max(v.End, s.endOfFolded(m))
	s.candidates = append(s.candidates, candidate{Span: v, score: score, value: -1})
}

// addTextBelow takes the first line below a label that is not blank, unless it begins with
// another label or is a row of a table.
func (s *search) addTextBelow(m mark) {
	first := s.lineAt(m.Start) + 1
	for i := first; i < min(len(s.lines), first+blankLines) && s.lines[i].Start < s.area.End; i++ {
		if strings.TrimSpace(s.clipLine(i, s.area.Span).Of(s.text)) == "" {
			continue
		}

		line, ok := s.cellBelow(m, i)
		v := form.Trim(s.text, form.NewSpan(line.Start, clampRune(s.text, line, s.most)))
		if !ok || v.Start == v.End {
			return
		}

		if len(marksBetween(s.allLabels, v.Start, v.Start+1)) > 0 || s.text[v.Start] == '|' {
			return
		}

		if s.identifier {
			v = s.cutIdentifier(skipSeparators(s.text, v))
		}
		if v.Start < v.End && !s.isNoCode(m, v) {
			s.candidates = append(s.candidates, candidate{Span: v, score: scoreNextLine, value: -1})
		}
		return
	}
}

// withinCell returns the part of r up to the end of the cell in which it begins, if its line
// is a row of a table that begins with a bar.
func (t *linedText) withinCell(r form.Span) form.Span {
	if strings.HasPrefix(strings.TrimSpace(t.lineText(t.lineAt(r.Start))), "|") {
		if end := strings.IndexByte(t.text[r.Start:r.End], '|'); end >= 0 {
			r.End = r.Start + end
		}
	}
	return r
}

// clampRune returns the end of r, at most limit bytes after its start and not
// inside a character.
func clampRune(text string, r form.Span, limit int) int {
	if r.End-r.Start <= limit {
		return r.End
	}
	end := r.Start + limit
	for end > r.Start && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

// clampWord returns the end of r, at most limit bytes after its start but for the
// rest of a word that would be cut.
func clampWord(text string, r form.Span, limit int) int {
	end := clampRune(text, r, limit)
	for far := min(r.End, end+form.MaxAddress); end < far && !isSpace(text[end]); {
		end++
	}
	return end
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// wideColon is the colon of East Asian texts.
const wideColon = "\uff1a"

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

	rest.End = clampWord(s.text, rest, nearBytes)

	before := len(s.candidates)
	all := s.outsideDates(s.candidatesIn(rest), rest)
	found, settled := s.inRow(all)
	if !settled {
		s.passed = cmp.Or(s.passed, "amounts of several columns stand behind the label")
		return true
	}

	for i, c := range found {
		// The words in front of the first value decide for those behind it, too.
		bond := firm
		if i == 0 {
			bond = s.bondAfter(m, all[0].Span)
		}

		switch {
		case bond == foreign:
			s.passOver(m)
			return true // what stands on the line belongs to another label
		case bond == loose || i > 0 && s.candidates[before].score <= scoreApart:
			c.score = scoreApart
		case i == 0 && s.isEntry(m):
			c.score = scoreEntry
		case s.property.Type == schema.Array:
			c.score = scoreLabel
		default:
			c.score = scoreLabel - min(i, 3)*penaltyLater
		}

		c.score -= s.coarsePenalty(c.Span)
		s.candidates = append(s.candidates, c)
	}

	return len(s.candidates) > before
}

// wholeAddress reads everything that follows a label as one address, including
// punctuation at its end. Within a sentence such punctuation would be left out.
func (s *search) wholeAddress(rest form.Span) (candidate, bool) {
	if len(s.patterns) > 0 || len(s.values) > 0 || s.element.Format != schema.URI {
		return candidate{}, false
	}
	v := form.Trim(s.text, skipSeparators(s.text, rest))
	if v.End-v.Start > form.MaxAddress {
		return candidate{}, false
	}
	_, err := s.element.Normalize(s.text[v.Start:v.End])
	return candidate{Span: v, value: -1}, err == nil
}

// isGap reports whether s holds nothing but separators, currencies and remarks
// in parentheses.
func isGap(s string) bool {
	for {
		// Remarks in parentheses go first, as they may hold any words.
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

	s = strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Sc, c) && c != '$' || unicode.IsSpace(c) { // R$ is one sign
			return ' '
		}
		return c
	}, s)

	for _, w := range form.Words(s, 0, len(s)) {
		attached := w.End == len(s) && s[w.Start:] == "R" // in front of an amount in rand
		if !attached && !format.EndsWithCurrency(s, w.End) {
			return false
		}
	}

	return true
}

// coarsePenalty returns what a number without decimals loses in a field of
// amounts, where decimals are usual.
func (s *search) coarsePenalty(v form.Span) int {
	if s.element.Type == schema.Number && !strings.ContainsAny(s.text[v.Start:v.End], ".,") {
		return penaltyCoarse
	}
	return 0
}

// addBelow adds the value that stands on the lines below the label.
func (s *search) addBelow(m mark) {
	line := s.lineAt(m.Start)
	rest := s.restOfLine(m)
	near := clampWord(s.text, rest, nearBytes)
	bond := s.bondAfter(m, form.NewSpan(near, near))
	if bond == foreign {
		s.passOver(m)
		return
	}

	if s.element.Numeric() && len(s.patterns) == 0 && len(s.values) == 0 && !s.element.Hints.NumberWords && s.element.Hints.Units == nil {
		s.addFromBlock(line, rest.End-rest.Start <= nearBytes && bond == firm)
		return
	}

	seen := 0
	for i := line + 1; i < min(len(s.lines), line+blankLines) && seen < nearLines && s.lines[i].Start < s.area.End; i++ {
		r := form.NewSpan(s.lines[i].Start, min(s.lines[i].End, s.area.End))
		if strings.TrimSpace(s.text[r.Start:r.End]) == "" {
			continue
		}

		r, ok := s.cellBelow(m, i)
		if !ok {
			return
		}

		r.End = clampWord(s.text, r, nearBytes)
		if found := s.candidatesIn(r); len(found) > 0 {
			found[0].score = scoreNextLine - 5*seen
			if bond == loose {
				found[0].score = scoreApart
			}
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
	// Lines of text without a number are labels that wait for their values below.
	for labels <= blockLines && s.lineKindAt(i) == textLine {
		labels++
		i = s.skipEmpty(i + 1)
	}

	var numbers []form.Span
	for len(numbers) < 2*blockLines && s.lineKindAt(i) == numberLine {
		numbers = append(numbers, s.scan(s.text, s.lines[i].Start, s.lines[i].End, s.style)[0])
		i = s.skipEmpty(i + 1)
	}

	above := len(numbers) - labels
	c := candidate{value: -1, score: scoreBlock}
	switch {
	case len(numbers) == 0:
		return
	case labels == 1:
		c.Span = numbers[0]
		if len(numbers) == 1 {
			c.score = scoreNextLine
		}
	case above >= 0 && s.textLinesAbove(line, above):
		c.Span = numbers[above]
	default:
		return
	}
	// Other words behind the label make it doubtful that the number is its value.
	if !clean {
		c.score = min(c.score, scoreApart)
	}

	c.score -= s.coarsePenalty(c.Span)
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
	if i < 0 || i >= len(s.lines) || s.lines[i].Start < s.area.Start || s.lines[i].Start >= s.area.End {
		return noLine
	}

	line := form.NewSpan(s.lines[i].Start, min(s.lines[i].End, s.area.End))
	if line.End-line.Start > nearBytes {
		return noLine
	}

	numbers := form.Amounts(s.text, line.Start, line.End, s.style)
	switch {
	case len(numbers) == 0 && isGap(s.text[line.Start:line.End]):
		return emptyLine
	case len(numbers) == 0:
		return textLine
	case len(numbers) == 1 && isGap(s.text[line.Start:numbers[0].Start]) && len(strings.TrimFunc(s.text[numbers[0].End:line.End], notWord)) <= format.MaxTaxCode:
		return numberLine
	default:
		return noLine
	}
}

func notWord(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }
