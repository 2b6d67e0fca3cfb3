package dashboard_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/dashboard/drawn"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// scanned returns a stub whose document "d" is a picture, with a value at some boxes.
func scanned(t testing.TB, submitted []byte, quote string, boxes ...mapreduce.Box) *stub {
	t.Helper()
	s := newStub("d")
	s.submitted = submitted
	for _, p := range s.parts {
		if p.Citation != nil {
			p.Citation.Quote = quote
			p.Citation.Location = &mapreduce.Location{Page: 1, Recognised: 0.9, Boxes: boxes}
		}
	}
	return s
}

func pngOf(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const pictureQuery = "unit=u&document=d&start=6&end=11"

// drawing stands for the process that draws pages: each has its number as its size.
func drawing(_ context.Context, document []byte, page int) (*drawn.Page, error) {
	if page > 3 {
		return nil, errs.New(errs.NotFound, "there is no page %d", page)
	}
	return &drawn.Page{Width: float64(100 * page), Height: 50, MediaType: "image/png", Data: fmt.Appendf(nil, "page %d of %d bytes", page, len(document))}, nil
}

// A value opens the page that it stands on, with its boxes and its words: a picture as it was submitted,
// and a page of a PDF or TIFF file drawn, if something draws them. Nothing else is sent as a picture.
func TestPicturesOfValues(t *testing.T) {
	box := func(page int) mapreduce.Box {
		return mapreduce.Box{Page: page, Left: 30, Top: 10, Right: 90.25, Bottom: 22}
	}
	page := "/jobs/" + string(jobID) + "/document?" + pictureQuery
	pdf, tiff := []byte("%PDF-1.7\n"), []byte("II*\x00 and so on")
	for name, c := range map[string]struct {
		data    []byte
		boxes   []mapreduce.Box
		draws   bool
		kind    string // of what is sent; empty if nothing is
		shown   bool   // on the page of the document
		summary string // of what is sent
	}{
		"a picture":           {pngOf(t, 300, 200), []mapreduce.Box{box(1)}, false, "image/png", true, ""},
		"a PDF file":          {pdf, []mapreduce.Box{box(2), box(3)}, true, "image/png", true, "page 2 of 9 bytes"},
		"a TIFF file":         {tiff, []mapreduce.Box{box(3)}, true, "image/png", true, "page 3 of 14 bytes"},
		"a page that is none": {tiff, []mapreduce.Box{box(4)}, true, "", true, "there is no page 4"},
		"nobody draws":        {pdf, []mapreduce.Box{box(1)}, false, "", false, "draws no pages"},
		"a page of script":    {[]byte("<!DOCTYPE html><script>alert(1)</script>"), []mapreduce.Box{box(1)}, true, "", false, "no file whose pages are shown"},
		"an SVG":              {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), []mapreduce.Box{box(1)}, true, "", false, "no file whose pages are shown"},
		"text":                {nil, []mapreduce.Box{box(1)}, true, "", false, ""},
		"without a box":       {pngOf(t, 300, 200), nil, true, "image/png", false, ""},
		"page 2 of a picture": {pngOf(t, 300, 200), []mapreduce.Box{box(2)}, true, "", false, "no file whose pages are shown"},
	} {
		server := open(t, scanned(t, c.data, `TOTAL "60.30" <b>`, c.boxes...), func(d *dashboard.Config) {
			if c.draws {
				d.Draw = drawing
			}
		})
		status, body, _ := get(t, server.URL+page)
		if status != http.StatusOK || strings.Contains(body, `id="picture"`) != c.shown {
			t.Errorf("%s: status %d, the picture is shown: %v", name, status, !c.shown)
		}
		if c.shown && !strings.Contains(body, `data-boxes="30.0 10.0 90.2 22.0"`) {
			t.Errorf("%s: its boxes are missing, or those of another page stand there", name)
		}
		number := 1
		if len(c.boxes) > 0 {
			number = c.boxes[0].Page
		}
		if c.shown && !strings.Contains(body, fmt.Sprintf(`alt="Page %d, on which stands: TOTAL &#34;60.30&#34; &lt;b&gt;"`, number)) {
			t.Errorf("%s: its words are missing for those who do not see it", name)
		}

		status, body, header := get(t, fmt.Sprintf("%s/jobs/%s/picture?document=d&page=%d", server.URL, jobID, number))
		if (status == http.StatusOK) != (c.kind != "") || !strings.Contains(body, c.summary) {
			t.Errorf("%s: it is sent with status %d: %q", name, status, body)
		}
		if c.kind == "" {
			continue
		}
		if header.Get("Content-Type") != c.kind || !strings.Contains(header.Get("Content-Security-Policy"), "sandbox") || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: it is sent as %v", name, header)
		}
		if want := map[bool]string{true: fmt.Sprint(100 * number)}[c.summary != ""]; header.Get("Page-Width") != want {
			t.Errorf("%s: its page is %q wide, want %q", name, header.Get("Page-Width"), want)
		}
		if c.summary == "" && body != string(c.data) {
			t.Errorf("%s: it is not sent as it was submitted", name)
		}
	}
}

