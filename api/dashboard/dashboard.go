// Package dashboard shows jobs to people in a browser, and lets them steer these: lists of
// jobs, a job with its units and stages, a unit with its document and its output, records
// with the passages that they rest on, and the log of a job.
//
// Pages are made by the server. A page whose job moves is kept up to date by a stream of
// its parts: the server makes the page again, and sends those parts that differ. So what a
// page shows is what the service says, and what is sent twice changes nothing.
//
// A Dashboard is an http.Handler. It asks the service as the caller of a request, through
// the client and the context that Config names, and knows no more than that caller may see.
package dashboard

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/auth/oidc"
	"github.com/coditect/mapreduce/api/dashboard/bench"
	"github.com/coditect/mapreduce/api/dashboard/drawn"
	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/dashboard/results"
	"github.com/coditect/mapreduce/api/dashboard/session"
	"github.com/coditect/mapreduce/api/dashboard/states"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Config says what a dashboard shows. Jobs is needed.
type Config struct {
	// Jobs answers for the caller that the context of a call names.
	Jobs mapreduce.Client

	// Context returns the context of the calls that a request leads to, with what tells the
	// service who calls. Defaults to the context of the request.
	Context func(*http.Request) context.Context

	// Prefix is the path below which the pages stand, such as /ui. Empty is the root.
	Prefix string

	// SignIn has callers sign in with a token, which a session then adds to their requests as
	// Authorization. Without it requests reach Context as they come.
	SignIn bool

	// Login lets people sign in at an issuer, beside those who have a token. Without SignIn it
	// means nothing.
	Login *oidc.Login

	// Decode reads the output of a unit for the page of the unit. Without it that page shows
	// no output.
	Decode func(*mapreduce.Job, *mapreduce.Unit) (*jobs.Output, error)

	// Content says what files are that somebody uploads. Defaults to plain text.
	Content Content

	// Bench is what the page for trying a schema works with. Without it there is none.
	Bench bench.Tools

	// Draw draws pages of PDF and TIFF files that people submitted, in another process than this one.
	// Without it pages show the text of these files alone.
	Draw drawn.Draw

	// Exports are the forms in which records can be downloaded beside result.json, by the
	// ending of the file.
	Exports map[string]Export

	// Version is that of the program, for the foot of each page.
	Version string

	// Tick is how often a page asks for what changes without notice. Defaults to half a second.
	Tick time.Duration

	// Now defaults to time.Now.
	Now func() time.Time

	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// A Dashboard serves pages. It is safe for use by several goroutines.
type Dashboard struct {
	config   Config
	build    string // names templates, words, scripts and program: pages of another one may not fit its parts
	routes   *http.ServeMux
	views    views
	assets   *assets
	bench    *bench.Bench
	pages    *drawn.Pages // nil if no pages are drawn
	sessions *session.Sessions
	states   *states.Index
	origins  *http.CrossOriginProtection
	readings chan struct{} // those of slow parts of open pages that are under way: all pages together get no more
}

// New returns a dashboard. It starts nothing.
func New(c Config) (*Dashboard, error) {
	if c.Context == nil {
		c.Context = (*http.Request).Context
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Content == nil {
		c.Content = func(_ context.Context, _ string, data []byte) (string, []byte, error) { return "text/plain", data, nil }
	}
	c.Tick = cmp.Or(c.Tick, 500*time.Millisecond)
	c.Logger = cmp.Or(c.Logger, slog.Default())

	if c.Prefix != "" && (!strings.HasPrefix(c.Prefix, "/") || strings.HasSuffix(c.Prefix, "/") || (&url.URL{Path: c.Prefix}).String() != c.Prefix) {
		return nil, errs.Field("prefix", "%q is no path such as /ui", c.Prefix)
	}

	d := &Dashboard{config: c, bench: bench.New(c.Bench), origins: http.NewCrossOriginProtection(), routes: http.NewServeMux(), readings: make(chan struct{}, readingsAtOnce)}
	d.sessions = session.New(session.Config{Path: c.Prefix, Login: c.Login, Now: c.Now})
	d.states = states.New(states.Config{Now: c.Now})
	if c.Draw != nil {
		d.pages = drawn.New(c.Draw, drawn.DefaultRoom)
	}
	d.assets = newAssets(c.Prefix)
	var err error
	if d.build, err = buildOf(c.Version); err != nil {
		return nil, err
	}
	if d.views, err = newViews(d); err != nil {
		return nil, err
	}
	d.route()
	return d, nil
}

// route says what stands where.
func (d *Dashboard) route() {
	shown := &results.Contents{Decode: d.config.Decode, Endings: slices.Collect(maps.Keys(d.config.Exports)), Draws: d.pages != nil}
	listed := &jobs.UnitPages{Index: d.states, Decode: d.config.Decode}
	asked, signing := reviews{d}, door{d}

	for path, p := range map[string]page{
		"/{$}":                   {name: "jobs", load: jobs.LoadJobs, parts: []string{"jobs"}},
		"/jobs/{job}":            {name: "job", load: jobs.LoadJob, parts: []string{"head", "progress", "stages", "notes"}, watches: true},
		"/jobs/{job}/units":      {name: "units", load: listed.LoadUnits, parts: []string{"head", "units"}, watches: true},
		"/jobs/{job}/units/{at}": {name: "unit", load: listed.LoadUnit, parts: []string{"head", "unit"}, watches: true},
		"/jobs/{job}/records":    {name: "records", load: shown.LoadRecords, again: jobs.LoadHead("records"), parts: []string{"head"}, slow: []string{"filters", "records"}, watches: true, early: results.EarlyRecords, quick: results.QuickRecords},
		"/jobs/{job}/review":     {name: "review", load: asked.loadReview, again: jobs.LoadHead("review"), parts: []string{"head"}, watches: true},
		"/jobs/{job}/document":   {name: "document", load: shown.LoadDocument},
		"/jobs/{job}/history":    {name: "history", load: jobs.LoadHistory, again: jobs.LoadHead("history"), parts: []string{"head"}, slow: []string{"history"}, watches: true, early: jobs.EarlyHead("history")},
		"/jobs/{job}/events":     {name: "events", load: jobs.LoadEvents, again: jobs.LoadHead("events"), parts: []string{"head"}, slow: []string{"log"}, watches: true},
		"/jobs/{job}/errors":     {name: "errors", load: jobs.LoadErrors, again: jobs.LoadHead("errors"), parts: []string{"head"}, slow: []string{"errors"}, watches: true, early: jobs.EarlyHead("errors")},
		"/compare":               {name: "compare", load: results.LoadComparison},
		"/use":                   {name: "use", load: jobs.LoadUse, parts: []string{"use"}},
		"/fleet":                 {name: "fleet", load: jobs.LoadFleet, again: jobs.LoadFleetAgain, parts: []string{"store", "fleet"}},
		"/new":                   {name: "new", load: loadNew},
	} {
		d.routes.HandleFunc("GET "+path, d.show(p))
	}

	d.routes.HandleFunc("GET /jobs/{job}/grid", d.call(d.sendGrid))
	d.routes.HandleFunc("GET /jobs/{job}/proofs", d.call(d.sendProofs))
	d.routes.HandleFunc("GET /jobs/{job}/review/queue", d.call(asked.sendQueue))
	d.routes.HandleFunc("GET /jobs/{job}/review/text", d.call(asked.sendText))
	d.routes.HandleFunc("POST /jobs/{job}/review", d.call(asked.decide))
	d.routes.HandleFunc("POST /jobs/{job}/review/claim", d.call(asked.claim))
	d.routes.HandleFunc("GET /jobs/{job}/files/{file}", d.call(d.sendFile))
	d.routes.HandleFunc("GET /jobs/{job}/picture", d.call(d.sendPicture))
	for _, action := range []string{"pause", "resume", "budget", "cancel", "delete", "wake", "mark"} {
		d.routes.HandleFunc("POST /jobs/{job}/"+action, d.call(d.act(action)))
	}
	d.routes.HandleFunc("POST /new/plan", d.call(d.planNew))
	d.routes.HandleFunc("POST /new", d.call(d.submitNew))

	d.routeTry()

	d.routes.HandleFunc("GET /sign-in", signing.showSignIn)
	d.routes.HandleFunc("POST /sign-in", signing.signIn)
	d.routes.HandleFunc("GET /sign-in/issuer", signing.beginSignIn)
	d.routes.HandleFunc("GET "+SignInCallback, signing.finishSignIn)
	d.routes.HandleFunc("POST /sign-out", signing.signOut)
	d.routes.Handle("GET /assets/", d.assets)
	d.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		d.fail(w, r, errs.New(errs.NotFound, "there is no page at %s", r.URL.Path))
	})
}

// policy allows a page what comes from its own server, and nothing that stands in it: no
// text that somebody else has written can become a script or reach another server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")

	if err := d.origins.Check(r); err != nil {
		d.fail(w, r, errs.New(errs.Denied, "another web page has sent this request; nothing was done"))
		return
	}

	d.sessions.Admit(r)
	http.StripPrefix(d.config.Prefix, d.routes).ServeHTTP(w, r)
}
