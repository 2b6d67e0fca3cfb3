package figures

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/internal/dev/bench/asking"
)

// Agents is how agents with tools do that all run at once.
type Agents struct{ *asking.Agents }

// MeasureAgents measures them.
func MeasureAgents(ctx context.Context, l *Lab) (Agents, error) {
	a, err := asking.MeasureAgents(ctx, &asking.Load{Site: l.Site, Units: l.Agents, Think: l.Mull})
	return Agents{a}, err
}

// Rows returns the report.
func (a Agents) Rows() []Row {
	return []Row{
		{
			fmt.Sprintf("makespan, %d agents of %d turns at once on one worker process", a.Count, a.Turns), float64(a.Took) / float64(a.Least), "× least", atMost(1.03),
			fmt.Sprintf("took %v, least %v, goroutines alone %s", a.Took.Round(10*time.Millisecond), a.Least.Round(10*time.Millisecond), Number(float64(a.Pool)/float64(a.Least))),
		},
		{
			"— memory of a running agent", float64(a.Memory) / float64(a.Count) / 1024, "KiB", nil,
			fmt.Sprintf("resident, of the whole worker process; %d calls of the model, %d at once", a.Tally.Calls, a.Tally.Peak),
		},
	}
}
