package dashboard_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A reviewed is a service with a job whose values are decided about.
type reviewed struct {
	*stub
	mu        sync.Mutex // guards the variables below
	decisions []*mapreduce.Decision
	waiting   []*mapreduce.WaitingUnit
}

const reviewSchema = `{"type": "object", "properties": {"total": {"type": "number", "description": "What is paid", "x-coditect": {"labels": ["TOTAL"]}}}}`

// newReviewed returns a service whose job has n values of total, each with little confidence.
func newReviewed(text string, n int) *reviewed {
	s := &reviewed{stub: newStub(text)}
	s.stub.text = "Größe: total 12.50, paid 11.25 " + text
	s.stub.job.Spec.Schema, s.stub.job.State = []byte(reviewSchema), mapreduce.JobComplete
	s.stub.parts = nil
	for i := range n {
		ref := fmt.Sprint("REF_", i)
		s.stub.parts = append(
			s.stub.parts,
			&mapreduce.ResultPart{RecordID: mapreduce.NewRecordID(int64(i), 0), Record: fmt.Appendf(nil, `{"total": 9007199254740993.%02d, "_sources": ["d"], "_citations": {"total": [%q]}, "_confidence": {"total": 0.5}}`, i%100, ref)},
			&mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: ref, Document: "d", Unit: "u", ByteStart: 15, ByteEnd: 20}},
		)
	}
	return s
}

// setWaiting has the first n values wait, as those of units of a job that runs.
func (s *reviewed) setWaiting(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = nil
	for i := range n {
		id := mapreduce.NewRecordID(int64(i), 0)
		s.waiting = append(s.waiting, &mapreduce.WaitingUnit{
			Unit: "u", Role: mapreduce.Reviewer, Values: []mapreduce.WaitingValue{{Record: id, Field: "total", Why: "all"}}, Parts: s.stub.parts[2*i:][:2],
		})
	}
}

func (s *reviewed) ListWaiting(context.Context, mapreduce.ListWaitingQuery) (*mapreduce.WaitingPage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &mapreduce.WaitingPage{Units: s.waiting}, nil
}

func (s *reviewed) ReadText(_ context.Context, _ mapreduce.JobID, _ mapreduce.UnitID, _ mapreduce.DocumentID, sink func([]byte) error) error {
	return sink([]byte(s.stub.text))
}

func (s *reviewed) DecideValue(_ context.Context, d mapreduce.NewDecision) (*mapreduce.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(d.Value) == `"bad"` {
		return nil, errs.Field("value", "is no number")
	}
	kept := &mapreduce.Decision{Record: d.Record, Field: d.Field, Number: 1, Request: d.Request, By: "ann", Verdict: d.Verdict, Value: d.Value, Model: d.Model}
	if d.Passage != nil {
		kept.Passage = &mapreduce.Citation{ByteStart: d.Passage.ByteStart, ByteEnd: d.Passage.ByteEnd, Quote: s.stub.text[d.Passage.ByteStart:d.Passage.ByteEnd]}
	}
	for _, had := range s.decisions {
		if had.Record == d.Record && had.Field == d.Field {
			if kept.Number++; had.Request == d.Request {
				return had, nil
			}
		}
	}
	s.decisions = append(s.decisions, kept)
	return kept, nil
}

func (s *reviewed) ListDecisions(context.Context, mapreduce.ListDecisionsQuery) (*mapreduce.DecisionPage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &mapreduce.DecisionPage{Decisions: append([]*mapreduce.Decision(nil), s.decisions...)}, nil
}

// kept returns the decisions that were stored, oldest first.
func (s *reviewed) kept() []*mapreduce.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*mapreduce.Decision(nil), s.decisions...)
}

// A gate is a server that is killed and started again: while it is shut, connections break, some of them
// after the request was carried out.
type gate struct {
	pages http.Handler
	mu    sync.Mutex // guards the variables below
	calls int
}

// ServeHTTP implements http.Handler. Of every twenty decisions one is stored and not answered, and one
// is not even stored.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		g.pages.ServeHTTP(w, r)
		return
	}
	g.mu.Lock()
	g.calls++
	n := g.calls
	g.mu.Unlock()
	switch n % 20 {
	case 7:
		g.pages.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case 13:
		panic(http.ErrAbortHandler)
	}
	g.pages.ServeHTTP(w, r)
}

