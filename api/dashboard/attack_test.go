package dashboard_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// doing are the addresses at which something is done, with a form that would do it.
var doing = map[string]url.Values{
	"/jobs/" + string(jobID) + "/pause": nil, "/jobs/" + string(jobID) + "/cancel": nil, "/jobs/" + string(jobID) + "/delete": nil,
	"/jobs/" + string(jobID) + "/resume":       {"budget": {"500"}},
	"/jobs/" + string(jobID) + "/budget":       {"budget": {"700"}},
	"/jobs/" + string(jobID) + "/wake":         {"unit": {"u2"}, "handle": {"h"}, "answer": {"yes"}, "at": {"0.2"}},
	"/jobs/" + string(jobID) + "/mark":         {"cause": {"plain"}, "state": {"ignored"}},
	"/jobs/" + string(jobID) + "/review":       {"record": {"0.0"}, "field": {"total"}, "verdict": {"accept"}, "model": {"1"}, "request": {"r"}},
	"/jobs/" + string(jobID) + "/review/claim": {"record": {"0.0"}},
	"/new": {"provider": {"rules"}}, "/new/plan": {"provider": {"rules"}},
	"/try/run": nil, "/try/infer": nil, "/try/edit": nil, "/try/job": nil, "/try/read": nil,
	"/sign-in": {"token": {"ann"}}, "/sign-out": nil, "/not/there": nil,
}

