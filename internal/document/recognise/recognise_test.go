package recognise_test

import (
	"context"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/document/recognise"
)

// printed returns a page with lines of a font of a height, and the boxes of the ink of each line.
func printed(t testing.TB, size float64, lines ...string) (*image.Gray, []image.Rectangle) {
	t.Helper()
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		t.Fatal(err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		t.Fatal(err)
	}

	step := int(1.6 * size)
	page := image.NewGray(image.Rect(0, 0, int(30*size), step*(len(lines)+2)))
	draw.Draw(page, page.Rect, image.White, image.Point{}, draw.Src)
	var ink []image.Rectangle
	for i, line := range lines {
		pen := fixed.P(int(2*size), step*(i+2))
		d := font.Drawer{Dst: page, Src: image.Black, Face: face, Dot: pen}
		bounds, _ := d.BoundString(line)
		ink = append(ink, image.Rect(bounds.Min.X.Floor(), bounds.Min.Y.Floor(), bounds.Max.X.Ceil(), bounds.Max.Y.Ceil()))
		d.DrawString(line)
	}
	return page, ink
}

// installed returns Tesseract, or skips the test.
func installed(t testing.TB) *recognise.Tesseract {
	t.Helper()
	e := recognise.NewTesseract("")
	switch why := e.Missing(); {
	case why != "" && os.Getenv("CODITECT_TEST_OCR") == "require":
		t.Fatal(why)
	case why != "":
		t.Skip(why)
	}
	return e
}

// textOf returns the words of a page in lines.
func textOf(words []recognise.Word) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && w.Line != words[i-1].Line:
			b.WriteByte('\n')
		case i > 0:
			b.WriteByte(' ')
		}
		b.WriteString(w.Text)
	}
	return b.String()
}

// TestTesseract reads a page that is upright, and one that lies on each of its sides, with the boxes
// of the page as it was given.
func TestTesseract(t *testing.T) {
	e := installed(t)
	lines := []string{"The quick brown fox jumps over", "the lazy dog, and pays 12.50", "for it on Monday, March 4th", "in the shop of his brother."}
	page, ink := printed(t, 32, lines...)
	for quarters := range 4 {
		turned := recognise.Turn(page, quarters)
		found, err := recognise.Read(t.Context(), e, recognise.Page{Picture: turned})
		if err != nil {
			t.Fatal(err)
		}
		words := found.Words
		if got, want := textOf(words), strings.Join(lines, "\n"); got != want {
			t.Errorf("turned by %d: got %q, want %q", quarters, got, want)
			continue
		}
		if sure := recognise.Sure(words); sure < 0.8 || sure > 1 {
			t.Errorf("turned by %d: it is sure by %v", quarters, sure)
		}

		// The words of a line together cover its ink, within 3 pixels.
		for i, want := range ink {
			var got recognise.Box
			for _, w := range words {
				if w.Line == words[0].Line+i {
					got = unite(got, found.Place(w.Box))
				}
			}
			if want := turn(want, quarters, page.Rect.Size()); !near(got, want, 3) {
				t.Errorf("turned by %d, line %d: %v, want %v", quarters, i, got, want)
			}
		}
	}
}

func unite(a, b recognise.Box) recognise.Box {
	if a == (recognise.Box{}) {
		return b
	}
	return recognise.Box{Left: min(a.Left, b.Left), Top: min(a.Top, b.Top), Right: max(a.Right, b.Right), Bottom: max(a.Bottom, b.Bottom)}
}

// turn returns where a rectangle of a page of a size lies that is turned clockwise by quarters.
func turn(r image.Rectangle, quarters int, size image.Point) recognise.Box {
	for range quarters {
		r = image.Rect(size.Y-r.Max.Y, r.Min.X, size.Y-r.Min.Y, r.Max.X)
		size = image.Pt(size.Y, size.X)
	}
	return recognise.Box{Left: float64(r.Min.X), Top: float64(r.Min.Y), Right: float64(r.Max.X), Bottom: float64(r.Max.Y)}
}

func near(a, b recognise.Box, by float64) bool {
	for _, d := range []float64{a.Left - b.Left, a.Top - b.Top, a.Right - b.Right, a.Bottom - b.Bottom} {
		if d > by || d < -by {
			return false
		}
	}
	return true
}

