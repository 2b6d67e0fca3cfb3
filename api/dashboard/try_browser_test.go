package dashboard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// schemaText is what stands in the editor of the workbench.
const schemaText = `document.getElementById("try-schema").value`

// openTry shows the workbench once it is ready.
func (b *browser) openTry(path string) {
	b.t.Helper()
	b.open(path)
	b.await(`document.getElementById("try") && document.getElementById("try").dataset.ready === "1"`)
}

// paste adds a document to the workbench.
func (b *browser) paste(name, text string) {
	b.t.Helper()
	b.eval(`document.getElementById("try-paste").open = true; ""`)
	b.run(chromedp.SendKeys(chromedp.CSS("#try-paste-name"), name), chromedp.SendKeys(chromedp.CSS("#try-paste-text"), text))
	b.press("#try-paste-add")
	b.await(`document.querySelector("#try-documents button[aria-pressed=true]").textContent === "` + name + `"`)
}

// What is typed is tried and shown at once, by keyboard alone; a schema that is broken says where, and leaves
// what was found before.
func TestTryAsOneTypes(t *testing.T) {
	server := open(t, newStub("plain"), nil)
	b := newBrowser(t, server.URL)
	b.openTry("/try")
	b.paste("a.txt", "12.50 is the total")

	b.run(chromedp.Focus(chromedp.CSS("#try-schema")), chromedp.SendKeys(chromedp.CSS("#try-schema"), "type: object\nproperties:\n  total:\n    ty"))
	b.await(`document.querySelector("#try-choices li")?.textContent === "type"`)
	b.run(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.run(chromedp.SendKeys(chromedp.CSS("#try-schema"), "nu"))
	b.await(`document.querySelector("#try-choices li")?.textContent === "number"`)
	b.run(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	if got := b.eval(schemaText); got != "type: object\nproperties:\n  total:\n    type: number" {
		t.Errorf("typed with proposals: %q", got)
	}
	b.await(`document.querySelector("#part-shown mark")?.textContent === "12.50" && document.querySelector("#part-results td")?.textContent === "1 / 1"`)

	b.run(chromedp.SendKeys(chromedp.CSS("#try-schema"), "s"))
	b.await(`document.querySelector("#part-problems a.bad")?.textContent.startsWith("Line 4:")`)
	if got := b.eval(`document.querySelector("#try-lines b").textContent.trim() + document.querySelector("#part-shown mark").textContent`); got != "● 412.50" {
		t.Errorf("beside the fault stands %q", got)
	}
	b.press("#part-problems a.bad")
	if got := b.eval(`(() => { const e = document.activeElement; return e.value.slice(e.selectionStart, e.selectionEnd); })()`); got != "    type: numbers" {
		t.Errorf("the link to the fault leads to %q", got)
	}
	b.run(chromedp.SendKeys(chromedp.CSS("#try-schema"), "    type: number"))
	b.await(`document.querySelectorAll("#part-problems a").length === 0`)

	b.press("#part-results a[data-start]")
	b.await(`document.activeElement.tagName === "MARK"`)
	b.checkQuiet()
}

// The form changes the text, the text changes the form, versions come back with their figures, and all
// of it is there again when the page is.
func TestTryByForm(t *testing.T) {
	server := open(t, newStub("plain"), nil)
	b := newBrowser(t, server.URL)
	b.openTry("/try")
	b.paste("a.txt", "12.50 is the total")
	b.press("#try-infer")
	b.await(`document.querySelector("#part-rows input[data-what=name]")?.value === "total"`)
	b.press("#try-keep")
	b.await(`document.querySelector("#try-versions td")?.textContent === "1 / 1"`)

	change := func(what, value string) {
		b.eval(`(() => { const f = document.querySelector("#part-rows [data-what=` + what + `]"); f.closest("details").open = true; f.value = "` + value + `"; f.dispatchEvent(new Event("change", {bubbles: true})); return ""; })()`)
	}
	change("labels", `Total\nSum`)
	b.await(schemaText + `.includes("{type: number, x-coditect: {labels: [Total, Sum]}}")`)
	change("name", "sum")
	b.await(schemaText + `.includes("  sum: {type: number") && document.querySelector("#part-rows input[data-what=name]").value === "sum"`)
	if got := b.eval(schemaText); !strings.HasPrefix(got, "# a.txt\n") {
		t.Errorf("the comment is gone: %q", got)
	}

	b.run(chromedp.Focus(chromedp.CSS("#try-schema")))
	b.eval(`document.getElementById("try-schema").setSelectionRange(1e6, 1e6); ""`)
	b.run(chromedp.SendKeys(chromedp.CSS("#try-schema"), "  date: {format: date, type: string}"))
	b.await(`document.querySelectorAll("#part-rows input[data-what=name]")[1]?.value === "date"`)

	b.await(`document.querySelector("#part-results td")?.textContent === "1 / 1"`)
	b.await(`document.getElementById("try").getAttribute("aria-busy") === "false"`)
	b.press("#try-keep")
	b.await(`document.querySelectorAll("#try-versions tr").length === 2`)
	b.eval(`(async () => { for (;;) { const kept = await coditectKept.read(); if (kept && kept.versions.length === 2) return ""; } })()`)
	b.openTry("/try")
	b.await(schemaText + `.includes("  date: {format: date") && document.querySelectorAll("#try-versions tr").length === 2 && document.querySelector("#part-shown mark")`)
	b.press("#try-versions tr:last-child button")
	b.await(schemaText + `.includes("  total: {type: number")`)
	b.checkQuiet()
}

// A file that is chosen is read, what was tried goes into the form of a new job with its file, and a
// model is asked only once its price was said.
func TestTryThenStart(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, nil)
	file := filepath.Join(t.TempDir(), "b.txt")
	if err := os.WriteFile(file, []byte("7.25 is due"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, server.URL)
	b.openTry("/try")
	b.run(chromedp.SetUploadFiles(chromedp.CSS("#try-files"), []string{file}))
	b.await(`document.querySelector("#try-documents button")?.textContent === "b.txt"`)
	b.press("#try-infer")
	b.await(`document.querySelector("#part-shown mark")?.textContent === "7.25"`)

	b.eval(`document.getElementById("try-pay").closest("details").open = true; ""`)
	b.run(chromedp.SendKeys(chromedp.CSS("#try-provider"), "fake"))
	b.press("#try-plan")
	b.await(`document.getElementById("try-paid").textContent.includes("$0.50") && !document.getElementById("try-pay").hidden`)
	if done := s.noted(); strings.Contains(done, "submit") {
		t.Errorf("something was paid before it was confirmed: %s", done)
	}
	s.change(func(j *mapreduce.Job) { j.State = mapreduce.JobComplete })
	b.press("#try-pay")
	b.await(`document.getElementById("try-paid").textContent.includes("The model found 2 of 2 values")`)

	b.press("#try-start")
	b.run(chromedp.WaitReady(chromedp.CSS("#new")))
	b.await(`location.pathname === "/new" && document.getElementById("new").dataset.filled && document.getElementById("new").elements.documents.files.length === 1 && document.getElementById("new").elements.schema.value.includes("total: {type: number")`)
	b.eval(`document.getElementById("new").elements.provider.value = "rules"; ""`)
	b.press("#plan")
	b.await(`document.getElementById("outcome").textContent.includes("2 units")`)
	if done := s.noted(); !strings.Contains(done, "plan b.txt 11 rules") {
		t.Errorf("the form of a new job has sent %s", done)
	}
	b.checkQuiet()
}

// What people have decided about the values of a job is compared with.
func TestTryAgainstReviews(t *testing.T) {
	s := newStub("plain")
	s.decisions = []*mapreduce.Decision{{}}
	s.job.State = mapreduce.JobComplete
	s.parts = []*mapreduce.ResultPart{{Record: []byte(`{"total": 12.5, "_sources": ["plain"], "_reviewed": {"total": {"verdict": "accept"}}}`)}}
	server := open(t, s, nil)
	b := newBrowser(t, server.URL)
	b.openTry("/try?job=" + string(jobID))
	if got := b.eval(`document.getElementById("try-truth").value`); got != `{"document":"plain","total":12.5}` {
		t.Errorf("the true values are %q", got)
	}
	b.await(`document.getElementById("try-status").textContent.includes("F1 by the true values: 50.0 %")`)
	b.checkQuiet()
}

// A server that goes away while somebody types costs them nothing.
func TestTryWithoutItsServer(t *testing.T) {
	d, err := dashboard.New(dashboard.Config{Jobs: newStub("plain"), Bench: stubBench})
	if err != nil {
		t.Fatal(err)
	}
	server := &reviving{t: t, handler: d, address: "127.0.0.1:0"}
	server.start()
	t.Cleanup(func() { server.stop() })
	b := newBrowser(t, "http://"+server.address)
	b.openTry("/try?job=" + string(jobID))
	b.await(`document.querySelector("#try-documents button")`)

	server.stop()
	b.eval(`document.getElementById("try-schema").focus(); document.getElementById("try-schema").select(); ""`)
	b.run(chromedp.SendKeys(chromedp.CSS("#try-schema"), triedSchema))
	b.await(`document.getElementById("try-status").textContent.startsWith("The server did not answer")`)
	server.start()
	b.press("#try-run")
	b.await(`document.querySelector("#part-shown mark")`)
	if got := b.eval(schemaText); got != triedSchema {
		t.Errorf("what was typed is now %q", got)
	}
	b.checkQuiet()
}