// openToAnn opens pages of which a caller with the token "ann" is ann.
func openToAnn(t *testing.T, s *reviewed, change func(*dashboard.Config)) *httptest.Server {
	t.Helper()
	return open(t, s.stub, func(c *dashboard.Config) {
		c.Jobs, c.SignIn = namedService{s}, true
		c.Context = func(r *http.Request) context.Context {
			return context.WithValue(r.Context(), tokenKey{}, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		}
		if change != nil {
			change(c)
		}
	})
}

// sessionOf signs in, and returns the cookie.
func sessionOf(t *testing.T, server, name string) *http.Cookie {
	t.Helper()
	answer := post(t, server+"/sign-in", url.Values{"token": {name}}, nil)
	if len(answer.Cookies) != 1 {
		t.Fatalf("%s is not let in: status %d", name, answer.StatusCode)
	}
	return answer.Cookies[0]
}

// Another web page does nothing by a browser in which somebody has signed in, at no address.
func TestNothingIsDoneForOtherPages(t *testing.T) {
	s := newReviewed("plain", 1)
	server := openToAnn(t, s, nil)
	cookie := sessionOf(t, server.URL, "ann")
	before := s.noted()
	for address, form := range doing {
		for name, header := range map[string]http.Header{
			"another site": {"Sec-Fetch-Site": {"cross-site"}}, "a site beside it": {"Sec-Fetch-Site": {"same-site"}, "Origin": {server.URL}},
			"another origin": {"Origin": {"https://evil.example"}}, "a hidden origin": {"Origin": {"null"}}, "another port": {"Origin": {"http://127.0.0.1:1"}},
		} {
			header.Set("Cookie", cookie.Name+"="+cookie.Value)
			answer := post(t, server.URL+address, form, header)
			if answer.StatusCode != http.StatusForbidden || len(answer.Cookies) > 0 {
				t.Errorf("%s by a page of %s: status %d, cookies %v", address, name, answer.StatusCode, answer.Cookies)
			}
		}
	}
	if got := s.noted(); got != before || len(s.kept()) > 0 || len(s.claimed) > 0 {
		t.Errorf("other pages have done %q, decided %v and claimed %v", strings.TrimPrefix(got, before), s.kept(), s.claimed)
	}
}

// A page of another server has one of ours in a frame, and forms that it sends as soon as it is opened.
func evil(t *testing.T, to string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		address := to + r.URL.Query().Get("of")
		switch r.URL.Path {
		case "/frames":
			fmt.Fprintf(w, `<iframe src="%[1]s"></iframe><iframe sandbox="allow-scripts allow-same-origin allow-forms" src="%[1]s"></iframe>
				<object type="text/html" data="%[1]s"></object><embed type="text/html" src="%[1]s">`, address)
		case "/form":
			fmt.Fprintf(w, `<form method="post" action="%s"><input name="state" value="ignored"></form><script>document.forms[0].submit()</script>`, address)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// Every answer says that it is for no frame, and that it is of no other kind than it says.
func TestNoAnswerIsFramed(t *testing.T) {
	server := open(t, newStub("plain"), nil)
	job := "/jobs/" + string(jobID)
	for _, path := range append([]string{
		"/sign-in", "/nothing", "/sign-in/issuer", job + "/grid", job + "/proofs", job + "/files/result.json", job + "/files/none", job + "/review/queue",
		job + "/review/text?unit=u&document=d", job + "/picture?document=d&page=1", "/assets/live.js", "/assets/none", "/try/text?job=" + string(jobID) + "&unit=u&document=d",
	}, pagesOfAJob...) {
		_, _, header := get(t, server.URL+path)
		if header.Get("X-Frame-Options") != "DENY" || !strings.Contains(header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, header)
		}
	}
}

// No page is shown in a frame of another page, so nobody presses a button of ours that it does not see; and a form of
// another page does nothing, though the browser sends it with the cookie of who has signed in.
func TestClickjacking(t *testing.T) {
	s := newReviewed("plain", 1)
	server := openToAnn(t, s, nil)
	b := newBrowser(t, server.URL)
	b.open("/sign-in")
	b.run(chromedp.SendKeys(chromedp.CSS("input[name=token]"), "ann\r"), chromedp.WaitReady(chromedp.CSS("form[action='/sign-out']")))
	from := evil(t, server.URL)

	for _, path := range []string{"/sign-in", "/", "/jobs/" + string(jobID), "/jobs/" + string(jobID) + "/review"} {
		b.run(chromedp.Navigate(from.URL + "/frames?of=" + url.QueryEscape(path)))
		b.await(`document.readyState === "complete"`)
		var frames []string
		b.run(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			tree, err := chromedp.Call(ctx, page.GetFrameTree, cdp.Empty{})
			if err != nil {
				return err
			}
			for _, child := range tree.FrameTree.ChildFrames {
				frames = append(frames, child.Frame.URL)
			}
			return nil
		}))
		for _, at := range frames {
			if strings.HasPrefix(at, server.URL) {
				t.Errorf("%s is shown in a frame of another page", path)
			}
		}
		if len(frames) < 2 {
			t.Errorf("%s: %d frames were tried", path, len(frames))
		}
	}

	before := s.noted()
	for _, action := range []string{"pause", "cancel", "delete", "mark"} {
		b.run(chromedp.Navigate(from.URL + "/form?of=" + url.QueryEscape("/jobs/"+string(jobID)+"/"+action)))
		b.await(`document.querySelector("[role=alert] bdi")?.textContent.includes("another web page")`)
	}
	if got := s.noted(); got != before {
		t.Errorf("forms of another page have done %q", strings.TrimPrefix(got, before))
	}
}

// Whatever the address of the sign-in says, one is on a page of ours behind it.
func TestSignInLeadsNowhereElse(t *testing.T) {
	server := openToAnn(t, newReviewed("plain", 1), nil)
	b := newBrowser(t, server.URL)
	host := strings.TrimPrefix(server.URL, "http://")
	for _, to := range []string{
		"//evil.example", "///evil.example", `/\evil.example`, `\/evil.example`, "/\t/evil.example", "/\n/evil.example", "https://evil.example", "https:evil.example",
		"javascript:document.title='evil'", "/..//evil.example", "/.//evil.example", "/%2f/evil.example", "/%5cevil.example", "//evil.example@" + host, "@evil.example",
		".evil.example", "/?to=//evil.example", "/#//evil.example", "\u2028//evil.example", " //evil.example", "/\x00/evil.example", "http://" + host + ".evil.example/", "",
	} {
		b.open("/sign-in?to=" + url.QueryEscape(to))
		b.eval(`document.querySelector("input[name=token]").value = "ann"; document.querySelector("main form").submit(); ""`)
		b.await(`document.querySelector("form[action='/sign-out']")`)
		if at := b.eval(`location.host + " " + document.title`); !strings.HasPrefix(at, host+" ") || strings.Contains(at, "evil") {
			t.Errorf("%q leads to %s", to, at)
		}
	}
	b.checkQuiet() // nothing went to another server
}