// Whoever may not read a document is sent no page of it, although others have had it drawn.
func TestObserversSeeNoPage(t *testing.T) {
	drew := 0
	s := scanned(t, []byte("%PDF-1.7\n"), "60.30", mapreduce.Box{Page: 2})
	draw := func(ctx context.Context, document []byte, page int) (*drawn.Page, error) {
		drew++
		return drawing(ctx, document, page)
	}
	hides := &hiding{stub: s}
	server := open(t, s, func(c *dashboard.Config) { c.Jobs, c.Draw = hides, draw })
	path := server.URL + "/jobs/" + string(jobID) + "/picture?document=d&page=2"
	for _, c := range []struct {
		hides  bool
		status int
	}{{true, http.StatusForbidden}, {false, http.StatusOK}, {false, http.StatusOK}, {true, http.StatusForbidden}} {
		hides.on.Store(c.hides)
		status, body, _ := get(t, path)
		if status != c.status || strings.Contains(body, "page 2 of") == c.hides {
			t.Errorf("status %d, want %d: %q", status, c.status, body)
		}
	}
	if drew != 1 {
		t.Errorf("the page was drawn %d times", drew)
	}
}

// A hiding is a service whose caller may read documents or may not.
type hiding struct {
	*stub
	on atomic.Bool
}

func (h *hiding) ReadText(ctx context.Context, job mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, take func([]byte) error) error {
	if h.on.Load() {
		return errObserver
	}
	return h.stub.ReadText(ctx, job, unit, document, take)
}

// The box stands around the passage at every size, and the page begins with it: on a picture, whose boxes
// are in its pixels, and on a page that is drawn, whose boxes are in points.
func TestBoxesAtEverySize(t *testing.T) {
	box := mapreduce.Box{Page: 1, Left: 2400, Top: 1500, Right: 2700, Bottom: 1560}
	for name, c := range map[string]struct {
		data          []byte
		width, height int // of the page, in the unit of the box
	}{
		"a picture":    {pngOf(t, 3000, 2000), 3000, 2000},
		"a drawn page": {[]byte("%PDF-1.7\n"), 3600, 2400},
	} {
		t.Run(name, func(t *testing.T) {
			server := open(t, scanned(t, c.data, "60.30", box), func(d *dashboard.Config) {
				d.Draw = func(context.Context, []byte, int) (*drawn.Page, error) {
					return &drawn.Page{Width: float64(c.width), Height: float64(c.height), MediaType: "image/png", Data: pngOf(t, 900, 600)}, nil
				}
			})
			b := newBrowser(t, server.URL)
			b.open("/jobs/" + string(jobID) + "/document?" + pictureQuery)
			b.await(`document.querySelector("#picture").dataset.state === "shown"`)
			checkSizes(t, b, c.width, c.height)
			b.checkQuiet()
		})
	}
}

