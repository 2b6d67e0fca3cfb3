package jobs

import (
	"cmp"
	"slices"

	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
)

// A failureList is the page of what went wrong in a job: its failed units, by cause.
type failureList struct {
	Causes  []cause
	Failed  int64
	Ignored int64  // of these, whose cause is ignored
	Cut     bool   // there are more failed units than were read
	Resume  string // address that tries units again; empty if that cannot be
	Mark    string // address that says something of a cause; empty for a caller who may not
}

// A cause is what several units failed for.
type cause struct {
	*mapreduce.CauseGroup
	State  string // as the catalogue names it
	Can    []string
	Advice string
	Shown  []unitRow
}

const maxFailures = 50_000 // failed units that one page reads

// LoadErrors makes the page of what went wrong: what is open first, and then what most units failed for.
func LoadErrors(v *visit.Visit) (any, error) {
	p, err := OpenJob(v, "errors")
	if err != nil {
		return nil, err
	}
	var groups []*mapreduce.CauseGroup
	more := false
	if p.FailedUnits > 0 { // of a million units that have not failed none is looked at
		if groups, more, err = mapreduce.GroupFailures(v, v.Jobs, p.Job, maxFailures); err != nil {
			return nil, err
		}
	}

	list := &failureList{Cut: more}
	if v.Known().Has(mapreduce.Operator) {
		list.Mark = v.JobPath(p.ID, "mark")
	}
	for _, g := range groups {
		list.Failed += g.Units
		if g.Mark.State == mapreduce.CauseIgnored {
			list.Ignored += g.Units
		}
		list.Causes = append(list.Causes, viewCause(v, g))
	}
	slices.SortFunc(list.Causes, func(a, b cause) int {
		return cmp.Or(cmp.Compare(visit.Btoi(!a.Open()), visit.Btoi(!b.Open())), cmp.Compare(b.Units, a.Units), cmp.Compare(a.Cause, b.Cause))
	})

	for _, a := range p.Actions {
		if a.Name == "resume" {
			list.Resume = a.Path
		}
	}
	p.Content = list
	return p, nil
}

func viewCause(v *visit.Visit, g *mapreduce.CauseGroup) cause {
	c := cause{CauseGroup: g, State: g.Mark.State.String(), Advice: resultfile.FailAdvice(g.First[0].Lasting, g.First[0].Errors)}
	switch {
	case g.Returned():
		c.State, c.Can = "returned", []string{"ignored", "resolved", "open"}
	case g.Open():
		c.Can = []string{"ignored", "resolved"}
	default:
		c.Can = []string{"open"}
	}

	for _, u := range g.First {
		c.Shown = append(c.Shown, viewUnit(v, u))
	}
	return c
}

// MarkCause says something of a cause of a job's failed units.
func MarkCause(v *visit.Visit, id mapreduce.JobID, cause, state string) error {
	s, err := mapreduce.ParseCauseState(state)
	if err != nil {
		return errs.Field("state", "%w", err)
	}
	_, err = v.Jobs.MarkCause(v, id, cause, s)
	return err
}
