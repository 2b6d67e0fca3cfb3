package page_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cdproto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coditect/mapreduce/cmd/coditect/internal/page"
)

// A browser is a tab that shows pages, and what it noticed of them.
type browser struct {
	t   testing.TB
	ctx context.Context
	// from is the address that the page has of a server, if it is not a file.
	from string

	mu       sync.Mutex // guards the variables below
	problems []string   // errors on the console, dialogs, requests
}

// newBrowser starts Chromium, or skips the test where there is none.
func newBrowser(t testing.TB) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium is installed")
	}
	// Its profile is in a folder that chromedp makes and removes: processes of Chromium outlive the
	// first one, which is killed, and write there a little longer. A t.TempDir cannot be removed then.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1200, 900))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root with it
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.notice); err != nil { // starts the browser
		t.Fatal(err)
	}
	return b
}

// notice notes what a page must not do: write to the console, open dialogs, ask the
// network.
func (b *browser) notice(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		problem = fmt.Sprintf("console: %s %v", e.Type, e.Args)
	case *runtime.EventExceptionThrown:
		problem = "exception: " + fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *cdp.EventJavascriptDialogOpening:
		problem = "dialog: " + e.Message
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, "file:") && !strings.HasPrefix(url, "data:") && (b.from == "" || url != b.from) {
			problem = "request: " + e.Request.URL
		}
	}
	if problem != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.problems = append(b.problems, problem)
	}
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// open shows a page, and waits until its script has run.
func (b *browser) open(p *page.Page) {
	b.t.Helper()
	b.load(p)
	b.run(chromedp.WaitReady(chromedp.CSS("#sections li")))
}

// load leads the browser to a page.
func (b *browser) load(p *page.Page) {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "report.html")
	f, err := os.Create(path)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := p.Write(f); err != nil {
		b.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.run(chromedp.Navigate((&url.URL{Scheme: "file", Path: path}).String()))
}

// eval returns what an expression is, as text.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	return evaluate[string](b, "String("+expression+")")
}

func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func (b *browser) want(expression, want string) {
	b.t.Helper()
	if got := b.eval(expression); got != want {
		b.t.Errorf("%s is %q, want %q", expression, got, want)
	}
}

// checkQuiet fails if the page did anything that it must not.
func (b *browser) checkQuiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.t.Error(p)
	}
}

// shops returns a page of n records, each with a quote in its document.
func shops(n int) *page.Page {
	p := &page.Page{
		Title: "Shops", Job: "mr_20250101_abcdef", Status: "complete",
		Facts:    []page.Fact{{Name: "cost", Value: "$0.10"}},
		Coverage: []page.Ledger{{Name: "documents", Total: int64(n), Mapped: int64(n)}},
		Levels:   []page.Level{{Name: "map", Units: int64(n), Begin: 0, End: 2, JobSeconds: 3, Busy: 5}},
		Tree:     `<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="10" height="10"/></svg>`,
		Data: page.Data{
			Fields: []string{"company", "total", "note"}, Texts: map[int]string{},
			Conflicts: []page.Conflict{{
				Field: "total", Key: "shop 1", Chosen: "9", Strategy: "vote", Rationale: "two of three say so",
				Candidates: []page.Candidate{{Value: "9", Citations: []int{0}}, {Value: "8"}},
			}},
			Lists: []page.List{{ID: "skipped", Title: "Skipped documents", Columns: []string{"document", "reason"}, Rows: [][]string{{"b.bin", "not text"}}}},
		},
	}
	for i := range n {
		p.Data.Documents = append(p.Data.Documents, fmt.Sprintf("%05d.txt", i))
		text := fmt.Sprintf("Welcome 👋 to\nShop %d of the town\nTOTAL %d\n", i, i%7)
		quote := fmt.Sprintf("Shop %d", i)
		start := int64(len([]rune("Welcome 👋 to\n")))
		if i < 10 {
			p.Data.Texts[i] = text
		}
		p.Data.Citations = append(p.Data.Citations, page.Citation{
			Ref: fmt.Sprintf("REF_%08x", i), Document: i, Start: start, End: start + int64(len(quote)), Quote: quote, Grade: "exact",
			Before: "Welcome 👋 to\n", After: " of the town",
		})
		r := page.Record{
			Sources: []int{i}, Values: map[string]string{"company": quote, "total": fmt.Sprint(i % 7)},
			Citations: map[string][]int{"company": {i}}, Confidence: map[string]float64{"company": 0.9, "total": 0.3},
			Missing: map[string]string{"note": "no label matched"},
		}
		if i%10 == 3 {
			r.Unverified = map[string]string{"note": fmt.Sprintf("invented %d", i)}
		}
		p.Data.Records = append(p.Data.Records, r)
	}
	return p
}

