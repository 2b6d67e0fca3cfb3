package pdf

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
)

// A glyph is a character with its place on the page.
type glyph struct {
	char   rune
	marks  []rune        // that stand above and below it, as vowels
	x, y   float64       // where the pen stood, as a viewer shows the page
	box    mapreduce.Box // what it covers
	blanks int           // before it in the text
}

// A glyphLine is a line of a page that has letters which run from right to left. PDFium
// has the letters of some of its words in the order in which people read them, those of
// others from left to right as they stand, and its brackets turned or not. So where the
// glyphs stand says how to read it.
type glyphLine struct {
	glyphs []glyph
	blanks int // in the text of the line, behind the first glyph
}

// glyphLine returns characters [from, to) of the text with their places, without those
// that show nothing.
func (r *wordReader) glyphLine(from, to int) (l glyphLine) {
	shift := r.shift(from)
	for i := from; i < to; i++ {
		if isBlank(r.chars[i]) {
			if len(l.glyphs) > 0 {
				l.blanks++
			}
			continue
		}

		if g, ok := r.glyphAt(i, shift); ok {
			g.blanks = l.blanks
			l.glyphs = append(l.glyphs, g)
		}
	}

	return l
}

// glyphAt returns character i of the text with its place, and whether it shows something.
func (r *wordReader) glyphAt(i, shift int) (g glyph, ok bool) {
	shown := []rune(clean(r.chars[i : i+1]))
	if len(shown) == 0 || unicode.Is(unicode.Bidi_Control, shown[0]) {
		return g, false
	}

	x, y, ok := r.origin(i + shift)
	places := r.pdfium.place
	if !ok || r.pdfium.call("FPDFText_GetCharBox", r.text, integer(i+shift), places(0), places(1), places(2), places(3)) == 0 {
		return g, false
	}

	left, right, bottom, top := r.pdfium.float64At(0), r.pdfium.float64At(1), r.pdfium.float64At(2), r.pdfium.float64At(3)
	return glyph{char: shown[0], x: x, y: y, box: r.page.shown(left, top, right, bottom)}, true
}

// box returns what the line covers.
func (l *glyphLine) box() mapreduce.Box {
	box := l.glyphs[0].box
	for _, g := range l.glyphs {
		box = arrange.Union(box, g.box)
	}
	return box
}

// isLegible reports whether the places of the glyphs say how to read them: they are one
// line across the page, upright, and none of them stands for several words.
func (l *glyphLine) isLegible() bool {
	if len(l.glyphs) == 0 {
		return false
	}

	var above, below, height float64 // above is how much of the glyphs is above their baselines
	top, bottom := math.Inf(1), math.Inf(-1)

	for i, g := range l.glyphs {
		// Two glyphs at one place with a space between them are several words in one.
		if i > 0 && g.x == l.glyphs[i-1].x && g.blanks != l.glyphs[i-1].blanks {
			return false
		}

		above, below, height = above+g.y-g.box.Top, below+g.box.Bottom-g.y, max(height, g.box.Bottom-g.box.Top)
		top, bottom = min(top, g.y), max(bottom, g.y)
	}

	return above > below && bottom-top < height
}

// words returns the words of the line, from left to right.
func (l *glyphLine) words(line int) []arrange.Word {
	l.sort()

	l.attachMarks()
	l.stretch()

	box := l.box()
	var words []arrange.Word
	from := 0
	starts := l.wordStarts((box.Bottom - box.Top) / 10)

	for i := 1; i <= len(l.glyphs); i++ {
		if i == len(l.glyphs) || starts[i] {
			words = append(words, wordOf(l.glyphs[from:i], line))
			from = i
		}
	}

	return words
}

// stretch makes the boxes of glyphs as high as that of a common letter at least. A dash
// would seem to be farther from its neighbours than the cells of a table are.
func (l *glyphLine) stretch() {
	tops, bottoms := make([]float64, len(l.glyphs)), make([]float64, len(l.glyphs))
	for i, g := range l.glyphs {
		tops[i], bottoms[i] = g.box.Top, g.box.Bottom
	}
	slices.Sort(tops)
	slices.Sort(bottoms)
	for i := range l.glyphs {
		b := &l.glyphs[i].box
		b.Top, b.Bottom = min(b.Top, tops[len(tops)/2]), max(b.Bottom, bottoms[len(bottoms)/2])
	}
}

// sort sorts the glyphs from left to right. Letters of one glyph, as of a ligature, are in
// the order of the text, which is that of reading.
func (l *glyphLine) sort() {
	slices.Reverse(l.glyphs) // so that the first of those stands at the right
	middle := func(g glyph) float64 { return g.box.Left + g.box.Right }
	slices.SortStableFunc(l.glyphs, func(a, b glyph) int {
		return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(middle(a), middle(b)))
	})
}

