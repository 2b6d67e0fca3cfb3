package jobs

import (
	"time"

	"github.com/coditect/mapreduce/api/dashboard/states"
	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/resultfile"
)

// A JobPage is what every page of a job shows at its head, and the first one below it.
type JobPage struct {
	*JobView
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

// OpenJob makes the head of a page of a job.
func OpenJob(v *visit.Visit, here string) (*JobPage, error) {
	id, err := v.Job()
	if err != nil {
		return nil, err
	}
	j, err := v.Jobs.GetJob(v, id)
	if err != nil {
		return nil, err
	}

	p := &JobPage{JobView: ViewJob(j, v.Now), Grid: v.JobPath(id, "grid"), Units: v.JobPath(id, "units")}
	for _, t := range []struct{ name, below string }{
		{"job", ""}, {"units", "units"}, {"records", "records"}, {"review", "review"}, {"errors", "errors"}, {"history", "history"}, {"events", "events"},
	} {
		if (t.name == "records" || t.name == "review") && !v.Known().Has(mapreduce.Viewer) {
			continue // they are contents
		}
		path := v.JobPath(id)
		if t.below != "" {
			path = v.JobPath(id, t.below)
		}
		p.Tabs = append(p.Tabs, tab{t.name, path, t.name == here})
	}

	p.Actions = actionsFor(v, j)
	reviewable := j.State == mapreduce.JobComplete || j.ParkedUnits > 0 && pipeline.Reviews(j.Spec.Vars, j.Spec.Definition)
	if reviewable && len(j.Spec.Schema) > 0 && v.Known().Has(mapreduce.Reviewer) {
		p.Reviews = v.JobPath(id, "review")
	}
	p.Advice = adviceFor(j, pipeline.Reviews(j.Spec.Vars, j.Spec.Definition))
	p.Planned = plannedRows(p.JobView)
	p.Ends = forecast(p.JobView, v.Now)
	p.Version = visit.Count(j.Epoch) + "." + visit.Count(j.CompletedUnits) + "." + visit.Count(j.FailedUnits) + "." + visit.Count(j.RunningUnits) + "." + visit.Count(j.TotalUnits) + "." + visit.Count(j.ParkedUnits) + "." + j.AuditHead
	for _, s := range j.Skipped {
		p.Skips = append(p.Skips, skip{s, resultfile.SkipAdvice(s.Reason)})
	}
	return p, nil
}

// Standing is the job as the index of its units knows it.
func (p *JobPage) Standing() states.Job {
	return states.Job{ID: p.ID, Version: p.Version, Units: p.TotalUnits, Running: p.Running}
}

// LoadHead returns what makes the head of a page of a job alone.
func LoadHead(here string) func(v *visit.Visit) (any, error) {
	return func(v *visit.Visit) (any, error) { return OpenJob(v, here) }
}

// ManyUnits is how many units a job has whose result, log and failed units are not read before the page is there.
const ManyUnits = 20_000

// EarlyHead returns what makes a page of a job that shows its head at first.
func EarlyHead(here string) func(v *visit.Visit) (*JobPage, error) {
	return func(v *visit.Visit) (*JobPage, error) { return OpenJob(v, here) }
}

// LoadJob makes the first page of a job.
func LoadJob(v *visit.Visit) (any, error) {
	p, err := OpenJob(v, "job")
	if err != nil {
		return nil, err
	}
	p.Tree, err = loadTree(v, p.JobView)
	return p, err
}

// actionsFor are those that the state of a job and the roles of the caller allow.
func actionsFor(v *visit.Visit, j *mapreduce.Job) []action {
	if !v.Known().Has(mapreduce.Operator) {
		return nil
	}
	var all []action
	add := func(name string, confirm bool) { all = append(all, action{name, v.JobPath(j.ID, name), confirm}) }

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
func forecast(j *JobView, now time.Time) string {
	p := j.Progress
	left := p.Total - p.Done - p.Failed
	if !j.Running || p.Done < leastForForecast || left <= 0 {
		return ""
	}

	rest := time.Duration(float64(now.Sub(j.Created)) / float64(p.Done) * float64(left))
	text := visit.Duration(rest.Truncate(time.Second))
	if j.CostMicros > 0 {
		text += ", " + visit.Money(j.CostMicros+j.CostMicros/p.Done*left)
	}
	return text
}
