package dashboard

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/dashboard/results"
	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/wire/fault"
)

//go:embed templates
var templates embed.FS

// A page says how one kind of page is made.
type page struct {
	name    string                            // of its template
	load    func(v *visit.Visit) (any, error) // what it shows
	parts   []string                          // templates of it that are sent again while it is open
	watches bool                              // it is about a job that may move

	// again makes what the parts show while the page is open, if that is less than load does.
	again func(v *visit.Visit) (any, error)
	// slow are templates of the page for which whole results and logs are read, by load: they are sent again when the
	// job has moved, but are made for a small share of the time alone.
	slow []string
	// early makes what of a large job is sent at once, without what the slow templates show. Nil if the page comes whole.
	early func(v *visit.Visit) (*jobs.JobPage, error)
	// quick reports whether a page of a large job comes whole all the same. Nil if none does.
	quick func(v *visit.Visit) bool
}

// A frame is what a page stands in.
type frame struct {
	Page   string // name
	Path   string // of this page, with its parameters
	Live   string // address of the stream of its parts; empty if it does not change
	Prefix string
	SignIn string // address at which a caller signs in; empty if the server asks nobody to
	Signed bool   // the caller has signed in, and may sign out
	Caller string // name of the caller
	May    rights
	Data   any
}

// rights are what a caller may do, so that a page shows no button that would be refused. The service
// decides.
type rights struct{ View, Submit, Operate, Administer bool }

func rightsOf(by *mapreduce.Principal) rights {
	return rights{
		View: by.Has(mapreduce.Viewer), Submit: by.Has(mapreduce.Submitter), Operate: by.Has(mapreduce.Operator), Administer: by.Has(mapreduce.Admin),
	}
}

// views are the templates of all pages, by name.
type views map[string]*template.Template

func newViews(d *Dashboard) (views, error) {
	words, err := readWords()
	if err != nil {
		return nil, err
	}

	functions := template.FuncMap{
		"word": words.say, "asset": d.assets.path, "version": func() string { return d.config.Version }, "tries": d.bench.CanTry,
		"link":  func(below string) string { return d.config.Prefix + below },
		"count": visit.CountAny, "money": visit.Money, "percent": visit.Percent, "duration": visit.Duration, "moment": visit.Moment, "age": visit.Age, "text": visit.Visible,
		"list": func(all ...any) []any { return all }, "base": path.Base, "sub": func(a, b int) int { return a - b }, "plus": func(a, b int) int { return a + b },
		"line": func(s string) string { return results.VisibleRunes([]rune(s)) }, "share": func(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) },
	}

	base, err := template.New("").Funcs(functions).ParseFS(templates, "templates/parts/*.tmpl")
	if err != nil {
		return nil, err
	}

	files, err := fs.Glob(templates, "templates/*.tmpl")
	if err != nil {
		return nil, err
	}

	all := make(views, len(files))
	for _, file := range files {
		own, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if own, err = own.ParseFS(templates, file); err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(path.Base(file), ".tmpl")] = own
	}
	return all, nil
}

// visit returns a request as pages see it.
func (d *Dashboard) visit(r *http.Request) *visit.Visit {
	ctx := d.config.Context(r)
	return &visit.Visit{
		Context: ctx, Jobs: d.config.Jobs, Now: d.config.Now(), Prefix: d.config.Prefix,
		Path: d.config.Prefix + r.URL.Path, Query: r.URL.Query(), Names: r.PathValue,
	}
}

// write makes a template of a page.
func (v views) write(page, part string, data any) ([]byte, error) {
	t := v[page]
	if t == nil {
		return nil, fmt.Errorf("there is no template of the page %s", page)
	}
	var out bytes.Buffer
	err := t.ExecuteTemplate(&out, part, data)
	return out.Bytes(), err
}

// show returns what answers requests for a page: with the page, or with the stream of its
// parts.
func (d *Dashboard) show(p page) http.HandlerFunc {
	return d.call(func(w http.ResponseWriter, r *http.Request) error {
		if query := r.URL.Query(); query.Has("live") && len(p.parts) > 0 {
			return d.stream(w, withoutLive(r), p, opened{query.Get("build"), query.Get("version")})
		}

		v := d.visit(r)
		data, whole, err := p.first(v)
		if err != nil {
			return err
		}

		f := d.frame(v, r, p.name, data)
		if len(p.parts) > 0 {
			query := r.URL.Query()
			query.Set("live", "1")
			query.Set("build", d.build)
			if of, ok := data.(*jobs.JobPage); ok && len(p.slow) > 0 && whole {
				query.Set("version", of.Version)
			}
			f.Live = visit.Address(d.config.Prefix+r.URL.Path, query)
		}
		return d.send(w, http.StatusOK, f)
	})
}

