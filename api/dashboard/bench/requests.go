package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
)

// Pages are what the requests of the workbench need of the pages around it.
type Pages struct {
	// Jobs answers for the caller that the context of a call names, which Context returns.
	Jobs    mapreduce.Client
	Context func(*http.Request) context.Context
	// Part writes a part of the page.
	Part func(name string, out *Outcome) (string, error)
	// Plan is what people see of a plan for so many documents, and JobPath the address of a job.
	Plan    func(plan *mapreduce.Plan, documents int) any
	JobPath func(mapreduce.JobID) string
}

// Requests returns what answers the requests of the workbench, by their methods and paths.
func (b *Bench) Requests(p Pages) map[string]func(http.ResponseWriter, *http.Request) error {
	r := &requests{b, p}
	return map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /try/text":   r.sendText,
		"POST /try/read":  r.read,
		"POST /try/run":   answer(r, r.run),
		"POST /try/infer": answer(r, r.infer),
		"POST /try/edit":  answer(r, r.edit),
		"POST /try/job":   answer(r, r.job),
	}
}

// requests answer for the workbench.
type requests struct {
	*Bench
	Pages
}

// maxRequest bounds a request, in bytes: texts grow in JSON.
const maxRequest = 8 << 20

// admit refuses callers who may not submit jobs, and those who call more often than their tenant
// may: what is tried takes time of the server, as a plan does.
func (r *requests) admit(ctx context.Context) error {
	spec := mapreduce.JobSpec{Schema: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
	nothing := func(func(*mapreduce.Document, error) bool) {}
	_, err := r.Jobs.PlanJob(ctx, mapreduce.PlanQuery{Spec: spec}, nothing)
	switch errs.KindOf(err) {
	case errs.Invalid, errs.Precondition: // a plan of nothing may be refused, of somebody who may have one
		return nil
	}
	return err
}

// answer returns what answers a request that has a value of JSON.
func answer[Q any](r *requests, do func(context.Context, *Q) (any, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, req *http.Request) error {
		ctx := r.Context(req)
		if err := r.admit(ctx); err != nil {
			return err
		}

		var q Q
		if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxRequest)).Decode(&q); err != nil {
			if _, large := errors.AsType[*http.MaxBytesError](err); large {
				return errs.Field("documents", "schema and documents are larger than %d MiB together", maxRequest>>20)
			}
			return errs.Field("form", "it broke off or cannot be read: %w", err)
		}
		value, err := do(ctx, &q)
		if err != nil {
			return err
		}
		return send(w, value)
	}
}

func send(w http.ResponseWriter, value any) error {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // a browser that is gone cannot be told
	return nil
}

// sendText sends the text of a document of a job.
func (r *requests) sendText(w http.ResponseWriter, req *http.Request) error {
	query := req.URL.Query()
	job, unit, document := mapreduce.JobID(query.Get("job")), mapreduce.UnitID(query.Get("unit")), mapreduce.DocumentID(query.Get("document"))

	var text []byte
	err := r.Jobs.ReadText(r.Context(req), job, unit, document, func(part []byte) error {
		if len(text)+len(part) > MaxTexts {
			return errs.Field("documents", "%q has more than %d KiB of text", document, MaxTexts>>10)
		}
		text = append(text, part...)
		return nil
	})
	if err != nil {
		return err
	}

	if !utf8.Valid(text) {
		return errs.New(errs.Precondition, "%q is a file that is no text", document)
	}
	return send(w, Document{Name: string(document), Text: string(text)})
}

// read returns the text of a file that is uploaded.
func (r *requests) read(w http.ResponseWriter, req *http.Request) error {
	ctx, name := r.Context(req), req.URL.Query().Get("name")
	if err := r.admit(ctx); err != nil {
		return err
	}

	data, err := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxFile))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return errs.Field("documents", "%q has more than %d MiB", name, MaxFile>>20)
	}
	if err != nil {
		return errs.Field("documents", "the upload of %q broke off: choose it again", name)
	}
	text, err := r.Read(ctx, name, data)
	if err != nil {
		return err
	}
	return send(w, text)
}

// tried answers with the parts of the page that show what was tried.
type tried struct {
	Parts    map[string]string `json:"parts"`
	Broken   bool              `json:"broken"`
	Problems []triedProblem    `json:"problems"`
	Found    int               `json:"found"`   // values, of all fields and records
	Wanted   int               `json:"wanted"`  // that there could be
	F1       *float64          `json:"f1"`      // by true values; null without them
	Running  string            `json:"running"` // how far a job is that has not ended
}

type triedProblem struct {
	Line    int  `json:"line"`
	Warning bool `json:"warning"`
}

func (r *requests) run(ctx context.Context, s *Sample) (any, error) {
	out, err := r.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	return r.show(out, "problems", "rows", "results", "shown")
}

