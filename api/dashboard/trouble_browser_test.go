package dashboard_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A troubled service refuses everything while its stub fails.
type troubled struct{ *reviewed }

func (s troubled) trouble() error {
	s.stub.mu.Lock()
	defer s.stub.mu.Unlock()
	return s.stub.err
}

func (s troubled) DecideValue(ctx context.Context, d mapreduce.NewDecision) (*mapreduce.Decision, error) {
	if err := s.trouble(); err != nil {
		return nil, err
	}
	return s.reviewed.DecideValue(ctx, d)
}

func (s troubled) WakeUnit(ctx context.Context, id mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	if err := s.trouble(); err != nil {
		return nil, err
	}
	return s.reviewed.WakeUnit(ctx, id, unit, handle, answer)
}

func (s troubled) SubmitJob(ctx context.Context, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	if err := s.trouble(); err != nil {
		return nil, err
	}
	return s.reviewed.SubmitJob(ctx, spec, docs)
}

// openTroubled opens pages of a job whose service will fail.
func openTroubled(t *testing.T) (troubled, *browser) {
	t.Helper()
	s := troubled{newReviewed("plain", 3)}
	s.stub.job.State = mapreduce.Mapping
	server := open(t, s.stub, func(c *dashboard.Config) { c.Jobs = s })
	return s, newBrowser(t, server.URL)
}

const (
	connection = `document.getElementById("connection").textContent`
	said       = `document.getElementById("said").textContent`
)

// submit submits the form that has a field, as its button does.
func (b *browser) submit(field string) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`document.querySelector(%q).form.requestSubmit(); ""`, field))
}

// fill types into a field.
func (b *browser) fill(field, text string) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`(() => { const f = document.querySelector(%q); f.value = %q; f.dispatchEvent(new Event("input", {bubbles: true})); return ""; })()`, field, text))
}

// Every page of a job that somebody deletes says so, stays as it is and asks no more; what was typed there stays, also
// when it is sent.
func TestDeletedWhileOpen(t *testing.T) {
	s, b := openTroubled(t)
	job := "/jobs/" + string(jobID)
	for path, typed := range map[string]string{
		job: "form[action$='/budget'] input[name=budget]", job + "/units": "", job + "/units/0.2": "textarea[name=answer]", job + "/records": "", job + "/review": "#right",
		job + "/history": "", job + "/errors": "", job + "/events": "",
	} {
		s.fail(nil)
		s.change(func(j *mapreduce.Job) { j.State = mapreduce.Mapping })
		b.open(path)
		if strings.HasSuffix(path, "/review") {
			s.change(func(j *mapreduce.Job) { j.State = mapreduce.JobComplete })
			b.open(path)
			b.await(`document.querySelector("mark.here")`)
		}
		b.await(`document.getElementById("pause").hidden === false`)
		if typed != "" {
			b.fill(typed, "12")
		}
		s.fail(errGone)
		s.change(func(*mapreduce.Job) {})
		b.await(connection + `.includes("somebody has deleted it") && document.getElementById("pause").hidden`)
		if !strings.Contains(b.eval(`document.querySelector("h1").textContent`), string(jobID)) {
			t.Errorf("%s does not show the job any more", path)
		}
		if typed == "" {
			continue
		}
		b.submit(typed)
		switch path {
		case job + "/review":
			b.await(`document.getElementById("trouble").textContent.includes("there is no job")`)
		default:
			b.await(said + `.includes("there is no job")`)
		}
		b.await(fmt.Sprintf(`document.querySelector(%q).value === "12"`, typed))
	}
	b.checkQuiet()
}

