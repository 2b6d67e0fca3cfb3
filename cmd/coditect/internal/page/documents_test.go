package page_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coditect/mapreduce/cmd/coditect/internal/page"
)

// invoiceText has line ends of two characters, and a character of four bytes.
const invoiceText = "Invoice 👋 of\r\nAcme Ltd, 5 North St\r\nTOTAL 9.00 EUR\r\n"

// invoices returns a page whose first document has values that overlap, and a value that
// begins within a line end.
func invoices() *page.Page {
	p := shops(12)
	d := &p.Data
	d.Documents[0], d.Texts[0] = "invoice.txt", invoiceText
	d.Fields = []string{"seller", "street", "label", "total", "company"}
	d.Conflicts = []page.Conflict{}
	r := page.Record{Sources: []int{0}, Values: map[string]string{}, Citations: map[string][]int{}, Confidence: map[string]float64{"seller": 0.9}, Unverified: map[string]string{"note": "paid"}}
	for _, v := range []struct{ field, value, quote string }{
		{"total", "9", "9.00"}, {"seller", "Acme", "Acme Ltd, 5 North St"}, {"street", "5 North St", "5 North St"}, {"label", "TOTAL", "\nTOTAL"},
	} {
		r.Values[v.field] = v.value
		r.Citations[v.field] = []int{len(d.Citations)}
		start := int64(utf8.RuneCountInString(invoiceText[:strings.Index(invoiceText, v.quote)]))
		d.Citations = append(d.Citations, page.Citation{
			Ref: "REF_" + v.field, Start: start, End: start + int64(utf8.RuneCountInString(v.quote)), Quote: v.quote, Grade: "exact", Place: "page 3",
		})
	}
	d.Records[0] = r
	return p
}

// shownMarks are the marks of the document that is shown, each with the numbers of the
// fields that begin there.
const shownMarks = `[...document.querySelectorAll("#document-text mark")].map((m) => (m.dataset.numbers || "") + "=" + m.textContent).join("|")`

const (
	shownText   = `document.querySelector("#document-text").textContent`
	statusText  = `document.querySelector("#document-status").textContent`
	currentText = `[...document.querySelectorAll("#document-text [aria-current]")].map((m) => m.textContent).join("|")`
	shownName   = `document.querySelector("#document-name").selectedOptions[0].textContent`
)

func (b *browser) click(selector string) {
	b.t.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector(%q).click()", selector)))
}

