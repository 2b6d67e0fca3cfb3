package find

import (
	"cmp"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/page"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
)

// addAfterLabel adds the candidates that stand after a label, on its line or below.
func (s *search) addAfterLabel(m phrase.Mark) {
	less := 0
	if !m.Exact {
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
	case s.IsText():
		s.addTextAfter(m)
	case !s.addOnLine(m) && !s.addFromCells(cells):
		s.addBelow(m)
	}

	for i := before; i < len(s.candidates); i++ {
		s.candidates[i].matchStart = m.Start
		s.candidates[i].rank = m.Rank
		s.candidates[i].score -= less
	}
}

// restOfLine returns what follows a label on its line, up to the next label.
func (s *scope) restOfLine(m phrase.Mark) form.Span {
	line := s.Lines[s.LineAt(m.Start)]
	rest := form.NewSpan(m.End, max(min(line.End, s.area.End), m.End))
	rest.End = page.ClampRune(s.Text, rest, s.Most)
	head := s.IsEntry(m)

	for _, next := range phrase.Between(s.allLabels, m.End, rest.End) {
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
func (s *scope) endsValue(m, next phrase.Mark, end int, head bool) bool {
	between := s.Text[m.End:next.Start]
	gap := strings.HasSuffix(between, "  ") || strings.HasSuffix(between, "\t")
	colon := strings.HasPrefix(strings.TrimLeft(s.Text[next.End:max(end, next.End)], " ."), ":")

	switch {
	case head:
		return colon && (gap || !s.entryLabels[next.Field])
	case s.IsText():
		return gap || colon
	default:
		return true
	}
}

// addTextAfter takes the rest of the line, or the line below when nothing follows.
func (s *search) addTextAfter(m phrase.Mark) {
	score := scoreLabel
	switch {
	case s.IsEntry(m):
		score = scoreEntry
	case s.LabelDelimiter(m) != 0:
	case s.BeginsLine(m):
		score = scoreNextLine
	case s.FollowsWord(m):
		return
	default:
		score = scoreProse
	}

	v := form.Trim(s.Text, s.WithinCell(page.SkipSeparators(s.Text, s.restOfLine(m))))
	v = form.Trim(s.Text, form.NewSpan(v.Start, page.EndOfCell(s.Text, v)))
	if v.Start == v.End {
		s.addTextBelow(m)
		return
	}

	v = s.cutIdentifier(v)
	if s.IsSplit(v) || s.OnlySeparators(v) || s.isNoCode(m, v) {
		return // a part of a value, or none
	}

	v.End = max(v.End, s.endOfFolded(m))
	s.candidates = append(s.candidates, candidate{Span: v, score: score, value: -1})
}

// addTextBelow takes the first line below a label that is not blank, unless it begins with
// another label or is a row of a table.
func (s *search) addTextBelow(m phrase.Mark) {
	first := s.LineAt(m.Start) + 1
	for i := first; i < min(len(s.Lines), first+blankLines) && s.Lines[i].Start < s.area.End; i++ {
		if strings.TrimSpace(s.ClipLine(i, s.area.Span).Of(s.Text)) == "" {
			continue
		}

		line, ok := s.cellBelow(m, i)
		v := form.Trim(s.Text, form.NewSpan(line.Start, page.ClampRune(s.Text, line, s.Most)))
		if !ok || v.Start == v.End {
			return
		}

		if len(phrase.Between(s.allLabels, v.Start, v.Start+1)) > 0 || s.Text[v.Start] == '|' {
			return
		}

		if s.Identifier {
			v = s.cutIdentifier(page.SkipSeparators(s.Text, v))
		}
		if v.Start < v.End && !s.isNoCode(m, v) {
			s.candidates = append(s.candidates, candidate{Span: v, score: scoreNextLine, value: -1})
		}
		return
	}
}

// addOnLine adds the values that follow on the label's line, and reports whether
// there are any.
func (s *search) addOnLine(m phrase.Mark) bool {
	rest := s.restOfLine(m)
	if c, ok := s.wholeAddress(rest); ok {
		c.score = scoreLabel
		if s.IsEntry(m) {
			c.score = scoreEntry
		}
		s.candidates = append(s.candidates, c)
		return true
	}

	rest.End = page.ClampWord(s.Text, rest, page.NearBytes)

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
		case i == 0 && s.IsEntry(m):
			c.score = scoreEntry
		case s.Property.Type == schema.Array:
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
func (s *scope) wholeAddress(rest form.Span) (candidate, bool) {
	if len(s.Patterns) > 0 || len(s.Values) > 0 || s.Element.Format != schema.URI {
		return candidate{}, false
	}
	v := form.Trim(s.Text, page.SkipSeparators(s.Text, rest))
	if v.End-v.Start > form.MaxAddress {
		return candidate{}, false
	}
	_, err := s.Element.Normalize(s.Text[v.Start:v.End])
	return candidate{Span: v, value: -1}, err == nil
}

// coarsePenalty returns what a number without decimals loses in a field of
// amounts, where decimals are usual.
func (s *scope) coarsePenalty(v form.Span) int {
	if s.Element.Type == schema.Number && !strings.ContainsAny(s.Text[v.Start:v.End], ".,") {
		return penaltyCoarse
	}
	return 0
}

// addBelow adds the value that stands on the lines below the label.
func (s *search) addBelow(m phrase.Mark) {
	line := s.LineAt(m.Start)
	rest := s.restOfLine(m)
	near := page.ClampWord(s.Text, rest, page.NearBytes)
	bond := s.bondAfter(m, form.NewSpan(near, near))
	if bond == foreign {
		s.passOver(m)
		return
	}

	if s.Element.Numeric() && len(s.Patterns) == 0 && len(s.Values) == 0 && !s.Element.Hints.NumberWords && s.Element.Hints.Units == nil {
		s.addFromBlock(line, rest.End-rest.Start <= page.NearBytes && bond == firm)
		return
	}

	seen := 0
	for i := line + 1; i < min(len(s.Lines), line+blankLines) && seen < nearLines && s.Lines[i].Start < s.area.End; i++ {
		r := form.NewSpan(s.Lines[i].Start, min(s.Lines[i].End, s.area.End))
		if strings.TrimSpace(s.Text[r.Start:r.End]) == "" {
			continue
		}

		r, ok := s.cellBelow(m, i)
		if !ok {
			return
		}

		r.End = page.ClampWord(s.Text, r, page.NearBytes)
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
		numbers = append(numbers, s.Scan(s.Text, s.Lines[i].Start, s.Lines[i].End, s.Style)[0])
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
func (s *scope) skipEmpty(i int) int {
	for last := i + blankLines; i < last && s.lineKindAt(i) == emptyLine; {
		i++
	}
	return i
}

// textLinesAbove reports whether n lines without numbers stand above line.
func (s *scope) textLinesAbove(line, n int) bool {
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

func (s *scope) lineKindAt(i int) lineKind {
	if i < 0 || i >= len(s.Lines) || s.Lines[i].Start < s.area.Start || s.Lines[i].Start >= s.area.End {
		return noLine
	}

	line := form.NewSpan(s.Lines[i].Start, min(s.Lines[i].End, s.area.End))
	if line.End-line.Start > page.NearBytes {
		return noLine
	}

	numbers := form.Amounts(s.Text, line.Start, line.End, s.Style)
	switch {
	case len(numbers) == 0 && page.IsGap(s.Text[line.Start:line.End]):
		return emptyLine
	case len(numbers) == 0:
		return textLine
	case len(numbers) == 1 && page.IsGap(s.Text[line.Start:numbers[0].Start]) && len(strings.TrimFunc(s.Text[numbers[0].End:line.End], page.NotWord)) <= format.MaxTaxCode:
		return numberLine
	default:
		return noLine
	}
}
