package jobs

import (
	"net/url"
	"strings"

	"github.com/coditect/mapreduce/api/dashboard/states"
	"github.com/coditect/mapreduce/api/dashboard/visit"
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
	unitsOnPage   = 100
	unitsLookedAt = 10_000 // for words, by one page
)

// UnitsOfRequest is how many units a page asks the service for at once.
const UnitsOfRequest = 1000

func viewUnit(v *visit.Visit, u *mapreduce.Unit) unitRow {
	row := unitRow{Unit: u, State: stateOf(u), Badge: badge(u), Path: v.JobPath(u.Job, "units", visit.UnitAt(u)), Cost: visit.Money(u.CostMicros)}
	if n := len(u.Errors); n > 0 {
		row.Error = u.Errors[n-1]
	}
	return row
}

// UnitPages make the pages of units.
type UnitPages struct {
	Index  *states.Index
	Decode func(*mapreduce.Job, *mapreduce.Unit) (*Output, error) // reads outputs of units; nil if nothing does
}

// LoadUnits makes the page of a job's units, by level and index.
func (s *UnitPages) LoadUnits(v *visit.Visit) (any, error) {
	p, err := OpenJob(v, "units")
	if err != nil {
		return nil, err
	}

	of, err := ReadUnitStates(v)
	if err != nil {
		return nil, err
	}

	list := &unitList{States: unitChoices(of), Text: strings.TrimSpace(v.Query.Get("q"))}
	skip, err := v.Number("skip", 0)
	if err != nil {
		return nil, err
	}
	query := mapreduce.ListUnitsQuery{Job: p.ID, States: of, PageSize: min(skip+unitsOnPage, UnitsOfRequest), PageToken: v.Query.Get("page")}
	if list.Text != "" {
		query.PageSize = UnitsOfRequest
	}

	// Where it is known where units in these states begin, nobody looks for them from the first unit on.
	none := false
	if len(of) > 0 && query.PageToken == "" {
		if token, found, known := s.Index.First(p.Standing(), of); known {
			query.PageToken, none = token, !found
		}
	}

	for looked := 0; !none; {
		page, err := v.Jobs.ListUnits(v, query)
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
		list.Next = v.With("page", query.PageToken)
	}
	if v.Query.Get("page") != "" {
		list.First = v.With()
	} else if list.Text == "" && list.Next != "" {
		list.All = v.With()
		list.Index = visit.Address(v.JobPath(p.ID, "grid"), url.Values{"state": v.Query["state"]})
	}
	p.Content = list
	return p, nil
}

// has reports whether a text stands in what a row shows, in any case of letters.
func (r unitRow) has(text string) bool {
	all := strings.Join([]string{string(r.ID), string(r.Document), r.Stage, r.Error}, "\n")
	return strings.Contains(strings.ToLower(all), strings.ToLower(text))
}

// ReadUnitStates returns the states of units that the address of a page names.
func ReadUnitStates(v *visit.Visit) ([]mapreduce.UnitState, error) {
	var states []mapreduce.UnitState
	for _, name := range v.Query["state"] {
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

// LoadUnit makes the page of one unit.
func (s *UnitPages) LoadUnit(v *visit.Visit) (any, error) {
	p, err := OpenJob(v, "units")
	if err != nil {
		return nil, err
	}

	token, err := visit.UnitToken(v.Names("at"))
	if err != nil {
		return nil, err
	}

	found, err := v.Jobs.ListUnits(v, mapreduce.ListUnitsQuery{Job: p.ID, Outputs: true, Inputs: true, PageSize: 1, PageToken: token})
	if err != nil {
		return nil, err
	}
	if len(found.Units) == 0 || visit.UnitAt(found.Units[0]) != v.Names("at") {
		return nil, errs.New(errs.NotFound, "the job has no unit at %s; it may have been planned anew", v.Names("at"))
	}

	p.Content = s.viewUnitPage(v, p.Job, found.Units[0])
	return p, nil
}

func (s *UnitPages) viewUnitPage(v *visit.Visit, job *mapreduce.Job, u *mapreduce.Unit) *unitPage {
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

	if u.Parking != nil && v.Known().Has(mapreduce.Operator) {
		p.Wake = v.JobPath(u.Job, "wake")
	}
	if u.Document != "" && !u.ID.Parses() {
		p.Text = visit.DocumentPath(v.Prefix, u.Job, u.ID, u.Document, u.Start, u.End)
	}

	if len(u.Output) > 0 && s.Decode != nil {
		output, err := s.Decode(job, u)
		if err != nil {
			p.Unread = err.Error()
		} else {
			p.Output = output
		}
	}
	return p
}

const maxInputs = 200 // that the page of a unit names
