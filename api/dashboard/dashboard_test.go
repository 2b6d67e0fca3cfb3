package dashboard_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// get returns a page and its status.
func get(t testing.TB, address string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body), answer.Header
}

// Every page shows numbers of the service whole, also those that a browser would round.
func TestPagesShowWhatTheServiceSays(t *testing.T) {
	server := open(t, newStub("plain"), nil)
	for _, page := range pagesOfAJob {
		status, body, header := get(t, server.URL+page)
		if status != http.StatusOK {
			t.Errorf("%s: status %d: %s", page, status, body)
		}
		if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self';") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", page, policy)
		}
	}

	for page, wants := range map[string][]string{
		"/":                                     {"1 / 3", "9\u202f007\u202f199\u202f254\u202f741\u202f000", "$1.23"},
		"/jobs/" + string(jobID):                {"9\u202f007\u202f199\u202f254\u202f740\u202f993 + 7", "33.3 %", "mapping", "The plan beside what happened", "75.0 %", "66.6 %", "100.0 %", "50.0 %", "123.4 %"},
		"/jobs/" + string(jobID) + "/units/0.2": {"parked", "Wake the unit"},
		"/jobs/" + string(jobID) + "/records":   {"12.5", "0.40", "2 of 2 records"},
		"/jobs/" + string(jobID) + "/document?unit=u&document=d&start=6&end=11": {`<mark id="here" class="here">12.50</mark>`},
		"/jobs/" + string(jobID) + "/events?check=1":                            {"The chain is unbroken"},
		"/fleet": {
			"dead: others take over", "at another server", "lost: its units are put back", "7 more workers", "9\u202f007\u202f199\u202f254\u202f740\u202f993",
			"open: its calls failed", "The disk is nearly full", "1ms", "Check the whole store",
		},
		"/fleet?check=1": {"100 things are wrong in the store", "400 more are not shown", "What was checked"},
	} {
		_, body, _ := get(t, server.URL+page)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not show %q", page, want)
			}
		}
	}
}

// A job that has ended says by how much it differs from its plan, and one without a plan nothing.
func TestPlanBesideWhatHappened(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, nil)
	s.change(func(j *mapreduce.Job) { j.State, j.Ended = mapreduce.JobComplete, j.Created })
	_, body, _ := get(t, server.URL+"/jobs/"+string(jobID))
	for _, want := range []string{"−25.0 %", "−33.3 %", ">0 %<", "−50.0 %", "&#43;23.5 %", "$1.00"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not show %q", want)
		}
	}

	s.change(func(j *mapreduce.Job) { j.Plan = nil })
	if _, body, _ = get(t, server.URL+"/jobs/"+string(jobID)); strings.Contains(body, "The plan beside") {
		t.Error("the page of a job without a plan compares it with one")
	}
}

// hostile are texts that would do something if a page took them for more than text.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'-alert(1)-'`, `</textarea><script>alert(1)</script>`,
	`javascript:alert(1)`, `{{.}}${alert(1)}`, `<svg onload=alert(1)>`, `</title><base href=//evil.example>`, "\u202etxt.exe", `<!--`, `]]>`,
	`" style="x" onfocus="alert(1)" autofocus="`, `<form action=//evil.example><button>`, `<meta http-equiv=refresh content=0>`,
}

// shape lists the elements of a page with the names of their attributes, and the schemes of its
// links.
func shape(t testing.TB, page string) []string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for n := range root.Descendants() {
		switch n.Type {
		case html.ElementNode:
			names := make([]string, 0, len(n.Attr))
			for _, a := range n.Attr {
				names = append(names, a.Key)
				if u, err := url.Parse(a.Val); slices.Contains([]string{"href", "src", "action"}, a.Key) && (err != nil || u.Scheme != "" || u.Host != "") {
					t.Errorf("a link leads to %s", a.Val)
				}
			}
			all = append(all, n.Data+" "+strings.Join(names, ","))
		case html.CommentNode:
			t.Errorf("a page has a comment: %s", n.Data)
		}
	}
	return all
}