// show makes parts of the page.
func (r *requests) show(out *Outcome, parts ...string) (*tried, error) {
	t := &tried{Parts: make(map[string]string), Broken: out.Broken, Problems: []triedProblem{}}
	for _, p := range out.Problems {
		t.Problems = append(t.Problems, triedProblem{p.Line, p.Warning})
	}
	if report := out.Report; report != nil {
		for _, f := range report.Fields {
			t.Found, t.Wanted = t.Found+f.Found, t.Wanted+f.Records
		}
		if report.Score != nil && report.Score.Failed == "" {
			t.F1 = &report.Score.All.F1
		}
	}

	for _, name := range parts {
		html, err := r.Part(name, out)
		if err != nil {
			return nil, errs.New(errs.Internal, "make a part of the page: %w", err)
		}
		t.Parts[name] = html
	}
	return t, nil
}

func (r *requests) infer(ctx context.Context, s *Sample) (any, error) {
	proposed, err := r.Infer(ctx, s)
	return map[string]string{"schema": proposed}, err
}

// An editQuery changes a schema by the form.
type editQuery struct {
	Schema string `json:"schema"`
	Edit   Edit   `json:"edit"`
}

func (r *requests) edit(_ context.Context, q *editQuery) (any, error) {
	text, err := Apply(q.Schema, q.Edit)
	return map[string]string{"schema": text}, err
}

// A jobQuery is a sample that a model is to read, by a job.
type jobQuery struct {
	Sample
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Plan     bool   `json:"plan"` // say what it would cost, and do nothing
	Job      string `json:"job"`  // one that was submitted: say how it stands
}

// job has a model try a schema: by a job, so that it is limited, paid, logged and shown as all
// others are. The same sample is the same job, whoever presses the button twice.
func (r *requests) job(ctx context.Context, q *jobQuery) (any, error) {
	parsed, err := schema.Parse("schema", []byte(q.Schema))
	if err != nil {
		return nil, errs.Field("schema", "%w", err)
	}
	if len(q.Documents) == 0 || len(q.Documents) > MaxDocuments {
		return nil, errs.Field("documents", "must be 1 to %d", MaxDocuments)
	}
	if q.Job != "" {
		return r.showJob(ctx, q, parsed)
	}

	spec := mapreduce.JobSpec{
		Provider: q.Provider, Model: q.Model, Schema: parsed.Canonical(), Name: mapreduce.NameOf(q.Documents[0].Name, len(q.Documents)),
	}
	if q.Plan {
		plan, err := r.Jobs.PlanJob(ctx, mapreduce.PlanQuery{Spec: spec}, q.documents())
		if err != nil {
			return nil, err
		}
		return r.Pages.Plan(plan, len(q.Documents)), nil
	}

	spec.RequestID = q.requestID(&spec)
	job, err := r.Jobs.SubmitJob(ctx, spec, q.documents())
	if err != nil {
		return nil, err
	}
	return map[string]string{"job": string(job.ID), "path": r.JobPath(job.ID)}, nil
}

// requestID is a name for the content of a sample.
func (q *jobQuery) requestID(spec *mapreduce.JobSpec) mapreduce.RequestID {
	sum := sha256.New()
	e := json.NewEncoder(sum)
	_ = e.Encode([]any{spec.Provider, spec.Model, spec.Schema, q.Documents}) // texts are always good JSON
	return mapreduce.RequestID("try " + hex.EncodeToString(sum.Sum(nil)[:16]))
}

func (q *jobQuery) documents() iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for _, d := range q.Documents {
			if !yield(&mapreduce.Document{ID: mapreduce.DocumentID(d.Name), Size: int64(len(d.Text)), MediaType: "text/plain", Content: []byte(d.Text)}, nil) {
				return
			}
		}
	}
}

// showJob shows the result of a job as that of rules, once there is one.
func (r *requests) showJob(ctx context.Context, q *jobQuery, parsed *schema.Schema) (any, error) {
	id := mapreduce.JobID(q.Job)
	job, err := r.Jobs.GetJob(ctx, id)
	if err != nil {
		return nil, err
	}
	if job.State.Running() {
		return &tried{Running: strconv.FormatInt(job.CompletedUnits, 10) + " / " + strconv.FormatInt(job.TotalUnits, 10)}, nil
	}

	report, err := FromResult(parsed, q.Documents, func(sink func(*mapreduce.ResultPart) error) error {
		return r.Jobs.GetResult(ctx, id, job.State != mapreduce.JobComplete, sink)
	})
	if err != nil {
		return nil, err
	}
	out := &Outcome{Report: report, Index: q.Shown, Failed: strings.TrimSpace(job.Error)}
	out.Shown = Show(&q.Sample, report)
	return r.show(out, "results", "shown")
}