// attachMarks gives the marks to the glyphs with which they stand.
func (l *glyphLine) attachMarks() {
	var marks []glyph
	var bases []glyph

	for _, g := range l.glyphs {
		if arrange.DirectionOf(g.char) == arrange.Attached {
			marks = append(marks, g)
		} else {
			bases = append(bases, g)
		}
	}

	if len(bases) == 0 {
		return
	}

	l.glyphs = bases
	for _, m := range slices.Backward(marks) { // in the order of the text, as far as they share a place
		b := l.base(m)
		b.marks, b.box = append(b.marks, m.char), arrange.Union(b.box, m.box)
	}
}

// base returns the glyph with which a mark stands: that of which it is a part, or else the
// nearest one.
func (l *glyphLine) base(mark glyph) *glyph {
	middle := (mark.box.Left + mark.box.Right) / 2
	right, _ := slices.BinarySearchFunc(l.glyphs, middle, func(g glyph, x float64) int { return cmp.Compare(g.x, x) })
	right = min(right, len(l.glyphs)-1)
	a, b := &l.glyphs[max(0, right-1)], &l.glyphs[right]
	away := func(g *glyph) float64 { return max(g.box.Left-middle, middle-g.box.Right, 0) }
	if b.x == mark.x || a.x != mark.x && away(b) < away(a) {
		return b
	}
	return a
}

// wordStarts returns which of the glyphs begin a word. How many spaces there are between two
// letters or numbers, PDFium knows. On which side of a bracket or a comma that stands
// there, it may have wrong: they are where the gaps are widest. A gap that is not wider
// than least is none: a mark has brought the space along.
func (l *glyphLine) wordStarts(least float64) []bool {
	starts := make([]bool, len(l.glyphs))
	for from := 0; from < len(l.glyphs); {
		to := from + 1
		for to < len(l.glyphs) && arrange.DirectionOf(l.glyphs[to].char) == arrange.Neutral {
			to++
		}

		gaps := l.gaps(from, min(to, len(l.glyphs)-1))
		// The widest gaps come first: as many of them begin words as PDFium counted spaces.
		for _, g := range gaps[:min(l.blanksBetween(from, to), len(gaps))] {
			starts[g.at] = g.width > least
		}

		from = to
	}

	return starts
}

// blanksBetween returns how many spaces stand in the text between two glyphs, of which the
// second may be beyond the line. A bullet is there: PDFium may have it before its space.
func (l *glyphLine) blanksBetween(from, to int) int {
	a, b := l.glyphs[from].blanks, l.glyphs[min(to, len(l.glyphs)-1)].blanks
	if to == len(l.glyphs) && b >= a {
		b = l.blanks
	}
	return max(a-b, b-a)
}

// A gap is what is free before a glyph.
type gap struct {
	at    int // the number of the glyph
	width float64
}

// gaps returns the gaps between glyphs from and to, the widest first.
func (l *glyphLine) gaps(from, to int) []gap {
	var all []gap
	for i := from + 1; i <= to; i++ {
		all = append(all, gap{i, l.glyphs[i].box.Left - l.glyphs[i-1].box.Right})
	}
	slices.SortStableFunc(all, func(a, b gap) int { return cmp.Compare(b.width, a.width) })
	return all
}

// wordOf returns the word that glyphs make, from left to right.
func wordOf(glyphs []glyph, line int) arrange.Word {
	var parts []arrange.Word
	from := 0
	for i := 1; i <= len(glyphs); i++ {
		if i == len(glyphs) || arrange.DirectionOf(glyphs[i].char) == arrange.Neutral || arrange.DirectionOf(glyphs[i].char) != arrange.DirectionOf(glyphs[i-1].char) {
			parts = append(parts, partOf(glyphs[from:i], line))
			from = i
		}
	}

	if len(parts) == 1 {
		return parts[0]
	}

	w := arrange.Word{Box: parts[0].Box, Line: line, Parts: parts}
	for _, p := range parts {
		w.Text, w.Box = w.Text+p.Text, arrange.Union(w.Box, p.Box)
	}

	return w
}

// partOf returns the text of glyphs that run in one direction.
func partOf(glyphs []glyph, line int) arrange.Word {
	w := arrange.Word{Box: glyphs[0].box, Line: line}
	// The glyphs come from left to right; these are read from right to left.
	if arrange.DirectionOf(glyphs[0].char) == arrange.RightToLeft {
		glyphs = slices.Clone(glyphs)
		slices.Reverse(glyphs)
		orderLigatures(glyphs)
	}

	var text strings.Builder
	for _, g := range glyphs {
		text.WriteRune(g.char)
		text.WriteString(string(g.marks))
		w.Box = arrange.Union(w.Box, g.box)
	}

	w.Text = text.String()
	return w
}

// orderLigatures brings the letters of ligatures of lam and alef into their order. Most
// files say what a ligature is by its letters as they are read; PDFium takes these for
// letters as they look, and turns them.
func orderLigatures(glyphs []glyph) {
	for i := 1; i < len(glyphs); i++ {
		alef, lam := &glyphs[i-1], &glyphs[i]
		if alef.x == lam.x && lam.char == 'ل' && strings.ContainsRune("اأإآٱ", alef.char) {
			*alef, *lam = *lam, *alef
		}
	}
}
