// Package layout says where a reader of a document would look for the parts of its text:
// on which page and in which box, in which cell, on which slide. It has the stored form
// of layouts, of which a reader reads no more than the blocks that it needs.
//
// It is pure, and imports of the project the vocabulary and the stored messages alone.
package layout

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Layout is the parts of a text, in the order of the text. They do not overlap. What
// stands in no part has no place. The nil Layout is that of formats without places.
type Layout []Part

// A Part is a part of a text that a reader finds in one place.
type Part struct {
	Start, End int // bytes of the text: [Start, End)
	// Location is the place, without boxes. Parts in one place may share it; nobody
	// changes it. Needed.
	Location *mapreduce.Location
	// Box is what the part covers of the page of its Location; zero if that has none. It
	// is kept to a tenth of a point.
	Box mapreduce.Box
}

// MaxParts bounds the parts of a layout.
const MaxParts = 4 << 20

// ErrInvalid is the error of a layout that is none, or not one of its text.
var ErrInvalid = errors.New("layout: invalid")

func invalidError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// Check returns an error if l is not a layout of a text of so many bytes.
func (l Layout) Check(text int) error {
	if len(l) > MaxParts {
		return invalidError("it has %d parts; at most %d are kept", len(l), MaxParts)
	}

	end := 0
	for i := range l {
		if err := l[i].check(end, text); err != nil {
			return err
		}
		end = l[i].End
	}
	return nil
}

// check returns an error unless p is a part of a text that begins at end or behind it.
func (p *Part) check(end, text int) error {
	switch {
	case p.Location == nil:
		return invalidError("the part at [%d, %d) has no location", p.Start, p.End)
	case p.Start < end || p.End <= p.Start || p.End > text:
		return invalidError("%q is at [%d, %d) of %d bytes, behind %d", p.Location, p.Start, p.End, text, end)
	case len(p.Location.Boxes) > 0:
		return invalidError("the boxes of %q are those of its parts", p.Location)
	case p.Box != mapreduce.Box{} && (p.Box.Page != p.Location.Page || p.Box.Page == 0):
		return invalidError("a box of %q is on page %d", p.Location, p.Box.Page)
	}

	for _, length := range []float64{p.Box.Left, p.Box.Top, p.Box.Right, p.Box.Bottom} {
		if !(math.Abs(length) <= maxLength) { // which holds for what is not a number, too
			return invalidError("a box of %q is %v points wide or high", p.Location, length)
		}
	}

	return checkLocation(p.Location)
}

// maxLength bounds where a box may lie, in points: pages are at most 14,400 wide and high.
const maxLength = 1 << 20

func checkLocation(l *mapreduce.Location) error {
	if l.String() == "" {
		return invalidError("a location says nothing")
	}

	for _, text := range []string{l.Place, l.Sheet, l.Cell, l.Part, l.Header, l.Chapter} {
		if len(text) > mapreduce.MaxLocationText || !utf8.ValidString(text) {
			return invalidError("%.80q is no text of at most %d bytes", text, mapreduce.MaxLocationText)
		}
	}

	if !(l.Recognised >= 0 && l.Recognised <= 1) {
		return invalidError("it was recognised with a confidence of %v", l.Recognised)
	}

	for _, n := range []int{l.Page, l.Slide, l.Paragraph} {
		if n < 0 || n > mapreduce.MaxPage {
			return invalidError("%d is no number of a page, slide or paragraph", n)
		}
	}

	return nil
}

// Locate returns where a reader would look for bytes [start, end) of the text, with the
// boxes that they cover. It returns nil if they stand in no part.
func (l Layout) Locate(start, end int) *mapreduce.Location {
	var s span
	for i := sort.Search(len(l), func(i int) bool { return l[i].End > start }); i < len(l) && l[i].Start < end; i++ {
		s.add(&l[i])
	}
	return s.wholeLocation()
}

// A span is the parts that a range of a text touches.
type span struct {
	first, last *mapreduce.Location
	sure        float64 // the least of those of parts that were recognised; 0 of none
	boxes       []mapreduce.Box
}

func (s *span) add(p *Part) {
	if s.first == nil {
		s.first = p.Location
	}
	s.last = p.Location
	if sure := p.Location.Recognised; sure > 0 && (s.sure == 0 || sure < s.sure) {
		s.sure = sure
	}

	if p.Box == (mapreduce.Box{}) {
		return
	}

	// Words of one line become one box.
	if n := len(s.boxes); n > 0 && sameLine(&s.boxes[n-1], &p.Box) {
		b := &s.boxes[n-1]
		b.Left, b.Right = min(b.Left, p.Box.Left), max(b.Right, p.Box.Right)
		b.Top, b.Bottom = min(b.Top, p.Box.Top), max(b.Bottom, p.Box.Bottom)
		return
	}

	if len(s.boxes) < mapreduce.MaxBoxes {
		s.boxes = append(s.boxes, p.Box)
	}
}

// sameLine reports whether b follows on a on the same line of a page, no farther away
// than a column would be: at its right, or at its left in a text that runs there.
func sameLine(a, b *mapreduce.Box) bool {
	height := min(a.Bottom-a.Top, b.Bottom-b.Top)
	overlap := min(a.Bottom, b.Bottom) - max(a.Top, b.Top)

	right := b.Left >= a.Left && b.Left-a.Right < 2*height
	left := b.Right <= a.Right && a.Left-b.Right < 2*height

	return a.Page == b.Page && overlap > height/2 && (right || left)
}

// wholeLocation returns the place of all parts together.
func (s *span) wholeLocation() *mapreduce.Location {
	if s.first == nil {
		return nil
	}

	l := *s.first
	l.Boxes, l.Recognised = s.boxes, s.sure

	if from, to := s.first.String(), s.last.String(); from != to {
		if l.Place = from + " to " + to; l.Sheet != "" && l.Sheet == s.last.Sheet && l.Cell != "" && s.last.Cell != "" {
			l.Place, l.Cell = "", l.Cell+":"+s.last.Cell
		}
	}

	l.Place = l.String()
	return &l
}
