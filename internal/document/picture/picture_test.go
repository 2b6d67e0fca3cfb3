package picture_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/picture"
	"github.com/coditect/mapreduce/internal/document/recognise"
)

// A spotter is an engine that reads dark rectangles: each is a word, which says where it is.
type spotter struct {
	missing string
	err     error
	sure    float64       // of each word. 0 is 0.8
	pages   []*image.Gray // that it has seen
}

func (*spotter) Name() string      { return "a test" }
func (s *spotter) Missing() string { return s.missing }

func (s *spotter) Words(_ context.Context, page recognise.Page) ([]recognise.Word, error) {
	s.pages = append(s.pages, page.Picture)
	box, m := image.Rectangle{}, page.Picture
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			if m.GrayAt(x, y).Y < 100 {
				box = box.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	if box.Empty() || s.err != nil {
		return nil, s.err
	}
	word := recognise.Word{Text: fmt.Sprintf("at%dx%d", box.Min.X, box.Min.Y), Sure: cmp.Or(s.sure, 0.8)}
	word.Box = recognise.Box{Left: float64(box.Min.X), Top: float64(box.Min.Y), Right: float64(box.Max.X), Bottom: float64(box.Max.Y)}
	return []recognise.Word{word}, nil
}

// spot is the rectangle of a picture of 60 by 40 pixels.
var spot = image.Rect(5, 3, 25, 12)

// drawn returns a picture with a spot, on paper of a colour.
func drawn(paper color.Color) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, 60, 40))
	for y := range 40 {
		for x := range 60 {
			m.Set(x, y, paper)
			if image.Pt(x, y).In(spot) {
				m.Set(x, y, color.Black)
			}
		}
	}
	return m
}

// must returns what a function writes.
func must(t testing.TB, write func(b *bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// registry returns the formats of pictures, with an engine.
func registry(t testing.TB, e recognise.Engine, c picture.Config) *document.Registry {
	t.Helper()
	c.Engine = e
	r, err := document.NewRegistry(picture.New(c).Formats()...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reasonOf returns why a document was refused.
func reasonOf(t testing.TB, err error) string {
	t.Helper()
	refused := new(document.RefusedError)
	if !errors.As(err, &refused) {
		t.Fatalf("got the error %v, want a refusal", err)
	}
	return refused.Reason
}

// TestFormats reads a picture of each format, whatever its name says, and finds the word where it is.
func TestFormats(t *testing.T) {
	m := drawn(color.White)
	clear := drawn(color.Transparent)
	grey := image.NewGray(m.Rect)
	paletted := image.NewPaletted(m.Rect, color.Palette{color.Transparent, color.Black, color.White})
	for y := range 40 {
		for x := range 60 {
			grey.Set(x, y, m.At(x, y))
			paletted.Set(x, y, clear.At(x, y))
		}
	}
	deep := image.NewNRGBA64(m.Rect)
	for y := range 40 {
		for x := range 60 {
			deep.Set(x, y, clear.At(x, y))
		}
	}

	for _, test := range []struct {
		name string
		kind document.Kind
		data []byte
	}{
		{"jpeg", "jpeg", must(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, m, &jpeg.Options{Quality: 95}) })},
		{"jpeg of shades", "jpeg", must(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, grey, &jpeg.Options{Quality: 95}) })},
		{"png", "png", must(t, func(b *bytes.Buffer) error { return png.Encode(b, m) })},
		{"png that is clear", "png", must(t, func(b *bytes.Buffer) error { return png.Encode(b, clear) })},
		{"png with a palette", "png", must(t, func(b *bytes.Buffer) error { return png.Encode(b, paletted) })},
		{"png of 16 bits", "png", must(t, func(b *bytes.Buffer) error { return png.Encode(b, deep) })},
		{"tiff", "tiff", must(t, func(b *bytes.Buffer) error { return tiff.Encode(b, m, nil) })},
		{"tiff that is packed", "tiff", must(t, func(b *bytes.Buffer) error { return tiff.Encode(b, grey, &tiff.Options{Compression: tiff.Deflate}) })},
		{"gif", "gif", must(t, func(b *bytes.Buffer) error { return gif.Encode(b, m, nil) })},
		{"bmp", "bmp", must(t, func(b *bytes.Buffer) error { return bmp.Encode(b, m) })},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := registry(t, new(spotter), picture.Config{}).Parse(t.Context(), document.Input{Name: "a.txt", Content: bytes.NewReader(test.data)})
			if err != nil {
				t.Fatal(err)
			}
			if d.Layout.Locate(0, 5).Recognised != 0.8 || d.Kind != test.kind || d.Text != "at5x3\n" || d.Confidence != 0.8 {
				t.Errorf("got %s %q with a confidence of %v", d.Kind, d.Text, d.Confidence)
			}
			want := mapreduce.Box{Page: 1, Left: 5, Top: 3, Right: 25, Bottom: 12}
			if got := d.Layout.Locate(0, 5); len(got.Boxes) != 1 || !near(got.Boxes[0], want, 0.5) || got.Page != 1 {
				t.Errorf("it is at %+v, want %v", got, want)
			}
		})
	}
}

