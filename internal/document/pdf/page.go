package pdf

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
)

// A page is a page that is loaded.
type page struct {
	pdfium        *instance
	handle        uint64
	number        int     // counted from 1
	width, height float64 // points, as a viewer shows it
	// The point (x, y) of the file is shown at (a·x + b·y + c, d·x + e·y + f).
	a, b, c, d, e, f float64
	lies             bool            // its fonts do not say what its glyphs are; known once its words are
	askew            int             // quarters of a circle by which it must be turned clockwise, so that it can be read; known as lies is
	turned           int             // quarters by which it was turned, and by which all of the above is, too
	images           []mapreduce.Box // pictures within the page; known once its lines are
	// Where a box of the page is that was read as a picture and straightened before; nil of others.
	place func(mapreduce.Box) mapreduce.Box
}

// maxPageChars bounds the characters of a page that are looked at.
const maxPageChars = 1 << 20

// load returns a page of a document, or nil if PDFium cannot read it.
func load(pdfium *instance, document uint64, number int) *page {
	handle := pdfium.call("FPDF_LoadPage", document, integer(number-1))
	if handle == 0 {
		return nil
	}
	return &page{pdfium: pdfium, handle: handle, number: number}
}

func (p *page) close() { p.pdfium.call("FPDF_ClosePage", p.handle) }

// measure finds out how the page is shown: its size, its rotation, and what is cropped.
func (p *page) measure() error {
	p.width, p.height = asReal32(p.pdfium.call("FPDF_GetPageWidthF", p.handle)), asReal32(p.pdfium.call("FPDF_GetPageHeightF", p.handle))
	if p.pdfium.gone != nil {
		return p.pdfium.gone
	}
	if !(p.width > 0 && p.height > 0) {
		return fmt.Errorf("page %d is %v by %v points", p.number, p.width, p.height)
	}

	const fine = 1 << 20 // device pixels, so that what is rounded is small
	at := func(x, y float64) (float64, float64) {
		p.pdfium.call("FPDF_PageToDevice", p.handle, 0, 0, fine, fine, 0, real64(x), real64(y), p.pdfium.place(0), p.pdfium.place(1))
		return float64(p.pdfium.int32At(0)) * p.width / fine, float64(p.pdfium.int32At(1)) * p.height / fine
	}
	const far = 1000
	p.c, p.f = at(0, 0)
	x1, y1 := at(far, 0)
	x2, y2 := at(0, far)
	p.a, p.d, p.b, p.e = (x1-p.c)/far, (y1-p.f)/far, (x2-p.c)/far, (y2-p.f)/far
	return p.pdfium.gone
}

// shown returns a rectangle of the file as a viewer shows it.
func (p *page) shown(left, top, right, bottom float64) mapreduce.Box {
	x1, y1 := p.a*left+p.b*top+p.c, p.d*left+p.e*top+p.f
	x2, y2 := p.a*right+p.b*bottom+p.c, p.d*right+p.e*bottom+p.f
	return mapreduce.Box{
		Page: p.number, Left: arrange.Within(min(x1, x2)), Top: arrange.Within(min(y1, y2)), Right: arrange.Within(max(x1, x2)), Bottom: arrange.Within(max(y1, y2)),
	}
}

// words returns the words of a page in the order of the file. Lines of lattices part words.
func (p *page) words(lattices []*arrange.Lattice) ([]arrange.Word, error) {
	text := p.pdfium.call("FPDFText_LoadPage", p.handle)
	if text == 0 {
		return nil, p.pdfium.gone
	}
	defer p.pdfium.call("FPDFText_ClosePage", text)
	n := min(asInteger(p.pdfium.call("FPDFText_CountChars", text)), maxPageChars)
	if n <= 0 {
		return nil, p.pdfium.gone
	}

	const unit = 4 // bytes: two units of UTF-16, which a character may have
	buffer := p.pdfium.bytesFor(unit * (n + 1))
	units := asInteger(p.pdfium.call("FPDFText_GetText", text, 0, integer(n), buffer)) - 1 // without the zero at the end
	if units <= 0 || units > 2*n {
		return nil, p.pdfium.gone
	}
	chars := utf16.Decode(unitsOf(p.pdfium.filled(2 * units)))
	r := wordReader{page: p, pdfium: p.pdfium, text: text, chars: chars, same: len(chars) == n, lattices: lattices}
	r.read()
	findPitches(r.words)
	p.lies, p.askew = lies(chars), p.quarters(text, n)
	return r.words, p.pdfium.gone
}