// While the disk is full, pages say that, and keep what somebody has typed; it is taken when there is room.
func TestFullDisk(t *testing.T) {
	full := &errs.Error{Kind: errs.Exhausted, Reason: errs.StoreFull, Message: "the disk of the store is nearly full; free some space"}
	s, b := openTroubled(t)
	job := "/jobs/" + string(jobID)

	b.open(job + "/units/0.2")
	b.await(`document.getElementById("pause").hidden === false`)
	b.fill("textarea[name=answer]", "what I know of it")
	s.fail(full)
	b.submit("textarea[name=answer]")
	b.await(said + `.includes("nearly full") && document.querySelector("textarea[name=answer]").value === "what I know of it"`)
	s.fail(nil)
	b.submit("textarea[name=answer]")
	b.await(`document.querySelector("textarea[name=answer]") && document.querySelector("textarea[name=answer]").value === ""`)
	if !strings.Contains(s.noted(), "wake "+string(jobID)+" u2plain plain what I know of it") {
		t.Errorf("the unit was not woken: %s", s.noted())
	}

	s.change(func(j *mapreduce.Job) { j.State = mapreduce.JobComplete })
	b.open(job + "/review")
	b.await(`document.querySelector("mark.here")`)
	s.fail(full)
	b.eval(fmt.Sprintf(pressed, "a") + ` + ""`)
	b.await(`document.getElementById("trouble").textContent.includes("nearly full") && document.getElementById("trouble").textContent.includes("kept in this browser")`)
	s.fail(nil)
	b.await(`document.getElementById("progress").dataset.waiting === "0" && document.getElementById("progress").dataset.decided === "1" && document.getElementById("trouble").hidden`)
	if all := s.kept(); len(all) != 1 {
		t.Errorf("kept %+v", all)
	}

	file := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(file, []byte("Total 12.50"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.open("/new")
	b.run(chromedp.SetUploadFiles(chromedp.CSS("input[name=documents]"), []string{file}))
	b.fill("textarea[name=schema]", triedSchema)
	b.fill("input[name=name]", "mine")
	s.fail(full)
	b.submit("input[name=name]")
	b.await(`document.getElementById("outcome").textContent.includes("nearly full")`)
	if got := b.eval(`document.querySelector("input[name=name]").value + document.querySelector("textarea[name=schema]").value + document.querySelector("input[name=documents]").files[0].name`); got != "mine"+triedSchema+"a.txt" {
		t.Errorf("the form has %q", got)
	}
	// A schema that is wrong is said as it was typed, and stays.
	s.fail(nil)
	b.fill("textarea[name=schema]", "type: object\nproperties: [")
	b.submit("input[name=name]")
	b.await(`document.getElementById("outcome").textContent.includes("schema") && !document.getElementById("submit").disabled`)
	b.fill("textarea[name=schema]", triedSchema)
	b.submit("input[name=name]")
	b.await(`location.pathname === "` + job + `"`)
	if strings.Count(s.noted(), "submit a.txt 11 ") != 1 {
		t.Errorf("submitted: %s", s.noted())
	}
	b.checkQuiet()
}

// The form for a new job keeps all that was chosen and typed when its upload breaks off, and pressing again is the same
// request: a job that was made without anybody hearing of it is not made twice.
func TestUploadThatIsSentAgain(t *testing.T) {
	s := newStub("plain")
	d, err := dashboard.New(dashboard.Config{Jobs: s, Bench: stubBench})
	if err != nil {
		t.Fatal(err)
	}
	const aborts, unheard, answers = 0, 1, 2
	var does atomic.Int32 // by its own a browser asks again as well
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && does.Load() == aborts:
			panic(http.ErrAbortHandler) // in the middle of it
		case r.Method == http.MethodPost && does.Load() == unheard:
			d.ServeHTTP(httptest.NewRecorder(), r) // nobody hears of it
			panic(http.ErrAbortHandler)
		}
		d.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)

	file := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(file, []byte("Total 12.50"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, server.URL)
	b.open("/new")
	b.run(chromedp.SetUploadFiles(chromedp.CSS("input[name=documents]"), []string{file}))
	b.fill("textarea[name=schema]", triedSchema)
	for _, how := range []int32{aborts, unheard} {
		does.Store(how)
		b.submit("input[name=name]")
		b.await(`document.querySelector("#outcome .bad") && !document.getElementById("submit").disabled`)
		b.eval(`document.getElementById("outcome").replaceChildren(); ""`)
	}
	does.Store(answers)
	b.submit("input[name=name]")
	b.await(`location.pathname === "/jobs/` + string(jobID) + `"`)

	requests := make(map[string]bool)
	for line := range strings.Lines(s.noted()) {
		if fields := strings.Fields(line); fields[0] == "submit" {
			requests[fields[3]] = true
		}
	}
	if strings.Count(s.noted(), "submit a.txt 11 ") < 2 || len(requests) != 1 {
		t.Errorf("submitted: %s", s.noted())
	}
}

// A page that a server of another version has made does not mix its parts with those of this one: it says so, stays as it
// is with what was typed, and has a link that loads it again.
func TestServerOfAnotherVersion(t *testing.T) {
	s := newStub("plain")
	s.job.State = mapreduce.JobPaused
	var now atomic.Pointer[dashboard.Dashboard]
	first, err := dashboard.New(dashboard.Config{Jobs: s, Tick: 50 * time.Millisecond, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	now.Store(first)
	next, err := dashboard.New(dashboard.Config{Jobs: s, Tick: 50 * time.Millisecond, Version: "2"})
	if err != nil {
		t.Fatal(err)
	}
	server := &reviving{t: t, address: "127.0.0.1:0", handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().ServeHTTP(w, r) })}
	server.start()
	t.Cleanup(func() { server.stop() })

	b := newBrowser(t, "http://"+server.address)
	b.open("/jobs/" + string(jobID))
	const done = `document.querySelector("#part-progress dd").textContent`
	s.change(func(j *mapreduce.Job) { j.CompletedUnits = 2 })
	b.await(done + ` === "2 / 3"`)
	b.fill("input[name=budget]", "12")

	server.stop()
	now.Store(next)
	s.change(func(j *mapreduce.Job) { j.CompletedUnits = 3 })
	server.start()
	b.await(connection + `.includes("another version")`)
	if got := b.eval(done + ` + document.querySelector("input[name=budget]").value`); got != "2 / 312" {
		t.Errorf("the page shows %q", got)
	}
	b.press("#connection a")
	b.await(`document.querySelector("#part-progress dd") && ` + done + ` === "3 / 3"`)
	s.change(func(j *mapreduce.Job) { j.CompletedUnits = 1 })
	b.await(done + ` === "1 / 3"`)
	b.checkQuiet()
}

// Whoever is signed out while pages are open is told so, keeps what was typed, and goes on where it was after signing in
// in another tab.
func TestSignedOutWhileOpen(t *testing.T) {
	s := newReviewed("plain", 1)
	s.stub.job.State = mapreduce.JobPaused
	server := openToAnn(t, s, nil)
	b := newBrowser(t, server.URL)
	b.open("/sign-in?to=/jobs/" + string(jobID))
	b.run(chromedp.SendKeys(chromedp.CSS("input[name=token]"), "ann\r"), chromedp.WaitReady(chromedp.CSS("form[action='/sign-out']")))
	b.await(`document.getElementById("pause").hidden === false`)
	b.fill("input[name=budget]", "12")

	const other = `fetch(%q, { method: "POST", body: new URLSearchParams({ token: "ann" }) }).then((a) => String(a.status))` // of another tab
	b.eval(fmt.Sprintf(other, "/sign-out"))
	s.change(func(j *mapreduce.Job) { j.CompletedUnits = 3 })
	b.await(connection + `.includes("signed out") && document.querySelector("#connection a[href='/sign-in'][target=_blank]")`)
	b.submit("input[name=budget]")
	b.await(`document.querySelector("#said a[href='/sign-in']") && document.querySelector("input[name=budget]").value === "12"`)
	if got := b.eval(`document.querySelector("#part-progress dd").textContent`); got != "1 / 3" {
		t.Errorf("the page shows %q to nobody", got)
	}

	b.eval(fmt.Sprintf(other, "/sign-in"))
	b.eval(`document.dispatchEvent(new Event("visibilitychange")); ""`) // as when one comes back to a tab
	b.await(`document.querySelector("#part-progress dd").textContent === "3 / 3" && ` + connection + ` === "" && document.querySelector("input[name=budget]").value === "12"`)
	b.submit("input[name=budget]")
	b.await(`document.getElementById("said")?.hidden && document.querySelector("input[name=budget]") && document.querySelector("input[name=budget]").value === ""`)
	if !strings.Contains(s.noted(), "resume "+string(jobID)+" 12") {
		t.Errorf("done: %s", s.noted())
	}
	b.checkQuiet()
}

// A browser whose clock is wrong by hours shows the ages that the server says, is up to date, and knows what others hold.
func TestClocksThatDiffer(t *testing.T) {
	s := newReviewed("plain", 3)
	now := s.stub.job.Created.Add(90 * time.Minute)
	s.stub.held = []mapreduce.RecordClaim{{Record: "1.0", By: "bob", End: now.Add(time.Minute)}}
	server := open(t, s.stub, func(c *dashboard.Config) { c.Jobs, c.Now = s, func() time.Time { return now } })
	b := newBrowser(t, server.URL)
	b.run(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `(() => {
			const real = Date, ahead = Number(new URL(location).searchParams.get("ahead")) * 3600000;
			window.Date = class extends real { constructor(...a) { a.length ? super(...a) : super(real.now() + ahead); } static now() { return real.now() + ahead; } };
		})()`})
		return err
	}))

	shown := make(map[string]string)
	for _, hours := range []string{"0", "-7", "9"} {
		s.change(func(j *mapreduce.Job) { j.State, j.CompletedUnits = mapreduce.Mapping, 1 })
		for _, path := range []string{"/", "/jobs/" + string(jobID), "/jobs/" + string(jobID) + "/events", "/jobs/" + string(jobID) + "/history"} {
			b.open(path + "?ahead=" + hours)
			b.await(`document.getElementById("pause").hidden === false`)
			text := b.eval(`document.getElementById("main").innerText`)
			if hours == "0" {
				shown[path] = text
			} else if text != shown[path] {
				t.Errorf("%s hours ahead %s shows\n%s\nand not\n%s", hours, path, text, shown[path])
			}
		}
		if !strings.Contains(shown["/"], "1 h 30 min") {
			t.Errorf("the list has no age: %s", shown["/"])
		}

		b.open("/jobs/" + string(jobID) + "?ahead=" + hours)
		s.change(func(j *mapreduce.Job) { j.CompletedUnits = 2 })
		b.await(`document.querySelector("#part-progress dd").textContent === "2 / 3"`)
		s.change(func(j *mapreduce.Job) { j.State = mapreduce.JobComplete })
		b.open("/jobs/" + string(jobID) + "/review?ahead=" + hours)
		b.await(`document.getElementById("held").textContent.includes("bob")`)
	}
	b.checkQuiet()
}