// checkSizes makes a picture larger and smaller, and checks that its box stays where it belongs, in sight.
func checkSizes(t *testing.T, b *browser, width, height int) {
	t.Helper()
	place := fmt.Sprintf(`(() => {
		const box = document.querySelector("#picture .box").getBoundingClientRect(), sheet = document.querySelector("#picture img").getBoundingClientRect();
		return [(box.left - sheet.left) / sheet.width * %[1]d, (box.top - sheet.top) / sheet.height * %[2]d, box.width / sheet.width * %[1]d, box.height / sheet.height * %[2]d].map(Math.round).join();
	})()`, width, height)
	const inside = `String((() => {
		const box = document.querySelector("#picture .box").getBoundingClientRect(), frame = document.querySelector("#picture .frame").getBoundingClientRect();
		return box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom;
	})())`
	widths := make(map[string]bool)
	for _, press := range []string{"", "whole", "larger", "larger", "crop", "smaller"} {
		if press != "" {
			b.eval(fmt.Sprintf(`document.querySelector("#picture [data-size=%s]").click(), ""`, press))
		}
		if got := b.eval(place); got != "2400,1500,300,60" {
			t.Errorf("after %q the box stands at %s of the page", press, got)
		}
		if got := b.eval(inside); got != "true" {
			t.Errorf("after %q the passage is not in sight", press)
		}
		widths[b.eval(`String(Math.round(document.querySelector("#picture .sheet").getBoundingClientRect().width))`)] = true
	}
	if len(widths) < 4 {
		t.Errorf("the page had the sizes %v", widths)
	}
}

// A page that cannot be drawn says why, and its text stays.
func TestUndrawnPageSaysWhy(t *testing.T) {
	server := open(t, scanned(t, []byte("%PDF-1.7\n"), "60.30", mapreduce.Box{Page: 4}), func(c *dashboard.Config) { c.Draw = drawing })
	b := newBrowser(t, server.URL)
	b.open("/jobs/" + string(jobID) + "/document?" + pictureQuery)
	b.await(`document.querySelector("#picture [role=status]").textContent.includes("there is no page 4")`)
	if got := b.eval(`document.querySelector("mark.here").textContent`); got != "12.50" {
		t.Errorf("the passage is %q", got)
	}
}

// A paged is a service whose document is a PDF file.
type paged struct{ *reviewed }

func (p paged) ReadText(ctx context.Context, job mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, take func([]byte) error) error {
	if unit == mapreduce.ParseUnit(document) {
		return take([]byte("%PDF-1.7\n"))
	}
	return p.reviewed.ReadText(ctx, job, unit, document, take)
}

// In a review each value is shown on its page, which is drawn once for all values that stand there, and a
// value that stands on no page has its text alone.
func TestReviewShowsPages(t *testing.T) {
	s := newReviewed("plain", 4)
	number := 0
	for _, p := range s.parts {
		if p.Citation == nil {
			continue
		}
		if number++; number < 4 { // the first two on page 1, the third on page 2, the last one on none
			p.Citation.Quote = fmt.Sprint("value ", number)
			p.Citation.Location = &mapreduce.Location{Page: 1, Boxes: []mapreduce.Box{{Page: (number + 1) / 2, Left: float64(10 * number), Right: 50, Bottom: 10}}}
		}
	}
	var drew atomic.Int32
	server := open(t, s.stub, func(c *dashboard.Config) {
		c.Jobs = paged{s}
		c.Draw = func(context.Context, []byte, int) (*drawn.Page, error) {
			drew.Add(1)
			return &drawn.Page{Width: 100, Height: 100, MediaType: "image/png", Data: pngOf(t, 200, 200)}, nil
		}
	})
	b := newBrowser(t, server.URL)
	b.open("/jobs/" + string(jobID) + "/review?sample=20")

	got := make(map[string]string)
	for range 4 {
		b.await(`["shown", "failed", "none"].includes(document.getElementById("picture").dataset.state)`)
		number := b.eval(`document.getElementById("number").textContent`)
		got[number] = b.eval(`(() => {
			const figure = document.getElementById("picture"), image = figure.querySelector("img"), box = figure.querySelector(".box");
			return figure.hidden ? "none" : [image.alt, box.style.left].join();
		})()`)
		b.eval(fmt.Sprintf(pressed, "j") + `, ""`)
	}
	want := map[string]string{
		"#1": "Page 1, on which stands: value 1,10%", "#2": "Page 1, on which stands: value 2,20%", "#3": "Page 2, on which stands: value 3,30%", "#4": "none",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is shown of values (-want +got):\n%s", diff)
	}
	if n := drew.Load(); n != 2 {
		t.Errorf("pages were drawn %d times", n)
	}
	b.checkQuiet()
}
