package rules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/pattern"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/table"
)

// Scores of candidates, out of 100. Among the candidates of the best class (see
// classOf) the pick hint decides, otherwise the score.
const (
	scoreEntry    = 105 // after a label at the head of its line and a colon
	scoreLabel    = 100 // right after its label
	scorePattern  = 90
	scorePhrase   = 85
	scoreNextLine = 80 // below its label
	scoreBlock    = 70 // in the block of values below a block of labels
	scoreForm     = 60 // recognised by its form alone
	scoreApart    = 55 // after its label, with other words between
	scoreLine     = 50 // a line that the lines hint points to
	scoreNoLabel  = 35 // recognised without the label that the schema names
	scoreProse    = 35 // text after a label within a line, with nothing to set it off

	bonusCertain    = 2  // each sign that three numbers are a date
	penaltyConfused = 5  // the label was recognised with confused letters
	penaltyLater    = 15 // for every number that stands nearer to the label
	penaltyCoarse   = 20 // a number without decimals where they are usual
)

// classOf groups scores: values at their label, values that probably belong to
// it, values that are likely, guesses.
func classOf(score int) int {
	switch {
	case score >= scoreNextLine-penaltyConfused:
		return 3
	case score >= scoreBlock-penaltyConfused:
		return 2
	case score >= scoreLine-penaltyConfused:
		return 1
	default:
		return 0
	}
}

// Bounds on what is looked at after a label.
const (
	nearBytes  = 200   // of the line, for values with a form
	valueBytes = 16384 // of the line, for other text; see field.most
	nearLines  = 4     // below, for values with a form
	blankLines = 20    // below, before something that is not blank
	blockLines = 6     // of labels above a block of values
)

// recordBytes bounds the texts of one record together, so that a schema whose fields all
// stand at one label does not make a thousand times the document of it.
const recordBytes = 4 << 20

// longestValue returns how many bytes a text value may have of a record with so many
// fields: valueBytes, and less of one with more than 256.
func longestValue(fields int) int { return min(valueBytes, recordBytes/max(1, fields)) }

// A candidate is a place that may hold the field's value.
type candidate struct {
	form.Span
	matchStart int // where the match begins: at its label, if it has one
	score      int
	rank       int       // of its label, from the best
	value      int       // index of the canonical value, -1 if there is none
	order      int       // of its pattern, from the preferred
	byForm     bool      // its form led to it, where the hints found nothing
	guess      bool      // a label leads to it, and to others as well
	cell       bool      // its value is that of a cell of a table
	whole      form.Span // the cell, whose stored form stands behind what is quoted
}

// A search looks for one field in some areas.
type search struct {
	*document
	*field
	index      int
	areas      []area
	area       area // the one that is searched now
	candidates []candidate
	labelSeen  bool   // a label was there
	refused    string // what stands at the first label without a value
	passed     string // why a label was passed over
}

// collectCandidates gathers the candidates.
func (s *search) collectCandidates() {
	for _, s.area = range s.areas {
		if !s.addFromTables() {
			s.addLabelled()
		}
	}

	if s.bestClass() >= 1 {
		return
	}

	for _, s.area = range s.areas {
		s.addUnlabelled()
	}
}

// addLabelled adds the candidates of the current area that stand at a label.
func (s *search) addLabelled() {
	past := 0 // the end of the last text value: labels inside it are part of it
	for _, m := range marksBetween(s.labelMarks[s.index], s.area.Start, s.area.End) {
		if m.Start < past {
			continue
		}

		s.labelSeen = true
		before := len(s.candidates)
		s.addAfterLabel(m)

		if len(s.candidates) == before && s.refused == "" {
			s.refused = s.textAt(m)
		}

		if len(s.candidates) > before && s.isText() {
			past = s.candidates[len(s.candidates)-1].End
		}
	}
}

// textAt returns what stands behind a label on its line, or else on the next.
func (s *search) textAt(m mark) string {
	line := s.lineAt(m.Start)
	for ; line < min(len(s.lines), s.lineAt(m.Start)+2); line++ {
		v := form.NewSpan(max(s.lines[line].Start, m.End), s.lines[line].End)
		v.End = clampRune(s.text, v, nearBytes)
		if v = form.Trim(s.text, skipSeparators(s.text, v)); v.Start < v.End {
			return clip(v.Of(s.text))
		}
	}
	return ""
}

// addUnlabelled adds the candidates of the current area that need no label.
func (s *search) addUnlabelled() {
	inLines := s.property.Hints.Lines != nil && !s.labelsGiven
	if s.labelsGiven && !s.mayGuess() {
		return // a hint is a condition
	}

	switch {
	case s.area.kind != anyArea && !s.labelsGiven:
		s.addArea()
	case s.recognisedAnywhere() || inLines && s.scan != nil:
		for _, c := range s.candidatesIn(s.area.Span) {
			c.score = s.scoreAlone() + s.dateBonus(c.Span)
			c.byForm = s.labelsGiven
			s.candidates = append(s.candidates, c)
		}
	case inLines:
		s.addWholeLines()
	}
}