// No text of documents, models, tenants or callers becomes more than text: with each of them every
// page has the elements and attributes that it has with a plain one.
func TestTextsOfOthersStayTexts(t *testing.T) {
	plain := open(t, newStub("plain"), nil)
	for _, text := range hostile {
		server := open(t, newStub(text), nil)
		for _, page := range pagesOfAJob {
			_, want, _ := get(t, plain.URL+page)
			_, got, _ := get(t, server.URL+page)
			if w, g := shape(t, want), shape(t, got); !slices.Equal(w, g) {
				t.Errorf("%s is another page with %q", page, text)
			}
		}
		for _, query := range []string{"q", "tenant", "in", "sort", "facet", "is", "to"} {
			for _, page := range []string{"/", "/jobs/" + string(jobID) + "/records", "/jobs/" + string(jobID) + "/units", "/sign-in"} {
				_, got, _ := get(t, server.URL+page+"?"+url.Values{query: {text}}.Encode())
				if strings.Contains(text, "<") && strings.Contains(got, text) {
					t.Errorf("%s with %s=%s has it as it is", page, query, text)
				}
				shape(t, got)
			}
		}
	}
}

// Below a prefix every link of every page begins with it.
func TestPrefix(t *testing.T) {
	server := open(t, newStub("plain"), func(c *dashboard.Config) { c.Prefix = "/ui" })
	link := regexp.MustCompile(`(?:href|src|action|data-live|data-grid|data-units|data-plan)="([^"]*)"`)
	for _, page := range pagesOfAJob {
		status, body, _ := get(t, server.URL+"/ui"+page)
		if status != http.StatusOK {
			t.Errorf("/ui%s: status %d", page, status)
		}
		for _, found := range link.FindAllStringSubmatch(body, -1) {
			if !strings.HasPrefix(found[1], "/ui/") && !strings.HasPrefix(found[1], "#") {
				t.Errorf("/ui%s leads to %s", page, found[1])
			}
		}
	}
	if _, err := dashboard.New(dashboard.Config{Prefix: "ui/"}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a prefix that is no path: %v", err)
	}
}

// posted is what a form was answered by.
type posted struct {
	StatusCode int
	Header     http.Header
	Cookies    []*http.Cookie
}

// post sends a form, with a header.
func post(t testing.TB, address string, form url.Values, header http.Header) posted {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return posted{answer.StatusCode, answer.Header, answer.Cookies()}
}

