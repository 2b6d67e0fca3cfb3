// Package check has what outputs are checked against: the texts that their citations stand
// in, the outputs that they were made of, the schema, and what a strict job asks.
//
// Nothing that a unit reports is believed before. A worker checks what its agents make, and
// the orchestrator checks what its workers report; both do it here.
package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// ErrBreach is what outputs are refused with that cite what they must not, or
// lose what they must list. It is never the document's fault.
var ErrBreach = errors.New("output: a citation is not true")

func breachError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBreach, fmt.Sprintf(format, args...))
}

// A Text is what a map unit read.
type Text struct {
	Document, Unit         string
	Index                  int64 // of the unit
	Hash                   refs.DocumentHash
	Content                []byte
	Length                 int64 // of what the unit read in bytes, if Content is left out because nothing of it is cited
	ByteOffset, CharOffset int64 // of Content in the text of the document

	// Whole is the text of the document, if the unit cites it outside of
	// Content; else it may be nil.
	Whole *ground.Text

	Metadata map[string]string // of the document, which labels of citations follow from
}

// Map checks the output of a map unit: that every quote is the text at its
// offsets, in bytes and in characters, that every id is that of what it cites, and
// that its records are its own and of no other document. A unit with tools may have
// evidence, which it may cite as well, and have records of; of any other it is nil.
func Map(t Text, evidence output.EvidenceFinder, o *output.Output) error {
	if len(o.Dropped)+len(o.Removed)+len(o.Decided)+len(o.Open) > 0 {
		return breachError("a map unit reports what only a reduce can")
	}

	if err := checkCounts(o, t.Unit, max(int64(len(t.Content)), t.Length)); err != nil {
		return err
	}

	cited, err := listCitations(o)
	if err != nil {
		return err
	}

	if err := checkCited(t.Unit, MapTexts(t, evidence), cited); err != nil {
		return err
	}

	return Records(t, o)
}

// checkCounts refuses more dates and numbers than a text of so many bytes can have: those
// of all documents of a job are added up.
func checkCounts(o *output.Output, unit string, length int64) error {
	const shortest = 6 // bytes of a date
	d, most := o.Dates, length/shortest
	if d.DayFirst < 0 || d.MonthFirst < 0 || d.DayFirst > most || d.MonthFirst > most-d.DayFirst {
		return breachError("%s counts %d and %d dates in a text of %d bytes", unit, d.DayFirst, d.MonthFirst, length)
	}

	n := o.Numbers
	for _, count := range []int64{n.Points, n.Commas, n.Blanks, n.Marks, n.Minuses, n.Trailing, n.Brackets} {
		if count < 0 || count > length {
			return breachError("%s counts %d numbers of a kind in a text of %d bytes", unit, count, length)
		}
	}

	return nil
}

// Records checks that the records of a map unit are its own and of no other
// document than the one that it read, or of evidence that they cite.
func Records(t Text, o *output.Output) error {
	found := o.EvidenceOf(t.Unit)
	return ownRecords(t.Unit, t.Index, func(document string) bool { return document == t.Document || found[document] }, o)
}

// Passages checks the passages that a unit chose out of the texts that it may cite:
// that each stands there and is described as its document is, and that each element names
// one of them.
func Passages(unit string, texts Texts, f *jsonvalue.Form, o *output.Output) error {
	if len(o.Entries)+len(o.Open)+len(o.Dropped)+len(o.Removed)+len(o.Decided)+len(o.Judged) > 0 {
		return breachError("a unit that chooses passages reports more than these")
	}

	if err := f.CheckValue(o.Value); err != nil {
		return err
	}

	chosen, err := output.Passages(nil, []*output.Output{o})
	if err != nil {
		return fmt.Errorf("%w: %w", jsonvalue.ErrForm, err)
	}

	// Each passage is one citation, and there are no others.
	if len(chosen) != len(o.Citations) {
		return breachError("%s has %d passages and %d citations", unit, len(chosen), len(o.Citations))
	}

	cited := make([]output.Citation, len(chosen))
	for i, p := range chosen {
		if cited[i] = p.Citation; p.Label == "" {
			return breachError("%s does not describe the document of a passage", unit)
		}
	}

	return checkCited(unit, texts, cited)
}

