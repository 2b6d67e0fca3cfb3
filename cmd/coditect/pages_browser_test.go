package main_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/keys"
)

// A watched is an open page, and what it is compared with.
type watched struct {
	name, path string
	said       string // an expression that asks the service what the page is to show
	shown      string // an expression of what it shows

	tab context.Context
}

const documentsToWatch = 120 // that the job has which goes on: more units than a page of their list has

// pagesToWatch are pages of a job that goes on, of one that is complete and whose values are decided about, and of the
// fleet.
func pagesToWatch(running, complete string) []*watched {
	job, done := "/jobs/"+running, "/jobs/"+complete
	lastUnit := strconv.FormatInt(keys.MapIndex(documentsToWatch-1, 0), 10)
	return []*watched{
		{
			name: "jobs", path: "/",
			said: `(await api("jobs?pageSize=50")).jobs.map((j) => [j.jobId, stateOf(j), whole(j.completedUnits) + "/" + whole(j.totalUnits), whole(j.failedUnits),
				String(Number(j.totalTokens?.input || 0) + Number(j.totalTokens?.output || 0))])`,
			shown: `rows("#part-jobs").map((r) => [r.dataset.key, r.querySelector(".state").classList[1], figures(r.cells[3]), figures(r.cells[4]), figures(r.cells[6])])`,
		},
		{
			name: "units", path: job + "/units",
			said: `[String(Number((await api("jobs/` + running + `")).totalUnits) + 1)].concat(
				(await api("jobs/` + running + `/units?pageSize=100")).units.map((u) => [u.unitId, stateOf(u), whole(u.attempts)]))`,
			shown: `[document.querySelector("#table-units table").getAttribute("aria-rowcount")].concat(
				rows("#table-units").filter((r) => !r.classList.contains("gap")).slice(0, 100).map((r) => [r.cells[0].textContent, r.querySelector(".state").classList[1], figures(r.cells[4])]))`,
		},
		{
			name: "a unit", path: job + "/units/0." + lastUnit,
			said:  `(await api("jobs/` + running + `/units?pageSize=1&pageToken=0:` + lastUnit + `:0")).units.map((u) => [u.unitId, stateOf(u), whole(u.attempts), String((u.errors || []).length)])`,
			shown: `[...document.querySelectorAll("#part-unit")].map((u) => [u.querySelector("h2 bdi").textContent, u.querySelector(".state").classList[1], String(parseInt(u.querySelector("dd").textContent)), String(u.querySelectorAll("ol li").length)])`,
		},
		{
			name: "errors", path: job + "/errors",
			said:  `[whole((await api("jobs/` + running + `")).failedUnits)]`,
			shown: `[String([...document.querySelectorAll("#part-errors .causes strong")].reduce((sum, n) => sum + Number(figures(n)), 0))]`,
		},
		{
			name: "history", path: job + "/history",
			said:  `[String((await api("jobs/` + running + `/events?pageSize=1000")).checkpoints.reduce((sum, c) => sum + (c.completed || []).length, 0))]`,
			shown: `[String(rows("#part-history details").reduce((sum, r) => sum + Number(figures(r.cells[1])), 0))]`,
		},
		{
			name: "records of a job that goes on", path: job + "/records",
			said:  `recordsOf(await api("jobs/` + running + `/result.json?partial=true"))`,
			shown: `recordsShown()`,
		},
		{
			name: "records", path: done + "/records",
			said:  `recordsOf(await api("jobs/` + complete + `/result.json"))`,
			shown: `recordsShown()`,
		},
		{
			name: "review", path: done + "/review?sample=1000",
			said: `await (async () => { const all = (await api("jobs/` + complete + `/decisions?pageSize=1000")).decisions || []; return [
				String(new Set(all.map((d) => d.recordId + " " + d.field)).size)]; })()`,
			shown: `[document.getElementById("progress").dataset.decided]`,
		},
		{
			name: "log", path: done + "/events",
			said:  `(await api("jobs/` + complete + `/events?pageSize=100")).checkpoints.map((c) => [c.checkpointId, c.principal || "", c.message || ""])`,
			shown: `rows("#part-log").map((r) => [r.dataset.key, r.cells[2].textContent, r.cells[7].textContent])`,
		},
		triedSchemaOf(complete),
		{
			name: "fleet", path: "/fleet",
			said: `await (async () => { const f = await api("fleet"); return [
				(f.servers || []).map((s) => [s.nodeId, Boolean(s.dead)]), (f.workers || []).map((w) => [w.sessionId, Boolean(w.nodeId), Boolean(w.away)])]; })()`,
			shown: `[rows("#part-fleet > table:first-of-type").map((r) => [r.dataset.key, r.cells[1].classList.contains("bad")]),
				rows("#part-fleet .scroll").filter((r) => r.cells.length > 9).map((r) => [r.dataset.key, !r.cells[1].textContent.startsWith("lost"), r.cells[1].textContent.startsWith("away")])]`,
		},
	}
}