// What somebody asks for on a page is done, and what another page asks for is not.
func TestActions(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, nil)
	job := server.URL + "/jobs/" + string(jobID)
	for action, form := range map[string]url.Values{
		"pause": nil, "cancel": nil, "delete": nil, "resume": {"budget": {"500"}}, "budget": {"budget": {"700"}},
		"wake": {"unit": {"u2"}, "handle": {"h"}, "answer": {"yes"}, "at": {"0.2"}}, "mark": {"cause": {"host … is away"}, "state": {"ignored"}},
	} {
		before := s.noted()
		for name, header := range map[string]http.Header{
			"another site": {"Sec-Fetch-Site": {"cross-site"}}, "another origin": {"Origin": {"https://evil.example"}}, "a hidden origin": {"Origin": {"null"}},
		} {
			if answer := post(t, job+"/"+action, form, header); answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s by a page of %s: status %d", action, name, answer.StatusCode)
			}
		}
		if got := s.noted(); got != before {
			t.Errorf("another page has done: %s, after %s", got, before)
		}

		if answer := post(t, job+"/"+action, form, http.Header{"Sec-Fetch-Site": {"same-origin"}}); answer.StatusCode != http.StatusSeeOther {
			t.Errorf("%s: status %d", action, answer.StatusCode)
		}
		done := action
		if action == "budget" {
			done = "resume" // that is how a job that runs gets another budget
		}
		if got := strings.TrimPrefix(s.noted(), before); !strings.Contains(got, done+" "+string(jobID)) {
			t.Errorf("%s was not done: %s", action, got)
		}
	}

	if !strings.Contains(s.noted(), "resume "+string(jobID)+" 500") || !strings.Contains(s.noted(), "wake "+string(jobID)+" u2 h yes") {
		t.Errorf("it was done otherwise than asked for: %s", s.noted())
	}
	post(t, job+"/resume", url.Values{"cause": {"host … is away"}}, nil)
	if !strings.Contains(s.noted(), "resume "+string(jobID)+" 0host … is away") {
		t.Errorf("the units of one cause were not tried again: %s", s.noted())
	}
	if !strings.Contains(s.noted(), "mark "+string(jobID)+" ignored host … is away") {
		t.Errorf("the units of one cause were not ignored: %s", s.noted())
	}
	if answer := post(t, job+"/mark", url.Values{"cause": {"x"}, "state": {"gone"}}, nil); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a state that is none: status %d", answer.StatusCode)
	}
	if answer := post(t, job+"/resume", url.Values{"budget": {"much"}}, nil); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a budget that is no number: status %d", answer.StatusCode)
	}
	if !strings.Contains(s.noted(), "resume "+string(jobID)+" 700") {
		t.Errorf("the running job got no other budget: %s", s.noted())
	}
	s.change(func(j *mapreduce.Job) { j.State = mapreduce.JobPaused })
	if answer := post(t, job+"/budget", url.Values{"budget": {"900"}}, nil); answer.StatusCode != http.StatusConflict || strings.Contains(s.noted(), " 900") {
		t.Errorf("a budget of a job that does not run: status %d, done %s", answer.StatusCode, s.noted())
	}
	s.change(func(j *mapreduce.Job) { j.State = mapreduce.Mapping })
	for _, action := range []string{"pause", "delete"} { // a link does nothing
		if status, _, _ := get(t, job+"/"+action); status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
			t.Errorf("a link to %s: status %d", action, status)
		}
	}
}

// The page of errors has the causes that somebody should look at first, and for each what can be said of it now.
func TestCauses(t *testing.T) {
	s := newStub("plain")
	for i, text := range []string{"host 7 is away", "host 9 is away", "the page is empty", "no text"} {
		s.units = append(s.units, &mapreduce.Unit{ID: mapreduce.UnitID(fmt.Sprint("f", i)), Job: jobID, Index: int64(3 + i), State: mapreduce.UnitFailed, Errors: []string{text}})
	}
	s.change(func(j *mapreduce.Job) {
		j.Causes = []mapreduce.CauseMark{
			{Cause: "host … is away", State: mapreduce.CauseIgnored, By: "ann", Units: 2},
			{Cause: "no text", State: mapreduce.CauseResolved, By: "ann", Units: 1},
			{Cause: "the page is empty", State: mapreduce.CauseResolved, By: "bob"}, // and it came back
		}
	})

	server := open(t, s, nil)
	_, body, _ := get(t, server.URL+"/jobs/"+string(jobID)+"/errors")
	var got []string
	for _, part := range strings.Split(body, "<li data-key=")[1:] {
		cause, rest, _ := strings.Cut(part[1:], `"`)
		for _, can := range []string{"ignored", "resolved", "open"} {
			if strings.Contains(rest, `name="state" value="`+can+`"`) {
				cause += ", " + can
			}
		}
		_, state, _ := strings.Cut(rest, `data-state="`)
		state, _, _ = strings.Cut(state, `"`)
		got = append(got, state+": "+cause)
	}
	want := []string{
		"open: plain, ignored, resolved", "returned: the page is empty, ignored, resolved, open", "ignored: host … is away, open", "resolved: no text, open",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the causes (-want +got):\n%s", diff)
	}
	if !strings.Contains(body, "The causes of 2 of them are ignored.") {
		t.Error("the page does not say how many units are ignored")
	}

	s.roles = []mapreduce.Role{mapreduce.Viewer}
	if _, body, _ := get(t, server.URL+"/jobs/"+string(jobID)+"/errors"); strings.Contains(body, `name="state"`) {
		t.Error("a viewer is shown buttons")
	}
}