// A Reader checks citations of a text one by one. It is for one goroutine.
type Reader struct {
	text      Text
	at, point int64 // how far its characters were counted: byte of Content, character of the document
}

// NewReader returns a Reader of what a map unit read, or of one of the documents
// that a direct unit did.
func NewReader(t Text) *Reader { return &Reader{text: t, point: t.CharOffset} }

// Check checks a citation as Map does. Those in the order of the text take the
// least time.
func (r *Reader) Check(c output.Citation) error {
	start, err := r.citationStart(&c)
	if err != nil {
		return err
	}
	return r.text.checkCitation(&c, start)
}

// checkCitations checks citations of the text.
func (t *Text) checkCitations(cited []output.Citation) error {
	slices.SortFunc(cited, func(a, b output.Citation) int { return cmp.Compare(a.ByteStart, b.ByteStart) })
	r := NewReader(*t)
	for _, c := range cited {
		if err := r.Check(c); err != nil {
			return err
		}
	}
	return nil
}

// Direct checks the output of a direct unit, of some index, as Map does
// that of a map unit, against all the documents that it read; and that its records
// are its own and name no other documents.
func Direct(unit string, index int64, docs []payload.Document, evidence output.EvidenceFinder, o *output.Output) error {
	if len(o.Dropped)+len(o.Removed)+len(o.Open) > 0 {
		return breachError("a direct unit reports what only a reduce can")
	}

	cited, err := listCitations(o)
	if err != nil {
		return err
	}

	if err := checkCited(unit, BundleTexts(unit, docs, evidence), cited); err != nil {
		return err
	}

	// Evidence that the unit has found counts as read.
	read, length := o.EvidenceOf(unit), int64(0)
	if read == nil {
		read = make(map[string]bool, len(docs))
	}
	for _, d := range docs {
		read[d.Document] = true
		length += int64(len(d.Text))
	}

	if err := checkCounts(o, unit, length); err != nil {
		return err
	}

	return ownRecords(unit, index, func(document string) bool { return read[document] }, o)
}

// ownRecords checks that the records of a unit that reads documents are numbered as
// its own, each once, and are of documents that it read.
func ownRecords(unit string, index int64, read func(document string) bool, o *output.Output) error {
	seen := make(map[output.Member]bool, len(o.Entries))
	for i := range o.Entries {
		e := &o.Entries[i]
		for _, m := range e.Members {
			if m.Unit != index || m.Record < 0 || seen[m] {
				return breachError("%s has record %d of unit %d, which is not its own or there twice", unit, m.Record, m.Unit)
			}
			seen[m] = true
		}

		for _, s := range e.Sources {
			if !read(s.Document) {
				return breachError("%s names the source %s, which it did not read", unit, s.Document)
			}
		}
		if err := sightings(unit, read, e); err != nil {
			return err
		}
	}

	return nil
}

// citationStart returns the character of the document at which a citation has to begin,
// once its quote was found to be the text.
func (r *Reader) citationStart(c *output.Citation) (int64, error) {
	t := &r.text

	from, to := c.ByteStart-t.ByteOffset, c.ByteEnd-t.ByteOffset
	read := from >= 0 && to > from && to <= int64(len(t.Content))

	switch {
	case c.Outside && read:
		return 0, breachError("%s cites bytes %d to %d, which it read, as if it had not", t.Unit, c.ByteStart, c.ByteEnd)
	case c.Outside:
		return t.startOutside(c)
	case !read:
		return 0, breachError("%s cites bytes %d to %d, which it did not read", t.Unit, c.ByteStart, c.ByteEnd)
	case string(t.Content[from:to]) != c.Quote:
		return 0, t.otherText(c)
	}

	// Characters are counted from the last citation on, forwards or back, and not from the
	// beginning of the text each time.
	if from >= r.at {
		r.point += int64(utf8.RuneCount(t.Content[r.at:from]))
	} else {
		r.point -= int64(utf8.RuneCount(t.Content[from:r.at]))
	}

	r.at = from
	return r.point, nil
}