// near reports whether boxes differ by so many pixels at most.
func near(a, b mapreduce.Box, by float64) bool {
	for _, d := range []float64{a.Left - b.Left, a.Top - b.Top, a.Right - b.Right, a.Bottom - b.Bottom} {
		if d > by || d < -by {
			return false
		}
	}
	return a.Page == b.Page
}

// exif returns EXIF data that say how a picture is turned.
func exif(orientation uint16) []byte {
	data := []byte("MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
	binary.BigEndian.PutUint16(data[18:], orientation)
	return data
}

// withExif returns a JPEG with EXIF data.
func withExif(photo, data []byte) []byte {
	body := append([]byte("Exif\x00\x00"), data...)
	head := []byte{0xff, 0xd8, 0xff, 0xe1, byte((len(body) + 2) >> 8), byte(len(body) + 2)}
	return bytes.Join([][]byte{head, body, photo[2:]}, nil)
}

// TestOrientation reads a photograph as a viewer shows it.
func TestOrientation(t *testing.T) {
	photo := must(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, drawn(color.White), &jpeg.Options{Quality: 95}) })
	loop := exif(6)
	binary.BigEndian.PutUint32(loop[22:], 8) // the next directory is this one
	for _, test := range []struct {
		name string
		data []byte
		want string // where the spot of 20 by 9 pixels is
	}{
		{"none", photo, "at5x3"},
		{"1", withExif(photo, exif(1)), "at5x3"},
		{"2", withExif(photo, exif(2)), "at35x3"},
		{"3", withExif(photo, exif(3)), "at35x28"},
		{"4", withExif(photo, exif(4)), "at5x28"},
		{"5", withExif(photo, exif(5)), "at3x5"},
		{"6", withExif(photo, exif(6)), "at28x5"},
		{"7", withExif(photo, exif(7)), "at28x35"},
		{"8", withExif(photo, exif(8)), "at3x35"},
		{"0", withExif(photo, exif(0)), "at5x3"},
		{"9", withExif(photo, exif(9)), "at5x3"},
		{"a loop", withExif(photo, loop), "at28x5"},
		{"cut off", withExif(photo, exif(6)[:15]), "at5x3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := registry(t, new(spotter), picture.Config{}).Parse(t.Context(), document.Input{Content: bytes.NewReader(test.data)})
			if err != nil || d.Text != test.want+"\n" {
				t.Errorf("got %+v, %v, want %q", d, err, test.want)
			}
		})
	}
}

