package pdf_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/document/pdf"
	"github.com/coditect/mapreduce/internal/document/recognise"
)

// A spotter is an engine that reads black rectangles of a picture as one word.
type spotter struct{ seen int }

func (*spotter) Name() string    { return "a test" }
func (*spotter) Missing() string { return "" }

func (s *spotter) Words(_ context.Context, page recognise.Page) ([]recognise.Word, error) {
	const thick = 30

	s.seen++
	box, m := image.Rectangle{}, page.Picture
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			// Strokes of letters are black, too, and thin.
			if isBlack(m, x, y) && isBlack(m, x+thick, y) && isBlack(m, x, y+thick) && isBlack(m, x+thick, y+thick) {
				box = box.Union(image.Rect(x, y, x+thick, y+thick))
			}
		}
	}
	at := recognise.Box{Left: float64(box.Min.X), Top: float64(box.Min.Y), Right: float64(box.Max.X), Bottom: float64(box.Max.Y)}
	return []recognise.Word{{Text: "Spot", Box: at, Sure: 0.7}}, nil
}

func isBlack(m *image.Gray, x, y int) bool {
	return image.Pt(x, y).In(m.Rect) && m.GrayAt(x, y).Y < 20
}

// scanned returns a file of one page with lines, over a grey picture with a black spot that covers a
// share of the page: the spot is in the middle of the picture, a tenth of it wide and high.
func scanned(share float64, lines ...line) []byte {
	const side = 100
	var grey bytes.Buffer
	for y := range side {
		for x := range side {
			shade := byte(200)
			if x >= 45 && x < 55 && y >= 45 && y < 55 {
				shade = 0
			}
			grey.WriteByte(shade)
		}
	}

	m := new(maker)
	root := m.add("<< /Type /Catalog /Pages 2 0 R >>")
	m.add("<< /Type /Pages /Count 1 /Kids [3 0 R] >>")
	m.add("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F1 6 0 R >> /XObject << /X 5 0 R >> >> >>")
	c := fmt.Sprintf("q 600 0 0 %v 0 0 cm /X Do Q\n", 800*share) + content(lines)
	m.add(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(c), c))
	m.add(fmt.Sprintf("<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8 /Length %d >>\nstream\n%s\nendstream",
		side, side, grey.Len(), grey.String()))
	m.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	return m.file(root)
}

// TestMixedPages reads pictures of pages that have text as well, if they are large enough and the text
// is not that of the picture.
func TestMixedPages(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	stamp := line{40, 780, "Received 4 March"}
	var whole []line
	for y := 20.0; y < 780; y += 14 {
		whole = append(whole, line{30, y, strings.Repeat("the text of all of the scan ", 4)})
	}
	for _, test := range []struct {
		name     string
		share    float64
		pictures float64
		lines    []line
		want     bool
	}{
		{"a scan with a stamp", 1, 0, []line{stamp}, true},
		{"half of the page", 0.6, 0, []line{stamp}, true},
		{"a logo", 0.1, 0, []line{stamp}, false},
		{"a logo, of all pictures", 0.1, 0.01, []line{stamp}, true},
		{"no pictures", 1, 2, []line{stamp}, false},
		{"a searchable scan", 1, 0, whole, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine := new(spotter)
			r := pdf.New(pdf.Config{OCR: engine, Pictures: test.pictures})
			defer func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}()
			d := read(t, r, scanned(test.share, test.lines...))
			at := strings.Index(d.Text, "Spot")
			if (at >= 0) != test.want || (engine.seen > 0) != test.want || !strings.Contains(d.Text, strings.TrimSpace(test.lines[0].text)) {
				t.Fatalf("got %.80q after %d pictures", d.Text, engine.seen)
			}
			if !test.want {
				return
			}

			if len(d.Notes) != 1 || !strings.HasPrefix(d.Notes[0], "pictures on 1 of 1 page were read by OCR beside their text, page 1 first, with a confidence of 0.70") {
				t.Errorf("notes %q", d.Notes)
			}
			// The spot is in the middle of the picture, which is at the bottom of the page.
			b := d.Layout.Locate(at, at+4).Boxes[0]
			if x, y := (b.Left+b.Right)/2, (b.Top+b.Bottom)/2; x < 298 || x > 302 || y < 800-400*test.share-3 || y > 800-400*test.share+3 {
				t.Errorf("the spot is at %v", b)
			}
		})
	}
}
