package recognise_test

import (
	"image"
	"image/color"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/document/recognise"
)

// paperWith returns paper with rectangles of which a third is ink, as of letters: each of their rows and columns has some.
func paperWith(ink ...image.Rectangle) *image.Gray {
	m := image.NewGray(image.Rect(0, 0, 200, 60))
	for i := range m.Pix {
		m.Pix[i] = 240
	}
	for _, r := range ink {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				if (x+y)%3 == 0 {
					m.SetGray(x, y, color.Gray{Y: 20})
				}
			}
		}
	}
	return m
}

func boxOf(r image.Rectangle) recognise.Box {
	return recognise.Box{Left: float64(r.Min.X), Top: float64(r.Min.Y), Right: float64(r.Max.X), Bottom: float64(r.Max.Y)}
}

// TestFitInk: a box that is off by some pixels at each edge comes to the ink of its word, and to nothing of the
// word beside it.
func TestFitInk(t *testing.T) {
	first, second := image.Rect(20, 20, 80, 36), image.Rect(88, 20, 150, 36)
	m := paperWith(first, second)
	rapid.Check(t, func(t *rapid.T) {
		off := func(name string) int { return rapid.IntRange(-3, 3).Draw(t, name) }
		words := []recognise.Word{
			{Text: "first", Line: 1, Box: boxOf(image.Rect(20+off("left"), 20+off("top"), 80+off("right"), 36+off("bottom")))},
			{Text: "second", Line: 1, Box: boxOf(image.Rect(88+off("left"), 20+off("top"), 150+off("right"), 36+off("bottom")))},
		}
		recognise.FitInk(m, words)
		if words[0].Box != boxOf(first) || words[1].Box != boxOf(second) {
			t.Errorf("the boxes are %v and %v, want %v and %v", words[0].Box, words[1].Box, first, second)
		}
	})
}

// TestTowering: the edge of a shadow, which an engine takes for a part of a word, makes that no higher than its line.
func TestTowering(t *testing.T) {
	edge := image.Rect(150, 2, 152, 58)
	m := paperWith(image.Rect(20, 20, 60, 36), image.Rect(70, 20, 110, 36), image.Rect(120, 20, 150, 36), edge)
	words := []recognise.Word{
		{Text: "first", Line: 1, Box: boxOf(image.Rect(20, 20, 60, 36))},
		{Text: "second", Line: 1, Box: boxOf(image.Rect(70, 20, 110, 36))},
		{Text: "third", Line: 1, Box: boxOf(image.Rect(120, 2, 152, 58))},
		{Text: "below", Line: 2, Box: boxOf(image.Rect(20, 38, 60, 58))},
	}
	recognise.FitInk(m, words)
	if got := words[2].Box; got.Top != 20 || got.Bottom != 36 {
		t.Errorf("the third word is at %v", got)
	}
}

// TestFitInkLeaves: a box of paper alone, or without contrast, stays as it is.
func TestFitInkLeaves(t *testing.T) {
	faint := paperWith()
	faint.SetGray(50, 30, color.Gray{Y: 200})
	for name, m := range map[string]*image.Gray{"paper": paperWith(), "faint": faint} {
		box := recognise.Box{Left: 40, Top: 20, Right: 60.5, Bottom: 40}
		words := []recognise.Word{{Text: "a", Box: box}}
		if recognise.FitInk(m, words); words[0].Box != box {
			t.Errorf("%s: the box is %v", name, words[0].Box)
		}
	}
}