// mayGuess reports whether a value may be found by its form where the hints find none.
func (f *field) mayGuess() bool { return f.property.Hints.Otherwise == schema.OtherwiseForm }

// isList reports whether the field has any number of values.
func (f *field) isList() bool { return f.property.Type == schema.Array }

// scoreAlone is the score of a value without a label.
func (f *field) scoreAlone() int {
	switch {
	case f.labelsGiven:
		return scoreNoLabel
	case len(f.patterns) > 0:
		return scorePattern
	case len(f.values) > 0:
		return scorePhrase
	case f.property.Hints.Lines != nil && !f.recognisedAnywhere():
		return scoreLine
	default:
		return scoreForm
	}
}

// dateBonus returns what a date without a label gains over three small numbers:
// for a year of four digits or a month by its name, and for a time behind it.
func (s *search) dateBonus(v form.Span) int {
	if s.element.Format != schema.Date || len(s.patterns) > 0 {
		return 0
	}

	more := 0
	quote := s.text[v.Start:v.End]
	if hasYear(quote) || strings.ContainsFunc(quote, unicode.IsLetter) {
		more = bonusCertain
	}

	end := min(v.End+len(", 08:13"), len(s.text))
	if len(form.Times(s.text, v.End, end)) > 0 {
		more += bonusCertain
	}

	return more
}

// hasYear reports whether one of several numbers in a date has four digits.
func hasYear(date string) bool {
	numbers := strings.FieldsFunc(date, func(c rune) bool { return !unicode.IsDigit(c) })
	return len(numbers) > 1 && slices.ContainsFunc(numbers, func(n string) bool { return len(n) == len("2018") })
}

// bestClass returns the class of the best candidate in the core, -1 if there is none.
func (s *search) bestClass() int {
	best := -1
	for _, c := range s.candidates {
		if s.inCore(c.Start) {
			best = max(best, classOf(c.score))
		}
	}
	return best
}

// candidatesIn returns the places in r that have the form of a value.
func (s *search) candidatesIn(r form.Span) []candidate {
	switch {
	case len(s.patterns) > 0:
		return s.patternMatches(r)
	case len(s.values) > 0:
		return s.phrasesIn(r)
	case s.scan != nil:
		var found []candidate
		for _, v := range s.scan(s.text, r.Start, r.End, s.style) {
			found = append(found, candidate{Span: v, matchStart: v.Start, value: -1})
		}
		return found
	default:
		return nil
	}
}

// phrasesIn returns the canonical values that phrases in r stand for.
func (s *search) phrasesIn(r form.Span) []candidate {
	var found []candidate
	for _, m := range marksBetween(s.valueMarks[s.index], r.Start, r.End) {
		if m.End <= r.End {
			found = append(found, candidate{Span: m.Span, matchStart: m.Start, value: m.value})
		}
	}
	return found
}

// patternMatches returns what the patterns match in r. A group that took no part in
// a match holds no value.
func (s *search) patternMatches(r form.Span) []candidate {
	var found []candidate
	for order, p := range s.patterns {
		s.findAll(p.Pattern, r, func(m []int) {
			for _, group := range p.groups {
				if m[2*group] < 0 {
					continue
				}

				v := form.Trim(s.text, form.NewSpan(m[2*group], m[2*group+1]))
				if v.Start >= v.End {
					continue
				}

				if len(s.values) == 0 {
					found = append(found, candidate{Span: v, matchStart: m[0], value: -1, order: order})
					continue
				}

				// With phrases, what the pattern matched must hold one of them.
				for _, c := range s.phrasesIn(v) {
					c.matchStart, c.order = m[0], order
					found = append(found, c)
				}
			}
		})
	}

	return found
}

// findAll calls yield with each match of p in r, as places in the text. After
// an error there are no more.
func (d *document) findAll(p *pattern.Pattern, r form.Span, yield func(place []int)) {
	if d.reading.err != nil {
		return
	}

	d.reading.err = p.FindAll(d.text[r.Start:r.End], d.reading.stop, func(place []int) bool {
		for i := range place {
			// A group that took no part has place -1, which stays.
			if place[i] >= 0 {
				place[i] += r.Start
			}
		}

		yield(place)
		return true
	})
}

// addWholeLines takes the lines of the area that are not blank.
func (s *search) addWholeLines() {
	for i := s.lineAt(s.area.Start); i < len(s.lines) && s.lines[i].Start < s.area.End; i++ {
		v := form.Trim(s.text, form.NewSpan(max(s.lines[i].Start, s.area.Start), min(s.lines[i].End, s.area.End)))
		if v.Start < v.End {
			s.candidates = append(s.candidates, candidate{Span: v, matchStart: v.Start, score: scoreLine, value: -1})
		}
	}
}