// A wordReader splits the text of a page into words.
type wordReader struct {
	page   *page
	pdfium *instance
	text   uint64
	chars  []rune
	same   bool // characters of the text have the numbers of those of the page
	words  []arrange.Word
	line   int
	// lattices are those of the page, whose lines part words.
	lattices []*arrange.Lattice
}

// isSoftHyphen tells what PDFium makes of a hyphen at which it joins two lines.
func isSoftHyphen(c rune) bool { return c == '\ufffe' || c == '\x02' }

func (r *wordReader) read() {
	from := 0
	for i := 0; i <= len(r.chars); i++ {
		if i < len(r.chars) && r.chars[i] != '\n' && r.chars[i] != '\r' {
			continue
		}
		r.addLine(from, i)
		r.line++
		from = i + 1
	}
}

// addLine adds the words of characters [from, to) of the text, which are a line.
func (r *wordReader) addLine(from, to int) {
	// The order of such a line is found from the places of its glyphs, if they say it.
	if arrange.HasRightToLeft(r.chars[from:to]) {
		if l := r.glyphLine(from, to); l.isLegible() {
			r.words = append(r.words, l.words(r.line)...)
			return
		}
	}

	for i := from; i <= to; i++ {
		if i < to && !isBlank(r.chars[i]) {
			continue
		}
		r.addWord(from, i)
		from = i + 1
	}
}

// isBlank reports whether a character parts words.
func isBlank(c rune) bool { return unicode.IsSpace(c) || c == 0 }

// addWord adds characters [from, to) of the text as a word. What is hyphenated stands in
// two lines: it becomes two, the first of which ends with a soft hyphen.
func (r *wordReader) addWord(from, to int) {
	for i := from; i < to-1; i++ {
		if isSoftHyphen(r.chars[i]) {
			r.addWord(from, i+1)
			r.line++
			r.addWord(i+1, to)
			return
		}
	}

	text := clean(r.chars[from:to])
	if text == "" {
		return
	}

	box, across := r.box(from, to)
	if across {
		if at := r.nextLine(from, to); at < to {
			r.addWord(from, at)
			r.line++
			r.addWord(at, to)
			return
		}
	}

	if at := r.wallBetween(from, to, box); at < to {
		r.addWord(from, at)
		r.addWord(at, to)
		return
	}

	w := arrange.Word{Text: text, Box: box, Line: r.line}
	if x, _, ok := r.origin(from + r.shift(from)); ok {
		w.Pen, w.Letters = x, to-from
	}

	r.words = append(r.words, w)
}

// wallBetween returns the first of characters [from, to) that stands behind a line of a table, as a
// text of its own, or to: PDFium takes texts of cells that almost touch for one word.
func (r *wordReader) wallBetween(from, to int, box mapreduce.Box) int {
	for _, l := range r.lattices {
		x, ok := l.WallIn(box)
		if !ok {
			continue
		}

		shift := r.shift(from)
		object := func(i int) uint64 { return r.pdfium.call("FPDFText_GetTextObject", r.text, integer(i+shift)) }

		for i := from + 1; i < to; i++ {
			// Both letters may be of one text object: then the text runs across the line.
			if left, _, ok := r.origin(i + shift); ok && left >= x-1 {
				if object(i) != object(i-1) {
					return i
				}
				return to
			}
		}
	}

	return to
}

// nextLine returns the first of characters [from, to) that stands above or below the one before
// it, or to: PDFium takes letters that are written one below the other for one word.
func (r *wordReader) nextLine(from, to int) int {
	var before mapreduce.Box

	shift := r.shift(from)
	for i := from; i < to; i++ {
		if r.pdfium.call("FPDFText_GetLooseCharBox", r.text, integer(i+shift), r.pdfium.place(0)) == 0 {
			continue
		}

		p := r.pdfium
		box := r.page.shown(p.filledNumber(0), p.filledNumber(1), p.filledNumber(2), p.filledNumber(3))

		if !r.isLevel(i + shift) {
			return to // it is turned: its letters stand above each other
		}

		if before.Page > 0 && (box.Top >= before.Bottom || box.Bottom <= before.Top) {
			return i
		}
		before = box
	}

	return to
}