func TestFindSortAndOpen(t *testing.T) {
	b := newBrowser(t)
	b.open(shops(250))
	b.want(`document.querySelectorAll("#table tbody tr").length`, "100")
	b.want(`document.querySelector("#count").textContent`, "250 records.")

	// Search, by keyboard alone.
	b.run(chromedp.KeyEvent("/"), chromedp.KeyEvent("shop 24"))
	b.want(`document.querySelector("#query").value`, "shop 24")
	b.want(`document.querySelector("#count").textContent`, "11 of 250 records.")
	b.run(chromedp.KeyEvent(strings.Repeat(kb.Backspace, 2) + "7"))
	b.want(`[...document.querySelectorAll("#table tbody th")].map((e) => e.textContent).join()`, "8,71,72,73,74,75,76,77,78,79,80")

	// Open the quote of the first value: Tab leads to it, Enter opens it, Escape goes back.
	b.run(chromedp.Focus(chromedp.CSS(`#r8 th button`)), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	b.want(`document.querySelector("#detail").open`, "true")
	b.want(`document.querySelector("#detail mark").textContent`, "Shop 7")
	b.want(`document.querySelector("#detail blockquote").textContent`, "Welcome 👋 to\nShop 7 of the town\nTOTAL 0\n")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.want(`document.querySelector("#detail").open`, "false")
	b.want(`document.activeElement.textContent`, "Shop 7")

	// Numbers are sorted as numbers, and what has none comes last.
	b.run(chromedp.SendKeys(chromedp.CSS("#query"), strings.Repeat(kb.Backspace, 6)))
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#table thead button")[3].click()`))
	b.want(`document.querySelectorAll("#table thead th")[3].getAttribute("aria-sort")`, "ascending")
	b.want(`document.querySelector("#table tbody td:nth-of-type(3)").textContent`, "0")
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#table thead button")[3].click()`))
	b.want(`document.querySelector("#table tbody td:nth-of-type(3)").textContent`, "6")

	// Unverified values stand in a panel of their own, and not beside others.
	b.want(`document.querySelector("#unverified-title").textContent`, "Values that are not verified (25)")
	b.want(`document.querySelector("#table").textContent.includes("invented")`, "false")
	b.want(`document.querySelector("#skipped tbody").textContent`, "b.binnot text")
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#conflicts button.link").click()`))
	b.want(`document.querySelector("#detail mark").textContent`, "Shop 0")
	b.checkQuiet()
}

// TestLargeData checks that a page with much data is small, and shows the same; in a browser
// that cannot unpack it the page says so.
func TestLargeData(t *testing.T) {
	p := shops(4000)
	var whole, packed bytes.Buffer
	if err := json.NewEncoder(&whole).Encode(&p.Data); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(&packed); err != nil {
		t.Fatal(err)
	}
	if packed.Len() > whole.Len()/4 {
		t.Errorf("the page has %d bytes, its data alone %d", packed.Len(), whole.Len())
	}
	b := newBrowser(t)
	b.open(p)
	b.want(`document.querySelector("#count").textContent`, "4,000 records.")
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#r1 td button").click()`))
	b.want(`document.querySelector("#detail mark").textContent`, "Shop 0")
	b.want(`document.querySelector("#detail blockquote").textContent`, "Welcome 👋 to\nShop 0 of the town\nTOTAL 0\n")
	b.checkQuiet()

	old := newBrowser(t)
	old.run(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdproto.Call(ctx, tab, cdp.AddScriptToEvaluateOnNewDocument, cdp.AddScriptToEvaluateOnNewDocumentParams{Source: "delete globalThis.DecompressionStream"})
		return chromedp.Void{}, err
	})
	old.load(p)
	old.want(`document.querySelector("main .note").textContent.startsWith("This browser is too old")`, "true")
	old.checkQuiet()
}