// TestValuesInTheirDocument: all values of a document are marked in its text at once, the
// reader goes from one to the next by keys and by buttons, and switches fields off.
func TestValuesInTheirDocument(t *testing.T) {
	b := newBrowser(t)
	b.open(invoices())
	b.want(`document.querySelector("#documents-title").textContent`, "Values in their documents (12)")
	b.want(shownText, strings.ReplaceAll(invoiceText, "\r", ""))
	b.want(shownMarks, "1=Acme Ltd, |2=5 North St|3=TOTAL|4=9.00")
	b.want(`document.querySelector("#document-legend").textContent`, "Fields1seller (1)2street (1)3label (1)4total (1)AllNone")
	b.want(`document.querySelector("#document-text").getAttribute("aria-label")`, "Text of invoice.txt")
	b.want(`document.querySelector("#document-unverified").textContent`, "1 value of its records is not in the text, or break the schema: values that are not verified.")

	const first = "Value 1 of 4: seller: Acme (exact, confidence 0.90, page 3, record 1)"
	b.want(statusText, first)
	b.want(currentText, "Acme Ltd, |5 North St")
	b.want(`document.querySelector("#document-text mark").title`, "1 seller: Acme (exact, confidence 0.90, page 3, record 1)")
	b.want(`document.querySelector("#document-value").textContent`,
		"1 sellerAcme confidence 0.90 record 1QuoteAcme Ltd, 5 North StGradeexactPlacepage 3, characters 14–34ReferenceREF_seller")
	b.want(`document.querySelector("#value-before").disabled + " " + document.querySelector("#document-before").disabled`, "true true")

	// By keys, to the end of this document and into the next one, and back.
	b.run(chromedp.Focus(chromedp.CSS("#document-text")), chromedp.KeyEvent(kb.ArrowRight))
	b.want(statusText, "Value 2 of 4: street: 5 North St (exact, page 3, record 1)")
	b.want(currentText, "5 North St")
	b.run(chromedp.KeyEvent(kb.ArrowRight + kb.ArrowRight + kb.ArrowRight))
	b.want(shownName+` + ": " + `+statusText, "00001.txt: Value 1 of 1: company: Shop 1 (exact, confidence 0.90, record 2)")
	b.want(`document.activeElement.id`, "document-text")
	b.run(chromedp.KeyEvent(kb.ArrowLeft))
	b.want(shownName+` + ": " + `+statusText, "invoice.txt: Value 4 of 4: total: 9 (exact, page 3, record 1)")

	// By buttons and by the slider.
	b.click("#value-before")
	b.want(currentText, "TOTAL")
	b.run(chromedp.Focus(chromedp.CSS("#document-slider")), chromedp.KeyEvent(kb.ArrowRight))
	b.want(currentText, "9.00")
	b.want(`document.querySelector("#document-slider").getAttribute("aria-valuetext")`, "4 of 4")
	b.run(chromedp.Focus(chromedp.CSS("#value-after")), chromedp.KeyEvent(kb.Enter))
	b.want(shownName, "00001.txt")
	b.run(chromedp.Focus(chromedp.CSS("#document-before")), chromedp.KeyEvent(kb.Enter))
	b.want(statusText, first)
	b.want(`document.activeElement.id`, "document-text") // the button cannot be pressed any more

	// A click chooses the innermost value, and the next one what is around it.
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#document-text mark")[1].click()`))
	b.want(currentText, "5 North St")
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#document-text mark")[1].click()`))
	b.want(currentText, "Acme Ltd, |5 North St")

	// A field that is switched off is not marked, and no step leads to it.
	b.run(chromedp.Focus(chromedp.CSS("#document-legend input")), chromedp.KeyEvent(" "))
	b.want(shownMarks, "2=5 North St|3=TOTAL|4=9.00")
	b.want(statusText, "Value 1 of 3: street: 5 North St (exact, page 3, record 1)")
	b.want(shownText, strings.ReplaceAll(invoiceText, "\r", ""))
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#document-legend button")[1].click()`))
	b.want(shownMarks+` + `+statusText, "No field of this document is shown.")
	b.click("#value-after")
	b.want(shownName, "00001.txt")
	b.click("#value-before")
	b.want(shownName, "00001.txt")
	b.click("#document-before")
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#document-legend button")[0].click()`))
	b.want(shownMarks, "1=Acme Ltd, |2=5 North St|3=TOTAL|4=9.00")

	// The panel leads to the record and to the quote.
	b.click("#document-value li button")
	b.want(`document.querySelector("#detail-title").textContent`, "Record 1")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.click("#document-value dd button")
	b.want(`document.querySelector("#detail mark").textContent`, "Acme Ltd, 5 North St")
	b.checkQuiet()
}

// TestOverlapsAreSeen: a text that values of several fields cover has the colour of each, by
// day and by night.
func TestOverlapsAreSeen(t *testing.T) {
	b := newBrowser(t)
	b.open(invoices())
	const colours = `(() => {
		const [outer, inner, label] = document.querySelectorAll("#document-text mark"), of = (e) => getComputedStyle(e);
		const bands = of(inner).backgroundImage, own = of(label).backgroundColor;
		return [of(outer).backgroundImage, bands.includes(of(outer).backgroundColor), bands.match(/rgb/g).length, own !== of(outer).backgroundColor].join();
	})()`
	b.want(colours, "none,true,4,true")
	b.emulateMedia("", "dark")
	b.want(colours, "none,true,4,true")
	b.checkQuiet()
}