// startOutside is citationStart for a quote that stands outside of what the unit read.
func (t *Text) startOutside(c *output.Citation) (int64, error) {
	if t.Whole == nil {
		return 0, breachError("%s cites bytes %d to %d outside of its chunk, and the document is not there to look", t.Unit, c.ByteStart, c.ByteEnd)
	}

	whole := t.Whole.String()
	if c.ByteStart < 0 || c.ByteEnd <= c.ByteStart || c.ByteEnd > int64(len(whole)) || whole[c.ByteStart:c.ByteEnd] != c.Quote {
		return 0, t.otherText(c)
	}

	return int64(t.Whole.Point(int(c.ByteStart))), nil
}

func (t *Text) otherText(c *output.Citation) error {
	return breachError("%s: quote %.80q is not the text of bytes %d to %d", t.Unit, c.Quote, c.ByteStart, c.ByteEnd)
}

// checkCitation checks what a citation says beside its quote and its place in bytes.
func (t *Text) checkCitation(c *output.Citation, start int64) error {
	switch end := start + int64(utf8.RuneCountInString(c.Quote)); {
	case c.Document != t.Document || c.Unit != t.Unit:
		return breachError("%s cites %s as found by %s", t.Unit, c.Document, c.Unit)
	case c.ID != refs.New(t.Hash, int(c.ByteStart), int(c.ByteEnd), c.Quote):
		return breachError("%s: the id of quote %.80q is of another citation", t.Unit, c.Quote)
	case c.Label != "" && c.Label != output.LabelOf(t.Document, t.Metadata):
		return breachError("%s describes %s as %.80q, which is %.80q", t.Unit, t.Document, c.Label, output.LabelOf(t.Document, t.Metadata))
	case !isGrade(c.Grade):
		return breachError("%s: quote %.80q has the grade %.20q", t.Unit, c.Quote, c.Grade)
	case c.Others < 0 || !isShare(c.Coverage) || !isShare(c.Density):
		return breachError("%s: quote %.80q stands at %d other places, with a coverage of %v and a density of %v", t.Unit, c.Quote, c.Others, c.Coverage, c.Density)
	// Coverage and density are those of a fuzzy quote, and no other has any.
	case (ground.Grade(c.Grade) == ground.Fuzzy) != (c.Coverage > 0 && c.Density > 0):
		return breachError("%s: quote %.80q, of the grade %s, has a coverage of %v and a density of %v", t.Unit, c.Quote, c.Grade, c.Coverage, c.Density)
	case c.Start != start || c.End != end:
		return breachError("%s: quote %.80q stands at characters %d to %d, not %d to %d", t.Unit, c.Quote, start, end, c.Start, c.End)
	}

	return nil
}

// isShare reports whether x is in [0,1], which what is no number is not.
func isShare(x float64) bool { return x >= 0 && x <= 1 }

// isGrade reports whether a citation may have a grade.
func isGrade(grade string) bool {
	switch ground.Grade(grade) {
	case ground.Exact, ground.Normalised, ground.Fuzzy, ground.Lookalike:
		return true
	default:
		return false
	}
}

// listCitations are the citations of an output.
func listCitations(o *output.Output) ([]output.Citation, error) {
	var cited []output.Citation
	for id := range o.UsedCitations() {
		c, ok := o.Citations[id]
		if !ok {
			return nil, output.ErrUncited
		}
		cited = append(cited, c)
	}
	return cited, nil
}