// A session that has ended shows nothing more, in no page that is open: whoever has the cookie, or a stream that was
// opened with it, is at the door.
func TestRevokedWhileOpen(t *testing.T) {
	s := newReviewed("plain", 2)
	server := openToAnn(t, s, func(c *dashboard.Config) { c.Tick = time.Hour }) // of itself it looks at nothing
	for name, out := range map[string]url.Values{"this session": nil, "everywhere": {"everywhere": {"1"}}} {
		cookie, other := sessionOf(t, server.URL, "ann"), sessionOf(t, server.URL, "ann")
		with := func(path string, c *http.Cookie) *http.Response {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.AddCookie(c)
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		answer := with("/jobs/"+string(jobID)+"?live=1", cookie)
		lines := bufio.NewScanner(answer.Body)
		for seen := 0; seen < 4 && lines.Scan(); { // all of the page
			if strings.HasPrefix(lines.Text(), "data: ") {
				seen++
			}
		}

		by := cookie
		if out != nil {
			by = other
		}
		post(t, server.URL+"/sign-out", out, http.Header{"Cookie": {by.Name + "=" + by.Value}})
		s.change(func(j *mapreduce.Job) { j.Spec.Name = "a secret of later" })
		rest := ""
		for lines.Scan() {
			rest += lines.Text() + "\n"
		}
		_ = answer.Body.Close()
		if strings.Contains(rest, "a secret") || !strings.Contains(rest, "event: ended\ndata: \"signed-out\"") {
			t.Errorf("%s: the open page went on with %s", name, rest)
		}

		for _, path := range []string{"", "?live=1", "/records", "/files/result.json", "/grid", "/review/queue", "/review/text?unit=u&document=d", "/proofs"} {
			answer := with("/jobs/"+string(jobID)+path, cookie)
			body, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if path != "?live=1" && answer.StatusCode != http.StatusUnauthorized || strings.Contains(string(body), "secret") {
				t.Errorf("%s: the cookie still opens %s: %d %s", name, path, answer.StatusCode, body)
			}
		}
	}
}

// An upload that breaks off makes no job and no plan.
func TestBrokenFormsDoNothing(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, nil)
	form := "--b\r\nContent-Disposition: form-data; name=\"provider\"\r\n\r\nrules\r\n--b\r\nContent-Disposition: form-data; name=\"documents\"; filename=\"a.txt\"\r\n\r\nTotal 12"
	for _, path := range []string{"/new", "/new/plan", "/jobs/" + string(jobID) + "/cancel", "/jobs/" + string(jobID) + "/delete", "/jobs/" + string(jobID) + "/wake"} {
		kind := "multipart/form-data; boundary=b"
		if strings.HasPrefix(path, "/jobs") {
			kind = "application/x-www-form-urlencoded"
		}
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n%s", path, server.Listener.Addr(), kind, form)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(conn)
		_ = conn.Close()
		if !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
			t.Errorf("%s was answered with %q", path, answer)
		}
	}
	if s.noted() != "" {
		t.Errorf("what broke off has done %q", s.noted())
	}
}

// The clock of a server that is behind that of another makes no page say that something will happen.
func TestServerThatIsBehind(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, func(c *dashboard.Config) { c.Now = func() time.Time { return s.job.Created.Add(-5 * time.Hour) } })
	for _, path := range pagesOfAJob {
		status, body, _ := get(t, server.URL+path)
		if status != http.StatusOK || strings.Contains(body, "-5 h") || strings.Contains(body, ">-") || strings.Contains(body, ">−") {
			t.Errorf("%s: status %d, with a time before nothing:\n%s", path, status, body)
		}
	}
}

// errGone is what a service says of a job that somebody has deleted.
var errGone = errs.New(errs.NotFound, "there is no job %s", jobID)
