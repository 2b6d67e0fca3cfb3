package picture_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/photo"
	"github.com/coditect/mapreduce/internal/document/picture"
)

// mostOff is how many pixels an edge of a box is from the truth at most.
const mostOff = 3

// drawnPages is how many pages are drawn for each kind of photograph.
const drawnPages = 6

// linesOf returns the lines of a page: names, words, dates, numbers and amounts, as on a bill.
func linesOf(random *rand.Rand) []string {
	words := strings.Fields("invoice receipt delivery account number payment within thirty days bolts washers copper pipe yellow paint large small total amount before tax customer street market harbour office telephone thank you for your order returns accepted quality")
	one := func() string { return words[random.IntN(len(words))] }
	lines := []string{strings.ToUpper(one() + " & " + one()), fmt.Sprintf("No. %05d", random.IntN(100_000)), fmt.Sprintf("Date %02d/%02d/20%02d", 1+random.IntN(28), 1+random.IntN(12), 10+random.IntN(20))}
	for range 12 {
		switch random.IntN(3) {
		case 0:
			lines = append(lines, strings.Join([]string{one(), one(), one(), one(), one()}, " "))
		case 1:
			lines = append(lines, fmt.Sprintf("%d x %s %s %d.%02d", 1+random.IntN(20), one(), one(), random.IntN(500), random.IntN(100)))
		default:
			lines = append(lines, fmt.Sprintf("%s: %s %d", strings.ToUpper(one()[:1])+one(), one(), random.IntN(10_000)))
		}
	}
	return append(lines, fmt.Sprintf("TOTAL %d.%02d", random.IntN(2000), random.IntN(100)))
}

// TestBoxes draws pages of text, takes photographs of them, and compares the box of each word that was found with
// where it was drawn: turned back, blurred and packed, hardly one of a hundred is off by more than 3 pixels. The hard
// edge of a shadow leaves a dark band, which an engine takes for a part of the letters beside it: boxes there are higher
// than their lines.
func TestBoxes(t *testing.T) {
	testenv.Lengthy(t)
	e := engine(t)
	for _, shot := range shots {
		boxes, far := 0, 0
		worst := 0.0
		for seed := range uint64(drawnPages) {
			paper, err := photo.Print(linesOf(rand.New(rand.NewPCG(seed, 7))), float64(20+4*(seed%4)), seed%2 == 0)
			if err != nil {
				t.Fatal(err)
			}
			taken, words, err := paper.Take(shot.Shot, seed)
			if err != nil {
				t.Fatal(err)
			}
			d, err := registry(t, e, picture.Config{}).Parse(t.Context(), document.Input{Content: bytes.NewReader(taken)})
			if err != nil {
				t.Fatal(err)
			}

			for _, part := range d.Layout {
				text := d.Text[part.Start:part.End]
				off, ok := offBy(part.Box, text, words)
				if !ok {
					continue
				}
				boxes++
				if worst = max(worst, off); off > mostOff {
					far++
					t.Logf("%s, page %d: %q is off by %.1f pixels, at %v", shot.name, seed, text, off, part.Box)
				}
			}
		}
		t.Logf("%-13s of %d boxes %d are farther away than %d pixels, the worst %.1f", shot.name, boxes, far, mostOff, worst)
		most := boxes / 100
		if shot.Shadow > 0 {
			most = boxes / 4
		}
		if far > most || boxes < 40*drawnPages {
			t.Errorf("%s: %d of %d boxes are farther away than %d pixels", shot.name, far, boxes, mostOff)
		}
	}
}

// offBy returns by how many pixels the edges of a box differ at most from those of the word that it is of: the
// nearest with its text. A box is as wide as its word. It is as high as that, or as its line, as a marker would cover it.
func offBy(box mapreduce.Box, text string, words []photo.Word) (off float64, ok bool) {
	const elsewhere = 25 // pixels between the middles of words that are not the same
	nearest := math.Inf(1)
	for _, w := range words {
		left, right := float64(w.Ink.Min.X), float64(w.Ink.Max.X)
		top, bottom := float64(w.Mark.Min.Y), float64(w.Mark.Max.Y)
		far := math.Hypot((box.Left+box.Right-left-right)/2, (box.Top+box.Bottom-top-bottom)/2)
		if w.Text != text || far >= min(nearest, elsewhere) {
			continue
		}
		nearest = far
		off = max(math.Abs(box.Left-left), math.Abs(box.Right-right), top-box.Top, box.Top-float64(w.Ink.Min.Y), box.Bottom-bottom, float64(w.Ink.Max.Y)-box.Bottom)
	}
	return off, !math.IsInf(nearest, 1)
}