// chooseValues picks among the candidates of the best class that are values of the
// field's type; of those that patterns matched, among what the most preferred did.
func (s *search) chooseValues() ([]Found, string) {
	s.candidates = slices.DeleteFunc(s.candidates, func(c candidate) bool { return !s.inCore(c.Start) })
	if len(s.candidates) == 0 {
		return nil, s.missingReason()
	}

	slices.SortStableFunc(s.candidates, func(a, b candidate) int { return cmp.Compare(a.order, b.order) })
	var refused error // the first candidate that is no value

	for class := s.bestClass(); class >= 0; class-- {
		var typed []candidate
		var values []Found

		for _, c := range s.candidates {
			if classOf(c.score) != class || len(typed) > 0 && c.order > typed[0].order {
				continue
			}

			v, err := s.parseValue(c)
			if err == nil {
				typed, values = append(typed, c), append(values, v)
			} else if refused == nil {
				refused = err
			}
		}

		switch {
		case len(values) == 0:
		case s.property.Type == schema.Array:
			return s.listElements(typed, values), ""
		default:
			i := s.pickValue(typed, values)
			values[i].Rivals = s.countRivals(values, i)
			if s.property.Hints.Units != nil && values[i].Basis == ByType {
				values[i].Basis = s.unitBasis(values[i].Rivals)
			}
			return values[i : i+1], ""
		}
	}

	return nil, "what was found cannot be used as a value: " + refused.Error()
}

// basisOf returns what a candidate was found by.
func (s *search) basisOf(c candidate) Basis {
	h := &s.property.Hints

	// The first that applies counts: a guess is one even where hints were given.
	switch {
	case c.byForm:
		return ByType
	case c.guess || s.labelsGiven && len(s.patterns) == 0 && c.score <= scoreApart:
		return ByGuess
	case s.labelsGiven || len(s.patterns) > 0 || h.Lines != nil || h.Within != nil || s.after != nil || s.before != nil ||
		len(h.Values) > 0:
		return ByHint
	case c.score >= scoreEntry:
		return ByEntry
	case c.matchStart < c.Start && c.score <= scoreBlock && c.score >= scoreBlock-penaltyConfused:
		return ByBlock
	case c.matchStart < c.Start:
		return ByName
	default:
		return ByType
	}
}

// errExcluded says that a candidate is one of those that the schema excludes.
var errExcluded = errors.New("is excluded by the schema")

// parseValue reads a candidate's value.
func (s *search) parseValue(c candidate) (Found, error) {
	quote := s.text[c.Start:c.End]
	f := Found{
		Field: s.path, Quote: quote, Start: c.Start, End: c.End,
		Confidence: float64(min(max(c.score, 5), 95)) / 100, Basis: s.basisOf(c),
	}

	var err error
	if c.value >= 0 {
		f.Value = s.values[c.value].Canonical
	} else if f.Value, err = s.valueOf(c); err != nil {
		return f, err
	}

	// What the schema excludes is refused only now, as it may name the text or the value.
	if s.isExcluded(quote, f.Value) {
		return f, fmt.Errorf("%q %w", clip(quote), errExcluded)
	}

	return f, nil
}

// valueOf returns the value that a candidate is.
func (s *search) valueOf(c candidate) (any, error) {
	if !c.cell {
		return s.readValue(s.text[c.Start:c.End])
	}
	value, _, err := s.cellValue(table.Cell{Start: c.whole.Start, End: c.whole.End}.Text(s.text), s.document)
	return value, err
}

// readValue normalises a quote, after what the schema wants to be replaced.
func (s *search) readValue(quote string) (any, error) { return s.readText(quote, s.style, s.reading) }

// readText normalises a text of some style, after what the schema wants to be replaced.
func (f *field) readText(quote string, style format.NumberStyle, reading *reading) (any, error) {
	text := quote
	for _, r := range f.replace {
		var err error
		if text, err = r.Replace(text, r.with, 2*valueBytes, reading.stop); err != nil {
			return nil, fmt.Errorf("%q: replace: %w", clip(quote), err)
		}
	}

	if f.element.Numeric() && f.element.Enum == nil {
		if readings := f.element.Readings(text, style); len(readings) > 0 {
			return readings[0], nil
		}
	}

	v, err := f.element.Normalize(text)
	if err == nil && v == nil {
		err = fmt.Errorf("%q is empty", clip(text))
	}

	return v, err
}

// clip shortens a text for a message.
func clip(s string) string {
	return shorten.Text(format.Text(s), 60)
}

// missingReason says why nothing was found.
func (s *search) missingReason() string {
	// A label that was not found explains most, so it comes before types and patterns.
	switch {
	case s.labelsGiven && !s.labelSeen:
		return "no label matched"
	case s.passed != "":
		return s.passed
	case s.labelSeen:
		if s.refused == "" {
			return "no value of the type " + s.typeName() + " after the label"
		}
		if _, err := s.element.Normalize(s.refused); err != nil && len(s.patterns) == 0 && len(s.values) == 0 {
			return "after the label: " + err.Error()
		}
		return fmt.Sprintf("no value of the type %s after the label, but %q", s.typeName(), clip(s.refused))
	case len(s.patterns) > 1:
		return "none of the patterns matched"
	case len(s.patterns) > 0:
		return "the pattern did not match"
	case len(s.values) > 0:
		return "none of the phrases was found"
	case s.recognisedAnywhere():
		return "nothing that looks like a value of the type " + s.typeName()
	case len(s.labels) > 0:
		return "no label matched"
	default:
		return "the lines are blank"
	}
}
