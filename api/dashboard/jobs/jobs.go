// Package jobs makes what the pages of jobs show: the list, a job with its stages and units, what went wrong, how it went,
// its log, and the fleet.
//
// It asks the service and answers no request: the templates show what it returns, and package dashboard sends that. It
// imports no package of pages but visit and states.
package jobs

import (
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/label"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A jobList is what the page of all jobs shows.
type jobList struct {
	Rows     []jobRow
	Filter   jobFilter
	States   []choice
	Next     string // address of the page of older jobs; empty at the last
	First    string // address of the newest ones; empty there
	Searched int    // how many jobs were looked at for what is searched; 0 if nothing is
	More     bool   // older jobs were not looked at
	Tenants  bool   // some job is of a tenant that has a name
}

// A jobFilter is what somebody looks for.
type jobFilter struct {
	Text   string // part of an id, a tenant, a pipeline, a model or an error
	Tenant string
	States []mapreduce.JobState
	Labels string // each KEY=VALUE or KEY, between blanks
	labels []label.Filter
}

// A choice is a state with what its box says.
type choice struct {
	Name   string
	Chosen bool
}

// A jobRow is a job in a list.
type jobRow struct {
	*JobView
	Path string
}

// A JobView is what pages show of a job.
type JobView struct {
	*mapreduce.Job
	State    string
	Running  bool
	Progress progress
	Cost     string
	Age      string // since it was submitted
	Took     time.Duration
	Rate     string // units per second, while it runs
	Pipeline string
	Model    string
	Labels   []string // each KEY=VALUE
}

// progress is how far something is: of all units, those that are done, failed, running and parked;
// the rest waits.
type progress struct {
	Total, Done, Failed, Running, Parked, Waiting int64
}

// ViewJob returns what pages show of a job.
func ViewJob(j *mapreduce.Job, now time.Time) *JobView {
	v := &JobView{
		Job: j, State: j.State.String(), Running: j.State.Running(), Cost: visit.Money(j.CostMicros), Age: visit.Age(j.Created, now),
		Pipeline: j.Spec.Pipeline, Model: j.Spec.Provider, Labels: label.Texts(j.Spec.Labels),
		Progress: progress{Total: j.TotalUnits, Done: j.CompletedUnits, Failed: j.FailedUnits, Running: j.RunningUnits, Parked: j.ParkedUnits},
	}
	if j.Spec.Model != "" {
		v.Model += "/" + j.Spec.Model
	}

	p := &v.Progress
	p.Waiting = max(0, p.Total-p.Done-p.Failed-p.Running-p.Parked)

	end := now
	if !j.Ended.IsZero() {
		end = j.Ended
	}
	v.Took = max(0, end.Sub(j.Created)).Truncate(time.Second)
	if v.Running {
		v.Rate = visit.Rate(p.Done, v.Took)
	}
	return v
}

// IsUnmerged reports whether a job is large and goes on: to merge what all its units have found, for one page, would take
// as long as a job does.
func (v *JobView) IsUnmerged() bool {
	return v.TotalUnits >= ManyUnits && v.Job.State != mapreduce.JobComplete
}

const (
	jobsOnPage  = 50
	maxSearched = 5000 // jobs that one search looks at
)

// LoadJobs makes the list of jobs, newest first.
func LoadJobs(v *visit.Visit) (any, error) {
	filter, err := readJobFilter(v)
	if err != nil {
		return nil, err
	}

	list := &jobList{Filter: filter, States: choices(filter.States)}
	query := mapreduce.ListJobsQuery{
		States: filter.States, Tenant: mapreduce.TenantID(filter.Tenant), Labels: filter.labels, PageSize: jobsOnPage, PageToken: v.Query.Get("page"),
	}
	if filter.Text != "" {
		query.PageSize = 1000
	}

	for {
		found, err := v.Jobs.ListJobs(v, query)
		if err != nil {
			return nil, err
		}

		list.take(v, found.Jobs)
		query.PageToken = found.NextPageToken
		if filter.Text == "" || query.PageToken == "" || len(list.Rows) >= jobsOnPage || list.Searched >= maxSearched {
			break
		}
	}

	if query.PageToken != "" {
		list.More = filter.Text != ""
		list.Next = v.With("page", query.PageToken)
	}
	if v.Query.Get("page") != "" {
		list.First = v.With()
	}
	return list, nil
}

// take adds those of some jobs to the list that are looked for.
func (l *jobList) take(v *visit.Visit, jobs []*mapreduce.Job) {
	text := strings.ToLower(l.Filter.Text)
	for _, j := range jobs {
		if text != "" {
			l.Searched++
		}
		if strings.Contains(searchable(j), text) {
			l.Rows = append(l.Rows, jobRow{ViewJob(j, v.Now), v.JobPath(j.ID)})
			l.Tenants = l.Tenants || j.Spec.Tenant != ""
		}
	}
}

// searchable is the text of a job in which words are looked for.
func searchable(j *mapreduce.Job) string {
	return strings.ToLower(strings.Join([]string{
		string(j.ID), j.Spec.Name, string(j.Spec.Tenant), j.Spec.Pipeline, j.Spec.Provider, j.Spec.Model, string(j.Spec.RequestID), j.Error,
	}, "\n"))
}

func readJobFilter(v *visit.Visit) (jobFilter, error) {
	f := jobFilter{Text: strings.TrimSpace(v.Query.Get("q")), Tenant: strings.TrimSpace(v.Query.Get("tenant"))}

	// One field of the form has all labels, and a link may give each of its own.
	texts := strings.Fields(strings.Join(v.Query["label"], " "))
	var err error
	if f.labels, err = label.ParseFilters(texts); err != nil {
		return f, err
	}
	f.Labels = strings.Join(texts, " ")

	for _, name := range v.Query["state"] {
		state, err := mapreduce.ParseJobState(name)
		if err != nil || state == mapreduce.JobUnknown {
			return f, errs.Field("state", "%q is no state of a job", name)
		}
		f.States = append(f.States, state)
	}
	return f, nil
}

func choices(chosen []mapreduce.JobState) []choice {
	var all []choice
	for s := mapreduce.Decomposition; s <= mapreduce.JobPaused; s++ {
		all = append(all, choice{s.String(), slices.Contains(chosen, s)})
	}
	return all
}

// LoadUse makes the page of what the caller's tenant uses of its quotas.
func LoadUse(v *visit.Visit) (any, error) {
	return v.Jobs.TenantUse(v, mapreduce.TenantID(v.Query.Get("tenant")))
}
