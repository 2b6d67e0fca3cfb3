package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/dev/testenv/chromium"
)

// decideAll decides by keys alone about each value that the page of a review has: the city is in no document, the total
// is another, and all else is right.
const decideAll = `(() => {
	const at = (id) => document.getElementById(id), press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
	for (let i = 0; i < %d; i++) {
		const field = at("field").textContent;
		if (field === "city") { press("n"); continue; }
		if (field !== "total") { press("a"); continue; }
		press("c");
		at("right").value = Number(at("document").textContent.slice(0, 3)) + ".75";
		at("correction").requestSubmit();
	}
	return "";
})()`

// Five hundred values are decided by keyboard in a browser while the server dies at each end of the transaction that
// keeps a decision and comes back: the page reconnects, each decision is kept once, and result, truth, eval and log
// agree about them.
func TestKeyboardReviewSurvivesKills(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)
	h := newHouse(t, &corpus{program: build(t)})
	const documents = 100
	receiptsToReview(t, h, documents)
	h.want(0, "run", "--input", "docs", "--schema", "schema.yaml", "--output", "out")
	job, _ := h.job()
	server := h.live(freeAddress(t), []string{"decide.before:70", "decide.after:60"})

	ctx := newTab(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(fmt.Sprintf("http://%s/jobs/%s/review?sample=%d", server.address, job.JobID, 5*documents)), chromedp.WaitReady(chromedp.CSS("#text[data-item]"))); err != nil {
		t.Fatal(err)
	}

	if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(decideAll, 5*documents))); err != nil {
		t.Fatal(err)
	}
	trouble, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(decidedAll, 5*documents), chromedp.EvalAwaitPromise))
	if err != nil || trouble != "" {
		t.Fatalf("the page says %q: %v", trouble, err)
	}
	if deaths := server.stop(); deaths < 5 {
		t.Errorf("the server died %d times", deaths)
	}

	wantReviewed(t, h, job.JobID, documents)
}

// decidedAll resolves when the server has stored so many decisions of the page, with what the page has to say.
const decidedAll = `new Promise((resolve) => {
	const look = () => { const p = document.getElementById("progress").dataset; if (p.waiting === "0" && p.decided === "%d") { watcher.disconnect(); resolve(document.getElementById("trouble").textContent); } };
	const watcher = new MutationObserver(look);
	watcher.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
	look();
})`

// A job whose values wait for a person is decided by keyboard alone, and ends while the page is open. The page says
// before for what it waits; the result, and a job over its records, have the values as they were decided.
func TestWaitingJobByKeyboard(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)
	h := newHouse(t, &corpus{program: build(t)})
	const documents = 12
	receiptsToReview(t, h, documents)
	listen, web := freeAddress(t), freeAddress(t)
	server := h.revive([]string{"serve", "--listen", listen, "--http", web}, web, []string{""})
	h.want(0, "run", "--server", listen, "--input", "docs", "--schema", "schema.yaml", "--review", "all", "--detach")
	job, _ := h.job()

	ctx := newTab(t)
	page := fmt.Sprintf("http://%s/jobs/%s", server.address, job.JobID)
	waits := fmt.Sprintf(`new Promise((resolve) => {
		const look = () => { const all = document.querySelectorAll("#part-stages .parked").length; if (all >= %d) { watcher.disconnect(); resolve(document.getElementById("main").textContent); } };
		const watcher = new MutationObserver(look);
		watcher.observe(document, {subtree: true, childList: true, attributes: true});
		look();
	})`, documents)
	if err := chromedp.Do(ctx, chromedp.Navigate(page), chromedp.WaitReady(chromedp.CSS("#part-stages"))); err != nil {
		t.Fatal(err)
	}
	said, err := chromedp.Run(ctx, chromedp.Evaluate[string](waits, chromedp.EvalAwaitPromise))
	if err != nil || !strings.Contains(said, "Units wait for people") {
		t.Errorf("the page of the job says %q: %v", said, err)
	}

	if err := chromedp.Do(ctx, chromedp.Navigate(page+"/review"), chromedp.WaitReady(chromedp.CSS("#text[data-item]"))); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(decideAll, 5*documents))); err != nil {
		t.Fatal(err)
	}
	trouble, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(decidedAll, 5*documents), chromedp.EvalAwaitPromise))
	if err != nil || trouble != "" {
		t.Fatalf("the page says %q: %v", trouble, err)
	}
	if err := chromedp.Do(ctx, chromedp.WaitReady(chromedp.CSS("#part-head .state.complete"))); err != nil {
		t.Fatal(err)
	}

	h.want(0, "result", job.JobID, "--output", "after")
	var result struct {
		Records []map[string]any `json:"aggregated_data"`
		Review  map[string]int   `json:"review"`
	}
	written, err := os.ReadFile(h.path(filepath.Join("after", "result.json")))
	if err != nil {
		t.Fatal(err)
	}
	h.decode(string(written), &result)
	if r := result.Review; len(result.Records) != documents || r["accepted"] != 3*documents || r["corrected"] != documents || r["absent"] != documents {
		t.Errorf("the result has %d records, and %v", len(result.Records), r)
	}
	for i, r := range result.Records {
		if r["total"] != float64(i)+0.75 || r["city"] != nil || r["number"] != fmt.Sprintf("N-%03d", i) {
			t.Errorf("record %d: %v", i, r)
		}
	}
	if events := strings.Count(h.want(0, "audit", job.JobID, "--verify", "--limit", "1000", "-o", "json"), `"decided"`); events != 5*documents {
		t.Errorf("the log has %d decisions", events)
	}
	h.want(0, "run", "--input", "job:"+job.JobID, "--schema", "schema.yaml", "--output", "chained")
	chained, err := os.ReadFile(h.path(filepath.Join("chained", "result.json")))
	if err != nil || !strings.Contains(string(chained), "7.75") || strings.Contains(string(chained), "7.5,") || strings.Contains(string(chained), "City 7") {
		t.Errorf("a job over the records does not have the values as they were decided: %v", err)
	}
	if deaths := server.stop(); deaths != 0 {
		t.Errorf("the server died %d times", deaths)
	}
}

