package figures

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

// A Submission is how fast documents become units that wait.
type Submission struct {
	Units int
	Took  time.Duration // from the call until the job is visible
	Bare  float64       // units a second that the bare store stages
	Raw   float64       // writes a second that Pebble itself, or the cluster, makes durable

	Cluster bool
}

// PerSecond returns the units submitted a second.
func (s *Submission) PerSecond() float64 { return rig.PerSecond(s.Units, s.Took) }

// MeasureSubmit measures it.
func MeasureSubmit(ctx context.Context, l *Lab) (*Submission, error) {
	sub := &Submission{Units: l.Size / 2, Cluster: l.Cluster != ""}
	var err error
	if sub.Raw, err = l.RawWrites(ctx, 5*l.Units); err != nil {
		return nil, err
	}
	if sub.Bare, _, err = l.BareUnits(ctx, sub.Units, 2); err != nil {
		return nil, err
	}

	return sub, l.WithSystem(func(s *rig.System) error {
		start := time.Now()
		id, err := s.SubmitDocuments(ctx, rig.NoopSpec(rig.BusySlots), sub.Units)
		sub.Took = s.Observer.ReadyAt(id).Sub(start)
		return err
	})
}

// Rows returns the report.
func (s *Submission) Rows() []Row {
	goal, alone := atLeast(50_000), "Pebble alone"
	if s.Cluster {
		goal, alone = nil, "the cluster alone"
	}
	return []Row{{"submission, documents of 256 B", s.PerSecond(), "units/s", goal, fmt.Sprintf(
		"bare store %s units/s at 4 writes each; %s %s writes/s", Number(s.Bare), alone, Number(s.Raw))}}
}
