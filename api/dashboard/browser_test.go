package dashboard_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv/chromium"
)

// A browser is a tab, and what it noticed of the pages that it showed.
type browser struct {
	t    testing.TB
	ctx  context.Context
	from string // address of the server: what goes elsewhere is a problem

	mu       sync.Mutex // guards the variable below
	problems []string
}

// newBrowser starts Chromium, or skips the test where there is none.
func newBrowser(t testing.TB, from string) *browser {
	t.Helper()
	ctx := chromium.New(t)
	b := &browser{t: t, ctx: ctx, from: from}
	if err := chromedp.Listen(ctx, b.notice); err != nil { // starts the browser
		t.Fatal(err)
	}
	b.run(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
		return err
	}))
	return b
}

// notice notes what a page must not do: write to the console, break its policy, open dialogs, ask
// another server.
func (b *browser) notice(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		problem = fmt.Sprintf("console: %s %v", e.Type, e.Args)
	case *runtime.EventExceptionThrown:
		problem = "exception: " + fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			problem = "log: " + e.Entry.Text
		}
	case *page.EventJavascriptDialogOpening:
		problem = "dialog: " + e.Message
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, b.from) && !strings.HasPrefix(url, "about:") {
			problem = "request: " + url
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

func (b *browser) open(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.from + path))
}

// eval returns what an expression comes to, as text.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// press clicks an element by itself, and not at a place of the page from which it may have moved
// since that was looked up.
func (b *browser) press(selector string) {
	b.t.Helper()
	b.eval(`document.querySelector("` + selector + `").click(); ""`)
}

// await waits until an expression is true in the page, at every change of it, and returns after how
// many milliseconds it was. If the page leads to another one meanwhile, it is that one's turn.
func (b *browser) await(expression string) float64 {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	took, err := b.look(ctx, expression)
	for err != nil && (strings.Contains(err.Error(), "navigated") || strings.Contains(err.Error(), "context was destroyed") || strings.Contains(err.Error(), "Cannot find")) {
		took, err = b.look(ctx, expression)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return took
}

// look waits until an expression is true in the page that is there.
func (b *browser) look(ctx context.Context, expression string) (float64, error) {
	return chromedp.Run(ctx, chromedp.Evaluate[float64](`new Promise((resolve) => {
		const began = performance.now();
		const look = () => { if (`+expression+`) { watcher.disconnect(); resolve(performance.now() - began); } };
		const watcher = new MutationObserver(look);
		watcher.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
		look();
	})`, chromedp.EvalAwaitPromise))
}

// checkQuiet fails the test if a page did what it must not do.
func (b *browser) checkQuiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.t.Error(p)
	}
	b.problems = nil
}

// A server that goes away and comes back at the same address.
type reviving struct {
	t       testing.TB
	handler http.Handler
	address string
	server  *httptest.Server
}

func (r *reviving) start() {
	r.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(r.t.Context(), "tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.address = l.Addr().String()
	r.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: r.handler, ReadHeaderTimeout: time.Minute}} //nolint:exhaustruct // as NewUnstartedServer
	r.server.Start()
}

func (r *reviving) stop() {
	r.server.CloseClientConnections()
	r.server.Close()
}

// An open page shows what has changed within a second, keeps what its reader does there, stands
// still while it is paused, and goes on when its server is back, with everything shown once.
func TestOpenPage(t *testing.T) {
	s := newStub("plain")
	d, err := dashboard.New(dashboard.Config{Jobs: s})
	if err != nil {
		t.Fatal(err)
	}
	server := &reviving{t: t, handler: d, address: "127.0.0.1:0"}
	server.start()
	t.Cleanup(func() { server.stop() })

	b := newBrowser(t, "http://"+server.address)
	b.open("/jobs/" + string(jobID))
	const done = `document.querySelector("#part-progress dd").textContent`
	b.await(done + ` === "1 / 3"`)
	b.await(`document.getElementById("grid").dataset.drawn === "3"`)

	// The reader is about to type a budget for a paused job.
	s.change(func(j *mapreduce.Job) { j.State = mapreduce.JobPaused })
	b.await(`document.querySelector("form[action$='/resume'] input[name=budget]")`)
	b.run(chromedp.SendKeys(chromedp.CSS("form[action$='/resume'] input[name=budget]"), "12"))
	s.change(func(j *mapreduce.Job) { j.CompletedUnits = 2 })
	b.await(done + ` === "2 / 3"`)
	if got := b.eval(`document.activeElement.name + " " + document.activeElement.value`); got != "budget 12" {
		t.Errorf("the reader's input is %q", got)
	}

	b.press("#pause")
	b.await(`document.getElementById("connection").textContent.startsWith("Paused")`)
	<-s.left // the stream has ended, so nothing more can come
	s.change(func(j *mapreduce.Job) { j.CompletedUnits = 3 })
	if got := b.eval(done); got != "2 / 3" {
		t.Errorf("the page that is paused shows %q", got)
	}
	b.press("#pause")
	b.await(done + ` === "3 / 3"`)

	server.stop()
	b.await(`document.getElementById("connection").textContent.startsWith("No connection")`)
	s.change(func(j *mapreduce.Job) { j.CompletedUnits, j.State = 1, mapreduce.Mapping })
	server.start()
	b.await(done + ` === "1 / 3"`)
	if got := b.eval(`String(document.querySelectorAll("#part-progress, #part-head, #part-stages").length) + document.getElementById("connection").textContent`); got != "3" {
		t.Errorf("after the server came back: %q", got)
	}
	b.checkQuiet()
}

