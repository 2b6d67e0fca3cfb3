package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// Pages show a caller what its roles allow, and nothing that would be refused; the name of who has signed in
// is shown as text.
func TestPagesShowWhatACallerMayDo(t *testing.T) {
	job := "/jobs/" + string(jobID)
	shown := map[string]string{ // by page and role that is needed for it, of a page
		job + ` action="` + job + `/cancel"`:           "operator",
		job + ` action="` + job + `/pause"`:            "operator",
		job + `/errors action="` + job + `/resume"`:    "operator",
		job + `/units/0.2 action="` + job + `/wake"`:   "operator",
		job + `/review data-decide="` + job:            "operator",
		job + `/review data-key="accept"`:              "operator",
		job + `/review data-key="next"`:                "observer",
		job + ` href="` + job + `/records"`:            "viewer",
		job + ` href="` + job + `/review"`:             "viewer",
		job + ` href="` + job + `/units"`:              "observer",
		job + ` href="/new?like=` + string(jobID) + ``: "submitter",
		job + ` href="/try?job=` + string(jobID):       "submitter",
		`/ href="/new"`:                                "submitter",
		`/ href="/try"`:                                "submitter",
		`/ href="/compare"`:                            "viewer",
		`/ href="/use"`:                                "observer",
		`/ href="/fleet"`:                              "admin",
	}
	for _, role := range []mapreduce.Role{mapreduce.Observer, mapreduce.Viewer, mapreduce.Submitter, mapreduce.Operator, mapreduce.Admin} {
		s := newStub("plain")
		s.roles = []mapreduce.Role{role}
		server := open(t, s, nil)
		for what, needed := range shown {
			page, text, _ := strings.Cut(what, " ")
			if page == job+"/errors" {
				s.change(func(j *mapreduce.Job) { j.State = mapreduce.JobFailed })
			} else {
				s.change(func(j *mapreduce.Job) { j.State = mapreduce.Mapping })
			}
			_, body, _ := get(t, server.URL+page)
			may := mapreduce.Principal{Roles: s.roles}.Has(mapreduce.Role(needed))
			if got := strings.Contains(body, text); got != may {
				t.Errorf("%s as a %s: %s is shown: %v, want %v", page, role, text, got, may)
			}
		}
	}
}

// Of a server that does not say who calls, pages show everything.
func TestPagesOfAnOlderServer(t *testing.T) {
	s := newStub("plain")
	server := open(t, s, func(c *dashboard.Config) { c.Jobs = older{s} })
	if _, body, _ := get(t, server.URL+"/jobs/"+string(jobID)); !strings.Contains(body, `/cancel"`) || !strings.Contains(body, `href="/fleet"`) {
		t.Errorf("the page shows less than there is:\n%s", body)
	}
}

// An older server does not know the question.
type older struct{ *stub }

func (older) Caller(context.Context) (*mapreduce.Principal, error) {
	return nil, errs.New(errs.Precondition, "unknown method")
}

// A signedReview is a review in a browser whose caller has signed in.
type signedReview struct {
	*reviewed
	b   *browser
	now atomic.Int64 // seconds after the start
}

// openSigned opens pages of which a caller with the token "ann" is ann, and one with "bob" bob.
func openSigned(t *testing.T, name string) *signedReview {
	t.Helper()
	s := &signedReview{reviewed: newReviewed("plain", 3)}
	server := open(t, s.stub, func(c *dashboard.Config) {
		c.Jobs, c.SignIn, c.Now = namedService{s.reviewed}, true, func() time.Time { return time.Unix(1_800_000_000+s.now.Load(), 0) }
		c.Context = func(r *http.Request) context.Context {
			return context.WithValue(r.Context(), tokenKey{}, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		}
	})
	s.b = newBrowser(t, server.URL)
	s.b.open("/sign-in")
	s.signIn(name)
	return s
}

// signIn fills in the form for signing in.
func (s *signedReview) signIn(token string) {
	s.b.t.Helper()
	s.b.run(
		chromedp.WaitReady(chromedp.CSS("input[name=token]")), chromedp.SendKeys(chromedp.CSS("input[name=token]"), token+"\r"),
		chromedp.WaitReady(chromedp.CSS("form[action='/sign-out']")),
	)
}

// expire ends all sessions.
func (s *signedReview) expire() { s.now.Add(13 * 3600) }

type tokenKey struct{}

// A namedService knows its callers by tokens that are their names, and says who has decided.
type namedService struct{ *reviewed }

func named(ctx context.Context) (string, error) {
	if name, _ := ctx.Value(tokenKey{}).(string); slices.Contains([]string{"ann", "bob", hostile[0]}, name) {
		return name, nil
	}
	return "", errs.New(errs.Unauthenticated, "who are you?")
}

func (n namedService) Caller(ctx context.Context) (*mapreduce.Principal, error) {
	name, err := named(ctx)
	return &mapreduce.Principal{Name: name, Roles: mapreduce.Roles()}, err
}

func (n namedService) GetJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	if _, err := named(ctx); err != nil {
		return nil, err
	}
	return n.reviewed.GetJob(ctx, id)
}

func (n namedService) ListJobs(ctx context.Context, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	if _, err := named(ctx); err != nil {
		return nil, err
	}
	return n.reviewed.ListJobs(ctx, q)
}

