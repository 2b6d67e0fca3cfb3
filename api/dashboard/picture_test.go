package dashboard_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/dashboard"
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

// A value of a picture opens the picture with its boxes and its words; one of another file does not, and
// nothing but a picture is sent as one.
func TestPicturesOfValues(t *testing.T) {
	box := mapreduce.Box{Page: 1, Left: 30, Top: 10, Right: 90.25, Bottom: 22}
	page := "/jobs/" + string(jobID) + "/document?" + pictureQuery
	for name, c := range map[string]struct {
		data  []byte
		boxes []mapreduce.Box
		shown bool
	}{
		"a picture":          {pngOf(t, 300, 200), []mapreduce.Box{box}, true},
		"a PDF file":         {[]byte("%PDF-1.7\n"), []mapreduce.Box{box}, false},
		"a page of script":   {[]byte("<!DOCTYPE html><script>alert(1)</script>"), []mapreduce.Box{box}, false},
		"an SVG":             {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), []mapreduce.Box{box}, false},
		"text":               {nil, []mapreduce.Box{box}, false},
		"without a box":      {pngOf(t, 300, 200), nil, false},
		"on the second page": {pngOf(t, 300, 200), []mapreduce.Box{{Page: 2}}, true}, // the location says the page, and the boxes may go on to the next
	} {
		server := open(t, scanned(t, c.data, `TOTAL "60.30" <b>`, c.boxes...), nil)
		status, body, _ := get(t, server.URL+page)
		if status != http.StatusOK || strings.Contains(body, `id="picture"`) != c.shown {
			t.Errorf("%s: status %d, the picture is shown: %v", name, status, !c.shown)
		}
		if name == "a picture" && !strings.Contains(body, `data-boxes="30.0 10.0 90.2 22.0"`) {
			t.Errorf("%s: its boxes are missing in %s", name, body)
		}
		if c.shown && !strings.Contains(body, `alt="A picture in which stands: TOTAL &#34;60.30&#34; &lt;b&gt;"`) {
			t.Errorf("%s: its words are missing for those who do not see it", name)
		}

		status, body, header := get(t, server.URL+"/jobs/"+string(jobID)+"/picture?document=d")
		isPicture := bytes.HasPrefix(c.data, []byte("\x89PNG"))
		if (status == http.StatusOK) != isPicture {
			t.Errorf("%s: it is sent with status %d", name, status)
		}
		if isPicture && (body != string(c.data) || header.Get("Content-Type") != "image/png" || !strings.Contains(header.Get("Content-Security-Policy"), "sandbox") || header.Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("%s: it is sent as %v", name, header)
		}
	}
}

// The box stands around the passage at every size, and the page begins with it.
func TestBoxesAtEverySize(t *testing.T) {
	s := scanned(t, pngOf(t, 3000, 2000), "60.30", mapreduce.Box{Page: 1, Left: 2400, Top: 1500, Right: 2700, Bottom: 1560})
	server := open(t, s, func(*dashboard.Config) {})
	b := newBrowser(t, server.URL)
	b.open("/jobs/" + string(jobID) + "/document?" + pictureQuery)
	b.await(`document.querySelector("#picture .box")`)

	const place = `(() => {
		const box = document.querySelector("#picture .box").getBoundingClientRect(), sheet = document.querySelector("#picture img").getBoundingClientRect();
		return [(box.left - sheet.left) / sheet.width * 3000, (box.top - sheet.top) / sheet.height * 2000, box.width / sheet.width * 3000, box.height / sheet.height * 2000].map(Math.round).join();
	})()`
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
			t.Errorf("after %q the box stands at %s of the picture", press, got)
		}
		if got := b.eval(inside); got != "true" {
			t.Errorf("after %q the passage is not in sight", press)
		}
		widths[b.eval(`String(Math.round(document.querySelector("#picture .sheet").getBoundingClientRect().width))`)] = true
	}
	if len(widths) < 4 {
		t.Errorf("the picture had the sizes %v", widths)
	}
	b.checkQuiet()
}
