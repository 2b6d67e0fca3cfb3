package pdf

import (
	"math"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
	"github.com/coditect/mapreduce/internal/text/layout"
)

// Bounds by which a page is known whose text is turned, such as a wide table on an upright page.
const (
	turnSamples = 64  // characters that are looked at, from all of the page
	leastTurned = 16  // of them that are needed
	mostlyOne   = 0.8 // of them that run in one direction
)

// quarters returns by how many quarters of a circle a page must be turned clockwise, so that its
// text runs from left to right; 0 if not almost all of its text runs in one direction. text is
// what PDFium has read of the page, and count how many characters that has.
func (p *page) quarters(text uint64, count int) int {
	var to [4]int

	seen := 0
	for i := range min(count, turnSamples) {
		// The samples are spread over the whole page.
		char := integer(i * count / min(count, turnSamples))
		if c := rune(asInteger(p.pdfium.call("FPDFText_GetUnicode", text, char))); isBlank(c) {
			continue
		}

		to[p.quarterOf(asReal32(p.pdfium.call("FPDFText_GetCharAngle", text, char)))]++
		seen++
	}

	for turn, n := range to {
		if n >= leastTurned && float64(n) >= mostlyOne*float64(seen) {
			return turn
		}
	}

	return 0
}

// quarterOf returns by how many quarters of a circle a character must be turned clockwise to stand
// upright, as a viewer shows the page. Its angle, in radians, is that of the file, where it counts
// clockwise.
func (p *page) quarterOf(angle float64) int {
	y, x := math.Sincos(-angle)
	right, down := p.a*x+p.b*y, p.d*x+p.e*y

	switch {
	case math.Abs(right) >= math.Abs(down) && right >= 0:
		return 0
	case math.Abs(right) >= math.Abs(down):
		return 2
	case down < 0: // it is read from below
		return 1
	}
	return 3
}

// turn turns the page clockwise by quarters of a circle. Whatever is measured of it afterwards is
// as if a viewer showed it so.
func (p *page) turn(quarters int) {
	for range quarters {
		p.a, p.b, p.c, p.d, p.e, p.f = -p.d, -p.e, p.height-p.f, p.a, p.b, p.c
		p.width, p.height = p.height, p.width
	}
	p.turned += quarters
}

// turnBack has boxes of a page that was turned stand where a viewer shows them.
func (p *page) turnBack(parts layout.Layout) {
	for i := range parts {
		width, height := p.width, p.height
		for range p.turned {
			b := parts[i].Box
			parts[i].Box = mapreduce.Box{
				Page: b.Page, Left: b.Top, Right: b.Bottom, Top: arrange.Within(width - b.Right), Bottom: arrange.Within(width - b.Left),
			}
			width, height = height, width
		}
	}
}
