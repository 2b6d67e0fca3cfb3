package dashboard

import (
	"time"

	"github.com/coditect/mapreduce/api/dashboard/states"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/resultfile"
)

// A jobPage is what every page of a job shows at its head, and the first one below it.
type jobPage struct {
	*jobView
	Tabs    []tab
	Actions []action
	Tree    *tree
	Skips   []skip
	Advice  string // what to do about how the job stands; empty if nothing is to be done
	Ends    string // when it ends, and what it costs by then, as far as that can be said
	Grid    string // address of the states of its units
	Units   string // address of the list of its units
	Planned []plannedRow
	Version string // changes with the units and the log of the job
	Whole   string // address of the page with what is still being read for this one; empty if nothing is
	Reviews string // address at which its values are reviewed; empty as long as that cannot be

	Content any // of a page other than the first
}

// A tab leads to a page of the job.
type tab struct {
	Name, Path string
	Here       bool
}

// An action is something that a caller may do with a job.
type action struct {
	Name, Path string
	Confirm    bool // it cannot be undone
}

// A skip is a document that was not processed.
type skip struct {
	mapreduce.SkippedDocument
	Advice string
}

// openJob makes the head of a page of a job.
func openJob(v *visit, here string) (*jobPage, error) {
	id, err := v.job()
	if err != nil {
		return nil, err
	}
	j, err := v.jobs.GetJob(v, id)
	if err != nil {
		return nil, err
	}

	p := &jobPage{jobView: viewJob(j, v.now), Grid: v.jobPath(id, "grid"), Units: v.jobPath(id, "units")}
	for _, t := range []struct{ name, below string }{
		{"job", ""}, {"units", "units"}, {"records", "records"}, {"review", "review"}, {"errors", "errors"}, {"history", "history"}, {"events", "events"},
	} {
		if (t.name == "records" || t.name == "review") && !v.known().Has(mapreduce.Viewer) {
			continue // they are contents
		}
		path := v.jobPath(id)
		if t.below != "" {
			path = v.jobPath(id, t.below)
		}
		p.Tabs = append(p.Tabs, tab{t.name, path, t.name == here})
	}

	p.Actions = actionsFor(v, j)
	reviewable := j.State == mapreduce.JobComplete || j.ParkedUnits > 0 && pipeline.Reviews(j.Spec.Vars, j.Spec.Definition)
	if reviewable && len(j.Spec.Schema) > 0 && v.known().Has(mapreduce.Reviewer) {
		p.Reviews = v.jobPath(id, "review")
	}
	p.Advice = adviceFor(j, pipeline.Reviews(j.Spec.Vars, j.Spec.Definition))
	p.Planned = plannedRows(p.jobView)
	p.Ends = forecast(p.jobView, v.now)
	p.Version = count(j.Epoch) + "." + count(j.CompletedUnits) + "." + count(j.FailedUnits) + "." + count(j.RunningUnits) + "." + count(j.TotalUnits) + "." + count(j.ParkedUnits) + "." + j.AuditHead
	for _, s := range j.Skipped {
		p.Skips = append(p.Skips, skip{s, resultfile.SkipAdvice(s.Reason)})
	}
	return p, nil
}

// standing is the job as the index of its units knows it.
func (p *jobPage) standing() states.Job {
	return states.Job{ID: p.ID, Version: p.Version, Units: p.TotalUnits, Running: p.Running}
}

// loadHead returns what makes the head of a page of a job alone.
func loadHead(here string) func(v *visit) (any, error) {
	return func(v *visit) (any, error) { return openJob(v, here) }
}

// manyUnits is how many units a job has whose result, log and failed units are not read before the page is there.
const manyUnits = 20_000

// earlyHead returns what makes a page of a job that shows its head at first.
func earlyHead(here string) func(v *visit) (*jobPage, error) {
	return func(v *visit) (*jobPage, error) { return openJob(v, here) }
}

// loadJob makes the first page of a job.
func loadJob(v *visit) (any, error) {
	p, err := openJob(v, "job")
	if err != nil {
		return nil, err
	}
	p.Tree, err = loadTree(v, p.jobView)
	return p, err
}

// actionsFor are those that the state of a job and the roles of the caller allow.
func actionsFor(v *visit, j *mapreduce.Job) []action {
	if !v.known().Has(mapreduce.Operator) {
		return nil
	}
	var all []action
	add := func(name string, confirm bool) { all = append(all, action{name, v.jobPath(j.ID, name), confirm}) }

	switch {
	case j.State.Running():
		add("pause", false)
		if j.Spec.Budget > 0 {
			add("budget", false)
		}
	case j.State == mapreduce.JobPaused, j.State == mapreduce.JobFailed, j.State == mapreduce.JobComplete && j.FailedUnits > 0:
		add("resume", false)
	}
	if j.State.CanBecome(mapreduce.JobCancelled) {
		add("cancel", true)
	}
	if !j.State.Running() {
		add("delete", true)
	}
	return all
}

// adviceFor names, from the catalogue, what the owner of a job should do.
func adviceFor(j *mapreduce.Job, reviewed bool) string {
	switch {
	case j.State == mapreduce.JobPaused:
		return "advice.paused"
	case j.State == mapreduce.JobFailed:
		return "advice.failed"
	case j.State == mapreduce.JobComplete && j.OpenFailures() > 0:
		return "advice.failures"
	case j.State.Running() && j.ParkedUnits > 0 && reviewed:
		return "advice.review"
	case j.State.Running() && j.ParkedUnits > 0 && j.RunningUnits == 0:
		return "advice.parked"
	case j.State.Running() && j.RunningUnits == 0 && j.TotalUnits > j.CompletedUnits+j.FailedUnits:
		return "advice.waiting"
	}
	return ""
}

// leastForForecast is how many units must be done before anything is said of those to come.
const leastForForecast = 5

// forecast says how long a job goes on, and what it costs in the end, if its units go on as they
// did. Levels that are not planned yet are not in it.
func forecast(j *jobView, now time.Time) string {
	p := j.Progress
	left := p.Total - p.Done - p.Failed
	if !j.Running || p.Done < leastForForecast || left <= 0 {
		return ""
	}

	rest := time.Duration(float64(now.Sub(j.Created)) / float64(p.Done) * float64(left))
	text := duration(rest.Truncate(time.Second))
	if j.CostMicros > 0 {
		text += ", " + money(j.CostMicros+j.CostMicros/p.Done*left)
	}
	return text
}
