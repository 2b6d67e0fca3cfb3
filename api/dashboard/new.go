package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
)

// A newPage is the form for a new job, filled in like an earlier one if its address names that.
type newPage struct {
	Like                      string
	Schema                    string
	Provider, Model, Pipeline string
	Name                      string
	Budget                    string
	Missing                   string // why the earlier job could not be looked at
}

// loadNew makes the form for a new job.
func loadNew(v *visit.Visit) (any, error) {
	p := &newPage{Provider: "rules"}
	like := mapreduce.JobID(v.Query.Get("like"))
	if like == "" {
		return p, nil
	}

	j, err := v.Jobs.GetJob(v, like)
	if err != nil {
		p.Missing = err.Error()
		return p, nil //nolint:nilerr // the form says it
	}
	p.Schema = indented(j.Spec.Schema)
	p.Like, p.Name = string(like), j.Spec.Name
	p.Provider, p.Model, p.Pipeline = j.Spec.Provider, j.Spec.Model, j.Spec.Pipeline
	if j.Spec.Budget > 0 {
		p.Budget = j.Spec.BudgetIn.BudgetText(j.Spec.Budget)
	}
	return p, nil
}

// indented is a schema for people; empty if it is no JSON.
func indented(data []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, data, "", "  ") != nil {
		return ""
	}
	return out.String()
}

const (
	maxUpload   = 256 << 20 // bytes of a form with its files
	maxInMemory = 8 << 20   // of these, before they go to files
)

// A request is a form for a new job that has come.
type request struct {
	spec  mapreduce.JobSpec
	files []*multipart.FileHeader
	again mapreduce.JobID // whose documents the new job has as well; empty for none
	form  *multipart.Form
}

// readNew reads the form for a new job. The caller calls close.
func (d *Dashboard) readNew(w http.ResponseWriter, r *http.Request) (*request, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxUpload)
	if err := r.ParseMultipartForm(maxInMemory); err != nil { //nolint:gosec // the body is bounded above
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, errs.Field("documents", "the documents are larger than %d MiB together; submit large folders with coditect mapreduce run --server", maxUpload>>20)
		}
		return nil, errs.Field("form", "the upload broke off or cannot be read: %w", err)
	}

	q := &request{form: r.MultipartForm, files: r.MultipartForm.File["documents"], again: mapreduce.JobID(r.FormValue("again"))}
	s := &q.spec
	s.Provider, s.Model, s.Pipeline = r.FormValue("provider"), r.FormValue("model"), r.FormValue("pipeline")
	s.Name = strings.TrimSpace(r.FormValue("name"))
	if s.Name == "" && len(q.files) > 0 {
		s.Name = mapreduce.NameOf(q.files[0].Filename, len(q.files))
	}

	if text := strings.TrimSpace(r.FormValue("schema")); text != "" {
		parsed, err := schema.Parse("schema", []byte(text))
		if err != nil {
			return q, errs.Field("schema", "%w", err)
		}
		s.Schema = parsed.Canonical()
	}
	if text := strings.TrimSpace(r.FormValue("budget")); text != "" {
		var err error
		if s.Budget, s.BudgetIn, err = mapreduce.ParseBudget(text); err != nil {
			return q, errs.Field("budget", "%w", err)
		}
		if s.Budget == 0 {
			return q, errs.Field("budget", "%q is nothing; leave it empty for no budget", text)
		}
	}
	if len(q.files) == 0 && q.again == "" {
		return q, errs.Field("documents", "choose at least one document")
	}
	return q, nil
}

func (q *request) close() {
	if q != nil {
		_ = q.form.RemoveAll() // files of its own in the folder for such
	}
}

// documents are those of the earlier job, and the files of the form, each read when its turn has come. A file
// takes the place of a document of the same name.
func (q *request) documents(v *visit.Visit, content Content) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		chosen := make(map[mapreduce.DocumentID]bool, len(q.files))
		for _, f := range q.files {
			chosen[mapreduce.DocumentID(f.Filename)] = true
		}
		if q.again != "" {
			found := false
			for old, err := range documentsOf(v, q.again) {
				if err != nil {
					yield(nil, err)
					return
				}
				found = true
				if !chosen[old.ID] && !yield(describe(v, content, old.ID, old.Content, nil), nil) {
					return
				}
			}
			if !found { // one unit has read all of them together
				yield(nil, errs.Field("documents", "the documents of job %s are not kept one by one; choose the files", q.again))
				return
			}
		}

		for _, f := range q.files {
			data, err := readUpload(f)
			if !yield(describe(v, content, mapreduce.DocumentID(f.Filename), data, err), nil) {
				return
			}
		}
	}
}