// What goes wrong is said on a page, with what to do.
func TestFailures(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, nil)
	for address, want := range map[string]int{
		"/nothing": 404, "/jobs/x": 404, "/jobs/mr_20260131_zzzzzz": 404, "/jobs/" + string(jobID) + "/units/9.9": 404,
		"/jobs/" + string(jobID) + "/units/x": 404, "/?state=new": 400, "/jobs/" + string(jobID) + "/records?page=-1": 400,
		"/jobs/" + string(jobID) + "/records?show=x": 400, "/jobs/" + string(jobID) + "/files/passwd": 404,
		"/jobs/" + string(jobID) + "/files/truth.jsonl": 409, "/jobs/" + string(jobID) + "/files/examples.yaml": 409, "/assets/dashboard.go": 404,
	} {
		status, body, _ := get(t, server.URL+address)
		if status != want {
			t.Errorf("%s: status %d, want %d: %s", address, status, want, body)
		}
	}
	for kind, want := range map[errs.Kind]int{errs.Unavailable: 503, errs.Denied: 403, errs.Exhausted: 429, errs.Internal: 500, errs.DataLoss: 500} {
		s.fail(errs.New(kind, "the store is away"))
		status, body, _ := get(t, server.URL+"/")
		if status != want || !strings.Contains(body, "the store is away") {
			t.Errorf("%s: status %d: %s", kind, status, body)
		}
	}
}

// A session stands for the token of its caller, ends by time and by signing out, and leads nowhere
// else.
func TestSessions(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	s := newStub("plain")
	server := open(t, s, func(c *dashboard.Config) {
		c.SignIn, c.Now = true, func() time.Time { return now }
		c.Context = func(r *http.Request) context.Context {
			s.fail(nil)
			if r.Header.Get("Authorization") != "Bearer right" {
				s.fail(errs.New(errs.Unauthenticated, "who are you?"))
			}
			return r.Context()
		}
	})
	status, _, header := get(t, server.URL+"/jobs/"+string(jobID)+"?x=1")
	if to := header.Get("Location"); status != http.StatusSeeOther || to != "/sign-in?to=%2Fjobs%2F"+string(jobID)+"%3Fx%3D1" {
		t.Errorf("without a session: status %d, to %s", status, to)
	}
	if answer := post(t, server.URL+"/sign-in", url.Values{"token": {"wrong"}}, nil); answer.StatusCode != http.StatusUnauthorized || len(answer.Cookies) > 0 {
		t.Errorf("a wrong token: status %d, %v", answer.StatusCode, answer.Cookies)
	}

	for to, want := range map[string]string{
		"/jobs/x": "/jobs/x", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/", "": "/", "/\t/evil.example": "/",
	} {
		answer := post(t, server.URL+"/sign-in", url.Values{"token": {"right"}, "to": {to}}, nil)
		if got := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("signed in from %q: status %d, to %q", to, answer.StatusCode, got)
		}
	}

	cookie := post(t, server.URL+"/sign-in", url.Values{"token": {"right"}}, nil).Cookies[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || strings.Contains(cookie.Value, "right") {
		t.Errorf("the cookie is %+v", cookie)
	}
	with := func(value string) int {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/", nil)
		r.Header.Set("Accept", "text/html")
		r.AddCookie(&http.Cookie{Name: cookie.Name, Value: value})
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if got := with(cookie.Value); got != http.StatusOK {
		t.Errorf("with the session: status %d", got)
	}
	if got := with("guessed"); got != http.StatusSeeOther {
		t.Errorf("with a guessed session: status %d", got)
	}
	now = now.Add(13 * time.Hour)
	if got := with(cookie.Value); got != http.StatusSeeOther {
		t.Errorf("with a session that has ended: status %d", got)
	}
	now = now.Add(-13 * time.Hour)
	post(t, server.URL+"/sign-out", nil, http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}})
	if got := with(cookie.Value); got != http.StatusSeeOther {
		t.Errorf("after signing out: status %d", got)
	}
}