// pictured returns a page whose first quote stands in two lines of a picture.
func pictured(t testing.TB) *page.Page {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, 300, 400))
	for i := range m.Pix {
		m.Pix[i] = 0xff
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	p := shops(3)
	p.Data.Citations[0].Boxes = [][]float64{{2, 60, 80, 180, 92}, {2, 60, 700, 120, 712}}
	p.Data.Pages = []page.DrawnPage{{Document: 0, Page: 2, Width: 600, Height: 800, URL: "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())}}
	return p
}

// TestPictures: the boxes of a quote are marked where they are on the picture of its page,
// on a wide screen and on a phone.
func TestPictures(t *testing.T) {
	b := newBrowser(t)
	for _, width := range []int64{1200, 360} {
		b.run(chromedp.EmulateViewport(width, 800))
		b.open(pictured(t))
		b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#r1 td button").click()`), chromedp.WaitVisible(chromedp.CSS("#detail .page img")))
		for i, z := range [][4]float64{{60, 80, 180, 92}, {60, 700, 120, 712}} {
			b.want(fmt.Sprintf(`(() => {
				const m = document.querySelector("#detail .page img").getBoundingClientRect(), r = document.querySelectorAll("#detail .page i")[%d].getBoundingClientRect();
				const points = [(r.left - m.left), (r.top - m.top), (r.right - m.left), (r.bottom - m.top)].map((v) => v * 600 / m.width);
				return points.map((v, i) => Math.abs(v - [%v, %v, %v, %v][i]) < 3);
			})()`, i, z[0], z[1], z[2], z[3]), "true,true,true,true")
		}
		b.want(`document.querySelector("#detail .page img").alt`, "Page 2 of 00000.txt, with the quote marked")
		b.want(`(() => { const m = document.querySelector("#detail .page img"); return Math.abs(m.clientHeight / m.clientWidth - 4 / 3) < 0.02; })()`, "true")
		b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#detail").close()`), chromedp.Evaluate[chromedp.Void](`document.querySelector("#r2 td button").click()`))
		b.want(`document.querySelectorAll("#detail .page").length`, "0")
	}
	b.checkQuiet()
}

// written returns a page of a job that wrote a report.
func written() *page.Page {
	p := shops(3)
	p.Data.Records, p.Data.Fields = []page.Record{}, []string{}
	p.Data.Report = &page.Report{
		Sections: []page.Section{
			{Name: "introduction", Title: "Introduction", Text: "Shops are in the town [1]. All of them are shut [1, 2]. `a[3]` [9]"},
			{Name: "themes", Title: "Themes", Items: []string{"shops", "towns"}},
		},
		References: []page.Reference{{Source: "A. Author. Shops. 2020", Citation: 1}, {Source: "B", Citation: 0}, {Source: "C", Citation: 2}},
		Claims: []page.Claim{
			{Section: "introduction", Text: "Shops are in the town [1].", Grade: "supported"},
			{Section: "introduction", Text: "All of them are shut [1, 2].", Grade: "unsupported", Reasons: []string{"no passage says shut"}},
		},
		Summary: "1 of 2 claims are supported.",
	}
	return p
}

// TestTableOfAReport: dates stand on one line, and an address takes no more room than what is said.
func TestTableOfAReport(t *testing.T) {
	b := newBrowser(t)
	p := written()
	p.Data.Report.Sections = append(p.Data.Report.Sections, page.Section{
		Name: "table", Title: "Table", Columns: []string{"Source", "Address", "Viewpoint", "Date"},
		Rows: [][]string{{"The Paper", "https://paper.example/news/" + strings.Repeat("a-long-address-", 20), strings.Repeat("Shops are in the town, and many of them are shut. ", 20), "2016-11-29"}},
	})
	b.open(p)

	const cell = `document.querySelector("#report-body .wide tbody td:nth-child(%d)")`
	b.want(fmt.Sprintf(`getComputedStyle(`+cell+`).whiteSpace`, 4), "nowrap")
	b.want(fmt.Sprintf(cell+`.getBoundingClientRect().width < `+cell+`.getBoundingClientRect().width`, 2, 3), "true")
	b.want(fmt.Sprintf(cell+`.title === `+cell+`.textContent`, 2, 2), "true")
	b.checkQuiet()
}

func TestReport(t *testing.T) {
	b := newBrowser(t)
	b.open(written())
	b.want(`document.querySelector("#report-body p").textContent`, "Shops are in the town [1]. All of them are shut [1, 2]. (unsupported) `a[3]` [9]")
	b.want(`[...document.querySelectorAll("#report-body p:first-of-type button")].map((e) => e.textContent).join()`, "1,1,2")
	b.want(`document.querySelector("#report-body .unsupported").textContent`, "All of them are shut [1, 2].")
	b.want(`document.querySelector("#claims tbody").textContent`, "All of them are shut [1, 2].unsupportedno passage says shut")
	b.run(chromedp.Focus(chromedp.CSS("#report-body p button")), chromedp.KeyEvent(kb.Enter))
	b.want(`document.querySelector("#detail mark").textContent`, "Shop 1")
	b.want(`document.querySelector("#detail p").textContent`, "A. Author. Shops. 2020")
	b.checkQuiet()
}

// hostileTexts are what documents and models may say.
var hostileTexts = []string{
	`<script>alert(1)</script>`, `</script><script>alert(2)</script>`, `<img src=x onerror=alert(3)>`, `"><svg onload=alert(4)>`,
	`<a href="javascript:alert(5)">x</a>`, `javascript:alert(6)`, `<style>body{display:none}</style>`, `</style><script>alert(7)</script>`,
	`<iframe src="http://127.0.0.1:9/">`, `<link rel=stylesheet href=http://127.0.0.1:9/x.css>`, `<meta http-equiv=refresh content="0;url=http://127.0.0.1:9/">`,
	`<base href="http://127.0.0.1:9/">`, `<form action=http://127.0.0.1:9/><button>x`, `<!--`, `<!--<script>`, `]]>`, `{{.}}`, `${alert(8)}`,
	"a\u202eb\u202d", "a\u2067b", "\u2069\u202e", "a\x00b", "page\fbreak\vtab", "\x1b[31mred\x1b[0m", "\u0085\u009b31m", "\ufeff\ufffe\uffff",
	"\u2028\u2029", "__proto__", "constructor", "toString", strings.Repeat("x", 20000), strings.Repeat("\u0301", 500), `\u003cscript\u003e`,
	`%3Cscript%3E`, "&lt;script&gt;alert(9)&lt;/script&gt;", `' onmouseover='alert(10)`, "`${1}`", `<math><mi xlink:href="javascript:alert(11)">`,
	`<object data="data:text/html,<script>alert(12)</script>">`, `<template><script>alert(13)</script></template>`,
}

// shownAs returns an expression for a text as the page shows it: with pictures of control
// characters, and one character for the end of a line.
func shownAs(text string) string {
	data, err := json.Marshal(strings.ToValidUTF8(text, "\ufffd"))
	if err != nil {
		panic(err) // a string has no other
	}
	return string(data) + `.replace(/\r\n?/g, "\n").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (c) => c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "\u2421")`
}

// TestHostileTexts shows a page, and a report, in which hostile texts stand wherever a
// document or a model can put one.
func TestHostileTexts(t *testing.T) {
	b := newBrowser(t)
	p := shops(len(hostileTexts))
	p.Tree = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(14)</script><image href="http://127.0.0.1:9/x"/></svg>`
	d := &p.Data
	d.Conflicts, d.Lists[0].Rows = nil, nil
	for i, text := range hostileTexts {
		p.Title, p.Status = p.Title+text, p.Status+text
		p.Facts = append(p.Facts, page.Fact{Name: text, Value: text})
		p.Levels = append(p.Levels, page.Level{Name: text})
		d.Fields = append(d.Fields, text)
		d.Documents[i], d.Texts[i] = text, text
		d.Citations[i] = page.Citation{Ref: text, Document: i, End: 3, Quote: text, Before: text, After: text, Grade: text, Place: text}
		d.Records[i].Values = map[string]string{"company": text, text: text}
		d.Records[i].Missing = map[string]string{"note": text}
		d.Records[i].Unverified = map[string]string{text: text, "total": text}
		d.Conflicts = append(d.Conflicts, page.Conflict{Field: text, Key: text, Chosen: text, Strategy: text, Rationale: text, Candidates: []page.Candidate{{Value: text, Citations: []int{i}}}})
		d.Lists[0].Rows = append(d.Lists[0].Rows, []string{text, text})
	}
	b.open(p)
	b.want(`document.querySelectorAll("script, style, iframe, object, link, base").length`, "3")
	b.want(`document.querySelectorAll("#rest :is(img, a, svg), #table :is(img, svg)").length`, "0")
	for i, text := range hostileTexts {
		b.run(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("#r%d td button").click()`, i+1)))
		want, err := json.Marshal(strings.ToValidUTF8(text, "\ufffd"))
		if err != nil {
			t.Fatal(err)
		}
		b.want(fmt.Sprintf(`JSON.parse(document.getElementById("data").textContent).citations[%d].q === %s`, i, want), "true")
		b.want(`document.querySelectorAll("#detail mark").length + document.querySelectorAll("#detail :is(img, a, svg, script)").length`, "1")
		b.click("#detail figcaption button")
		b.want(`document.querySelector("#document-name").value`, fmt.Sprint(i))
		b.want(`document.querySelector("#document-text").textContent === `+shownAs(text), "true")
		b.want(`[...document.querySelectorAll("#documents :is(a, img, svg, script, style, iframe)")].map((e) => e.outerHTML).join()`, `<a href="#unverified">values that are not verified</a>`)
	}

	p = written()
	r := p.Data.Report
	for _, text := range hostileTexts {
		r.Sections = append(r.Sections, page.Section{Name: text, Title: text, Text: text + " [1]", Items: []string{text}})
		r.References = append(r.References, page.Reference{Source: text})
		r.Claims = append(r.Claims, page.Claim{Section: text, Text: text, Grade: "partial", Reasons: []string{text}})
	}
	b.open(p)
	b.want(`document.querySelectorAll(":is(#report-body, #documents) :is(script, img, style, iframe, a)").length`, "0")
	b.checkQuiet()
}

