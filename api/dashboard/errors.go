package dashboard

import (
	"cmp"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
)

// A failureList is the page of what went wrong in a job: its failed units, by cause.
type failureList struct {
	Causes []cause
	Failed int64
	Cut    bool // there are more failed units than were read
	Resume string
}

// A cause is what several units failed for.
type cause struct {
	Text    string
	Advice  string
	Units   int64
	Lasting int64 // of these, for which another attempt would fail alike
	Shown   []unitRow
}

const (
	maxFailures  = 50_000 // failed units that one page reads
	shownOfCause = 5
)

// loadErrors makes the page of what went wrong.
func loadErrors(v *visit) (any, error) {
	p, err := openJob(v, "errors")
	if err != nil {
		return nil, err
	}

	list := &failureList{}
	causes := make(map[string]*cause)
	query := mapreduce.ListUnitsQuery{Job: p.ID, States: []mapreduce.UnitState{mapreduce.UnitFailed}, PageSize: unitsOfRequest}
	for {
		page, err := v.jobs.ListUnits(v, query)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Units {
			list.Failed++
			addCause(causes, viewUnit(v, u))
		}
		query.PageToken = page.NextPageToken
		if query.PageToken == "" || list.Failed >= maxFailures {
			break
		}
	}

	list.Cut = query.PageToken != ""
	for _, c := range causes {
		list.Causes = append(list.Causes, *c)
	}
	slices.SortFunc(list.Causes, func(a, b cause) int { return cmp.Or(cmp.Compare(b.Units, a.Units), cmp.Compare(a.Text, b.Text)) })
	for _, a := range p.Actions {
		if a.Name == "resume" {
			list.Resume = a.Path
		}
	}
	p.Content = list
	return p, nil
}

// addCause counts a unit under what it failed for.
func addCause(causes map[string]*cause, u unitRow) {
	name := mapreduce.CauseOf(u.Error)
	c := causes[name]
	if c == nil {
		c = &cause{Text: name, Advice: resultfile.FailAdvice(u.Lasting, u.Errors)}
		causes[name] = c
	}
	c.Units++
	if u.Lasting {
		c.Lasting++
	}
	if len(c.Shown) < shownOfCause {
		c.Shown = append(c.Shown, u)
	}
}
