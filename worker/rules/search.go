package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
)

// How much speaks for a candidate, of 100. Among the candidates of the best
// class (see classOf) the pick hint decides, or else the score.
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
	scoreUnsaid   = 35 // recognised without the label that the schema names
	scoreProse    = 35 // text after a label within a line, with nothing to set it off

	moreCertain  = 2  // a date that looks more like one
	lessConfused = 5  // the label was recognised with confused letters
	lessLater    = 15 // for every number that stands nearer to the label
	lessCoarse   = 20 // a number without decimals where they are usual
)

// classOf groups scores: values at their label, values that probably belong to
// it, values that are likely, guesses.
func classOf(score int) int {
	switch {
	case score >= scoreNextLine-lessConfused:
		return 3
	case score >= scoreBlock-lessConfused:
		return 2
	case score >= scoreLine-lessConfused:
		return 1
	default:
		return 0
	}
}

// Bounds on what is looked at after a label.
const (
	nearBytes  = 200   // of the line, for values with a form
	valueBytes = 16384 // of the line, for other text
	nearLines  = 4     // below, for values with a form
	blankLines = 20    // below, before something that is not blank
	blockLines = 6     // of labels above a block of values
)

// A candidate is a place that may hold the field's value.
type candidate struct {
	span
	at    int // where the match begins: at its label, if it has one
	score int
	rank  int // of its label, from the best
	value int // index of the canonical value, -1 if there is none
}

// A search looks for one field in one area.
type search struct {
	*document
	*field
	index   int
	area    span
	found   []candidate
	labeled bool // a label was there
}

// run gathers the candidates.
func (s *search) run() {
	past := 0 // the end of the last text value: labels inside it are part of it
	for _, m := range between(s.labelMarks[s.index], s.area.start, s.area.end) {
		if m.start < past {
			continue
		}
		s.labeled = true
		before := len(s.found)
		s.afterLabel(m)
		if len(s.found) > before && s.isText() {
			past = s.found[len(s.found)-1].end
		}
	}
	inLines := s.p.Hints.Lines != nil && !s.said
	switch {
	case s.best() >= 1:
	case s.tellsItself() || inLines && s.scan != nil:
		for _, c := range s.formed(s.area) {
			c.score = s.scoreAlone() + s.certainty(c.span)
			s.found = append(s.found, c)
		}
	case inLines:
		s.wholeLines()
	}
}

// scoreAlone is the score of a value without a label.
func (s *search) scoreAlone() int {
	switch {
	case s.said:
		return scoreUnsaid
	case s.pattern != nil:
		return scorePattern
	case len(s.values) > 0:
		return scorePhrase
	case s.p.Hints.Lines != nil && !s.tellsItself():
		return scoreLine
	default:
		return scoreForm
	}
}

// certainty tells how much more a date without a label looks like one than just
// three small numbers do: a year of four digits, a month by its name, a time that
// follows.
func (s *search) certainty(v span) int {
	if s.element.Format != schema.Date || s.pattern != nil {
		return 0
	}
	more := 0
	quote := s.text[v.start:v.end]
	if hasYear(quote) || strings.ContainsFunc(quote, unicode.IsLetter) {
		more = moreCertain
	}
	end := min(v.end+len(", 08:13"), len(s.text))
	if len(scanTimes(s.text, v.end, end)) > 0 {
		more += moreCertain
	}
	return more
}

// hasYear reports whether one of several numbers in a date has four digits.
func hasYear(date string) bool {
	numbers := strings.FieldsFunc(date, func(c rune) bool { return !unicode.IsDigit(c) })
	return len(numbers) > 1 && slices.ContainsFunc(numbers, func(n string) bool { return len(n) == len("2018") })
}

// isText reports whether a value is whatever stands there, to the end of the
// line.
func (s *search) isText() bool { return s.pattern == nil && len(s.values) == 0 && s.scan == nil }

// best returns the class of the best candidate in the core, -1 if there is none.
func (s *search) best() int {
	best := -1
	for _, c := range s.found {
		if s.inCore(c.start) {
			best = max(best, classOf(c.score))
		}
	}
	return best
}

// formed returns the places in r that have the form of a value.
func (s *search) formed(r span) []candidate {
	switch {
	case s.pattern != nil:
		return s.matches(r)
	case len(s.values) > 0:
		return s.phrasesIn(r)
	case s.scan != nil:
		var found []candidate
		for _, v := range s.scan(s.text, r.start, r.end) {
			found = append(found, candidate{span: v, at: v.start, value: -1})
		}
		return found
	default:
		return nil
	}
}

// phrasesIn returns the canonical values that phrases in r stand for.
func (s *search) phrasesIn(r span) []candidate {
	var found []candidate
	for _, m := range between(s.valueMarks[s.index], r.start, r.end) {
		if m.end <= r.end {
			found = append(found, candidate{span: m.span, at: m.start, value: m.value})
		}
	}
	return found
}

// matches returns what the pattern matches in r.
func (s *search) matches(r span) []candidate {
	var found []candidate
	for _, m := range s.pattern.FindAllStringSubmatchIndex(s.text[r.start:r.end], -1) {
		group := s.group
		if m[2*group] < 0 {
			group = 0 // another alternative of the pattern matched
		}
		v := trim(s.text, span{r.start + m[2*group], r.start + m[2*group+1]})
		if v.start >= v.end {
			continue
		}
		if len(s.values) == 0 {
			found = append(found, candidate{span: v, at: r.start + m[0], value: -1})
			continue
		}
		for _, c := range s.phrasesIn(v) {
			c.at = r.start + m[0]
			found = append(found, c)
		}
	}
	return found
}

