package embedded_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/web"
	"github.com/coditect/mapreduce/cmd/coditect/internal/dashboard"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
)

// servePages serves the pages for people, at which one signs in, until the test ends.
func (w *town) servePages() {
	w.t.Helper()
	formats, err := (&runners.Runners{Getenv: func(string) string { return "" }}).DocumentFormats()
	if err != nil {
		w.t.Fatal(err)
	}
	pages := dashboard.Config("", formats, false, nil)
	pages.SignIn = true
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.node.ServeHTTP(l, web.Config{Dashboard: pages}); err != nil {
		w.t.Fatal(err)
	}
	w.http = "http://" + l.Addr().String()
	w.browser = &http.Client{
		Transport: &http.Transport{DisableCompression: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	w.t.Cleanup(w.browser.CloseIdleConnections)
}

// A visitor is a browser in which somebody has signed in.
type visitor struct {
	*town
	cookie *http.Cookie
}

func (w *town) visitor(name string) *visitor {
	w.t.Helper()
	answer, err := w.browser.PostForm(w.http+"/sign-in", url.Values{"token": {w.secrets[name]}})
	if err != nil {
		w.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if len(answer.Cookies()) != 1 {
		w.t.Fatalf("%s is not let in: %s", name, answer.Status)
	}
	return &visitor{w, answer.Cookies()[0]}
}

// ask returns what a browser is answered.
func (v *visitor) ask(verb, path, kind string, body []byte) string {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), verb, v.http+path, bytes.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	r.AddCookie(v.cookie)
	r.Header.Set("Accept", "text/html")
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	answer, err := v.browser.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	header := answer.Header.Clone()
	header.Del("Date")
	return fmt.Sprint(answer.StatusCode, "\n", header, "\n", string(data))
}

// A look is a request about a job.
type look struct {
	verb, path, kind, body string
	changes                bool // if it is one's own job
}

// looksAt are all requests about a job that pages make, and some more.
func looksAt(id mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, own mapreduce.JobID) []look {
	at := "/jobs/" + string(id)
	of := url.Values{"unit": {string(unit)}, "document": {string(document)}, "page": {"1"}}.Encode()
	var all []look
	for _, path := range []string{
		at, at + "/units", at + "/units/0.0", at + "/units/0.1", at + "/records", at + "/records?whole=1", at + "/review", at + "/document?" + of + "&start=1&end=2",
		at + "/history", at + "/history?whole=1", at + "/events", at + "/events?check=1", at + "/errors", at + "/errors?whole=1", at + "/grid", at + "/proofs",
		at + "/review/queue", at + "/review/text?" + of, at + "/picture?" + of, at + "/files/result.json", at + "/files/records.csv", at + "/files/records.jsonl",
		at + "/files/records.parquet", at + "/files/truth.jsonl", at + "/files/examples.yaml",
		"/compare?a=" + string(own) + "&b=" + string(id), "/compare?a=" + string(id) + "&b=" + string(own), "/new?like=" + string(id), "/try?job=" + string(id), "/try/text?job=" + string(id) + "&" + of,
	} {
		all = append(all, look{verb: http.MethodGet, path: path})
	}

	form := func(fields ...string) string {
		values := make(url.Values)
		for i := 0; i < len(fields); i += 2 {
			values.Set(fields[i], fields[i+1])
		}
		return values.Encode()
	}
	for _, do := range [][2]string{
		{"/pause", ""},
		{"/resume", form("budget", "500")},
		{"/budget", form("budget", "700")},
		{"/cancel", ""},
		{"/delete", ""},
		{"/wake", form("unit", string(unit), "handle", "h", "answer", "a")},
		{"/mark", form("cause", "c", "state", "ignored")},
		{"/review", form("record", "0.0", "field", "name", "verdict", "accept", "request", "r")},
		{"/review/claim", form("record", "0.0")},
	} {
		all = append(all, look{http.MethodPost, at + do[0], "application/x-www-form-urlencoded", do[1], true})
	}
	all = append(all, look{http.MethodPost, "/try/job", "application/json", fmt.Sprintf(`{"job": %q, "schema": %q, "documents": [{"name": "a", "text": "b"}]}`, id, personSchema), false})

	var again bytes.Buffer
	w := multipart.NewWriter(&again)
	for name, value := range map[string]string{"provider": "rules", "schema": personSchema, "again": string(id)} {
		_ = w.WriteField(name, value) // a buffer takes everything
	}
	_ = w.Close()
	for _, path := range []string{"/new/plan", "/new"} {
		all = append(all, look{http.MethodPost, path, w.FormDataContentType(), again.String(), true})
	}
	return all
}

// Whatever a link, a form or a script asks of a job of another tenant is answered as for a job that never was, so nobody
// learns even that there is one; nor is anything done to it. Live pages too: a stream that is opened for it ends with the
// words that there is none.
func TestPagesOfOtherTenants(t *testing.T) {
	w := newTown(t, townPolicy)
	w.servePages()
	w.work("worker", 2)
	alice, bob := w.as("alice"), w.as("bob")
	s, docs := canaryJob(0)
	others := ended(t, bob, w.submit(bob, s, docs...).ID)
	own := ended(t, alice, w.submit(alice, byRules(), doc("one", "Name: Ann\n")).ID)
	units, err := bob.ListUnits(t.Context(), mapreduce.ListUnitsQuery{Job: others.ID, PageSize: 1})
	if err != nil || len(units.Units) == 0 {
		t.Fatal(units, err)
	}
	unit, document := units.Units[0].ID, units.Units[0].Document

	never := mapreduce.JobID(string(others.ID[:len(others.ID)-6]) + "0a0b0c")
	a, b := w.visitor("alice"), w.visitor("bob")
	there, gone := looksAt(others.ID, unit, document, own.ID), looksAt(never, unit, document, own.ID)
	live := func(id mapreduce.JobID) (all []look) {
		for _, page := range []string{"", "/units", "/units/0.0", "/records", "/review", "/history", "/events", "/errors"} {
			all = append(all, look{verb: http.MethodGet, path: "/jobs/" + string(id) + page + "?live=1"})
		}
		return all
	}
	there, gone = append(there, live(others.ID)...), append(gone, live(never)...)

	same := strings.NewReplacer(string(others.ID), "ID", string(never), "ID")
	for i, one := range there {
		// The parts of a form stand in no order, and its boundary is another each time: what is sent is made once.
		body, kind := one.body, one.kind
		if strings.HasPrefix(kind, "multipart/") {
			body, kind = strings.ReplaceAll(gone[i].body, string(never), string(others.ID)), gone[i].kind
		}
		got, want := a.ask(one.verb, one.path, kind, []byte(body)), a.ask(gone[i].verb, gone[i].path, gone[i].kind, []byte(gone[i].body))
		if same.Replace(got) != same.Replace(want) {
			t.Errorf("%s %s is answered with\n%s\nand for no job with\n%s", one.verb, one.path, got, want)
		}
		if strings.Contains(strings.ToLower(got), strings.ToLower(canary)) && !strings.Contains(one.path, canary) {
			t.Errorf("%s %s: a reads of b: %s", one.verb, one.path, got)
		}
	}

	// Its own tenant reads it all, and nothing was done to it.
	job, err := bob.GetJob(t.Context(), others.ID)
	if err != nil || job.State != mapreduce.JobComplete || job.AuditHead != others.AuditHead {
		t.Errorf("the job of b is %+v: %v", job, err)
	}
	seen := 0
	for _, one := range there[:slices.IndexFunc(there, func(l look) bool { return l.changes })] {
		if strings.Contains(b.ask(one.verb, one.path, "", nil), "200\n") {
			seen++
		}
	}
	if seen < 20 {
		t.Errorf("b sees %d of its pages", seen)
	}
	jobs, err := alice.ListJobs(t.Context(), mapreduce.ListJobsQuery{})
	if err != nil || len(jobs.Jobs) != 1 {
		t.Errorf("alice has %d jobs: %v", len(jobs.Jobs), err)
	}

	// A cookie is worth nothing once its session is over, nor one that is guessed.
	for name, v := range maps.All(map[string]*visitor{"guessed": {w, &http.Cookie{Name: b.cookie.Name, Value: "AAAAAAAAAAAAAAAAAAAAAAAAAA"}}, "stolen": b}) {
		if name == "stolen" {
			b.ask(http.MethodPost, "/sign-out", "", nil)
		}
		if got := v.ask(http.MethodGet, "/jobs/"+string(others.ID), "", nil); !strings.HasPrefix(got, "303") || strings.Contains(strings.ToLower(got), canary) {
			t.Errorf("with a %s cookie: %s", name, got)
		}
	}
}