// An open page of records, of the log or of the history is read again when the log of the job has grown, and shows each
// line once.
func TestPagesThatAreReadAgain(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, nil)
	b := newBrowser(t, server.URL)
	at := "/jobs/" + string(jobID)
	rows := func(part string) string {
		return `[...document.querySelectorAll("#` + part + ` tbody tr")].length === `
	}

	b.open(at + "/records?sort=total")
	b.await(rows("part-records") + "2")
	s.change(func(j *mapreduce.Job) {
		s.parts = append(slices.Clip(s.parts), &mapreduce.ResultPart{RecordID: "2.0", Record: []byte(`{"total": 1}`)})
		j.AuditHead = "1"
	})
	b.await(rows("part-records") + "3")
	if got := b.eval(`[...document.querySelectorAll("#part-records tbody th")].map((n) => n.textContent).join(" ")`); got != "3 2 1" {
		t.Errorf("the records are %s", got)
	}

	b.open(at + "/events?check=1")
	b.await(rows("part-log") + "1")
	s.change(func(j *mapreduce.Job) {
		s.events = append(slices.Clip(s.events), &mapreduce.Checkpoint{ID: "01", Time: j.Created, Kind: mapreduce.EventDecided, Principal: "ann"})
		j.AuditHead = "2"
	})
	b.await(rows("part-log") + "2")
	b.await(`document.querySelector("main .good")`) // what the check found stays

	b.open(at + "/history")
	b.await(`document.querySelector("#part-history tbody tr:last-child td:last-child").textContent === "1"`)
	s.change(func(j *mapreduce.Job) {
		s.events = append(slices.Clip(s.events), &mapreduce.Checkpoint{ID: "02", Time: j.Created, Kind: mapreduce.EventFinished, Completed: make([]mapreduce.UnitRef, 2)})
		j.AuditHead = "3"
	})
	b.await(`document.querySelector("#part-history tbody tr:last-child td:last-child").textContent === "3"`)
	b.checkQuiet()
}

// A page that nobody sees leaves the server alone, and is up to date as soon as somebody looks.
func TestHiddenPage(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, nil)
	b := newBrowser(t, server.URL)
	b.open("/jobs/" + string(jobID))
	const done = `document.querySelector("#part-progress dd").textContent`
	s.change(func(j *mapreduce.Job) { j.CompletedUnits = 2 })
	b.await(done + ` === "2 / 3"`) // by the stream, which is open

	show := func(hidden bool) {
		b.eval(fmt.Sprintf(`Object.defineProperty(document, "hidden", { value: %t, configurable: true }); document.dispatchEvent(new Event("visibilitychange")); ""`, hidden))
	}
	show(true)
	<-s.left // the stream has ended
	s.change(func(j *mapreduce.Job) { j.CompletedUnits = 3 })
	if got := b.eval(done); got != "2 / 3" {
		t.Errorf("the hidden page shows %q", got)
	}
	show(false)
	b.await(done + ` === "3 / 3"`)
	b.checkQuiet()
}

// BenchmarkChange reports after how many milliseconds an open page shows a change. The goal is 1,000.
func BenchmarkChange(bench *testing.B) {
	s := newStub("plain")
	server := open(bench, s, func(c *dashboard.Config) { c.Tick = 0 })
	b := newBrowser(bench, server.URL)
	b.open("/jobs/" + string(jobID))
	b.await(`document.querySelector("#part-progress dd").textContent === "1 / 3"`)

	units, whole := int64(1), 0.0
	for bench.Loop() {
		units++
		s.change(func(j *mapreduce.Job) { j.CompletedUnits = units })
		whole += b.await(fmt.Sprintf(`document.querySelector("#part-progress dd").textContent.startsWith("%d ")`, units))
	}
	bench.ReportMetric(whole/float64(bench.N), "ms-to-change")
	b.checkQuiet()
}

