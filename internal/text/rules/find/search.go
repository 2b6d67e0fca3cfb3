// Package find finds the values of one field in a text: at its labels, in the columns of tables,
// in blocks of values below labels, by patterns and phrases, or by nothing but their form.
//
// Values is for fields of any text, InCell for those of a cell, and Occurrences says where a
// field stands. It is pure; what records are, and which rows of a table are some, is above it.
package find

import (
	"slices"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
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

// Bounds on what is looked at below a label.
const (
	nearLines  = 4  // below, for values with a form
	blankLines = 20 // below, before something that is not blank
	blockLines = 6  // of labels above a block of values
)

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
	scope
	areas      []area
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
	for _, m := range phrase.Between(s.labelMarks[s.index], s.area.Start, s.area.End) {
		if m.Start < past {
			continue
		}

		s.labelSeen = true
		before := len(s.candidates)
		s.addAfterLabel(m)

		if len(s.candidates) == before && s.refused == "" {
			s.refused = s.textAt(m)
		}

		if len(s.candidates) > before && s.IsText() {
			past = s.candidates[len(s.candidates)-1].End
		}
	}
}

// addUnlabelled adds the candidates of the current area that need no label.
func (s *search) addUnlabelled() {
	inLines := s.Property.Hints.Lines != nil && !s.LabelsGiven
	if s.LabelsGiven && !s.MayGuess() {
		return // a hint is a condition
	}

	switch {
	case s.area.kind != anyArea && !s.LabelsGiven:
		s.addArea()
	case s.RecognisedAnywhere() || inLines && s.Scan != nil:
		for _, c := range s.candidatesIn(s.area.Span) {
			c.score = s.scoreAlone() + s.dateBonus(c.Span)
			c.byForm = s.LabelsGiven
			s.candidates = append(s.candidates, c)
		}
	case inLines:
		s.addWholeLines()
	}
}

// bestClass returns the class of the best candidate in the core, -1 if there is none.
func (s *search) bestClass() int {
	best := -1
	for _, c := range s.candidates {
		if s.InCore(c.Start) {
			best = max(best, classOf(c.score))
		}
	}
	return best
}

// addWholeLines takes the lines of the area that are not blank.
func (s *search) addWholeLines() {
	for i := s.LineAt(s.area.Start); i < len(s.Lines) && s.Lines[i].Start < s.area.End; i++ {
		v := form.Trim(s.Text, form.NewSpan(max(s.Lines[i].Start, s.area.Start), min(s.Lines[i].End, s.area.End)))
		if v.Start < v.End {
			s.candidates = append(s.candidates, candidate{Span: v, matchStart: v.Start, score: scoreLine, value: -1})
		}
	}
}

// newScope returns where a field of a document is looked for.
func newScope(d *Document, index int) scope {
	return scope{Document: d, Field: &d.fields[index], index: index}
}

// Values returns the values in w of a field that has no fields of its own, or why there are none.
func Values(d *Document, index int, w Window) ([]Found, string) {
	f := &d.fields[index]
	switch f.Element.Type {
	case schema.Array:
		return nil, "lists of lists are not extracted by rules"
	case schema.Map, schema.Tuple:
		return nil, "names that the schema does not give, and lists whose places differ, are not extracted by rules"
	}

	areas, reason := areasOf(f, d, w)
	if reason != "" {
		return nil, reason
	}

	s := search{scope: newScope(d, index), areas: areas}
	s.collectCandidates()
	return s.chooseValues()
}

// Occurrences returns where field i is found with some certainty. Lines and
// parts of a document count from the ends of a record, so a field with such a hint
// tells nothing before records are known.
func Occurrences(d *Document, i int, r form.Span) []int {
	f := &d.fields[i]
	if f.HoldsObjects() || f.Element.Type == schema.Array || f.Property.Hints.Lines != nil || f.Property.Hints.Within != nil {
		return nil
	}

	areas, reason := areasOf(f, d, Window{Span: r})
	if reason != "" {
		return nil
	}

	s := search{scope: newScope(d, i), areas: areas}
	s.collectCandidates()

	best := s.bestClass()
	if best < 1 {
		return nil
	}

	// Only the surest candidates mark a record: others may be other things.
	var at []int
	for _, c := range s.candidates {
		if classOf(c.score) == best {
			at = append(at, c.matchStart)
		}
	}

	slices.Sort(at)
	return slices.Compact(at)
}
