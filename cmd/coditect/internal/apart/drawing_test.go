package apart_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/tiff"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/cmd/coditect/internal/apart"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
)

// TestMain runs the tests, or is a process that draws pages. That one refuses to see a key.
func TestMain(m *testing.M) {
	if os.Getenv(apart.Variable) != apart.Pages {
		os.Exit(m.Run())
	}
	if os.Getenv("SECRET_KEY") != "" {
		os.Exit(3)
	}
	if err := apart.DrawPages(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var allowed = runners.Drawing{Bytes: 64 << 20, Memory: 64 << 20, Time: 10 * time.Second, Pages: 100}

func newDrawer(t *testing.T, allowed runners.Drawing) *apart.Drawer {
	t.Helper()
	d := apart.Command{Path: os.Args[0], Env: append(os.Environ(), "SECRET_KEY=1")}.Drawer(allowed)
	t.Cleanup(d.Close)
	return d
}

// onePage is a PDF file of a page of 300 by 200 points.
const onePage = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj 3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj\ntrailer<</Root 1 0 R>>\n"

func tiffOf(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tiff.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Pages are drawn with their size, in points or pixels; what is none says so, and the next page is drawn
// as if nothing had been.
func TestDrawer(t *testing.T) {
	d := newDrawer(t, allowed)
	for _, c := range []struct {
		name          string
		data          []byte
		page          int
		width, height float64
		kind          errs.Kind
		says          string
	}{
		{name: "a PDF file", data: []byte(onePage), page: 1, width: 300, height: 200},
		{name: "a page that is not there", data: []byte(onePage), page: 2, kind: errs.NotFound, says: "no page 2"},
		{name: "a TIFF file", data: tiffOf(t, 90, 60), page: 1, width: 90, height: 60},
		{name: "a TIFF file that is cut off", data: tiffOf(t, 90, 60)[:9], page: 1, kind: errs.Precondition, says: "cut off"},
		{name: "text", data: []byte("total 12.50"), page: 1, kind: errs.NotFound, says: "no page 1"},
		{name: "nothing", data: nil, page: 1, kind: errs.NotFound, says: "no page 1"},
		{name: "a PDF file that is none", data: []byte("%PDF-1.4\nand nothing"), page: 1, kind: errs.Precondition, says: "page 1 cannot be drawn"},
		{name: "the first one again", data: []byte(onePage), page: 1, width: 300, height: 200},
	} {
		p, err := d.Draw(t.Context(), c.data, c.page)
		if err != nil {
			if errs.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		config, _, err := image.DecodeConfig(bytes.NewReader(p.Data))
		if err != nil || c.says != "" || p.Width != c.width || p.Height != c.height || math.Abs(float64(config.Width)*c.height-float64(config.Height)*c.width) > c.width {
			t.Errorf("%s: %v by %v, %v pixels, %v", c.name, p.Width, p.Height, config, err)
		}
	}
}

// A process that is killed while it is idle, or that whoever waits for has left, is followed by another.
func TestDrawerGoesOn(t *testing.T) {
	d := newDrawer(t, allowed)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Draw(ctx, []byte(onePage), 1); err == nil {
		t.Error("nobody waited, and it was drawn")
	}
	if _, err := d.Draw(t.Context(), []byte(onePage), 1); err != nil {
		t.Error(err)
	}
}

// Hostile files end in an error that is the file's, within their bounds, and never in the end of what
// draws others.
func TestDrawerBounds(t *testing.T) {
	narrow := allowed
	narrow.Memory = 32 << 20
	d := newDrawer(t, narrow)
	for name, data := range map[string][]byte{
		"a picture larger than memory": tiffOf(t, 9000, 9000),
		"bytes of no meaning":          bytes.Repeat([]byte("%PDF-1.7 obj << /Kids [ "), 40_000),
	} {
		if p, err := d.Draw(t.Context(), data, 1); err == nil {
			t.Errorf("%s: was drawn, %v by %v", name, p.Width, p.Height)
		}
	}
	if _, err := d.Draw(t.Context(), []byte(onePage), 1); err != nil {
		t.Error(err)
	}
}
