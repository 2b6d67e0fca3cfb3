package results

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A documentPage is the text of a document with a passage marked.
type documentPage struct {
	Document string
	Unit     string
	Pieces   []piece
	Place    string // where the passage is, in words
	Cut      bool   // the text is longer than what is shown
	Values   []foundValue
	More     bool          // the result was not read to its end: other values may rest on the document
	Picture  *shownPicture // the page that the passage stands on; nil if there is no picture of it
}

// A foundValue is a value of a record that rests on the document.
type foundValue struct {
	Record      int
	Field, Text string
	Path        string // of the document with its passage
	Here        bool
}

// A piece is some text, marked or not.
type piece struct {
	Text   string
	Marked bool // it is quoted by a value
	Here   bool // it is the passage that was asked for
}

// A documentScan reads a result for the values that rest on a document.
type documentScan struct {
	document mapreduce.DocumentID
	here     passage
	path     func(*mapreduce.Citation) string

	parts    int
	records  int
	last     *record
	fields   []string
	cited    map[string]*mapreduce.Citation // of the last record in the document
	values   []foundValue
	passages []passage
	cite     *mapreduce.Citation // of the passage that was asked for; nil if no value rests on it
}

// take takes the next part of the result.
func (s *documentScan) take(part *mapreduce.ResultPart) error {
	if s.parts++; s.parts > MaxScanned {
		return ErrEnough
	}

	switch {
	case part.Record != nil:
		s.finish()
		s.records++
		var err error
		s.last, s.fields, err = readRecord(s.records, part.Record)
		if err != nil {
			return errs.New(errs.DataLoss, "the result cannot be shown: %w", err)
		}
		s.cited = make(map[string]*mapreduce.Citation)
	case part.Citation != nil && part.Citation.Document == s.document && s.last != nil:
		s.cited[part.Citation.Ref] = part.Citation
		if s.here == (passage{int(part.Citation.Start), int(part.Citation.End)}) {
			s.cite = part.Citation
		}
	}
	return nil
}

// finish takes the values of the last record, whose citations have all come.
func (s *documentScan) finish() {
	if s.last == nil || len(s.cited) == 0 {
		s.last = nil
		return
	}

	for _, field := range s.fields {
		for _, ref := range s.last.refs(field) {
			c := s.cited[ref]
			if c == nil || len(s.passages) == maxQuotes {
				continue
			}
			one := passage{int(c.Start), int(c.End)}
			s.passages = append(s.passages, one)
			s.values = append(s.values, foundValue{s.last.Number, field, s.last.text(field), s.path(c), one == s.here})
			break
		}
	}
	s.last = nil
}

// MaxScanned is how many parts of a result are read for the values of one document.
const MaxScanned = 50_000

// MaxBytes bounds a text, and a document of which pages are drawn, that a page reads.
const MaxBytes = 64 << 20

const (
	maxText   = 400_000 // characters of a text on a page
	maxQuotes = 5_000   // that are marked
)

// LoadDocument makes the page of a document, as the unit read it.
func (c *Contents) LoadDocument(v *visit.Visit) (any, error) {
	p, err := jobs.OpenJob(v, "records")
	if err != nil {
		return nil, err
	}

	unit, document := mapreduce.UnitID(v.Query.Get("unit")), mapreduce.DocumentID(v.Query.Get("document"))
	start, err := v.Number("start", 0)
	if err != nil {
		return nil, err
	}
	end, err := v.Number("end", 0)
	if err != nil {
		return nil, err
	}

	var text []byte
	err = v.Jobs.ReadText(v, p.ID, unit, document, func(part []byte) error {
		if len(text)+len(part) > MaxBytes {
			return errs.New(errs.Exhausted, "the text is larger than the %d bytes that a page shows; result.json has its passages", MaxBytes)
		}
		text = append(text, part...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, errs.New(errs.Precondition, "the unit %s was given a file that is no text", unit)
	}

	s := &documentScan{document: document, here: passage{start, end}, path: func(c *mapreduce.Citation) string {
		return visit.DocumentPath(v.Prefix, p.ID, unit, document, c.Start, c.End)
	}}
	unmerged := p.IsUnmerged()
	if !unmerged {
		if err := v.Jobs.GetResult(v, p.ID, p.Job.State != mapreduce.JobComplete, s.take); err != nil && !errors.Is(err, ErrEnough) {
			return nil, err
		}
	}
	s.finish()

	shown := &documentPage{Document: string(document), Unit: string(unit), Values: s.values, More: unmerged || s.parts > MaxScanned}
	if shown.Picture, err = c.pictureOf(v, p.ID, document, s.cite); err != nil {
		return nil, err
	}
	shown.Pieces, shown.Cut = mark([]rune(string(text)), s.here, s.passages)
	p.Content = shown
	return p, nil
}

// A passage is a part of a text, in characters, half-open.
type passage struct{ start, end int }

// mark cuts a text into pieces at its passages. Of a text that is too long it leaves what is far
// from the passage that was asked for, and reports that.
func mark(text []rune, here passage, others []passage) (pieces []piece, cut bool) {
	from, to := 0, len(text)
	if len(text) > maxText {
		cut = true
		from = max(0, min(here.start, len(text))-maxText/2)
		to = min(len(text), from+maxText)
	}

	edges := []int{from, to}
	add := func(p passage) {
		if p.start < p.end && p.end > from && p.start < to {
			edges = append(edges, max(p.start, from), min(p.end, to))
		}
	}
	add(here)
	for _, p := range others[:min(len(others), maxQuotes)] {
		add(p)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)

	within := func(p passage, a, b int) bool { return p.start <= a && b <= p.end && p.start < p.end }
	for i := 0; i+1 < len(edges); i++ {
		a, b := edges[i], edges[i+1]
		one := piece{Text: VisibleRunes(text[a:b]), Here: within(here, a, b)}
		one.Marked = one.Here || slices.ContainsFunc(others, func(p passage) bool { return within(p, a, b) })
		pieces = append(pieces, one)
	}
	return pieces, cut
}

// VisibleRunes is visible without a bound: the text is bounded before.
func VisibleRunes(text []rune) string {
	var all strings.Builder
	for len(text) > 0 {
		n := min(len(text), visit.MaxShown)
		all.WriteString(visit.Visible(string(text[:n])))
		text = text[n:]
	}
	return all.String()
}