// triedSchemaOf is the page that tries the schema of a job on its documents: rules find there what they found in the job, whatever
// was decided about it.
func triedSchemaOf(complete string) *watched {
	return &watched{
		name: "try", path: "/try?job=" + complete,
		said: `(await api("jobs/` + complete + `/result.json")).aggregated_data.map((r) => [r._sources[0],
			...fields.map((f) => String((r._reviewed || {})[f] ? r._reviewed[f].model : r[f]))]).sort()`,
		shown: `[...document.querySelectorAll("#part-results details[data-key]")].map((d) => [d.dataset.key,
			...fields.map((f) => [...d.querySelectorAll("tbody tr")].find((r) => r.cells[0].textContent === f).cells[1].querySelector("bdi").textContent)]).sort()`,
	}
}

// triedAgainst is that page beside what was decided about the values of the job, which it has read as it was opened.
func triedAgainst(complete string) *watched {
	return &watched{
		name: "try, beside what was decided", path: "/try?job=" + complete,
		said:  `(await api("jobs/` + complete + `/result.json")).aggregated_data.filter((r) => r._reviewed).map((r) => [r._sources[0], String(r.total)]).sort()`,
		shown: `document.getElementById("try-truth").value.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line)).map((r) => [r.document, String(r.total)]).sort()`,
	}
}

// checkPages is what a page is compared with the service by. api asks until the server answers. noteTwice notes all that
// is there twice, whenever the page changes. agree waits until the page shows what the service says, and the service says
// the same again.
const checkPages = `
window.soon = () => new Promise((done) => setTimeout(done, 50));
window.api = async (path, body) => {
	for (;;) {
		let answer;
		try {
			answer = await fetch("/v1/" + path, body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
			if (answer.ok) return await answer.json();
		} catch {} // the server is away
		if (answer && answer.status < 500) throw new Error(path + ": " + await answer.text());
		await soon();
	}
};
window.settled = async (job) => {
	for (;;) {
		const j = await api("jobs/" + job);
		if (["JOB_STATE_PAUSED", "JOB_STATE_COMPLETE", "JOB_STATE_FAILED"].includes(j.state) && !Number(j.runningUnits)) return j.state;
		await soon();
	}
};
window.whole = (n) => String(n || 0);
window.figures = (cell) => cell.textContent.replace(/[^0-9/]/g, "");
window.rows = (part) => [...document.querySelectorAll(part + " tbody tr")];
window.stateOf = (of) => of.parking ? "parked" : of.state.replace(/^(JOB|UNIT)_STATE_/, "").toLowerCase();
window.fields = ["number", "shop", "city", "total", "paid"];
window.recordsOf = (result) => (result.aggregated_data || []).slice(0, 100).map((r) => fields.map((f) => r[f] === undefined || r[f] === null ? "–" : String(r[f])));
window.recordsShown = () => {
	const names = [...document.querySelectorAll("#part-records thead bdi")].map((n) => n.textContent);
	return rows("#part-records").map((r) => fields.map((f) => (r.cells[2 + names.indexOf(f)].querySelector("a, bdi, span") || r.cells[2 + names.indexOf(f)]).textContent));
};
window.twice = [];
window.noteTwice = () => {
	const all = [...document.querySelectorAll("[id]")].map((e) => e.id);
	for (const group of document.querySelectorAll("tbody, ol")) {
		const keys = [...group.children].filter((e) => e.dataset.key).map((e) => e.dataset.key);
		if (new Set(keys).size < keys.length) twice.push("a row: " + keys.find((k, i) => keys.indexOf(k) < i));
	}
	if (new Set(all).size < all.length) twice.push("#" + all.find((id, i) => all.indexOf(id) < i));
};
new MutationObserver(noteTwice).observe(document.getElementById("main"), { subtree: true, childList: true });
window.agree = async (ask, shown) => {
	window.disagree = {};
	let began = performance.now();
	for (;;) {
		const said = JSON.stringify(await ask());
		if (said !== disagree.said) began = performance.now();
		disagree.said = said;
		disagree.shown = JSON.stringify(shown());
		if (disagree.shown === said) return Math.round(performance.now() - began);
		await soon();
	}
};
noteTwice();
""`

// open opens a page in a session of a browser of its own, as a browser has few connections to one server.
func (p *watched) open(browser context.Context, t *testing.T, address string) {
	t.Helper()
	tab, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if err := chromedp.Do(tab, chromedp.Navigate("http://"+address+p.path), chromedp.WaitReady(chromedp.CSS("main"))); err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	p.tab = tab
	p.eval(t, checkPages)
}

