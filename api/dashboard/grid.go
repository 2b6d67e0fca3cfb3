package dashboard

import (
	"encoding/json"
	"net/http"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// gridLine is a line of the states of a job's units: those of some units that follow each other.
type gridLine struct {
	States string `json:"states"` // a letter for each
	At     string `json:"at"`     // token of the page of units that begins with them
}

// stateLetters are those of states in a grid, by the numbers of the states; p is for those that
// are parked.
const stateLetters = "?bwrcfx"

// sendGrid sends the states of all units of a job, or of those in some states, line by line, so that a browser draws the first
// ones while the others are read.
func (d *Dashboard) sendGrid(w http.ResponseWriter, r *http.Request) error {
	v := d.visit(r)
	id, err := v.job()
	if err != nil {
		return err
	}

	states, err := readUnitStates(v)
	if err != nil {
		return err
	}

	query := mapreduce.ListUnitsQuery{Job: id, States: states, PageSize: unitsOfRequest}
	lines, control := json.NewEncoder(w), http.NewResponseController(w)
	for sent := false; ; sent = true {
		page, err := v.jobs.ListUnits(v, query)
		switch {
		case err != nil && !sent:
			return err
		case err != nil:
			panic(http.ErrAbortHandler) // the browser must see that it has not got all
		}

		w.Header().Set("Content-Type", "application/jsonl")
		if lines.Encode(gridLine{lettersOf(page.Units), query.PageToken}) != nil {
			return nil // the browser has gone
		}
		if query.PageToken = page.NextPageToken; query.PageToken == "" {
			return nil
		}
		_ = control.Flush() // the next line says it again
	}
}

func lettersOf(units []*mapreduce.Unit) string {
	letters := make([]byte, len(units))
	for i, u := range units {
		letters[i] = '?'
		if int(u.State) < len(stateLetters) {
			letters[i] = stateLetters[u.State]
		}
		if u.Parking != nil {
			letters[i] = 'p'
		}
	}
	return string(letters)
}