// describe returns a file as a document; one that cannot be read is skipped.
func describe(ctx context.Context, content Content, name mapreduce.DocumentID, data []byte, err error) *mapreduce.Document {
	doc := &mapreduce.Document{ID: name, Size: int64(len(data))}
	if err == nil {
		doc.MediaType, doc.Content, err = content(ctx, string(name), data)
	}
	if err != nil {
		doc.Skip, doc.Content = err.Error(), nil
	}
	return doc
}

// documentsOf returns the documents of a job as they were submitted, of plain texts the text. Those that were
// skipped are no part of a job.
func documentsOf(v *visit.Visit, id mapreduce.JobID) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		seen := make(map[mapreduce.DocumentID]bool)
		total := 0
		query := mapreduce.ListUnitsQuery{Job: id, PageSize: jobs.UnitsOfRequest}
		for {
			page, err := v.Jobs.ListUnits(v, query)
			if err != nil {
				yield(nil, err)
				return
			}

			for _, u := range page.Units {
				if u.Level > 0 {
					return // units of higher levels read what others made
				}
				if u.Document == "" || seen[u.Document] {
					continue
				}
				seen[u.Document] = true
				data, err := readWhole(v, u, maxUpload-total)
				total += len(data)
				if !yield(&mapreduce.Document{ID: u.Document, Content: data}, err) || err != nil {
					return
				}
			}
			if query.PageToken = page.NextPageToken; query.PageToken == "" {
				return
			}
		}
	}
}

// readWhole returns what a unit read.
func readWhole(v *visit.Visit, u *mapreduce.Unit, most int) (data []byte, err error) {
	err = v.Jobs.ReadText(v, u.Job, u.ID, u.Document, func(part []byte) error {
		if len(data)+len(part) > most {
			return errs.Field("documents", "those of job %s are larger than %d MiB together; run the job again with coditect mapreduce run", u.Job, maxUpload>>20)
		}
		data = append(data, part...)
		return nil
	})
	return data, err
}

func readUpload(f *multipart.FileHeader) ([]byte, error) {
	file, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// Content says what a file is by its name and its bytes, and returns what a service is sent of it.
// An error is the reason to skip the file.
type Content func(ctx context.Context, name string, data []byte) (mediaType string, content []byte, err error)

// planned is what the form shows of a plan.
type planned struct {
	Units     int      `json:"units"`
	Calls     string   `json:"calls"`
	Tokens    string   `json:"tokens"`
	Cost      string   `json:"cost"`
	MostCost  string   `json:"most_cost"`
	Time      string   `json:"time"`
	Warnings  []string `json:"warnings"`
	Documents int      `json:"documents"`
}

// planNew says what a new job would do and cost. Nothing is stored.
func (d *Dashboard) planNew(w http.ResponseWriter, r *http.Request) error {
	q, err := d.readNew(w, r)
	defer q.close()
	if err != nil {
		return err
	}

	v := d.visit(r)
	plan, err := v.Jobs.PlanJob(v, mapreduce.PlanQuery{Spec: q.spec}, q.documents(v, d.config.Content))
	if err != nil {
		return err
	}

	return sendJSON(w, describePlan(plan, len(q.files)))
}

// describePlan is what the form shows of a plan.
func describePlan(plan *mapreduce.Plan, documents int) *planned {
	e := plan.Estimate
	answer := &planned{
		Units: e.Parses + e.Maps + e.Reduces, Calls: visit.Count(e.Expected.Calls), Tokens: visit.Count(e.Expected.Tokens.Total()),
		Cost: visit.Money(e.Expected.CostMicros), MostCost: visit.Money(e.High.CostMicros), Documents: documents, Warnings: []string{},
	}

	if e.Makespan > 0 {
		answer.Time = visit.Duration(e.Makespan)
	}
	for _, warning := range plan.Warnings {
		answer.Warnings = append(answer.Warnings, warning.Message)
	}
	return answer
}

// submitNew submits a new job. The form names the request, so that a second press of the button
// gets the first one's job.
func (d *Dashboard) submitNew(w http.ResponseWriter, r *http.Request) error {
	q, err := d.readNew(w, r)
	defer q.close()
	if err != nil {
		return err
	}

	q.spec.RequestID = mapreduce.RequestID(r.FormValue("request"))
	v := d.visit(r)
	j, err := v.Jobs.SubmitJob(v, q.spec, q.documents(v, d.config.Content))
	if err != nil {
		return err
	}
	return sendJSON(w, map[string]string{"job": v.JobPath(j.ID)})
}

func sendJSON(w http.ResponseWriter, value any) error {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // a browser that is gone cannot be told
	return nil
}
