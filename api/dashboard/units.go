package dashboard

import (
	"net/url"
	"strings"

	"github.com/coditect/mapreduce/api/dashboard/states"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
)

// A unitList is the page of a job's units.
type unitList struct {
	Rows   []unitRow
	States []choice
	Text   string // part of the id, the document, the stage or the error
	Next   string // address of the units after these; empty at the last
	First  string

	// Of a list of all units that fills more than a page: where the browser reads how many there are and
	// where they begin, and the address of the list.
	Index, All string
}

// A unitRow is a unit in a list.
type unitRow struct {
	*mapreduce.Unit
	State, Badge, Path, Cost string
	Error                    string // the last
}

const (
	unitsOnPage    = 100
	unitsLookedAt  = 10_000 // for words, by one page
	unitsOfRequest = 1000
)

func viewUnit(v *visit, u *mapreduce.Unit) unitRow {
	row := unitRow{Unit: u, State: stateOf(u), Badge: badge(u), Path: v.jobPath(u.Job, "units", unitAt(u)), Cost: money(u.CostMicros)}
	if n := len(u.Errors); n > 0 {
		row.Error = u.Errors[n-1]
	}
	return row
}

// unitPages make the pages of units.
type unitPages struct {
	index  *states.Index
	decode func(*mapreduce.Job, *mapreduce.Unit) (*Output, error) // reads outputs of units; nil if nothing does
}

// loadUnits makes the page of a job's units, by level and index.
func (s *unitPages) loadUnits(v *visit) (any, error) {
	p, err := openJob(v, "units")
	if err != nil {
		return nil, err
	}

	of, err := readUnitStates(v)
	if err != nil {
		return nil, err
	}

	list := &unitList{States: unitChoices(of), Text: strings.TrimSpace(v.query.Get("q"))}
	skip, err := v.number("skip", 0)
	if err != nil {
		return nil, err
	}
	query := mapreduce.ListUnitsQuery{Job: p.ID, States: of, PageSize: min(skip+unitsOnPage, unitsOfRequest), PageToken: v.query.Get("page")}
	if list.Text != "" {
		query.PageSize = unitsOfRequest
	}

	// Where it is known where units in these states begin, nobody looks for them from the first unit on.
	none := false
	if len(of) > 0 && query.PageToken == "" {
		if token, found, known := s.index.First(p.standing(), of); known {
			query.PageToken, none = token, !found
		}
	}

	for looked := 0; !none; {
		page, err := v.jobs.ListUnits(v, query)
		if err != nil {
			return nil, err
		}

		for _, u := range page.Units {
			if row := viewUnit(v, u); row.has(list.Text) {
				list.Rows = append(list.Rows, row)
			}
		}

		looked += len(page.Units)
		query.PageToken = page.NextPageToken
		if query.PageToken == "" || len(list.Rows) >= skip+unitsOnPage || list.Text != "" && looked >= unitsLookedAt {
			break
		}
	}

	list.Rows = list.Rows[min(skip, len(list.Rows)):]
	if query.PageToken != "" {
		list.Next = v.with("page", query.PageToken)
	}
	if v.query.Get("page") != "" {
		list.First = v.with()
	} else if list.Text == "" && list.Next != "" {
		list.All = v.with()
		list.Index = address(v.jobPath(p.ID, "grid"), url.Values{"state": v.query["state"]})
	}
	p.Content = list
	return p, nil
}

// has reports whether a text stands in what a row shows, in any case of letters.
func (r unitRow) has(text string) bool {
	all := strings.Join([]string{string(r.ID), string(r.Document), r.Stage, r.Error}, "\n")
	return strings.Contains(strings.ToLower(all), strings.ToLower(text))
}

func readUnitStates(v *visit) ([]mapreduce.UnitState, error) {
	var states []mapreduce.UnitState
	for _, name := range v.query["state"] {
		state, err := mapreduce.ParseUnitState(name)
		if err != nil || state == mapreduce.UnitUnknown {
			return nil, errs.Field("state", "%q is no state of a unit", name)
		}
		states = append(states, state)
	}
	return states, nil
}

func unitChoices(chosen []mapreduce.UnitState) []choice {
	var all []choice
	for s := mapreduce.Blocked; s <= mapreduce.UnitCancelled; s++ {
		c := choice{Name: s.String()}
		for _, one := range chosen {
			c.Chosen = c.Chosen || one == s
		}
		all = append(all, c)
	}
	return all
}

// An Output is what the page of a unit shows of its output.
type Output struct {
	// Records is JSON of what the unit found, or of its value; empty if it found nothing.
	Records string
	// Notes are what readers of the document should know of it, of a unit that parses.
	Notes []string
	// Citations are the passages that the records rest on.
	Citations []CitedPassage
	// Calls are those of models and tools that its last attempt made, as far as they were
	// captured.
	Calls []mapreduce.Call
}

// A CitedPassage is one that records of a unit rest on, with the reference that they have to it.
type CitedPassage struct {
	Ref string `json:"ref"`
	resultfile.Citation
}

// A unitPage is the page of one unit.
type unitPage struct {
	unitRow
	Advice string
	Output *Output
	Unread string   // why its output cannot be shown
	Before string   // address of the unit before it; empty for the first of its level
	Inputs []string // units that it depends on
	More   bool     // and some that are not shown
	Text   string   // address of its document
	Wake   string   // address that wakes it, if it is parked
}

// loadUnit makes the page of one unit.
func (s *unitPages) loadUnit(v *visit) (any, error) {
	p, err := openJob(v, "units")
	if err != nil {
		return nil, err
	}

	token, err := unitToken(v.names("at"))
	if err != nil {
		return nil, err
	}

	found, err := v.jobs.ListUnits(v, mapreduce.ListUnitsQuery{Job: p.ID, Outputs: true, Inputs: true, PageSize: 1, PageToken: token})
	if err != nil {
		return nil, err
	}
	if len(found.Units) == 0 || unitAt(found.Units[0]) != v.names("at") {
		return nil, errs.New(errs.NotFound, "the job has no unit at %s; it may have been planned anew", v.names("at"))
	}

	p.Content = s.viewUnitPage(v, p.Job, found.Units[0])
	return p, nil
}

func (s *unitPages) viewUnitPage(v *visit, job *mapreduce.Job, u *mapreduce.Unit) *unitPage {
	p := &unitPage{unitRow: viewUnit(v, u), More: u.Continues}
	if u.State == mapreduce.UnitFailed {
		p.Advice = resultfile.FailAdvice(u.Lasting, u.Errors)
	}
	for _, id := range u.DependsOn {
		if len(p.Inputs) == maxInputs {
			p.More = true
			break
		}
		p.Inputs = append(p.Inputs, string(id))
	}

	if u.Parking != nil && v.known().Has(mapreduce.Operator) {
		p.Wake = v.jobPath(u.Job, "wake")
	}
	if u.Document != "" && !u.ID.Parses() {
		p.Text = documentPath(v.prefix, u.Job, u.ID, u.Document, u.Start, u.End)
	}

	if len(u.Output) > 0 && s.decode != nil {
		output, err := s.decode(job, u)
		if err != nil {
			p.Unread = err.Error()
		} else {
			p.Output = output
		}
	}
	return p
}

const maxInputs = 200 // that the page of a unit names
