package dashboard

import (
	"encoding/json"
	"net/http"

	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/dashboard/states"
)

// sendGrid sends the states of all units of a job, or of those in some states, line by line, so that a browser draws the first
// ones while the others are read.
func (d *Dashboard) sendGrid(w http.ResponseWriter, r *http.Request) error {
	v := d.visit(r)
	of, err := jobs.ReadUnitStates(v)
	if err != nil {
		return err
	}
	p, err := jobs.OpenJob(v, "units")
	if err != nil {
		return err
	}

	sent, gone := false, false
	lines, control := json.NewEncoder(w), http.NewResponseController(w)
	err = d.states.Send(v, p.Standing(), of, v.Jobs.ListUnits, func(line states.Line) error {
		w.Header().Set("Content-Type", "application/jsonl")
		sent = true
		err := lines.Encode(line)
		gone = err != nil
		_ = control.Flush() // the next line says it again
		return err
	})
	switch {
	case err == nil || gone:
		return nil
	case !sent:
		return err
	}
	panic(http.ErrAbortHandler) // the browser must see that it has not got all
}