func TestOnAPhoneInTheDarkAndOnPaper(t *testing.T) {
	b := newBrowser(t)
	p := shops(30)
	b.open(p)
	b.run(chromedp.EmulateViewport(360, 640))
	b.want(`document.documentElement.scrollWidth <= 360`, "true")
	b.run(chromedp.EmulateViewport(1200, 900))
	paper, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
	if err != nil {
		t.Fatal(err)
	}
	if len(paper) < 1000 {
		t.Errorf("%d bytes of PDF", len(paper))
	}
	b.checkQuiet()
}

// TestRowsToTakeAlong hides a column, and copies and saves the rows that match: they have the columns
// that are shown, and nothing in them is a formula for a spreadsheet. On paper the heads of the
// table stand on each page, and the buttons on none.
func TestRowsToTakeAlong(t *testing.T) {
	b := newBrowser(t)
	p := shops(120)
	p.Data.Records[24].Values["company"] = "\u200b=HYPERLINK(\"x\"), Shop 24"
	p.Data.Records[25].Values["total"] = "-1,500"
	b.open(p)
	b.run(chromedp.Evaluate[chromedp.Void](`(() => {
		window.given = {};
		URL.createObjectURL = (blob) => { blob.text().then((text) => { window.given.saved = text; }); return "#"; };
		HTMLAnchorElement.prototype.click = function () { window.given.name = this.download; };
		document.execCommand = () => { window.given.copied = document.activeElement.value; return true; };
		Object.defineProperty(navigator, "clipboard", { value: undefined });
	})()`))

	// Without the column note, and of the shops 2 and 20 to 29 alone.
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#columns input")[2].click()`))
	b.want(`[...document.querySelectorAll("#table thead th")].map((e) => e.textContent).join()`, "#,source,company,total")
	b.run(chromedp.SendKeys(chromedp.CSS("#query"), "shop 2"))
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#save").click()`))
	b.want(`window.given.name`, "records.csv")
	b.want(`window.given.saved.split("\r\n")[0].replace("\ufeff", "")`, "source,company,total")
	b.want(`window.given.saved.split("\r\n").length`, "13") // the head, eleven rows, and the end
	b.want(`window.given.saved.includes('00024.txt,"\'\u200b=HYPERLINK(""x""), Shop 24",3')`, "true")
	b.want(`window.given.saved.includes('00025.txt,Shop 25,"-1,500"')`, "true")

	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#copy").click()`))
	b.want(`window.given.copied.split("\n")[0]`, "source\tcompany\ttotal")
	b.want(`window.given.copied.includes("00024.txt\t'\u200b=HYPERLINK(")`, "true")
	b.want(`document.querySelector("#count").textContent`, "11 rows were copied.")

	// The column comes back.
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#columns input")[2].click()`))
	b.want(`document.querySelectorAll("#table thead th").length`, "5")

	b.emulateMedia("print", "light")
	b.want(`getComputedStyle(document.querySelector("#table thead")).display`, "table-header-group")
	b.want(`document.querySelector("#copy").getClientRects().length`, "0")
	b.checkQuiet()
}