// A stream sends each part once, and again when it differs: as soon as the job has changed, as the page
// would not look by itself for an hour.
func TestStream(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, func(c *dashboard.Config) { c.Tick = time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/jobs/"+string(jobID)+"?live=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()

	lines := bufio.NewScanner(answer.Body)
	next := func() (part struct{ Name, HTML string }) {
		for lines.Scan() {
			if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
				if err := json.Unmarshal([]byte(data), &part); err != nil {
					t.Fatal(err)
				}
				return part
			}
		}
		t.Fatal("the stream has ended")
		return part
	}
	var names []string
	for range 4 {
		names = append(names, next().Name)
	}
	if !slices.Equal(names, []string{"head", "progress", "stages", "notes"}) {
		t.Errorf("the parts are %v", names)
	}

	s.change(func(j *mapreduce.Job) { j.CompletedUnits = 2 })
	if part := next(); part.Name != "head" || !strings.Contains(part.HTML, "2 of 3 units are complete") {
		t.Errorf("the first part that differs is %+v", part)
	}
	if part := next(); part.Name != "progress" || !strings.Contains(part.HTML, "2 / 3") {
		t.Errorf("the second part that differs is %+v", part)
	}

	// What has gone wrong ends the stream with words.
	s.fail(errs.New(errs.Unavailable, "the store is away"))
	s.change(func(*mapreduce.Job) {})
	rest, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Contains(rest, []byte("event: failed\ndata: \"the store is away\"")) {
		t.Errorf("the stream ended with %q, %v", rest, err)
	}
}

// An open page of a result, of a log or of failed units reads these again when its job has moved, and not before.
func TestStreamsReadLittle(t *testing.T) {
	for _, tt := range []struct {
		page, part string
		reads      int // of one load
	}{{"records", "records", 1}, {"history", "history", 2}, {"events", "log", 1}, {"errors", "errors", 1}} {
		s := newStub("plain")
		server := open(t, s, func(c *dashboard.Config) { c.Tick = time.Millisecond })
		_, html, _ := get(t, server.URL+"/jobs/"+string(jobID)+"/"+tt.page)
		_, live, _ := strings.Cut(html, `data-live="`)
		live, _, _ = strings.Cut(live, `"`)
		live = strings.ReplaceAll(live, "&amp;", "&")
		before := strings.Count(s.noted(), "read ")
		answer := ask(t, server.URL+live)

		// Each look ends with a comment. The job moves once.
		looks, told := 0, false
		for lines := bufio.NewScanner(answer.Body); lines.Scan() && !(told && looks > 20); {
			switch line := lines.Text(); {
			case line == ":":
				if looks++; looks == 10 {
					s.change(func(j *mapreduce.Job) {
						j.CompletedUnits++
						s.events = append(slices.Clip(s.events), &mapreduce.Checkpoint{ID: "01", Time: j.Created, Kind: mapreduce.EventDecided})
						s.parts = append(slices.Clip(s.parts), &mapreduce.ResultPart{RecordID: "2.0", Record: []byte(`{"total": 1}`)})
						s.units = append(slices.Clip(s.units), &mapreduce.Unit{ID: "late", Job: jobID, Index: 3, State: mapreduce.UnitFailed, Errors: []string{"late"}})
					})
				}
			case strings.HasPrefix(line, "data: ") && strings.Contains(line, fmt.Sprintf(`"name":%q`, tt.part)):
				told = told || looks >= 10
			}
		}
		_ = answer.Body.Close()

		if got := strings.Count(s.noted(), "read ") - before; !told || got != tt.reads {
			t.Errorf("%s: told %t, and after %d looks %d readings, want %d: %s", tt.page, told, looks, got, tt.reads, s.noted())
		}
	}
}

