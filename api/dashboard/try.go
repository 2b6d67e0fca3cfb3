package dashboard

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"

	"github.com/coditect/mapreduce/api/dashboard/bench"
	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/dashboard/results"
	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/reviewfile"
	"github.com/coditect/mapreduce/api/schema"
)

// A tryPage is the workbench: the form that a browser fills from what it has kept, and what was
// tried.
type tryPage struct {
	*bench.Outcome
	Schema      string // of the job that the page is about
	Job         string
	Texts       []string // addresses of texts of documents of that job
	Truth       string   // what people have decided about its values
	Completions string   // JSON
	Types       []string
	Formats     []string
}

// maxJobSamples bounds the documents of a job that are tried.
const maxJobSamples = 10

// routeTry says what stands where of the workbench, if there is one.
func (d *Dashboard) routeTry() {
	if !d.bench.CanTry() {
		return
	}

	d.routes.HandleFunc("GET /try", d.show(page{name: "try", load: loadTry}))
	for path, do := range d.bench.Requests(bench.Pages{
		Jobs: d.config.Jobs, Context: d.config.Context, Part: d.writeTried,
		Plan:    func(plan *mapreduce.Plan, documents int) any { return describePlan(plan, documents) },
		JobPath: func(id mapreduce.JobID) string { return visit.JobPath(d.config.Prefix, id) },
	}) {
		d.routes.HandleFunc(path, d.call(do))
	}
}

// writeTried writes a part of the page that shows what was tried.
func (d *Dashboard) writeTried(name string, out *bench.Outcome) (string, error) {
	html, err := d.views.write("try", name, &frame{Page: "try", Data: &tryPage{Outcome: out, Types: bench.Types(), Formats: bench.Formats()}})
	return string(html), err
}

// loadTry makes the page of the workbench, with schema and documents of a job if one is named.
func loadTry(v *visit.Visit) (any, error) {
	completions, err := json.Marshal(bench.Completions())
	if err != nil {
		return nil, err
	}
	p := &tryPage{Outcome: &bench.Outcome{}, Completions: string(completions)}
	id := mapreduce.JobID(v.Query.Get("job"))
	if id == "" {
		return p, nil
	}

	j, err := v.Jobs.GetJob(v, id)
	if err != nil {
		return nil, err
	}
	p.Job, p.Schema = string(id), indented(j.Spec.Schema)
	truth, err := reviewed(v, j)
	if err != nil {
		return nil, err
	}
	p.Truth = truth.Lines
	p.Texts, err = textsOf(v, id, truth.Documents)
	return p, err
}

// reviewed returns what people have decided about the values of a job that is complete.
func reviewed(v *visit.Visit, j *mapreduce.Job) (*reviewfile.Truth, error) {
	none := &reviewfile.Truth{}
	if j.State != mapreduce.JobComplete {
		return none, nil
	}
	decisions, err := v.Jobs.ListDecisions(v, mapreduce.ListDecisionsQuery{Job: j.ID, PageSize: 1})
	if err != nil || len(decisions.Decisions) == 0 {
		return none, err
	}
	s, err := schema.Parse("schema", j.Spec.Schema)
	if err != nil {
		return none, nil //nolint:nilerr // the page shows the schema with its faults
	}

	parts := 0
	truth, err := reviewfile.TruthOf(s, func(sink func(*mapreduce.ResultPart) error) error {
		err := v.Jobs.GetResult(v, j.ID, false, func(part *mapreduce.ResultPart) error {
			if parts++; parts > results.MaxScanned {
				return results.ErrEnough
			}
			return sink(part)
		})
		if errors.Is(err, results.ErrEnough) {
			return nil
		}
		return err
	})
	return truth, err
}

// textsOf returns the addresses of texts of some documents of a job, those of which the truth is known
// first.
func textsOf(v *visit.Visit, id mapreduce.JobID, known []string) ([]string, error) {
	units, err := v.Jobs.ListUnits(v, mapreduce.ListUnitsQuery{Job: id, PageSize: jobs.UnitsOfRequest})
	if err != nil {
		return nil, err
	}

	var first, others []string
	seen := make(map[mapreduce.DocumentID]bool)
	for _, u := range units.Units {
		if u.Kind != mapreduce.KindMap || u.Document == "" || seen[u.Document] {
			continue
		}
		seen[u.Document] = true
		text := visit.Address(v.Prefix+"/try/text", url.Values{"job": {string(id)}, "unit": {string(u.ID)}, "document": {string(u.Document)}})
		if slices.Contains(known, string(u.Document)) {
			first = append(first, text)
		} else {
			others = append(others, text)
		}
	}

	all := append(first, others...)
	return all[:min(len(all), maxJobSamples)], nil
}
