package jobs

import (
	"fmt"

	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A plannedRow is something that a job was expected to take, beside what it took.
type plannedRow struct {
	Name            string // of the catalogue, without "plan."
	Planned, Actual string
	Compared        string // by how much it differs; of a job that runs, how much of the plan it is
}

// plannedRows compares a job with its plan; none if it has none. What neither has is left out.
func plannedRows(j *JobView) []plannedRow {
	p := j.Plan
	if p == nil {
		return nil
	}

	var rows []plannedRow
	for _, r := range []struct {
		name            string
		planned, actual int64
		write           func(int64) string
	}{
		{"units", p.Units, j.TotalUnits, visit.Count[int64]},
		{"calls", p.Calls, j.Calls, visit.Count[int64]},
		{"in", p.Tokens.In, j.TotalTokens.In, visit.Count[int64]},
		{"out", p.Tokens.Out, j.TotalTokens.Out, visit.Count[int64]},
		{"cost", p.CostMicros, j.CostMicros, visit.Money},
	} {
		if r.planned == 0 && r.actual == 0 {
			continue
		}
		// Until the job ends only how far it is can be said.
		compared := visit.Percent(r.actual, r.planned)
		if !j.Running {
			compared = deviation(r.planned, r.actual)
		}
		rows = append(rows, plannedRow{r.name, r.write(r.planned), r.write(r.actual), compared})
	}
	return rows
}

// deviation writes by how much something differs from its plan.
func deviation(planned, actual int64) string {
	d, ok := mapreduce.Deviation(planned, actual)
	switch {
	case !ok:
		return "–"
	case d < 0:
		return fmt.Sprintf("−%.1f %%", -d)
	case d == 0:
		return "0 %"
	}
	return fmt.Sprintf("+%.1f %%", d)
}