// TestFewWords reads a picture of one number, in which no column can be seen.
func TestFewWords(t *testing.T) {
	e := installed(t)
	page, _ := printed(t, 20, "779")
	found, err := recognise.Read(t.Context(), e, recognise.Page{Picture: page})
	if err != nil {
		t.Fatal(err)
	}
	if got := textOf(found.Words); got != "779" {
		t.Errorf("got %q", got)
	}
}

// TestNoWords finds no text in pictures of which an engine makes up words.
func TestNoWords(t *testing.T) {
	e := installed(t)
	random := rand.New(rand.NewPCG(1, 2))
	noise := image.NewGray(image.Rect(0, 0, 300, 200))
	for i := range noise.Pix {
		noise.Pix[i] = uint8(random.IntN(256))
	}
	for name, m := range map[string]*image.Gray{"noise": noise, "black": image.NewGray(image.Rect(0, 0, 300, 200)), "a pixel": image.NewGray(image.Rect(0, 0, 1, 1))} {
		found, err := recognise.Read(t.Context(), e, recognise.Page{Picture: m})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if sure := recognise.Sure(found.Words); sure >= 0.5 {
			t.Errorf("%s: it is sure of %q by %v", name, textOf(found.Words), sure)
		}
	}
}

// TestLanguages names the language of which there is no data, and the package that has it.
func TestLanguages(t *testing.T) {
	installed(t)
	if err := recognise.NewTesseract("eng").CheckLanguages(t.Context()); err != nil {
		t.Error(err)
	}
	err := recognise.NewTesseract("eng+xx_sim").CheckLanguages(t.Context())
	if err == nil || !strings.Contains(err.Error(), `no data of the language "xx_sim"`) || !strings.Contains(err.Error(), "apt install tesseract-ocr-xx-sim") {
		t.Errorf("got %v", err)
	}
	if err := recognise.NewTesseract("osd").CheckLanguages(t.Context()); err == nil {
		t.Error("the data of how pages are turned are no language")
	}
}

// TestNotInstalled says what to do.
func TestNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if why := recognise.NewTesseract("").Missing(); runtime.GOOS == "linux" && !strings.Contains(why, "apt install tesseract-ocr") {
		t.Errorf("got %q", why)
	}
}

// TestCommand has a program write a table, a text, and nothing.
func TestCommand(t *testing.T) {
	page := recognise.Page{Picture: image.NewGray(image.Rect(0, 0, 100, 60))}
	const head = `level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n`
	for _, test := range []struct {
		name, script string
		want         []recognise.Word
		failure      string
	}{
		{
			"a table", "printf '" + head + `1\t1\t0\t0\t0\t0\t0\t0\t100\t60\t-1\t\n5\t1\t1\t1\t1\t1\t5\t6\t20\t10\t91.5\tTotal\n5\t1\t1\t1\t1\t2\t30\t6\t500\t10\t80\t12.50\n5\t1\t2\t1\t1\t1\t5\t40\t20\t10\t300\t\001x\n5\t1\n'`,
			[]recognise.Word{
				{Text: "Total", Box: recognise.Box{Left: 5, Top: 6, Right: 25, Bottom: 16}, Line: 1, Sure: 0.915},
				{Text: "12.50", Box: recognise.Box{Left: 30, Top: 6, Right: 100, Bottom: 16}, Line: 1, Sure: 0.8},
				{Text: "x", Box: recognise.Box{Left: 5, Top: 40, Right: 25, Bottom: 50}, Line: 2, Sure: 1},
			},
			"",
		},
		{
			"a text", `printf 'Total 12.50\n\nThanks\n'`,
			[]recognise.Word{
				{Text: "Total", Box: recognise.Box{Right: 100, Bottom: 20}, Line: 0, Sure: 1},
				{Text: "12.50", Box: recognise.Box{Right: 100, Bottom: 20}, Line: 0, Sure: 1},
				{Text: "Thanks", Box: recognise.Box{Top: 40, Right: 100, Bottom: 60}, Line: 2, Sure: 1},
			},
			"",
		},
		{"nothing", "true", nil, ""},
		{"a PNG", "head -c 4 | tail -c 3", []recognise.Word{{Text: "PNG", Box: recognise.Box{Right: 100, Bottom: 60}, Sure: 1}}, ""},
		{"fails", "echo out of paper >&2; exit 3", nil, "exit status 3: out of paper"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, err := recognise.Read(t.Context(), recognise.NewCommand([]string{"sh", "-c", test.script}), page)
			var got []recognise.Word
			if err == nil {
				got = found.Words
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("words (-want +got):\n%s", diff)
			}
			if said := ""; err != nil {
				if said = err.Error(); said != test.failure {
					t.Errorf("got the error %q, want %q", said, test.failure)
				}
			} else if test.failure != "" {
				t.Errorf("no error, want %q", test.failure)
			}
		})
	}
}