// pagesOf returns a TIFF of pages, of which each may have another directory next: loop names one.
func pagesOf(t testing.TB, pages, loop int) []byte {
	t.Helper()
	one := must(t, func(b *bytes.Buffer) error { return tiff.Encode(b, drawn(color.White), nil) })
	order := binary.LittleEndian
	first := int(order.Uint32(one[4:]))
	count := int(order.Uint16(one[first:]))
	size := 2 + 12*count + 4
	// The directories of all pages share what the first has.
	data := bytes.Clone(one)
	at := make([]int, pages)
	for i := range pages {
		at[i] = len(data)
		data = append(data, one[first:first+size]...)
	}
	order.PutUint32(data[4:], uint32(at[0]))
	for i := range pages {
		next := 0
		switch {
		case i+1 < pages:
			next = at[i+1]
		case loop >= 0:
			next = at[loop]
		}
		order.PutUint32(data[at[i]+size-4:], uint32(next))
	}
	return data
}

// TestPages reads each page of a TIFF once, though its directories run in a circle, and refuses one
// of more pages than are allowed.
func TestPages(t *testing.T) {
	for _, test := range []struct {
		name        string
		pages, loop int
	}{{"three", 3, -1}, {"a circle", 4, 0}, {"itself", 2, 1}} {
		t.Run(test.name, func(t *testing.T) {
			engine := new(spotter)
			d, err := registry(t, engine, picture.Config{}).Parse(t.Context(), document.Input{Content: bytes.NewReader(pagesOf(t, test.pages, test.loop))})
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimPrefix(strings.Repeat("\nat5x3\n", test.pages), "\n"); d.Text != want || len(engine.pages) != test.pages {
				t.Errorf("got %q of %d pages, want %q", d.Text, len(engine.pages), want)
			}
			if at := d.Layout.Locate(len(d.Text)-3, len(d.Text)-1); at.Page != test.pages {
				t.Errorf("the last word is on page %d", at.Page)
			}
		})
	}

	in := document.Input{Content: bytes.NewReader(pagesOf(t, 5, -1)), Limits: document.Limits{Pages: 4}}
	_, err := registry(t, new(spotter), picture.Config{}).Parse(t.Context(), in)
	if got, want := reasonOf(t, err), "more than the 4 pages that are read (--document-pages)"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRefusals says why a picture is not read, and what to do.
func TestRefusals(t *testing.T) {
	whole := must(t, func(b *bytes.Buffer) error { return png.Encode(b, drawn(color.White)) })
	huge := bytes.Clone(whole)
	binary.BigEndian.PutUint32(huge[16:], 1<<30)
	resum(huge)
	for _, test := range []struct {
		name   string
		data   []byte
		engine recognise.Engine
		config picture.Config
		want   string
	}{
		{"nobody reads", whole, nil, picture.Config{}, "a PNG picture, whose text is not to be recognised (--ocr never)"},
		{"not installed", whole, &spotter{missing: "there is no engine: install it"}, picture.Config{}, "a PNG picture, whose text is to be recognised, but there is no engine: install it"},
		{"made up", whole, &spotter{sure: 0.29}, picture.Config{}, "a PNG picture in which a test found no text that it is sure of (0.29): it may be blurred, or"},
		{"fails", whole, &spotter{err: errors.New("it burns")}, picture.Config{}, "a PNG picture, which a test did not read: it burns"},
		{"white", must(t, func(b *bytes.Buffer) error {
			return png.Encode(b, drawn(color.White).SubImage(image.Rect(30, 20, 60, 40)))
		}), new(spotter), picture.Config{}, "a PNG picture in which a test found no text"},
		{"a text", []byte("GIF89a, he said"), new(spotter), picture.Config{}, "of no format that is known"},
		{"cut off", whole[:60], new(spotter), picture.Config{}, "a PNG picture that is damaged, or of a kind that is not read: "},
		{"too many pixels", whole, new(spotter), picture.Config{MaxPixels: 2000}, "a PNG picture of 60 by 40 pixels, more than the 0 million that are read"},
		{"a header alone", huge, new(spotter), picture.Config{}, "a PNG picture of 1073741824 by 40 pixels, more than the 64 million that are read"},
		{"too much memory", whole, new(spotter), picture.Config{MaxMemory: 4000}, "which takes 0 MiB of memory to decode, more than the 0 that are allowed (--document-memory)"},
		{"too many bytes", whole, new(spotter), picture.Config{MaxBytes: 70}, "a PNG picture of more than 70 bytes (--document-bytes)"},
		{"a HEIC", []byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1"), new(spotter), picture.Config{}, "a HEIC or AVIF picture, which is not read (save it as JPEG or PNG), not text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := registry(t, test.engine, test.config).Parse(t.Context(), document.Input{Content: bytes.NewReader(test.data)})
			if got := reasonOf(t, err); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestTime ends the decoding of a picture that takes longer than it may.
func TestTime(t *testing.T) {
	large := must(t, func(b *bytes.Buffer) error { return png.Encode(b, image.NewNRGBA(image.Rect(0, 0, 6000, 5000))) })
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(document.ErrTime)
	r := picture.New(picture.Config{Engine: new(spotter)})
	for _, f := range r.Formats() {
		if f.Kind != "png" {
			continue
		}
		_, err := f.Parse(ctx, document.Input{Content: bytes.NewReader(large), Limits: document.Limits{Time: time.Second}})
		if got := reasonOf(t, err); !strings.Contains(got, "longer than 1s to read (--document-time), up to page 1 of 1") {
			t.Errorf("got %q", got)
		}
	}
}

// TestDraw draws the pages of a picture as a viewer shows them, small enough for a report.
func TestDraw(t *testing.T) {
	large := image.NewGray(image.Rect(0, 0, 3000, 1500))
	for y := range 1500 {
		for x := range 3000 {
			large.SetGray(x, y, color.Gray{Y: 255})
			if x < 300 && y < 300 {
				large.SetGray(x, y, color.Gray{})
			}
		}
	}
	photo := withExif(must(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, large, nil) }), exif(6))
	for _, test := range []struct {
		name          string
		data          []byte
		pages         []int
		drawn         []int
		width, height float64
		size          image.Point
		dark          image.Point // a pixel of the picture that is dark, unlike its counterpart
	}{
		{"a photograph that is turned", photo, []int{1}, []int{1}, 1500, 3000, image.Pt(585, 1170), image.Pt(560, 20)},
		{"pages", pagesOf(t, 3, -1), []int{0, 1, 3, 4}, []int{1, 3}, 60, 40, image.Pt(60, 40), image.Pt(10, 8)},
		{"a damaged one", photo[:2000], []int{1}, nil, 0, 0, image.Point{}, image.Point{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !picture.Is(test.data) {
				t.Fatal("it is no picture")
			}
			var drawn []int
			err := picture.New(picture.Config{}).Draw(t.Context(), test.data, test.pages, document.Within(1170), func(p document.Picture) error {
				drawn = append(drawn, p.Page)
				m, err := jpeg.Decode(bytes.NewReader(p.Data))
				if err != nil {
					return err
				}
				if p.Width != test.width || p.Height != test.height || m.Bounds().Size() != test.size || p.MediaType != "image/jpeg" {
					t.Errorf("got %v by %v as %v, want %v by %v as %v", p.Width, p.Height, m.Bounds().Size(), test.width, test.height, test.size)
				}
				dark, _, _, _ := m.At(test.dark.X, test.dark.Y).RGBA()
				light, _, _, _ := m.At(test.size.X-test.dark.X, test.size.Y-test.dark.Y).RGBA()
				if dark > 0x4000 || light < 0xc000 {
					t.Errorf("the shades are %x and %x", dark, light)
				}
				return nil
			})
			if err != nil || !slices.Equal(drawn, test.drawn) {
				t.Errorf("drew %v, %v, want %v", drawn, err, test.drawn)
			}
		})
	}
	if picture.Is([]byte("%PDF-1.7")) {
		t.Error("a PDF file is no picture")
	}
}
