package figures

import (
	"context"
	"fmt"
	"time"
)

// A Submission is how fast documents become units that wait.
type Submission struct {
	Units int
	Took  time.Duration // from the call until the job is visible
	Bare  float64       // units a second that the bare store stages
	Raw   float64       // writes a second that Pebble itself makes durable
}

// PerSecond returns the units submitted a second.
func (s *Submission) PerSecond() float64 { return perSecond(s.Units, s.Took) }

// MeasureSubmit measures it.
func MeasureSubmit(ctx context.Context, l *Lab) (*Submission, error) {
	sub := &Submission{Units: l.Size / 2}
	var err error
	if sub.Raw, err = l.rawWrites(5 * l.Units); err != nil {
		return nil, err
	}
	if sub.Bare, _, err = l.bareUnits(ctx, sub.Units, 2); err != nil {
		return nil, err
	}
	return sub, l.with(func(s *system) error {
		start := time.Now()
		id, err := s.submit(ctx, spec(busySlots), sub.Units)
		sub.Took = s.observer.readyAt(id).Sub(start)
		return err
	})
}

// Rows returns the report.
func (s *Submission) Rows() []Row {
	return []Row{{"submission, documents of 256 B", s.PerSecond(), "units/s", atLeast(50_000), fmt.Sprintf(
		"bare store %s units/s at 4 writes each; Pebble alone %s writes/s", Number(s.Bare), Number(s.Raw))}}
}
