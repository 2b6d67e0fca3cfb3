package figures

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/worker/agent"
)

// Makespans is how long jobs take whose units wait as they would for a model,
// beside how long they have to.
type Makespans []Makespan

// A Makespan is that of one job.
type Makespan struct {
	Name  string
	Goal  float64 // of the ratio
	Units []time.Duration
	Slots int

	Took  time.Duration // from the commit that made the job ready to the one that ended its map level
	Least time.Duration // of a list schedule without overhead
	Pool  time.Duration // of goroutines that do nothing but wait
}

// Ratio returns how much longer the job took than it had to.
func (m *Makespan) Ratio() float64 { return float64(m.Took) / float64(m.Least) }

// MeasureMakespans measures them.
func MeasureMakespans(ctx context.Context, l *Lab) (Makespans, error) {
	part := func(n int) int { return max(1, n*l.Units/200_000) }

	all := Makespans{
		{Name: fmt.Sprintf("%d × %v at 50", part(1000), l.Nap), Goal: 1.015, Units: rig.EqualDurations(part(1000), l.Nap), Slots: 50},
		{Name: fmt.Sprintf("%d × %v at 20", part(400), l.Nap), Goal: 1.015, Units: rig.EqualDurations(part(400), l.Nap), Slots: 20},
		{
			Name: fmt.Sprintf("%d × log-normal, mean %v, σ 0.8, at 50", part(1000), l.Nap), Goal: 1.02,
			Units: rig.LogNormal(part(1000), l.Nap, .8), Slots: 50,
		},
	}

	for i := range all {
		if err := l.WithSystem(func(s *rig.System) error { return all[i].measureJob(ctx, s) }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (m *Makespan) measureJob(ctx context.Context, s *rig.System) error {
	m.Least = rig.ListSchedule(m.Units, m.Slots)
	m.Pool = rig.Pool(ctx, m.Units, m.Slots)

	naps := func(ctx context.Context, task *agent.Task) error {
		if !rig.IsMap(task) {
			return nil
		}
		return clock.Sleep(ctx, m.Units[rig.DocumentIndex(task)])
	}

	if _, err := s.RunWorker(&rig.Bencher{Output: rig.OutputBytes, Do: naps}, m.Slots, rig.PrefetchFor(m.Slots)); err != nil {
		return err
	}

	// A few jobs go before, so that the measured one makes no connections and fills no caches.
	if err := s.WarmUp(ctx, rig.NoopSpec(m.Slots)); err != nil {
		return err
	}

	id, err := s.SubmitDocuments(ctx, rig.NoopSpec(m.Slots), len(m.Units))
	if err != nil {
		return err
	}
	if err := s.AwaitComplete(ctx, id); err != nil {
		return err
	}

	m.Took = s.Observer.MappedAt(id).Sub(s.Observer.ReadyAt(id))
	return nil
}

// Rows returns the report.
func (all Makespans) Rows() []Row {
	var rows []Row
	for _, m := range all {
		rows = append(rows, Row{"makespan, " + m.Name, m.Ratio(), "× least", atMost(m.Goal), fmt.Sprintf(
			"took %v, least %v, goroutines alone %s", m.Took.Round(time.Millisecond), m.Least.Round(time.Millisecond),
			Number(float64(m.Pool)/float64(m.Least)))})
	}
	return rows
}