// newTab starts Chromium, or skips the test where there is none, and returns the context of a tab.
func newTab(t *testing.T) context.Context {
	t.Helper()
	ctx := chromium.New(t)

	// The browser lives as long as the context that it is started with.
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// receiptsToReview writes documents whose every field is found, and their schema.
func receiptsToReview(t *testing.T, h *house, n int) {
	t.Helper()
	if err := os.Mkdir(h.path("docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		text := fmt.Sprintf("NUMBER: N-%03d\nSHOP: Shop %d\nCITY: City %d\nTOTAL: %d.50\nPAID: %d\n", i, i, i, i, i)
		if err := os.WriteFile(h.path(filepath.Join("docs", fmt.Sprintf("%03d.txt", i))), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(h.path("schema.yaml"), []byte(reviewedSchema), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantReviewed wants what was decided about each document in the result, the truth, eval and the log.
func wantReviewed(t *testing.T, h *house, job string, documents int) {
	t.Helper()
	h.want(0, "result", job, "--output", "after")
	var result struct {
		Records []map[string]any `json:"aggregated_data"`
		Review  map[string]int   `json:"review"`
	}
	written, err := os.ReadFile(h.path(filepath.Join("after", "result.json")))
	if err != nil {
		t.Fatal(err)
	}
	h.decode(string(written), &result)
	if want := map[string]int{"accepted": 3 * documents, "corrected": documents, "rejected": 0, "absent": documents, "unfitting_decisions": 0}; fmt.Sprint(result.Review) != fmt.Sprint(want) {
		t.Errorf("the result has %v, want %v", result.Review, want)
	}
	for i, r := range result.Records {
		if r["total"] != float64(i)+0.75 || r["city"] != nil || r["number"] != fmt.Sprintf("N-%03d", i) {
			t.Errorf("record %d: %v", i, r)
		}
	}

	h.want(0, "review", job, "--truth", "truth.jsonl")
	truth, err := os.ReadFile(h.path("truth.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(truth)), "\n")
	if len(lines) != documents || lines[7] != `{"city":null,"document":"007.txt","number":"N-007","paid":7,"shop":"Shop 7","total":7.75}` {
		t.Errorf("the truth has %d lines, of which the eighth is %s", len(lines), lines[min(7, len(lines)-1)])
	}

	var scores struct {
		Fields map[string]struct{ Precision float64 } `json:"fields"`
	}
	h.decode(h.want(0, "eval", "--result", filepath.Join("out", "result.json"), "--truth", "truth.jsonl", "--reviewed", "--schema", "schema.yaml", "-o", "json"), &scores)
	for field, want := range map[string]float64{"number": 1, "shop": 1, "paid": 1, "total": 0, "city": 0} {
		if got := scores.Fields[field].Precision; got != want {
			t.Errorf("eval: precision of %s is %g, want %g", field, got, want)
		}
	}
	if events := strings.Count(h.want(0, "audit", job, "--verify", "--limit", "1000", "-o", "json"), `"decided"`); events != 5*documents {
		t.Errorf("the log has %d decisions", events)
	}
	h.healthy()
}

// checkPage compares an open page of a job with what the service says of it, over and over until the job is complete:
// the page comes to show what the service said, never less than it showed before, and no part of it twice. It says what
// was wrong, and after how many milliseconds at most the page showed what the service had said.
const checkPage = `new Promise((resolve) => {
	const shown = () => Number(document.querySelector("#part-progress dd").textContent.split("/")[0].replace(/\D/g, ""));
	const wrong = [];
	let highest = 0, lag = 0, changed = () => {};
	new MutationObserver(() => {
		const n = shown();
		if (n < highest) wrong.push("it shows " + n + " after " + highest);
		highest = Math.max(highest, n);
		for (const part of ["head", "progress", "stages", "notes"]) {
			const times = document.querySelectorAll("#part-" + part).length;
			if (times !== 1) wrong.push(part + " is there " + times + " times");
		}
		changed();
	}).observe(document.getElementById("main"), {subtree: true, childList: true, attributes: true, characterData: true});
	const until = (holds) => new Promise((done) => { changed = () => { if (holds()) done(); }; changed(); });
	(async () => {
		for (;;) {
			let job;
			try {
				const answer = await fetch("/v1/jobs/%s");
				if (!answer.ok) throw new Error(answer.status);
				job = await answer.json();
			} catch {
				await new Promise(requestAnimationFrame); // the server is away
				continue;
			}
			const began = performance.now();
			await until(() => shown() >= Number(job.completedUnits || 0));
			lag = Math.max(lag, performance.now() - began);
			if (job.state !== "JOB_STATE_COMPLETE") continue;
			await until(() => document.querySelector("#part-head .state.complete"));
			const facts = document.querySelector("#part-progress dd").textContent.replace(/[^0-9/]/g, "");
			if (facts !== job.completedUnits + "/" + job.totalUnits) wrong.push("at the end it shows " + facts);
			resolve(JSON.stringify({ wrong, lag: Math.round(lag), total: Number(job.totalUnits) }));
			return;
		}
	})();
})`

// A page that is open while its job runs and the server dies again and again shows what the service says, as soon as
// the server is back, and nothing twice; so do the other pages of the job then.
func TestOpenPageAgreesWithTheService(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)

	h := newHouse(t, &corpus{program: build(t)})
	const documents = 100
	receiptsToReview(t, h, documents)
	// The budget pauses the job; somebody raises it on the page.
	h.want(4, "run", "--input", "docs", "--schema", "schema.yaml", "--output", "out", "--provider", "scripted", "--parallelism", "1", "--budget", "25000",
		"--var", "script.tokens_in=6000", "--var", "script.latency=20ms")
	job, _ := h.job()
	server := h.live(freeAddress(t), []string{"turn.before:25", "turn.after:20"})

	ctx := newTab(t)
	page := fmt.Sprintf("http://%s/jobs/%s", server.address, job.JobID)
	const budget = "form[action$='/resume'] input[name=budget]"
	if err := chromedp.Do(ctx, chromedp.Navigate(page), chromedp.SendKeys(chromedp.CSS(budget), "100000000\r"), chromedp.WaitReady(chromedp.CSS("form[action$='/pause']"))); err != nil {
		t.Fatal(err)
	}
	said, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(checkPage, job.JobID), chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Wrong []string
		Lag   int // milliseconds
		Total int
	}
	h.decode(said, &got)
	if len(got.Wrong) > 0 || got.Total < documents {
		t.Errorf("the page of %d units: %q", got.Total, got.Wrong)
	}

	const units = `new Promise((resolve) => {
		const look = () => { const table = document.querySelector("#table-units table"); if (table && table.getAttribute("aria-rowcount")) { watcher.disconnect(); resolve(table.getAttribute("aria-rowcount")); } };
		const watcher = new MutationObserver(look);
		watcher.observe(document, {subtree: true, childList: true, attributes: true});
		look();
	})`
	if err := chromedp.Do(ctx, chromedp.Navigate(page+"/units"), chromedp.WaitReady(chromedp.CSS("#part-head"))); err != nil {
		t.Fatal(err)
	}
	rows, err := chromedp.Run(ctx, chromedp.Evaluate[string](units, chromedp.EvalAwaitPromise))
	if err != nil || rows != fmt.Sprint(got.Total+1) {
		t.Errorf("the table of units has %s rows with its head, want %d: %v", rows, got.Total+1, err)
	}
	deaths := server.stop()
	if deaths < 3 {
		t.Errorf("the server died %d times", deaths)
	}
	t.Logf("with %d deaths of the server the page was at most %d ms behind", deaths, got.Lag)
	h.healthy()
}
