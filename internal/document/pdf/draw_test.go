package pdf_test

import (
	"bytes"
	"errors"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"math"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/pdf"
)

// darkest returns the darkest brightness, of 65,535, within a box of points of a picture.
func darkest(m image.Image, p document.Picture, left, top, right, bottom float64) uint32 {
	at := func(points, of float64, pixels int) int { return int(math.Round(points / of * float64(pixels))) }
	dark := uint32(0xffff)
	for y := at(top, p.Height, m.Bounds().Dy()); y < at(bottom, p.Height, m.Bounds().Dy()); y++ {
		for x := at(left, p.Width, m.Bounds().Dx()); x < at(right, p.Width, m.Bounds().Dx()); x++ {
			r, g, b, _ := m.At(x, y).RGBA()
			dark = min(dark, (r+g+b)/3)
		}
	}
	return dark
}

// TestDraw: where the box of a word is, its picture is dark; around it, it is white. So it is
// on pages that are turned or cropped.
func TestDraw(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	total := sheet{lines: []line{{100, 700, "Total"}}}
	turned, cropped := total, total
	turned.more, cropped.more = "/Rotate 90", "/CropBox [50 400 550 760]"
	data := makeFile("", total, turned, sheet{}, cropped)
	d := read(t, shared, data)
	var drawn []int
	err := shared.Draw(t.Context(), data, []int{1, 2, 4, 5, 0}, document.Within(1170), func(p document.Picture) error {
		drawn = append(drawn, p.Page)
		m, format, err := image.Decode(bytes.NewReader(p.Data))
		if err != nil {
			return err
		}
		if "image/"+format != p.MediaType || max(m.Bounds().Dx(), m.Bounds().Dy()) > 1170 || len(p.Data) > 50_000 {
			t.Errorf("page %d is %s of %v in %d bytes", p.Page, format, m.Bounds(), len(p.Data))
		}
		at, found := 0, 0
		for range len(drawn) {
			found = strings.Index(d.Text[at:], "Total") + at
			at = found + 1
		}
		b := d.Layout.Locate(found, found+len("Total")).Boxes[0]
		if b.Page != p.Page {
			t.Fatalf("the word is on page %d, want %d", b.Page, p.Page)
		}
		if dark := darkest(m, p, b.Left, b.Top, b.Right, b.Bottom); dark > 0x6000 {
			t.Errorf("page %d has no word in its box: %x", p.Page, dark)
		}
		for _, around := range [][4]float64{{b.Left - 20, b.Top, b.Left - 3, b.Bottom}, {b.Right + 3, b.Top, b.Right + 20, b.Bottom}, {b.Left, b.Top - 20, b.Right, b.Top - 3}, {b.Left, b.Bottom + 3, b.Right, b.Bottom + 20}} {
			if dark := darkest(m, p, around[0], around[1], around[2], around[3]); dark < 0xf000 {
				t.Errorf("page %d has something beside the box of its word: %x in %v", p.Page, dark, around)
			}
		}
		return nil
	})
	if err != nil || len(drawn) != 3 {
		t.Errorf("drew pages %v, and error %v", drawn, err)
	}
	stop := errors.New("enough")
	if err := shared.Draw(t.Context(), data, []int{1}, document.Within(1170), func(document.Picture) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of what takes the pictures", err)
	}
	if err := shared.Draw(t.Context(), []byte("%PDF-1.7 nothing"), []int{1}, document.Within(1170), nil); !errors.As(err, new(*document.RefusedError)) {
		t.Errorf("got %v, want a refusal", err)
	}
	if !shared.CanDraw() || pdf.New(pdf.Config{CacheDir: t.TempDir()}).CanDraw() {
		t.Error("what was compiled can draw, and nothing else")
	}
}

// BenchmarkDrawPages draws pages of text.
func BenchmarkDrawPages(b *testing.B) {
	var text sheet
	for k := range 50 {
		text.lines = append(text.lines, line{50, float64(750 - 14*k), "What stands on a page of running text in a document"})
	}
	data, bytes := makeFile("", text, text, text, text, text), 0
	for b.Loop() {
		err := shared.Draw(b.Context(), data, []int{1, 2, 3, 4, 5}, document.Within(1170), func(p document.Picture) error {
			bytes = len(p.Data)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(5*b.N)/b.Elapsed().Seconds(), "pages/s")
	b.ReportMetric(float64(bytes)/1024, "kB/page")
}
