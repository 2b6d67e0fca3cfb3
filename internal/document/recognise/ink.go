package recognise

import (
	"image"
	"slices"
)

// Bounds of how far the edge of a box is from the ink of its word.
const (
	leastContrast = 50 // shades between paper and ink, below which nobody can tell them apart
	leastReach    = 4  // pixels by which a box may grow at each edge
	sideReach     = 2  // by what part of the height of the word, so that 2 is a half, it may grow to a side
	upReach       = 4  // the same, up and down
)

// fitInk moves the edges of boxes to the ink of their words. An engine says roughly where words are: the edges of
// its boxes may cut the last letter, or stand some pixels away from it. A box never reaches over that of the word
// before or behind it in its line.
func fitInk(m *image.Gray, words []Word) {
	boxes := make([]Box, len(words))
	for i := range words {
		left, right := 0, m.Rect.Dx()
		if i > 0 && words[i-1].Line == words[i].Line {
			left = int(words[i-1].Box.Right)
		}
		if i+1 < len(words) && words[i+1].Line == words[i].Line {
			right = int(words[i+1].Box.Left)
		}
		boxes[i] = fittedBox(m, words[i].Box, left, right)
	}

	// Not before all are fitted: each is fitted beside the boxes of others as the engine gave them.
	for i := range words {
		words[i].Box = boxes[i]
	}

	for from := 0; from < len(words); {
		to := from + 1
		for to < len(words) && words[to].Line == words[from].Line {
			to++
		}
		levelLine(words[from:to])
		from = to
	}
}

// towering is how many times as high as most words of its line a word is at least that is none: the edge of a shadow or
// a rule, which an engine takes for a letter.
const towering = 1.75

// levelLine makes no word of a line much higher than most of them.
func levelLine(words []Word) {
	tops, bottoms := make([]float64, len(words)), make([]float64, len(words))
	for i, w := range words {
		tops[i], bottoms[i] = w.Box.Top, w.Box.Bottom
	}
	slices.Sort(tops)
	slices.Sort(bottoms)
	top, bottom := tops[len(words)/2], bottoms[(len(words)-1)/2]

	for i := range words {
		if b := &words[i].Box; b.Bottom-b.Top > towering*(bottom-top) && bottom > top {
			b.Top, b.Bottom = max(b.Top, top), min(b.Bottom, bottom)
		}
	}
}

// fittedBox returns the box of a word around its ink, within columns [left, right) as far as it grows.
func fittedBox(m *image.Gray, b Box, left, right int) Box {
	at := image.Rect(int(b.Left), int(b.Top), int(b.Right+0.5), int(b.Bottom+0.5)).Intersect(m.Rect)
	if at.Empty() {
		return b
	}
	height := at.Dy()
	limit, ok := inkShade(m, at)
	if !ok {
		return b
	}

	ink := inkIn{m, limit}
	trimmed := ink.trim(at)
	if trimmed.Empty() {
		return b
	}
	across, up := max(height/sideReach, leastReach), max(height/upReach, leastReach)
	out := ink.growAcross(trimmed, max(left, trimmed.Min.X-across), min(right, trimmed.Max.X+across))
	out = ink.growUp(out, out.Min.Y-up, out.Max.Y+up)
	return Box{float64(out.Min.X), float64(out.Min.Y), float64(out.Max.X), float64(out.Max.Y)}
}

// inkShade returns the shade below which pixels of a word are ink: halfway between its letters and the paper in and
// around its box.
func inkShade(m *image.Gray, at image.Rectangle) (limit uint8, ok bool) {
	at = at.Inset(-max(at.Dy()/4, 3)).Intersect(m.Rect)
	shades := make([]uint8, 0, at.Dx()*at.Dy())
	for y := at.Min.Y; y < at.Max.Y; y++ {
		shades = append(shades, m.Pix[y*m.Stride:][at.Min.X:at.Max.X]...)
	}
	slices.Sort(shades)
	dark, light := int(shades[len(shades)/50]), int(shades[len(shades)*19/20])
	return uint8((dark + light) / 2), light-dark >= leastContrast
}

// inkIn tells which parts of a picture are ink.
type inkIn struct {
	m     *image.Gray
	limit uint8
}

// column reports whether a column has ink in rows [top, bottom).
func (k inkIn) column(x, top, bottom int) bool {
	for y := top; y < bottom; y++ {
		if k.m.Pix[y*k.m.Stride+x] < k.limit {
			return true
		}
	}
	return false
}

// row reports whether a row has ink in columns [left, right).
func (k inkIn) row(y, left, right int) bool {
	return slices.ContainsFunc(k.m.Pix[y*k.m.Stride:][left:right], func(shade uint8) bool { return shade < k.limit })
}

// trim returns what is left of a rectangle without the paper at its edges.
func (k inkIn) trim(at image.Rectangle) image.Rectangle {
	for at.Dx() > 0 && !k.column(at.Min.X, at.Min.Y, at.Max.Y) {
		at.Min.X++
	}
	for at.Dx() > 0 && !k.column(at.Max.X-1, at.Min.Y, at.Max.Y) {
		at.Max.X--
	}

	for at.Dx() > 0 && at.Dy() > 0 && !k.row(at.Min.Y, at.Min.X, at.Max.X) {
		at.Min.Y++
	}
	for at.Dx() > 0 && at.Dy() > 0 && !k.row(at.Max.Y-1, at.Min.X, at.Max.X) {
		at.Max.Y--
	}
	return at
}

// growAcross moves the sides of a rectangle over ink that goes on there, within columns [left, right).
func (k inkIn) growAcross(at image.Rectangle, left, right int) image.Rectangle {
	for at.Min.X > max(left, 0) && k.column(at.Min.X-1, at.Min.Y, at.Max.Y) {
		at.Min.X--
	}
	for at.Max.X < min(right, k.m.Rect.Dx()) && k.column(at.Max.X, at.Min.Y, at.Max.Y) {
		at.Max.X++
	}
	return at
}

// growUp moves the top and the bottom of a rectangle over ink that goes on there, within rows [top, bottom).
func (k inkIn) growUp(at image.Rectangle, top, bottom int) image.Rectangle {
	for at.Min.Y > max(top, 0) && k.row(at.Min.Y-1, at.Min.X, at.Max.X) {
		at.Min.Y--
	}
	for at.Max.Y < min(bottom, k.m.Rect.Dy()) && k.row(at.Max.Y, at.Min.X, at.Max.X) {
		at.Max.Y++
	}
	return at
}