// TestCertainty: marks make no text less sure, and no word that was recognised is like one that was not.
func TestCertainty(t *testing.T) {
	for _, test := range []struct {
		word recognise.Word
		want float64
	}{{recognise.Word{Text: "12.50", Sure: 0.4}, 0.4}, {recognise.Word{Text: "été", Sure: 0}, 0.01}, {recognise.Word{Text: ":", Sure: 0.1}, 1}, {recognise.Word{Text: "—", Sure: 0}, 1}} {
		if got := test.word.Certainty(); got != test.want {
			t.Errorf("%+v: got %v, want %v", test.word, got, test.want)
		}
	}
}

// TestWaits runs a program within the wait of the page, and ends it with its context.
func TestWaits(t *testing.T) {
	waits := 0
	page := recognise.Page{Picture: image.NewGray(image.Rect(0, 0, 10, 10)), Wait: func(wait func() error) error { waits++; return wait() }}
	cause := errors.New("the job was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := recognise.Read(ctx, recognise.NewCommand([]string{"sleep", "600"}), page)
	if !errors.Is(err, cause) || waits != 1 {
		t.Errorf("got %v after %d waits, want %v after one", err, waits, cause)
	}
}

// TestTurn: a picture is itself once it was turned all around, and each pixel keeps its shade.
func TestTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(1, 9).Draw(t, "width"), rapid.IntRange(1, 9).Draw(t, "height")
		m := image.NewGray(image.Rect(0, 0, width, height))
		for i := range m.Pix {
			m.Pix[i] = rapid.Uint8().Draw(t, "shade")
		}
		a, b := rapid.IntRange(0, 3).Draw(t, "first"), rapid.IntRange(0, 3).Draw(t, "second")
		got, want := recognise.Turn(recognise.Turn(m, a), b), recognise.Turn(m, a+b)
		if !got.Rect.Eq(want.Rect) || string(got.Pix) != string(want.Pix) {
			t.Errorf("turned by %d and %d: %v %v, want %v %v", a, b, got.Rect, got.Pix, want.Rect, want.Pix)
		}
		if once := recognise.Turn(m, 1); once.GrayAt(height-1, 0) != m.GrayAt(0, 0) {
			t.Errorf("turned clockwise the first pixel is %v, want %v", once.GrayAt(height-1, 0), color.Gray{Y: m.Pix[0]})
		}
	})
}

// FuzzTable reads what is like the table that a program writes: each word has text and stands within the page.
func FuzzTable(f *testing.F) {
	f.Add("level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n5\t1\t1\t1\t1\t1\t5\t6\t20\t10\t91.5\tTotal\n")
	f.Add("level\tblock_num\tpar_num\tline_num\tleft\ttop\twidth\theight\tconf\ttext\n5\t1\t1\t1\tNaN\t-6\t1e300\t10\tInf\tTotal\n")
	f.Add("plain\ntext\x00\xff\n")
	f.Fuzz(func(t *testing.T, out string) {
		for _, w := range recognise.Parse(out, image.Pt(100, 60)) {
			b := w.Box
			if w.Text == "" || !(w.Sure >= 0 && w.Sure <= 1) || !(b.Left >= 0 && b.Top >= 0 && b.Right > b.Left && b.Bottom > b.Top && b.Right <= 100 && b.Bottom <= 60) {
				t.Errorf("the word %+v of %q", w, out)
			}
		}
	})
}
