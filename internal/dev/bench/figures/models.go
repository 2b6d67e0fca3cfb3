package figures

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/internal/dev/bench/asking"
)

// Models is how jobs do whose units ask a model.
type Models struct{ *asking.Models }

// MeasureModels measures them.
func MeasureModels(ctx context.Context, l *Lab) (Models, error) {
	m, err := asking.MeasureModels(ctx, &asking.Load{Site: l.Site, Units: l.Asked, Calls: l.Calls, Think: l.Think, Kills: l.Struck})
	return Models{m}, err
}

// Rows returns the report.
func (m Models) Rows() []Row {
	return append(m.limitRows(), m.troubleRows()...)
}

func (m Models) limitRows() []Row {
	on, off := &m.Limited, &m.Unlimited
	return []Row{
		{
			fmt.Sprintf("calls at once, at most: %d units that ask a model, %d processes", on.Units, asking.Processes), float64(on.Tally.Peak),
			"", atMost(float64(m.AtOnce)), "as the model counts them",
		},
		{
			"— under way on average until the last begins", on.Tally.Utilisation(m.AtOnce), fmt.Sprintf("of %d", m.AtOnce), atLeast(.98),
			fmt.Sprintf("%s without a limit", Number(off.Tally.Utilisation(m.AtOnce))),
		},
		{
			"— documents", on.PerMinute(), "a minute", atLeast(100),
			fmt.Sprintf("took %v, least of these latencies %v", on.Took.Round(10*time.Millisecond), on.Least.Round(10*time.Millisecond)),
		},
		{
			"— faster than one after the other", on.Alone.Seconds() / on.Took.Seconds(), "×", atLeast(10),
			fmt.Sprintf("%s without any overhead", Number(on.Alone.Seconds()/on.Least.Seconds())),
		},
		{
			"— of the rate without a limit", off.Took.Seconds() / on.Took.Seconds(), "×", atLeast(.95),
			fmt.Sprintf("without, %s documents a minute", Number(off.PerMinute())),
		},
		refusedRow("— calls refused", on),
	}
}

func (m Models) troubleRows() []Row {
	return []Row{
		refusedRow("calls refused where fewer are taken a minute than could be made", &m.Metered),
		{
			fmt.Sprintf("units that fail where %s of the calls go wrong", Number(m.Share)), float64(m.Faulty.Failed) / float64(m.Faulty.Units),
			"of all", atMost(.05), fmt.Sprintf("%d of %d; %d calls", m.Faulty.Failed, m.Faulty.Units, m.Faulty.Tally.Calls),
		},
		{
			fmt.Sprintf("calls at once, at most, while %d workers are killed", m.Kills), float64(m.Killing.Peak), "", atMost(float64(m.AtOnce)),
			fmt.Sprintf("%d calls were broken off", m.Killing.Left),
		},
		{
			"— afterwards", float64(m.Spared.Tally.Peak), "", atLeast(float64(m.AtOnce)),
			fmt.Sprintf("%s of %d on average", Number(m.Spared.Tally.Utilisation(m.AtOnce)), m.AtOnce),
		},
	}
}

func refusedRow(name string, a *asking.Asked) Row {
	t := &a.Tally
	return Row{
		name, float64(t.Refused) / float64(t.Calls), "of all", atMost(.001),
		fmt.Sprintf("%d of %d; %s documents a minute", t.Refused, t.Calls, Number(a.PerMinute())),
	}
}
