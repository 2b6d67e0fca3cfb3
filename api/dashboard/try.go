package dashboard

import (
	"encoding/json"
	"net/url"

	"github.com/coditect/mapreduce/api/dashboard/bench"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A tryPage is the workbench: the form that a browser fills from what it has kept, and what was
// tried.
type tryPage struct {
	*bench.Outcome
	Schema      string // of the job that the page is about
	Job         string
	Texts       []string // addresses of texts of documents of that job
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
		JobPath: func(id mapreduce.JobID) string { return jobPath(d.config.Prefix, id) },
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
func loadTry(v *visit) (any, error) {
	completions, err := json.Marshal(bench.Completions())
	if err != nil {
		return nil, err
	}
	p := &tryPage{Outcome: &bench.Outcome{}, Completions: string(completions)}
	id := mapreduce.JobID(v.query.Get("job"))
	if id == "" {
		return p, nil
	}

	j, err := v.jobs.GetJob(v, id)
	if err != nil {
		return nil, err
	}
	p.Job, p.Schema = string(id), indented(j.Spec.Schema)
	units, err := v.jobs.ListUnits(v, mapreduce.ListUnitsQuery{Job: id, PageSize: 20 * maxJobSamples})
	if err != nil {
		return nil, err
	}

	seen := make(map[mapreduce.DocumentID]bool)
	for _, u := range units.Units {
		if u.Kind != mapreduce.KindMap || u.Document == "" || seen[u.Document] || len(p.Texts) == maxJobSamples {
			continue
		}
		seen[u.Document] = true
		p.Texts = append(p.Texts, address(v.prefix+"/try/text", url.Values{"job": {string(id)}, "unit": {string(u.ID)}, "document": {string(u.Document)}}))
	}
	return p, nil
}