// The page of what went wrong looks at no unit of a job of which none has failed.
func TestNoFailures(t *testing.T) {
	s := newStub("plain")
	s.job.FailedUnits = 0
	if status, _, _ := get(t, open(t, s, nil).URL+"/jobs/"+string(jobID)+"/errors"); status != http.StatusOK || strings.Contains(s.noted(), "read units") {
		t.Errorf("status %d, after %q", status, s.noted())
	}
}

// ask asks for an address.
func ask(t *testing.T, address string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// A new job takes the files of the form, and the same press twice is one request.
func TestNewJob(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, nil)
	send := func(path string, fields map[string]string, files map[string]string) (int, string) {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		for name, value := range fields {
			_ = form.WriteField(name, value)
		}
		for name, content := range files {
			w, _ := form.CreateFormFile("documents", name)
			_, _ = io.WriteString(w, content)
		}
		_ = form.Close()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, &body)
		r.Header.Set("Content-Type", form.FormDataContentType())
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}

	schema := `{"type": "object", "properties": {"total": {"type": "number"}}}`
	fields := map[string]string{"provider": "rules", "schema": schema, "request": "r1"}
	status, text := send("/new/plan", fields, map[string]string{"a.txt": "one"})
	if status != http.StatusOK || !strings.Contains(text, `"cost":"$0.50"`) {
		t.Errorf("the plan: status %d: %s", status, text)
	}
	status, text = send("/new", fields, map[string]string{"a.txt": "one"})
	if status != http.StatusOK || !strings.Contains(text, "/jobs/"+string(jobID)) || !strings.Contains(s.noted(), "submit a.txt 3 r1 ") {
		t.Errorf("the job: status %d: %s; %s", status, text, s.noted())
	}

	for name, wrong := range map[string]map[string]string{
		"schema": {"provider": "rules", "schema": `{"type": "object", "properties": [`}, "budget": {"provider": "rules", "schema": schema, "budget": "-1"},
	} {
		if status, text := send("/new", wrong, map[string]string{"a.txt": "one"}); status != http.StatusBadRequest {
			t.Errorf("a wrong %s: status %d: %s", name, status, text)
		}
	}
	// A job that is run again has the documents of the earlier one, but for those that are chosen anew.
	fields["again"] = string(jobID)
	if status, text := send("/new", fields, map[string]string{"b.txt": "two"}); status != http.StatusOK || !strings.Contains(s.noted(), fmt.Sprintf("submit plain %d r1 ", len(s.text))) || !strings.Contains(s.noted(), "submit b.txt 3 ") {
		t.Errorf("run again: status %d: %s; %s", status, text, s.noted())
	}
	before := len(s.noted())
	if status, text := send("/new", fields, map[string]string{"plain": "new"}); status != http.StatusOK || !strings.Contains(s.noted()[before:], "submit plain 3 ") || strings.Count(s.noted()[before:], "submit ") != 1 {
		t.Errorf("run again with another text: status %d: %s; %s", status, text, s.noted()[before:])
	}
	s.units = s.units[:1]
	s.units[0].Document = "" // it has read all documents together
	if status, text := send("/new", fields, nil); status != http.StatusBadRequest || !strings.Contains(text, "choose the files") {
		t.Errorf("documents that are not kept one by one: status %d: %s", status, text)
	}
	delete(fields, "again")
	if status, text := send("/new", fields, nil); status != http.StatusBadRequest || !strings.Contains(text, "choose at least one document") {
		t.Errorf("no documents: status %d: %s", status, text)
	}
}