// A slowSteering takes its time to put units back.
type slowSteering struct {
	*stub
	release chan struct{}
}

func (s slowSteering) ResumeJob(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	s.note("begin")
	select {
	case <-s.release:
		return s.stub.ResumeJob(ctx, id, r)
	case <-ctx.Done():
		s.note("given up")
		return nil, ctx.Err()
	}
}

// While many units are put back the page says how far that is, and it is done though somebody leaves the page.
func TestRetryOfManyUnits(t *testing.T) {
	s := slowSteering{newStub("plain"), make(chan struct{})}
	s.job.State = mapreduce.JobPaused
	server := open(t, s.stub, func(c *dashboard.Config) { c.Jobs = s })
	b := newBrowser(t, server.URL)
	b.open("/jobs/" + string(jobID) + "/errors")
	b.await(`document.getElementById("pause").hidden === false`)
	b.press(".causes form button")
	b.await(said + `.includes("It is being done. ") && ` + said + `.includes("1 of 3 units")`)
	b.open("/use")
	close(s.release)
	for !strings.Contains(s.noted(), "resume ") && !strings.Contains(s.noted(), "given up") {
		b.eval(`new Promise((resolve) => requestAnimationFrame(() => resolve("")))`)
	}
	if got := s.noted(); strings.Contains(got, "given up") || !strings.Contains(got, "resume "+string(jobID)+" 0plain") {
		t.Errorf("done: %s", got)
	}
	b.checkQuiet()
}
