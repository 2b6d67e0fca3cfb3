package figures

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/coditect/mapreduce/internal/dev/bench/overhead"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

// Overhead is what TLS, telemetry and quotas cost.
type Overhead struct {
	overhead.Result
	Units int
}

// overheadWithin is about how long the laps of TLS, telemetry and quotas take together, if
// the number of units is not given.
const overheadWithin = 6 * time.Minute

// MeasureOverhead measures it: laps of as many units as l says, and as many laps as fit into
// a few minutes. Only so many claims a second are traced, and more of them after a pause, so
// a lap of less than 100,000 units would show what its beginning costs.
func MeasureOverhead(ctx context.Context, l *Lab) (*Overhead, error) {
	o := &Overhead{Units: l.LapUnits}
	err := l.inFolder(func(dir string) error {
		r, err := overhead.Measure(ctx, overhead.Config{Dir: dir, Units: o.Units, Rounds: l.Laps, Within: l.LapsWithin, Slots: rig.BusySlots, Processor: rig.ProcessorTime})
		if r != nil {
			o.Result = *r
		}
		return err
	})
	return o, err
}

// Rows returns the report.
func (o *Overhead) Rows() []Row {
	all := []Row{
		{"no-op units over TCP, plain", o.Plain.Rate, "units/s", nil, fmt.Sprintf("laps of %s units, taking turns, %d of each kind", Number(float64(o.Units)), o.Rounds)},
		{"— processor time", o.Plain.Processor, "µs a unit", nil, ""},
	}

	noise := fmt.Sprintf("plain laps differ among each other by %s %%", Number(100*o.NoiseRate))
	// The error of a median falls with the root of the number of laps.
	noiseProcessor := fmt.Sprintf("plain laps differ among each other by %s %%, so that the median of %d tells about %s %%",
		Number(100*o.NoiseProcessor), o.Rounds, Number(200*o.NoiseProcessor/math.Sqrt(float64(max(1, o.Rounds)))))

	for _, c := range o.Costs {
		goal := atMost(2)
		switch c.Kind {
		case overhead.TLS:
			goal = atMost(5)
		case overhead.Everything:
			goal = nil
		}
		all = append(all,
			Row{"— fewer units/s with " + c.Kind, 100 * c.Slower, "%", goal, noise},
			Row{"— more processor time a unit with " + c.Kind, 100 * c.Dearer, "%", goal, fmt.Sprintf(
				"half of the laps between %s and %s %%; %s", Number(100*c.DearerLow), Number(100*c.DearerTop), noiseProcessor)},
		)
	}

	return all
}