// Hostile texts run nothing and ask nobody, in any page of a real browser.
func TestHostileTextsInABrowser(t *testing.T) {
	s := newStub(strings.Join(hostile, " "))
	server := open(t, s, nil)
	b := newBrowser(t, server.URL)
	for _, path := range pagesOfAJob {
		b.open(path)
		b.await(`document.readyState === "complete"`)
		s.change(func(j *mapreduce.Job) { j.CompletedUnits++ })
		b.eval(`new Promise((resolve) => requestAnimationFrame(() => resolve("")))`)
	}
	b.checkQuiet()
}

// The chain of a log is computed in the browser, and a changed record breaks it.
func TestChainInTheBrowser(t *testing.T) {
	s := newStub("plain")
	s.job.Created = time.UnixMicro(1_795_928_473_418_265)
	s.events[0].Proof = mapreduce.Proof{Key: []byte("key"), Record: []byte("record")}
	value := sha256.Sum256([]byte("record"))
	origin := fmt.Sprintf("audit chain 2: job %q, tenant %q, submitted %d\n", jobID, "plain", 1_795_928_473_418_265)
	link := sha256.Sum256(append(append([]byte(origin), "key"...), value[:]...))
	s.seals = []*mapreduce.Seal{{Number: 0, Count: 1, Last: "00", Hash: link[:]}}
	s.job.AuditHead = fmt.Sprintf("%x", link)
	server := open(t, s, nil)
	b := newBrowser(t, server.URL)
	b.open("/jobs/" + string(jobID) + "/events")
	verified := func() string {
		b.press("#chain")
		b.await(`/^(Unbroken|Broken)/.test(document.getElementById("chain-outcome").textContent)`)
		return b.eval(`document.getElementById("chain-outcome").textContent`)
	}
	if got := verified(); got != "Unbroken: 1 events under 1 seals; 0 not sealed yet." {
		t.Errorf("the chain: %q", got)
	}
	s.events[0].Proof.Record = []byte("another")
	b.open("/jobs/" + string(jobID) + "/events")
	if got := verified(); got != "Broken at seal 0." {
		t.Errorf("a chain with a changed record: %q", got)
	}
	b.checkQuiet()
}

// The grid is walked through by keys, and leads to the unit that it is at.
func TestGridByKeyboard(t *testing.T) {
	server := open(t, newStub("plain"), nil)
	b := newBrowser(t, server.URL)
	b.open("/jobs/" + string(jobID))
	b.await(`document.getElementById("grid").dataset.drawn === "3"`)
	b.run(chromedp.Focus(chromedp.CSS("#grid")), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	b.await(`document.getElementById("grid-note").textContent === "#3: parked"`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.await(`location.pathname.endsWith("/units") && document.querySelector("tbody a")`)
	if got := b.eval(`document.querySelector("tbody a").textContent`); got != "u2plain" {
		t.Errorf("the grid leads to %q", got)
	}
	b.checkQuiet()
}

// TestAccessible has axe-core look for what keeps people with assistive technology out, on every
// page, by day and by night.
func TestAccessible(t *testing.T) {
	path := os.Getenv("CODITECT_AXE")
	if path == "" {
		t.Skip("CODITECT_AXE names no axe.min.js; make test-page does")
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	server := open(t, newStub("plain"), func(c *dashboard.Config) { c.Decode = decodeLong })
	b := newBrowser(t, server.URL)
	for _, scheme := range []string{"light", "dark"} {
		b.emulate(scheme)
		for _, path := range append([]string{"/sign-in", "/nothing", "/new"}, pagesOfAJob...) {
			b.open(path)
			b.await(`document.readyState === "complete" && (!document.getElementById("try") || document.getElementById("try").dataset.ready === "1")`)
			b.eval(`document.querySelectorAll("#try details, #part-unit details").forEach((d) => { d.open = true; }); ""`)
			b.run(chromedp.Evaluate[chromedp.Void](string(axe)))
			const violations = `axe.run().then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary).join("; ")).join("\n"))`
			if found := b.eval(violations); found != "" {
				t.Errorf("%s, %s: %s", scheme, path, found)
			}
		}
	}
}

// decodeLong reads an output that is longer than its part of a page, and a call with a prompt and an answer like that.
func decodeLong(*mapreduce.Job, *mapreduce.Unit) (*jobs.Output, error) {
	long := strings.Repeat("some words of a line that is long\n", 200)
	return &jobs.Output{Records: long, Calls: []mapreduce.Call{{Name: "call", Prompt: long, Answer: long}}}, nil
}

// emulate shows pages by day or by night.
func (b *browser) emulate(scheme string) {
	b.t.Helper()
	b.run(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}
