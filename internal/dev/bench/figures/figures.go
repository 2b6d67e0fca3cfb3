// Package figures measures how fast the service is, each figure beside what
// bounds it, taken in the same run: a disk's sync, a loop over the bare store, a
// schedule without overhead.
//
// Package rig sets the systems up, and measures what bounds them; package asking runs jobs whose
// units ask a model. Each figure has a file here, which says how much of what is measured, and what is reported of it.
// Nothing but the program in the folder above, and its own tests, imports it.
package figures

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

// A Figure is something that is measured, in a process of its own.
type Figure struct {
	Name    string
	Measure func(ctx context.Context, l *Lab) ([]Row, error)
}

// All returns the figures, in the order in which they are measured.
func All() []Figure {
	return []Figure{
		{"units", asRows(MeasureUnits)},
		{"latency", asRows(MeasureLatency)},
		{"makespan", asRows(MeasureMakespans)},
		{"submit", asRows(MeasureSubmit)},
		{"small jobs", asRows(MeasureSmallJobs)},
		{"pending", asRows(MeasurePending)},
		{"neighbour", asRows(MeasureNeighbour)},
		{"resume", asRows(MeasureResume)},
		{"kill", asRows(MeasureKill)},
		{"overload", asRows(MeasureOverload)},
		{"claimers", asRows(MeasureClaimers)},
		{"idle", asRows(MeasureIdle)},
		{"reduce", asRows(MeasureReducing)},
		{"models", asRows(MeasureModels)},
		{"retrieval", asRows(MeasureRetrieval)},
		{"agents", asRows(MeasureAgents)},
		{"overhead", asRows(MeasureOverhead)},
	}
}

// A result is what a measurement returns.
type result interface{ Rows() []Row }

func asRows[R result](measure func(context.Context, *Lab) (R, error)) func(context.Context, *Lab) ([]Row, error) {
	return func(ctx context.Context, l *Lab) ([]Row, error) {
		r, err := measure(ctx, l)
		if err != nil {
			return nil, err
		}
		return r.Rows(), nil
	}
}

// A Lab is where figures are measured. Sizes that are zero take the defaults of
// the full benchmark; so does Site.Lanes, whose default is what orchestrators have there.
type Lab struct {
	rig.Site

	Profiles   string        // folder for profiles of what is measured; none are made if it is empty
	Size       int           // units of what is measured at a million. Defaults to 1e6.
	Small      int           // jobs of one document that are submitted. Defaults to 10,000.
	Units      int           // units of the no-op job. Defaults to 200,000.
	Arrivals   int           // jobs of a latency. Defaults to 1,000.
	Pause      time.Duration // between arrivals, on average. Defaults to 20 ms.
	Nap        time.Duration // that a unit of a makespan takes; a neighbour's take a 20th. Defaults to 200 ms.
	Kills      int           // workers killed. Defaults to 40.
	Overloaded time.Duration // that a server is asked for too much. Defaults to 20 s.
	Claimers   int           // orchestrators that claim at once. Defaults to 16.
	Idle       int           // workers that have nothing to do. Defaults to 1,000.
	Reduced    int           // map outputs that are reduced. Defaults to 100,000.
	Beat       time.Duration // between the heartbeats of those. Defaults to 3 s.
	Asked      int           // units that ask a model. Defaults to 2,000.
	Calls      int           // that they make at once. Defaults to 50.
	Think      time.Duration // that a call takes, on average. Defaults to 2 s.
	Agents     int           // agents with tools that run at once. Defaults to 1,000.
	Mull       time.Duration // that a turn of such an agent takes, on average. Defaults to 20 s.
	Struck     int           // workers killed in the midst of calls. Defaults to 100.
	Passages   int           // of an index. Defaults to 100,000.
	Queries    int           // that are asked of it. Defaults to 1,000.
	Laps       int           // of each kind of service whose overhead is compared, at most. Defaults to 12.
	LapUnits   int           // of each such lap. Defaults to a tenth of Units if that is given, else to 100,000.
	// LapsWithin bounds how long they take, but for the first three. Defaults to six minutes
	// if the units of a lap are not given; else 0, which bounds nothing.
	LapsWithin time.Duration
}

func (l Lab) withDefaults() Lab {
	setDefault(&l.Size, 1_000_000)

	// Laps of the default size are bounded in time; those of a given size are not.
	if l.LapUnits == 0 && l.Units == 0 {
		l.LapUnits = 100_000
		setDefault(&l.LapsWithin, overheadWithin)
	}

	setDefault(&l.LapUnits, l.Units/10)
	setDefault(&l.Units, 200_000)
	setDefault(&l.Small, 10_000)
	setDefault(&l.Arrivals, 1000)
	setDefault(&l.Pause, 20*time.Millisecond)
	setDefault(&l.Nap, 200*time.Millisecond)
	setDefault(&l.Kills, 40)
	setDefault(&l.Overloaded, 20*time.Second)
	setDefault(&l.Claimers, 16)
	setDefault(&l.Idle, 1000)
	setDefault(&l.Reduced, 100_000)
	setDefault(&l.Beat, 3*time.Second)
	setDefault(&l.Asked, 2000)
	setDefault(&l.Calls, 50)
	setDefault(&l.Think, 2*time.Second)
	setDefault(&l.Struck, 100)
	setDefault(&l.Passages, 100_000)
	setDefault(&l.Queries, 1000)
	setDefault(&l.Agents, 1000)
	setDefault(&l.Mull, 20*time.Second)
	setDefault(&l.Laps, 12)

	if l.Lanes == 0 && l.Cluster != "" {
		l.Lanes = 8
	}
	setDefault(&l.Lanes, 2)
	return l
}

func setDefault[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// A Row is one line of the report.
type Row struct {
	Name  string
	Value float64
	Unit  string
	Goal  *Goal  // nil: it is only reported
	Bound string // what limits it, as measured in the same run
}

// A Goal is what a value has to keep to.
type Goal struct {
	AtLeast bool // else at most
	Value   float64
}

func atLeast(v float64) *Goal { return &Goal{true, v} }

func atMost(v float64) *Goal { return &Goal{false, v} }

// Met reports whether v keeps to g.
func (g *Goal) Met(v float64) bool {
	if g.AtLeast {
		return v >= g.Value
	}
	return v <= g.Value
}

// String returns the goal as it stands in the report.
func (g *Goal) String() string {
	if g.AtLeast {
		return "≥ " + Number(g.Value)
	}
	return "≤ " + Number(g.Value)
}

// Number formats v with four digits that count, and thousands apart.
func Number(v float64) string {
	if math.Abs(v) < 999.95 {
		digits := 3
		for m := math.Abs(v); m >= 10; m /= 10 {
			digits--
		}

		if v == math.Trunc(v) {
			digits = 0
		}
		return fmt.Sprintf("%.*f", digits, v)
	}

	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func toMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
