package recognise_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/document/internal/photo"
	"github.com/coditect/mapreduce/internal/document/recognise"
)

// lines are those of a receipt.
var lines = []string{
	"The Corner Shop", "12 High Street, Oxford", "Date: 04/03/2024 10:30", "Bread 2 x 1.75      3.50", "Milk 1.20",
	"Cheese, mature     6.40", "Subtotal 11.10", "Tax included 0.85", "Total 11.10", "Thank you, and come again soon.",
}

// photographed returns a photograph of the lines.
func photographed(t testing.TB, shot photo.Shot) (*image.Gray, []photo.Word) {
	t.Helper()
	paper, err := photo.Print(lines, 28, false)
	if err != nil {
		t.Fatal(err)
	}
	shot.Quality = 90
	taken, words, err := paper.Take(shot, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := jpeg.Decode(strings.NewReader(string(taken)))
	if err != nil {
		t.Fatal(err)
	}
	return m.(*image.Gray), words //nolint:forcetypeassert // it has no colours
}

// A witness is an engine that keeps the page that it sees, and says that each dark row is a word.
type witness struct{ page *image.Gray }

func (*witness) Name() string    { return "a test" }
func (*witness) Missing() string { return "" }

func (w *witness) Words(_ context.Context, page recognise.Page) ([]recognise.Word, error) {
	w.page = page.Picture
	return nil, nil
}

// TestSkew finds by how much a photograph is turned, and makes its lines level.
func TestSkew(t *testing.T) {
	for _, degrees := range []float64{-18, -7, -1, 0, 0.2, 2.5, 12, 19} {
		t.Run(fmt.Sprint(degrees), func(t *testing.T) {
			m, _ := photographed(t, photo.Shot{Degrees: degrees, Noise: 3})
			if got := recognise.Skew(m); math.Abs(got-degrees) > 0.2 && !(math.Abs(degrees) < 0.4 && got == 0) {
				t.Errorf("got %v", got)
			}
		})
	}
	if got := recognise.Skew(image.NewGray(image.Rect(0, 0, 3, 2000))); got != 0 {
		t.Errorf("a page without lines runs down by %v", got)
	}
}

// TestSkewOfLongReceipts: a page of many lines, whose letters are specked as cheap printers leave them, is level.
// All of its ink counts: of some of it, chosen as often in each row, slanting lines seem to stand out.
func TestSkewOfLongReceipts(t *testing.T) {
	var all []string
	for range 5 {
		all = append(all, lines...)
	}
	paper, err := photo.Print(all, 26, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, shot := range []photo.Shot{{Degrees: 0.5, Noise: 30, Quality: 60}, {Degrees: -0.5, Noise: 60, Quality: 60}} {
		taken, _, err := paper.Take(shot, 1)
		if err != nil {
			t.Fatal(err)
		}
		m, err := jpeg.Decode(bytes.NewReader(taken))
		if err != nil {
			t.Fatal(err)
		}
		if got := recognise.Skew(m.(*image.Gray)); math.Abs(got-shot.Degrees) > 0.2 { //nolint:forcetypeassert // it has no colours
			t.Errorf("%v: got %v", shot, got)
		}
	}
}

// TestPlace: what is found in a straightened page is where it was in the photograph.
func TestPlace(t *testing.T) {
	e := installed(t)
	m, words := photographed(t, photo.Shot{Degrees: 9, Noise: 3})
	found, err := recognise.Read(t.Context(), e, recognise.Page{Picture: m})
	if err != nil {
		t.Fatal(err)
	}
	near := 0
	for _, w := range words {
		for _, got := range found.Words {
			b := found.Place(got.Box)
			x, y := (b.Left+b.Right-float64(w.Ink.Min.X+w.Ink.Max.X))/2, (b.Top+b.Bottom-float64(w.Ink.Min.Y+w.Ink.Max.Y))/2
			if got.Text == w.Text && math.Abs(x) <= 3 && math.Abs(y) <= 3 {
				near++
				break
			}
		}
	}
	if near < len(words)*9/10 {
		t.Errorf("%d of %d words are where they are: %q", near, len(words), textOf(found.Words))
	}
}

// TestPrepared leaves printed pages alone, makes shadowed paper white, and shrinks what is very large.
func TestPrepared(t *testing.T) {
	plain, _ := photographed(t, photo.Shot{})
	dark, _ := photographed(t, photo.Shot{Shadow: 0.7})
	large := image.NewGray(image.Rect(0, 0, 9000, 4000))
	for _, test := range []struct {
		name string
		page *image.Gray
		want func(got *image.Gray) bool
	}{
		{"printed", plain, func(got *image.Gray) bool { return got == plain }},
		{"shadowed", dark, func(got *image.Gray) bool {
			corner := got.GrayAt(got.Rect.Dx()-5, got.Rect.Dy()-5).Y
			return dark.GrayAt(dark.Rect.Dx()-5, dark.Rect.Dy()-5).Y < 100 && corner > 230
		}},
		{"large", large, func(got *image.Gray) bool { return got.Rect.Size() == image.Pt(4500, 2000) }},
		{"one pixel", image.NewGray(image.Rect(0, 0, 1, 1)), func(got *image.Gray) bool { return got.Rect.Size() == image.Pt(1, 1) }},
		{"a line", image.NewGray(image.Rect(0, 0, 5000, 1)), func(got *image.Gray) bool { return got.Rect.Size() == image.Pt(5000, 1) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := new(witness)
			if _, err := recognise.Read(t.Context(), w, recognise.Page{Picture: test.page}); err != nil {
				t.Fatal(err)
			}
			if !test.want(w.page) {
				t.Errorf("the engine sees %v", w.page.Rect)
			}
		})
	}
}

// TestPrepareEnds stops straightening when nobody waits for it.
func TestPrepareEnds(t *testing.T) {
	m, _ := photographed(t, photo.Shot{Degrees: 9})
	cause := errors.New("the job was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := recognise.Read(ctx, new(witness), recognise.Page{Picture: m}); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

// BenchmarkPrepare straightens a photograph of a page of 8 million pixels.
func BenchmarkPrepare(b *testing.B) {
	m, _ := photographed(b, photo.Shot{Degrees: 5, Shadow: 0.5})
	page := image.NewGray(image.Rect(0, 0, 2500, 3300))
	for y := range page.Rect.Dy() {
		for x := range page.Rect.Dx() {
			page.Pix[y*page.Stride+x] = m.Pix[y%m.Rect.Dy()*m.Stride+x%m.Rect.Dx()]
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := recognise.Read(b.Context(), new(witness), recognise.Page{Picture: page}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTesseract reads a photograph of a receipt, with all that is done to it before.
func BenchmarkTesseract(b *testing.B) {
	e := installed(b)
	m, _ := photographed(b, photo.Shot{Degrees: 3, Shadow: 0.4, Noise: 3})
	for b.Loop() {
		if _, err := recognise.Read(b.Context(), e, recognise.Page{Picture: m}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
}

// TestPositive: a page with light letters on dark paper comes to an engine as one with dark letters on light paper;
// other pages, also in a deep shadow, are not turned round.
func TestPositive(t *testing.T) {
	for name, shot := range map[string]photo.Shot{"plain": {Noise: 3}, "deep shadow": {Shadow: 0.7, Noise: 3}, "blurred": {Blur: 1.6, Degrees: 3}} {
		m, _ := photographed(t, shot)
		if got := recognise.Positive(m); got != m {
			t.Errorf("%s: a page with dark letters was turned round", name)
		}

		negative, want := image.NewGray(m.Rect), image.NewGray(m.Rect)
		for y := range m.Rect.Dy() {
			for x := range m.Rect.Dx() {
				want.SetGray(x, y, m.GrayAt(x, y))
				negative.SetGray(x, y, color.Gray{Y: 255 - m.GrayAt(x, y).Y})
			}
		}
		if shot.Shadow > 0 { // no screen has one
			continue
		}
		if got := recognise.Positive(negative); !bytes.Equal(got.Pix, want.Pix) {
			t.Errorf("%s: a page with light letters stays as it is", name)
		}
	}
}