// trim narrows v to what is not white space.
func trim(text string, v span) span {
	v.end = v.start + len(strings.TrimRightFunc(text[v.start:v.end], unicode.IsSpace))
	v.start = v.end - len(strings.TrimLeftFunc(text[v.start:v.end], unicode.IsSpace))
	return v
}

// wholeLines takes the lines of the area that are not blank.
func (s *search) wholeLines() {
	for i := s.lineAt(s.area.start); i < len(s.lines) && s.lines[i].start < s.area.end; i++ {
		v := trim(s.text, span{max(s.lines[i].start, s.area.start), min(s.lines[i].end, s.area.end)})
		if v.start < v.end {
			s.found = append(s.found, candidate{span: v, at: v.start, score: scoreLine, value: -1})
		}
	}
}

// choose picks among the candidates of the best class that are values of the
// field's type.
func (s *search) choose() ([]Found, string) {
	s.found = slices.DeleteFunc(s.found, func(c candidate) bool { return !s.inCore(c.start) })
	if len(s.found) == 0 {
		return nil, s.reason()
	}
	for class := s.best(); class >= 0; class-- {
		var typed []candidate
		var values []Found
		for _, c := range s.found {
			if classOf(c.score) != class {
				continue
			}
			if v, err := s.typed(c); err == nil {
				typed, values = append(typed, c), append(values, v)
			}
		}
		switch {
		case len(values) == 0:
		case s.p.Type == schema.Array:
			return s.elements(typed, values), ""
		default:
			i := s.pick(typed, values)
			return values[i : i+1], ""
		}
	}
	return nil, "what was found is not of the type " + s.typeName()
}

// typed reads a candidate's value.
func (s *search) typed(c candidate) (Found, error) {
	quote := s.text[c.start:c.end]
	f := Found{
		Field: s.path, Quote: quote, Start: c.start, End: c.end,
		Confidence: float64(min(max(c.score, 5), 95)) / 100,
	}
	if c.value >= 0 {
		f.Value = s.values[c.value].Canonical
		return f, nil
	}
	var err error
	f.Value, err = s.element.Normalize(quote)
	return f, err
}

// elements returns the values of a list, each once.
func (s *search) elements(found []candidate, values []Found) []Found {
	switch s.p.Hints.Pick {
	case "", schema.PickAll:
	default:
		i := s.pick(found, values)
		return values[i : i+1]
	}
	slices.SortStableFunc(values, func(a, b Found) int { return cmp.Compare(a.Start, b.Start) })
	seen := map[string]bool{}
	return slices.DeleteFunc(values, func(f Found) bool {
		id := s.element.Identity(f.Value)
		if seen[id] {
			return true
		}
		seen[id] = true
		return false
	})
}

// pick returns the index of the value that the pick hint asks for, and among
// equals the one with the higher score, then the first in the text. Without a
// hint the longest phrase is taken, being the most specific, or else the value
// at the best label, as it is restated.
func (s *search) pick(found []candidate, values []Found) int {
	pick := s.p.Hints.Pick
	if pick == "" && len(s.values) > 0 {
		pick = schema.PickLongest
	}
	order := func(i, j int) int {
		a, b := found[i], found[j]
		c := 0
		switch pick {
		case schema.PickFirst:
			c = cmp.Compare(a.start, b.start)
		case schema.PickLast:
			c = cmp.Compare(b.start, a.start)
		case schema.PickLongest:
			c = cmp.Compare(b.end-b.start, a.end-a.start)
		case schema.PickMax:
			c = s.element.Compare(values[j].Value, values[i].Value)
		case schema.PickMin:
			c = s.element.Compare(values[i].Value, values[j].Value)
		default:
			c = cmp.Compare(a.rank, b.rank)
		}
		return cmp.Or(c, cmp.Compare(b.score, a.score), cmp.Compare(a.start, b.start))
	}
	best := 0
	for i := range found {
		if order(i, best) < 0 {
			best = i
		}
	}
	if pick == "" && s.element.Type == schema.Number {
		return restated(values, best)
	}
	return best
}

// rounding is the most by which an amount changes when it is rounded to coins.
const rounding = 0.05

// restated returns the index of the last value in the text that is values[i] but
// for rounding: bills give the sum first, then the rounding, then what is paid.
func restated(values []Found, i int) int {
	amount := func(f Found) float64 {
		n, _ := f.Value.(json.Number)
		v, err := n.Float64()
		if err != nil || !strings.ContainsAny(f.Quote, ".,") {
			return math.Inf(1) // no amount: differs from all
		}
		return v
	}
	for j := range values {
		if values[j].Start > values[i].Start && math.Abs(amount(values[j])-amount(values[i])) <= rounding+1e-9 {
			i = j
		}
	}
	return i
}

// reason says why nothing was found.
func (s *search) reason() string {
	switch {
	case s.labeled:
		return "no value of the type " + s.typeName() + " after the label"
	case s.pattern != nil:
		return "the pattern did not match"
	case len(s.values) > 0:
		return "none of the phrases was found"
	case s.tellsItself():
		return "nothing that looks like a value of the type " + s.typeName()
	case len(s.labels) > 0:
		return "no label matched"
	default:
		return "the lines are blank"
	}
}

func (s *search) typeName() string {
	if s.element.Format != "" {
		return fmt.Sprintf("%s (%s)", s.element.Type, s.element.Format)
	}
	return string(s.element.Type)
}