// eval returns what an expression comes to in the page.
func (p *watched) eval(t *testing.T, expression string) string {
	t.Helper()
	said, err := chromedp.Run(p.tab, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %s: %v", p.name, expression, err)
	}
	return said
}

// agrees waits until the page shows what the service says, and returns how long that took, in milliseconds.
func (p *watched) agrees() (lag int, err error) {
	within, cancel := context.WithTimeout(p.tab, patience)
	defer cancel()
	lag, err = chromedp.Run(within, chromedp.Evaluate[int](`agree(async () => `+p.said+`, () => `+p.shown+`)`, chromedp.EvalAwaitPromise))
	if err != nil {
		differ, _ := chromedp.Run(p.tab, chromedp.Evaluate[string](`JSON.stringify(disagree, null, 1)`))
		return lag, fmt.Errorf("%s does not come to show what the service says: %w\n%s", p.name, err, differ)
	}
	twice, err := chromedp.Run(p.tab, chromedp.Evaluate[string](`twice.join("; ")`))
	if err == nil && twice != "" {
		err = fmt.Errorf("%s: there twice: %s", p.name, twice)
	}
	return lag, err
}

// agree waits until all pages show what the service says, and notes how long each took at most, in milliseconds.
func agree(t *testing.T, pages []*watched, lags []int) {
	t.Helper()
	var all sync.WaitGroup
	for i, p := range pages {
		all.Go(func() {
			lag, err := p.agrees()
			if err != nil {
				t.Error(err)
			}
			lags[i] = max(lags[i], lag)
		})
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
}

// Every page that is open while its job goes on, while values are decided about, and while server and worker die again
// and again, comes to show what the service says, and nothing twice, without being loaded again.
func TestPagesAgreeWithTheService(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)

	// One job is complete; another waits for a budget, and some of its units fail.
	h := newHouse(t, &corpus{program: build(t)})
	receiptsToReview(t, h, 10)
	if err := os.Rename(h.path("docs"), h.path("few")); err != nil {
		t.Fatal(err)
	}
	receiptsToReview(t, h, documentsToWatch)
	h.want(0, "run", "--input", "few", "--schema", "schema.yaml", "--output", "out")
	complete := h.jobs()[0].JobID
	h.want(4, "run", "--input", "docs", "--schema", "schema.yaml", "--output", "others", "--provider", "scripted", "--parallelism", "2", "--budget", "25000",
		"--var", "script.tokens_in=6000", "--var", "script.latency=5ms", "--var", "script.poison.007.txt=permanent", "--var", "script.poison.071.txt=permanent", "--var", "script.poison.119.txt=permanent")
	running := h.jobs()[0].JobID

	listen := freeAddress(t)
	web := freeAddress(t)
	server := h.revive([]string{"serve", "--listen", listen, "--http", web, "--workers", "0", "--lease", "1s", "--heartbeat", "100ms", "--grace", "300ms"}, web,
		[]string{"turn.before:25", "turn.after:20"})
	worker := h.revive([]string{"worker", "--server", listen, "--slots", "4"}, "", []string{""})

	browser := newTab(t)
	pages := pagesToWatch(running, complete)
	for _, p := range pages {
		p.open(browser, t, web)
	}

	budgets := []int{150_000, 300_000, 450_000, 100_000_000}
	lags := make([]int, len(pages))
	for round, budget := range budgets {
		server.kill()
		worker.kill()
		pages[0].eval(t, fmt.Sprintf(`(async () => {
			await api("jobs/%[1]s/decisions", { recordId: "%[2]s", field: "total", requestId: "round-%[3]d", verdict: "REVIEW_VERDICT_CORRECT", value: "%[3]d.75" });
			await api("jobs/%[4]s:resume", { budgetTokens: "%[5]d" });
			return await settled("%[4]s");
		})()`, complete, mapreduce.NewRecordID(keys.MapIndex(int64(round), 0), 0), round, running, budget))
		agree(t, pages, lags)
	}

	if state := pages[0].eval(t, `settled("`+running+`")`); state != "JOB_STATE_COMPLETE" {
		t.Errorf("the job is %s", state)
	}
	late := []*watched{triedAgainst(complete)}
	late[0].open(browser, t, web)
	agree(t, late, make([]int, len(late)))
	worked := worker.stop()
	if deaths := server.stop(); deaths < int64(len(budgets)) || worked < int64(len(budgets)) {
		t.Errorf("the server died %d times, and the worker %d times", deaths, worked)
	}
	var said strings.Builder
	for i, p := range pages {
		fmt.Fprintf(&said, "\n%s: %s", p.name, time.Duration(lags[i])*time.Millisecond)
	}
	t.Logf("after a change the pages were behind for at most%s", &said)
	h.healthy()
}