// emulateMedia shows the page as a medium, such as print, in a scheme of colours.
func (b *browser) emulateMedia(medium, scheme string) {
	b.t.Helper()
	b.run(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// TestFromQuoteToDocument: what shows a quote leads to its document.
func TestFromQuoteToDocument(t *testing.T) {
	b := newBrowser(t)
	b.open(shops(250))
	b.click("#r8 td button")
	b.run(chromedp.Focus(chromedp.CSS("#detail figcaption button")), chromedp.KeyEvent(kb.Enter))
	b.want(`document.querySelector("#detail").open`, "false")
	b.want(shownName, "00007.txt")
	b.want(currentText, "Shop 7")
	b.want(`document.activeElement.id`, "document-text")
	b.want(`document.querySelector("#documents-title").getBoundingClientRect().top < innerHeight`, "true")

	// The list to choose from has a limit, which the search gets past.
	b.want(`document.querySelector("#document-name").options.length`, "200")
	b.want(`document.querySelector("#document-count").textContent`, "250 documents. The list has 200 of them.")
	b.run(chromedp.SendKeys(chromedp.CSS("#document-query"), "0024"))
	b.want(`[...document.querySelector("#document-name").options].map((o) => o.textContent[4]).join("")`, "40123456789")
	b.want(`document.querySelector("#document-count").textContent`, "11 of 250 documents.")

	b.run(chromedp.SendKeys(chromedp.CSS("#document-query"), "0"))
	b.want(shownName, "00240.txt")

	// This page has no text of the document: it shows what stands around its quotes.
	b.want(shownText, "Welcome 👋 to\nShop 240 of the town…")
	b.want(shownMarks, "1=Shop 240")
	b.want(`document.querySelector("#document-limits").textContent`, "This page shows only the text around the quotes, as its size is limited. ")
	b.run(chromedp.SendKeys(chromedp.CSS("#document-query"), "x"))
	b.want(`document.querySelector("#document-count").textContent`, "0 of 250 documents.")
	b.want(shownName, "00240.txt")
	b.checkQuiet()
}

// TestManyValuesOfADocument: a document whose text is not in the page is shown by what
// stands around its quotes, each part of it once, and what the page leaves out it says.
func TestManyValuesOfADocument(t *testing.T) {
	const n = 3000
	var text strings.Builder
	p := shops(1)
	d := &p.Data
	d.Texts, d.Citations, d.Records, d.Conflicts = nil, nil, nil, []page.Conflict{}
	for i := range n {
		at := int64(text.Len())
		quote := fmt.Sprintf("word%d", i)
		fmt.Fprint(&text, quote, " ")
		if i == 1500 {
			text.WriteString(strings.Repeat("-", 300))
		}
		d.Citations = append(d.Citations, page.Citation{Ref: fmt.Sprint("REF_", i), Start: at, End: at + int64(len(quote)), Quote: quote, Grade: "exact"})
		d.Records = append(d.Records, page.Record{Sources: []int{0}, Values: map[string]string{"company": quote}, Citations: map[string][]int{"company": {i}}})
	}
	all := text.String()
	for i := range d.Citations {
		c := &d.Citations[i]
		c.Before, c.After = all[max(0, c.Start-60):c.Start], all[c.End:min(int64(len(all)), c.End+60)]
	}
	b := newBrowser(t)
	b.open(p)
	b.want(`document.querySelectorAll("#document-text mark").length`, "2000")
	b.want(`document.querySelector("#document-limits").textContent.split(". ")[1]`, "1,000 more values of this document are not marked, as the size of this page is limited.")
	gap := strings.Index(all, "-----")
	last := d.Citations[1999]
	b.want(shownText, all[:gap+59]+"…\n"+all[gap+300-60:last.End]+last.After+"…")
	b.checkQuiet()
}

// TestReferencesInTheirDocument: of a report, the sections are what is told apart, and each
// quote has the sentences that refer to it, with their grades.
func TestReferencesInTheirDocument(t *testing.T) {
	b := newBrowser(t)
	b.open(written())
	b.want(`document.querySelector("#documents-title").textContent`, "References in their documents (3)")
	b.want(shownName+` + ": " + `+statusText, "00000.txt: Passage 1 of 1: Introduction: All of them are shut [1, 2]. (exact, unsupported, reference 2)")
	b.want(shownMarks, "1=Shop 0")
	b.click("#value-after")
	b.want(`[...document.querySelectorAll("#document-value li")].map((e) => e.textContent).join("|")`,
		"Shops are in the town [1]. supported reference 1|All of them are shut [1, 2]. unsupported reference 1")
	b.click("#value-after")
	b.want(statusText, "Passage 1 of 1: References: C (exact, reference 3)") // no section refers to it
	b.click("#document-value li button")
	b.want(`document.querySelector("#detail-title").textContent`, "Reference 3")
	b.checkQuiet()
}

// TestConflictsInTheirDocument: a value that was not chosen is marked where it stands, and
// says so.
func TestConflictsInTheirDocument(t *testing.T) {
	p := shops(2)
	p.Data.Conflicts = []page.Conflict{{Field: "company", Chosen: "Shop 0", Candidates: []page.Candidate{{Value: "Shop 0", Citations: []int{0}}, {Value: "Shop 1", Citations: []int{1}}}}}
	p.Data.Records = p.Data.Records[:1]
	b := newBrowser(t)
	b.open(p)
	b.click("#document-after")
	b.want(statusText, "Value 1 of 1: company: Shop 1 (exact, not chosen; the record has Shop 0)")
	b.checkQuiet()
}

// TestDocumentsOnPaper: all of the text is printed, with its marks and what they mean.
func TestDocumentsOnPaper(t *testing.T) {
	b := newBrowser(t)
	p := invoices()
	p.Data.Texts[0] += strings.Repeat("More.\n", 500)
	b.open(p)
	const fits = `(() => { const e = document.querySelector("#document-text"); return e.scrollHeight <= e.clientHeight + 1; })()`
	b.want(fits, "false")
	b.emulateMedia("print", "light")
	b.want(fits, "true")
	b.want(`[...document.querySelectorAll("#document-controls, #documents .tools, #document-legend button")].filter((e) => e.getClientRects().length).length`, "0")
	b.want(`getComputedStyle(document.querySelector("#document-text mark")).printColorAdjust`, "exact")
	b.want(`getComputedStyle(document.querySelector("#document-text mark"), "::before").content.startsWith('"1"')`, "true")
	b.want(`document.querySelector("#document-legend label").getClientRects().length`, "1")
	b.checkQuiet()
}

// TestInANotebook: notebooks show files in a sandbox, which has scripts and nothing else.
func TestInANotebook(t *testing.T) {
	var file bytes.Buffer
	if err := invoices().Write(&file); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "sandbox allow-scripts")
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path != "/report.html" {
			http.NotFound(w, r)
			return
		}
		if _, err := w.Write(file.Bytes()); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	b := newBrowser(t)
	b.from = server.URL + "/report.html"
	b.run(chromedp.Navigate(b.from), chromedp.WaitReady(chromedp.CSS("#sections li")))
	b.click("#r1 td button")
	b.want(`document.querySelector("#detail mark").textContent`, "Acme Ltd, 5 North St")
	b.click("#detail figcaption button")
	b.want(currentText, "Acme Ltd, |5 North St")
	b.checkQuiet()
}

// TestPagesOfRuns goes through all values of the pages that the program writes of receipts
// and of a report: each is marked where its quote stands, letter by letter.
func TestPagesOfRuns(t *testing.T) {
	program, data := os.Getenv("CODITECT_PROGRAM"), os.Getenv("CODITECT_TESTDATA")
	if program == "" || data == "" {
		t.Skip("CODITECT_PROGRAM names no program, or CODITECT_TESTDATA no folder with data; make test-page names the program")
	}
	texts, err := filepath.Glob(filepath.Join(data, "re3d", "*", "documents.json"))
	if err != nil || len(texts) == 0 {
		t.Skip("there are no documents of re3d: ", err)
	}
	briefing := filepath.Join(t.TempDir(), "documents.jsonl")
	made, err := exec.CommandContext(t.Context(), filepath.Join("..", "..", "..", "..", "examples", "briefing", "make.sh"), texts...).Output()
	if err == nil {
		err = os.WriteFile(briefing, made, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		values int // at least
		flags  []string
	}{
		{"receipts", 1500, []string{"--input", filepath.Join(data, "receipts", "docs"), "--schema", filepath.Join("..", "..", "..", "..", "examples", "receipts", "schema.yaml")}},
		{"briefing", 10, []string{"--input", briefing, "--pipeline", "synthesize", "--question", "What did the coalition do against ISIL in Mosul and Raqqa?"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			run := exec.CommandContext(t.Context(), program, append([]string{"mapreduce", "run", "--data-dir", filepath.Join(dir, "store"), "--output", filepath.Join(dir, "out")}, tt.flags...)...)
			begun := time.Now()
			if out, err := run.CombinedOutput(); err != nil && run.ProcessState.ExitCode() != 3 { // 3: a document has no total
				t.Fatalf("%v: %s", err, out)
			}
			t.Logf("the run took %s", time.Since(begun).Round(10*time.Millisecond))
			b := newBrowser(t)
			b.run(chromedp.Navigate("file://"+filepath.Join(dir, "out", "report.html")), chromedp.WaitReady(chromedp.CSS("#sections li")))
			found := strings.Split(evaluate[string](b, allValues), "\n")
			if n, err := strconv.Atoi(found[0]); err != nil || n < tt.values || len(found) > 1 {
				t.Errorf("%s values, want at least %d, and these differ from their quotes: %q", found[0], tt.values, found[1:])
			}
			b.checkQuiet()
		})
	}
}

// allValues goes through all values of a page, and is their number, and on a line each those
// whose mark is not their quote.
const allValues = `(async () => {
	const block = document.getElementById("data"), next = document.getElementById("value-after");
	const data = block.type === "application/json" ? JSON.parse(block.textContent) : await new Response(
		new Blob([Uint8Array.from(atob(block.textContent), (c) => c.charCodeAt(0))]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
	const quotes = new Map(data.citations.map((c) => [c.r, c.q.replace(/\r\n?/g, "\n")]));
	const differ = [];
	for (let n = 1; ; n++) {
		const marked = [...document.querySelectorAll("#document-text [aria-current]")].map((m) => m.textContent).join("");
		const ref = [...document.querySelectorAll("#document-value dd")].pop().textContent;
		if (marked !== quotes.get(ref)) differ.push(ref + " " + JSON.stringify(marked));
		if (next.disabled) return [n, ...differ].join("\n");
		next.click();
	}
})()`