func openReviewed(t *testing.T, s *reviewed) *browser {
	t.Helper()
	d, err := dashboard.New(dashboard.Config{Jobs: s, Tick: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&gate{pages: d})
	t.Cleanup(server.Close)
	b := newBrowser(t, server.URL)
	b.open("/jobs/" + string(jobID) + "/review?sample=20")
	return b
}

const pressed = `document.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true}))`

// Five hundred values are decided by keys alone, while connections break in every way; each decision is
// stored once, and numbers are exact.
func TestReviewByKeyboard(t *testing.T) {
	const values = 500
	s := newReviewed("plain", values)
	b := openReviewed(t, s)
	b.await(`document.getElementById("text").textContent.includes("12.50") && document.querySelector("mark.here").textContent === "12.50"`)

	// A page that is opened again in between goes on with what the server has.
	keys := strings.Repeat("aarna", values/10)
	b.eval(`for (const key of ` + fmt.Sprintf("%q", keys) + `) document.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})); "done"`)
	b.open("/jobs/" + string(jobID) + "/review?sample=20")
	b.await(fmt.Sprintf(`document.getElementById("progress").dataset.decided === "%d"`, values/2))
	b.eval(`for (const key of ` + fmt.Sprintf("%q", keys) + `) document.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})); "done"`)
	b.await(fmt.Sprintf(`document.getElementById("progress").dataset.decided === "%d" && document.getElementById("progress").dataset.waiting === "0"`, values))

	seen, verdicts := make(map[mapreduce.RecordID]bool), make(map[mapreduce.ReviewVerdict]int)
	for _, d := range s.kept() {
		if seen[d.Record] {
			t.Errorf("%s is decided twice", d.Record)
		}
		seen[d.Record] = true
		verdicts[d.Verdict]++
		if !strings.HasPrefix(string(d.Model), "9007199254740993.") {
			t.Errorf("decided about %s", d.Model)
		}
	}
	if len(seen) != values || verdicts[mapreduce.ReviewAccept] < values/3 {
		t.Errorf("%d values are decided: %v", len(seen), verdicts)
	}
	if said := b.eval(`document.getElementById("done").textContent`); !strings.HasPrefix(said, "All 500 values are decided.") || b.eval(`String(document.getElementById("others").hidden)`) != "true" {
		t.Errorf("the page says %q at the end", said)
	}
	b.checkQuiet()
}

// Whoever has decided about all that is worth a look reads how many values there are beside it, and looks at these
// as well; nothing is done as long as the server does not have it.
func TestReviewOfTheOthers(t *testing.T) {
	s := newReviewed("plain", 30)
	for _, p := range s.stub.parts[20:] {
		if p.Record != nil {
			p.Record = bytes.Replace(p.Record, []byte(`{"total": 0.5}`), []byte(`{"total": 0.95}`), 1)
		}
	}
	b := openReviewed(t, s)
	b.await(`document.querySelector("mark.here") !== null`)
	b.open("/jobs/" + string(jobID) + "/review?sample=0")
	b.await(`document.querySelector("mark.here") !== null && document.getElementById("done").hidden`)
	if early := b.eval(`for (let i = 0; i < 10; i++) ` + fmt.Sprintf(pressed, "a") + `; String(document.getElementById("done").hidden)`); early != "true" {
		t.Error("the review is done before the server has all of it")
	}
	b.await(`!document.getElementById("done").hidden`)
	if said := b.eval(`document.getElementById("finished").textContent`); said != "The 10 values that were worth a look are decided, of 30." {
		t.Errorf("the page says %q", said)
	}

	b.open(b.eval(`document.getElementById("others").getAttribute("href")`))
	b.await(`document.getElementById("progress").textContent.startsWith("Value 11 of 30; decided: 10")`)
	b.checkQuiet()
}

// A passage is marked and becomes the value, with the bytes where it stands; a value is typed; what the
// service refuses is said; the last decision is taken back.
func TestReviewCorrects(t *testing.T) {
	s := newReviewed("plain", 4)
	b := openReviewed(t, s)
	b.await(`document.querySelector("mark.here") && document.querySelector("mark.here").textContent === "12.50"`)
	if got := b.eval(`document.getElementById("value").textContent + " | " + document.getElementById("rubric").textContent`); !strings.HasPrefix(got, "9007199254740993.") || !strings.Contains(got, "What is paid [TOTAL]") {
		t.Errorf("value and rubric %q", got)
	}
	b.eval(`(() => {
		const node = document.getElementById("text").lastChild, at = node.data.indexOf("11.25"), range = document.createRange();
		range.setStart(node, at); range.setEnd(node, at + 5);
		getSelection().removeAllRanges(); getSelection().addRange(range);
		return "marked";
	})()`)
	b.eval(fmt.Sprintf(pressed, "c") + ` + ""`)
	b.await(`document.getElementById("progress").dataset.waiting === "0" && document.getElementById("progress").dataset.decided === "1"`)
	if all := s.kept(); len(all) != 1 || all[0].Passage == nil || all[0].Passage.Quote != "11.25" || string(all[0].Value) != `"11.25"` {
		t.Errorf("kept %+v", all)
	}

	b.eval(fmt.Sprintf(pressed, "c") + ` + ""`)
	b.run(chromedp.SendKeys("#right", "bad\r"))
	// The page stays at the value that was refused, with what was typed.
	b.await(`document.getElementById("trouble").textContent.startsWith("total #2: ") && document.getElementById("progress").dataset.decided === "1" &&
		document.activeElement.id === "right" && document.getElementById("right").value === "bad" && document.getElementById("number").textContent === "#2" &&
		document.getElementById("decided").textContent === ""`)
	b.eval(`(() => { document.getElementById("right").select(); return ""; })()`)
	b.run(chromedp.SendKeys("#right", "7.10\r"))
	b.await(`document.getElementById("progress").dataset.waiting === "0" && document.getElementById("progress").dataset.decided === "2"`)
	b.eval(fmt.Sprintf(pressed, "u") + ` + ""`)
	b.await(`document.getElementById("progress").dataset.waiting === "0" && document.getElementById("progress").dataset.decided === "1"`)
	all := s.kept()
	if len(all) != 3 || string(all[1].Value) != "7.10" || all[2].Verdict != mapreduce.ReviewWithdraw || all[2].Record != all[1].Record {
		t.Errorf("kept %+v", all)
	}
	b.checkQuiet()
}

// What others hold is passed over, and the page says who holds it; what is decided next is held meanwhile.
func TestReviewPassesOver(t *testing.T) {
	const hostile = `<img src=x onerror="document.title='seized'">`
	s := newReviewed("plain", 6)
	s.stub.held = []mapreduce.RecordClaim{
		{Record: "0.0", By: "ann", Own: true, End: time.Now().Add(time.Hour)},
		{Record: "1.0", By: hostile, End: time.Now().Add(time.Hour)},
		{Record: "2.0", By: hostile, End: time.Now().Add(time.Hour)},
		{Record: "3.0", By: hostile, End: time.Now().Add(-time.Second)}, // it has lapsed
		{Record: "9.9", By: hostile, End: time.Now().Add(time.Hour)},    // it is in no queue
	}
	b := openReviewed(t, s)
	b.await(`document.querySelector("mark.here") && document.getElementById("held").textContent.includes("reviews 2 of these")`)
	if said := b.eval(`document.getElementById("held").textContent`); !strings.HasPrefix(said, hostile) {
		t.Errorf("the page says %q", said)
	}
	if at := b.eval(fmt.Sprintf(pressed, "a") + `; document.getElementById("number").textContent`); at != "#4" {
		t.Errorf("the next value is of %s, want #4", at)
	}
	if at := b.eval(fmt.Sprintf(pressed, "k") + `; document.getElementById("number").textContent`); at != "#1" {
		t.Errorf("the value before is of %s, want #1", at)
	}

	s.stub.mu.Lock()
	claimed := fmt.Sprint(s.stub.claimed[:min(6, len(s.stub.claimed))])
	s.stub.mu.Unlock()
	if claimed != "[0.0 1.0 2.0 3.0 4.0 5.0]" {
		t.Errorf("the page holds %s", claimed)
	}
	b.checkQuiet()
}

// More values come to wait while one decides: they are added to those that are left, and what others have decided is
// shown.
func TestReviewGrows(t *testing.T) {
	s := newReviewed("plain", 2)
	s.stub.job.State, s.stub.job.Spec.Vars = mapreduce.Mapping, map[string]string{"review": "all"}
	s.stub.job.ParkedUnits = 1
	s.setWaiting(1)
	b := openReviewed(t, s)
	b.await(`document.querySelector("mark.here") && document.getElementById("progress").dataset.decided === "0"`)
	if n := b.eval(`document.getElementById("progress").textContent`); !strings.Contains(n, "1") || strings.Contains(n, "2") {
		t.Errorf("the page says %q", n)
	}

	b.eval(fmt.Sprintf(pressed, "a") + ` + ""`)
	b.await(`document.getElementById("progress").dataset.waiting === "0"`)
	s.setWaiting(2)
	s.stub.change(func(j *mapreduce.Job) { j.ParkedUnits = 2 })
	b.await(`document.getElementById("done").hidden && document.getElementById("progress").dataset.decided === "1"`)
	b.eval(fmt.Sprintf(pressed, "j") + `; ` + fmt.Sprintf(pressed, "r") + ` + ""`)
	b.await(`document.getElementById("progress").dataset.waiting === "0" && document.getElementById("progress").dataset.decided === "2" && !document.getElementById("done").hidden`)
	if all := s.kept(); len(all) != 2 || all[1].Record != "1.0" || all[1].Verdict != mapreduce.ReviewReject {
		t.Errorf("kept %+v", all)
	}
	b.checkQuiet()
}