// withoutLive returns the request for a page, given that for the stream of its parts. A check that somebody asked for
// is not made again and again.
func withoutLive(r *http.Request) *http.Request {
	query := r.URL.Query()
	for _, name := range []string{"live", "build", "version", "check", "whole"} {
		query.Del(name)
	}
	of := r.Clone(r.Context())
	of.URL.RawQuery = query.Encode()
	return of
}

func (d *Dashboard) frame(v *visit.Visit, r *http.Request, page string, data any) *frame {
	by := v.Known()
	f := &frame{
		Page: page, Path: d.config.Prefix + r.URL.RequestURI(), Prefix: d.config.Prefix,
		Signed: d.config.SignIn && d.sessions.Signed(r), Caller: by.Name, May: rightsOf(by), Data: data,
	}
	if d.config.SignIn {
		f.SignIn = d.config.Prefix + "/sign-in"
	}
	return f
}

// send answers with a page.
func (d *Dashboard) send(w http.ResponseWriter, status int, f *frame) error {
	body, err := d.views.write(f.Page, "page", f)
	if err != nil {
		return errs.New(errs.Internal, "make the page: %w", err)
	}

	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a browser that is gone cannot be told
	return nil
}

// call returns what answers a request by a function that may fail.
func (d *Dashboard) call(do func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := do(w, r); err != nil {
			d.fail(w, r, err)
		}
	}
}

// statuses are those of HTTP for kinds of errors; all others are the server's fault.
var statuses = map[errs.Kind]int{
	errs.Invalid: http.StatusBadRequest, errs.NotFound: http.StatusNotFound, errs.Exists: http.StatusConflict,
	errs.Precondition: http.StatusConflict, errs.Aborted: http.StatusConflict, errs.Exhausted: http.StatusTooManyRequests,
	errs.Unavailable: http.StatusServiceUnavailable, errs.Deadline: http.StatusGatewayTimeout,
	errs.Unauthenticated: http.StatusUnauthorized, errs.Denied: http.StatusForbidden,
}

// A failure is what the page of an error says.
type failure struct {
	Kind    string // of package errs: the page says what to do by it
	Field   string
	Message string
	Again   string // address of what was asked for, if it may be asked for again
}

// fail answers a request with what went wrong: a page, or text for a script. A caller whom
// the service does not know is asked to sign in.
func (d *Dashboard) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(r.Context().Err(), r.Context().Err()) && r.Context().Err() != nil {
		w.WriteHeader(http.StatusRequestTimeout) // nobody waits for more of an answer
		return
	}

	err = fault.Error(err)
	kind := errs.KindOf(err)
	asks := strings.Contains(r.Header.Get("Accept"), "text/html")
	if kind == errs.Unauthenticated && d.config.SignIn && asks && r.Method == http.MethodGet {
		to := url.Values{"to": {r.URL.RequestURI()}}
		http.Redirect(w, r, visit.Address(d.config.Prefix+"/sign-in", to), http.StatusSeeOther)
		return
	}

	status := statusOf(err)
	if status == http.StatusInternalServerError {
		d.config.Logger.Warn("A page could not be made.", "path", r.URL.Path, "error", err)
	}

	f := failure{Kind: kind.String(), Message: err.Error()}
	if e, ok := errors.AsType[*errs.Error](err); ok {
		f.Field = e.Field
		if e.Message != "" {
			f.Message = e.Message
		}
	}
	if r.Method == http.MethodGet {
		f.Again = d.config.Prefix + r.URL.RequestURI()
	}

	if !asks {
		http.Error(w, f.Message, status)
		return
	}
	if err := d.send(w, status, d.frame(d.visit(r), r, "error", f)); err != nil {
		http.Error(w, f.Message, status)
	}
}

// statusOf returns the status that says what kind an error is of.
func statusOf(err error) int {
	if status, known := statuses[errs.KindOf(err)]; known {
		return status
	}
	return http.StatusInternalServerError
}