// clean returns characters as text, without those that no font shows.
func clean(chars []rune) string {
	return strings.Map(func(c rune) rune {
		switch {
		case isSoftHyphen(c):
			return '\u00ad'
		case unicode.IsControl(c), c == '\ufeff', c == unicode.ReplacementChar:
			return -1
		}
		return c
	}, string(chars))
}

// maxRects bounds the parts of a word that are looked at, each with a box of its own.
const maxRects = 64

// isLevel reports whether a character of the page runs from left to right, as a viewer shows it.
func (r *wordReader) isLevel(char int) bool {
	y, x := math.Sincos(asReal32(r.pdfium.call("FPDFText_GetCharAngle", r.text, integer(char))))
	p := r.page
	return math.Abs(p.d*x+p.e*y) < 0.3*math.Abs(p.a*x+p.b*y)
}

// box returns what characters of the text cover of the page, and whether their parts stand
// above each other. What PDFium cannot measure, such as a glyph of a font that is not at
// hand, stands where its characters were written.
func (r *wordReader) box(from, to int) (box mapreduce.Box, across bool) {
	shift := r.shift(from)
	count := min(asInteger(r.pdfium.call("FPDFText_CountRects", r.text, integer(from+shift), integer(to-from))), maxRects)
	for i := range count {
		r.pdfium.call("FPDFText_GetRect", r.text, integer(i), r.pdfium.place(0), r.pdfium.place(1), r.pdfium.place(2), r.pdfium.place(3))
		one := r.page.shown(r.pdfium.float64At(0), r.pdfium.float64At(1), r.pdfium.float64At(2), r.pdfium.float64At(3))

		if i > 0 {
			across = across || one.Top >= box.Bottom || one.Bottom <= box.Top
			one = arrange.Union(box, one)
		}
		box = one
	}

	if box.Right > box.Left && box.Bottom > box.Top {
		return box, across
	}

	return r.penBox(from+shift, to+shift), false
}

// penBox returns where characters of the page were written: as high as their font says, and
// half as wide each.
func (r *wordReader) penBox(from, to int) (box mapreduce.Box) {
	for i := from; i < to; i++ {
		x, y, ok := r.origin(i)
		if !ok {
			continue
		}

		size := math.Abs(asReal64(r.pdfium.call("FPDFText_GetFontSize", r.text, integer(i))))
		if !(size > 0 && size < maxFontSize) {
			size = 1
		}

		one := mapreduce.Box{Page: r.page.number, Left: arrange.Within(x), Top: arrange.Within(y - 0.8*size), Right: arrange.Within(x + size/2), Bottom: arrange.Within(y + 0.2*size)}
		if box.Page > 0 {
			one = arrange.Union(box, one)
		}
		box = one
	}

	if box.Page == 0 { // it follows on what was before
		box.Page = r.page.number
		if n := len(r.words); n > 0 {
			box = r.words[n-1].Box
			box.Left = box.Right
		}
	}

	return box
}

// maxFontSize is that of a letter as high as the largest page.
const maxFontSize = 20_000

// origin returns where the pen stood for a character of the page, as a viewer shows it.
func (r *wordReader) origin(char int) (x, y float64, ok bool) {
	ok = r.pdfium.call("FPDFText_GetCharOrigin", r.text, integer(char), r.pdfium.place(0), r.pdfium.place(1)) != 0
	x, y = r.pdfium.float64At(0), r.pdfium.float64At(1)
	p := r.page
	return p.a*x + p.b*y + p.c, p.d*x + p.e*y + p.f, ok && areFinite(x, y)
}

// shift returns by how much the numbers of characters of the page are above those of the
// text, from one on.
func (r *wordReader) shift(from int) (by int) {
	if r.same {
		return 0
	}
	if at := asInteger(r.pdfium.call("FPDFText_GetCharIndexFromTextIndex", r.text, integer(from))); at >= 0 {
		return at - from
	}
	return 0
}