// TestDerivedValues marks values that stand in no quote, and says how they follow.
func TestDerivedValues(t *testing.T) {
	b := newBrowser(t)
	p := shops(2)
	p.Data.Records[0].Derived = map[string]page.Derived{"total": {Text: "derived: 1 + 2 = 3", Citations: []int{0, 1}}}
	b.open(p)
	b.want(`document.querySelector("#r1").textContent.includes("derived")`, "true")
	b.want(`document.querySelector("#r2").textContent.includes("derived")`, "false")
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#r1 td button.link")[1].click()`))
	b.want(`document.querySelector("#detail .note").textContent`, "derived: 1 + 2 = 3")
	b.want(`document.querySelectorAll("#detail mark").length`, "2")
	b.checkQuiet()
}

// TestAccessible has axe-core look for what keeps people with assistive technology out, in
// the page and in an open quote, by day and by night.
func TestAccessible(t *testing.T) {
	path := os.Getenv("CODITECT_AXE")
	if path == "" {
		t.Skip("CODITECT_AXE names no axe.min.js; make test-page does")
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t)
	for _, scheme := range []string{"light", "dark"} {
		b.emulateMedia("", scheme)
		p := shops(150)
		p.Data.Citations[0].Boxes, p.Data.Pages = pictured(t).Data.Citations[0].Boxes, pictured(t).Data.Pages
		b.open(p)
		b.run(chromedp.Evaluate[chromedp.Void](string(axe)))
		const violations = `axe.run().then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary).join("; ")).join("\n"))`
		if found := evaluate[string](b, violations); found != "" {
			t.Errorf("%s: %s", scheme, found)
		}
		b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#r1 td button").click()`), chromedp.WaitVisible(chromedp.CSS("#detail mark")))
		if found := evaluate[string](b, violations); found != "" {
			t.Errorf("%s, with a quote open: %s", scheme, found)
		}
		for name, other := range map[string]*page.Page{"a report": written(), "values that overlap": invoices()} {
			b.open(other)
			b.run(chromedp.Evaluate[chromedp.Void](string(axe)))
			if found := evaluate[string](b, violations); found != "" {
				t.Errorf("%s, %s: %s", scheme, name, found)
			}
		}
	}
}

// firstPaint is when the page was painted first, in milliseconds after it was asked for.
const firstPaint = `new Promise((resolve) => new PerformanceObserver((list) => {
	for (const e of list.getEntriesByName("first-contentful-paint")) resolve(e.startTime);
}).observe({type: "paint", buffered: true}))`

// BenchmarkFirstPaint reports when a page is painted first and when its table stands, of
// 10,000 records and of none.
func BenchmarkFirstPaint(bench *testing.B) {
	for _, n := range []int{0, 10_000} {
		bench.Run(fmt.Sprint(n, " records"), func(bench *testing.B) {
			b := newBrowser(bench)
			p := shops(max(n, 1))
			p.Data.Records = p.Data.Records[:n]
			var painted, ready float64
			for bench.Loop() {
				b.open(p)
				painted += evaluate[float64](b, firstPaint)
				ready += evaluate[float64](b, `performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd`)
			}
			bench.ReportMetric(painted/float64(bench.N), "ms-to-paint")
			bench.ReportMetric(ready/float64(bench.N), "ms-to-table")
			b.checkQuiet()
		})
	}
}