func (n namedService) ReadText(ctx context.Context, id mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error {
	if _, err := named(ctx); err != nil {
		return err
	}
	return n.reviewed.ReadText(ctx, id, unit, document, sink)
}

func (n namedService) ResumeJob(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	if _, err := named(ctx); err != nil {
		return nil, err
	}
	return n.reviewed.ResumeJob(ctx, id, r)
}

func (n namedService) PlanJob(ctx context.Context, _ mapreduce.PlanQuery, _ iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
	_, err := named(ctx)
	return &mapreduce.Plan{}, err
}

func (n namedService) DecideValue(ctx context.Context, d mapreduce.NewDecision) (*mapreduce.Decision, error) {
	name, err := named(ctx)
	if err != nil {
		return nil, err
	}
	d.Note = name
	return n.reviewed.DecideValue(ctx, d)
}

// Whoever is signed out in the middle of a review signs in and goes on where it was, with what was typed; what
// it had decided is stored as its own, and never as that of somebody else who signs in meanwhile.
func TestSignedOutWhileReviewing(t *testing.T) {
	s := openSigned(t, "ann")
	review := "/jobs/" + string(jobID) + "/review?sample=20"
	s.b.open(review)
	s.b.await(`document.querySelector("mark.here")`)

	// A correction of the second value is being typed when the decision about the first is refused.
	s.b.eval(fmt.Sprintf(pressed, "j") + `; ` + fmt.Sprintf(pressed, "c") + `; document.getElementById("right").value = "7.10"; ""`)
	s.expire()
	s.b.eval(`(() => { const b = document.querySelector("[data-key=accept]"); document.querySelector("[data-key=back]").click(); b.click(); document.getElementById("right").value = "7.10"; return ""; })()`)

	s.signIn("bob")
	s.b.await(`document.querySelector("mark.here") && document.getElementById("progress").dataset.decided === "0"`)
	if got := s.b.eval(`location.pathname + location.search + document.getElementById("progress").dataset.waiting`); got != review+"0" {
		t.Errorf("bob is at %s", got)
	}
	if all := s.kept(); len(all) != 0 {
		t.Errorf("bob has decided %+v", all)
	}

	s.b.eval(`document.querySelector("form[action='/sign-out'] button").click(); ""`)
	s.signIn("ann")
	s.b.open(review)
	s.b.await(`document.getElementById("progress").dataset.waiting === "0" && document.getElementById("progress").dataset.decided === "1"`)
	if all := s.kept(); len(all) != 1 || all[0].Verdict != mapreduce.ReviewAccept {
		t.Errorf("kept %+v", all)
	}
	if got := s.b.eval(`document.activeElement.id + document.getElementById("right").value + document.getElementById("number").textContent`); got != "right7.10#2" {
		t.Errorf("what was typed: %q", got)
	}
}

// What stands in the workbench, chosen files too, is there again behind the sign-in.
func TestSignedOutWhileTrying(t *testing.T) {
	s := openSigned(t, "ann")
	s.b.openTry("/try")
	s.b.paste("a.txt", "12.50 is the total")
	s.b.eval(`(() => { const f = document.getElementById("try-provider"); f.closest("details").open = true; f.value = "anthropic"; f.dispatchEvent(new Event("input", {bubbles: true})); return ""; })()`)
	s.expire()
	// At once: the page leads away a moment after the first key.
	s.b.eval(`(() => { const t = document.getElementById("try-schema"); t.value = "title: mine"; t.dispatchEvent(new Event("input", {bubbles: true})); return ""; })()`)
	s.signIn("ann")
	s.b.await(`document.getElementById("try") && document.getElementById("try").dataset.ready === "1"`)
	if got := s.b.eval(schemaText + ` + document.getElementById("try-provider").value + document.querySelector("#try-documents button").textContent`); got != "title: mineanthropica.txt" {
		t.Errorf("behind the sign-in stands %q", got)
	}
}

// The name of who has signed in is shown as text, whatever it is.
func TestHostileCaller(t *testing.T) {
	s := newReviewed("plain", 1)
	server := open(t, s.stub, func(c *dashboard.Config) {
		c.Jobs, c.SignIn = namedService{s}, true
		c.Context = func(r *http.Request) context.Context {
			return context.WithValue(r.Context(), tokenKey{}, hostile[0])
		}
	})
	cookie := post(t, server.URL+"/sign-in", url.Values{"token": {"x"}}, nil).Cookies[0]
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/jobs/"+string(jobID)+"/review", nil)
	r.Header.Set("Accept", "text/html")
	r.AddCookie(cookie)
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	body := string(page)
	if strings.Contains(body, hostile[0]) || !strings.Contains(body, "sign-out") {
		t.Errorf("the page has the name as it is, or nobody is signed in:\n%s", body)
	}
	shape(t, body)
}

// A view of the list is kept in the browser under a name, leads back to its filters, and can be forgotten.
func TestSavedViews(t *testing.T) {
	server := open(t, newStub("plain"), nil)
	b := newBrowser(t, server.URL)
	b.open("/?state=mapping")
	b.eval(`window.prompt = () => "<b>mine</b>"; document.querySelector("[data-views] button:last-child").click(); ""`)
	b.open("/")
	if got := b.eval(`(() => { const link = document.querySelector("[data-views] a"); return link.textContent + " " + link.search + link.childElementCount; })()`); got != "<b>mine</b> ?state=mapping0" {
		t.Errorf("the view is %q", got)
	}
	b.eval(`document.querySelector("[data-views] a + button").click(); ""`)
	b.open("/")
	if got := b.eval(`String(document.querySelectorAll("[data-views] a").length)`); got != "0" {
		t.Errorf("%s views are left", got)
	}
	b.checkQuiet()
}
