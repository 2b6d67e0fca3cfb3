package figures

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/worker/agent"
)

// A Neighbour is how long a small tenant's units wait, alone and beside another
// tenant whose queue keeps every slot busy.
type Neighbour struct {
	Queued           int // units of the other tenant's job
	Gaps             int // how often that job ended before there was another
	Nap              time.Duration
	Alone, Beside    *rig.Sample // from ready to start
	PrefetchedBeside *rig.Sample // the same with a worker that holds units beside those that run
	Prefetch         int
}

// MeasureNeighbour measures it.
func MeasureNeighbour(ctx context.Context, l *Lab) (*Neighbour, error) {
	n := &Neighbour{Queued: l.Size, Nap: l.Nap / 20, Prefetch: rig.PrefetchFor(rig.BusySlots)}
	return n, l.WithSystem(func(s *rig.System) error {
		big := rig.NoopSpec(rig.BusySlots)
		big.Tenant = "big"
		starts := newStarts()
		b := &rig.Bencher{Output: 2, Do: func(ctx context.Context, task *agent.Task) error {
			if err := starts.recordStart(ctx, task); err != nil || task.Text == nil || task.Text.Chunks == 0 || isSmallTenant(task) {
				return err
			}
			return clock.Sleep(ctx, n.Nap)
		}}

		stop, err := s.RunWorker(b, rig.BusySlots, 0)
		if err != nil {
			return err
		}

		if n.Alone, err = l.readyWaits(ctx, s, starts); err != nil {
			return err
		}
		n.Beside, err = n.measureBeside(ctx, s, big, func() (*rig.Sample, error) { return l.readyWaits(ctx, s, starts) })
		if err != nil {
			return err
		}

		// The same with a worker that holds units beside those that run.
		stop()
		if _, err := s.RunWorker(b, rig.BusySlots, n.Prefetch); err != nil {
			return err
		}
		n.PrefetchedBeside, err = n.measureBeside(ctx, s, big, func() (*rig.Sample, error) { return l.readyWaits(ctx, s, starts) })
		return err
	})
}

// measureBeside measures while the other tenant has units that wait and units that run.
func (n *Neighbour) measureBeside(ctx context.Context, s *rig.System, spec mapreduce.JobSpec, measure func() (*rig.Sample, error)) (*rig.Sample, error) {
	keep, enough := context.WithCancel(ctx)
	defer enough()
	busy, kept := make(chan struct{}), make(chan error, 1)
	go func() { kept <- n.keepBusy(keep, s, spec, sync.OnceFunc(func() { close(busy) })) }()

	select {
	case <-busy:
	case err := <-kept:
		return nil, err
	}

	sample, err := measure()
	enough()
	return sample, errors.Join(err, <-kept)
}

// keepBusy submits a job, and another of the same size whenever half of the last one is
// done, until ctx ends. It calls begun when units of a job have begun.
func (n *Neighbour) keepBusy(ctx context.Context, s *rig.System, spec mapreduce.JobSpec, begun func()) error {
	for {
		id, err := s.SubmitDocuments(ctx, spec, n.Queued)
		if err == nil {
			err = s.AwaitJob(ctx, id, func(j *mapreduce.Job) bool {
				if j.RunningUnits > 0 || j.CompletedUnits > 0 {
					begun()
				}
				return j.CompletedUnits >= int64(n.Queued/2)
			})
		}

		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}

		job, err := s.GetJob(ctx, id)
		if err == nil && !job.State.Running() {
			// The last job had ended before there was another.
			n.Gaps++
		}
	}
}

// isSmallTenant reports whether a unit is one of the small tenant's jobs of one unit.
func isSmallTenant(task *agent.Task) bool { return task.Spec.Parallelism != rig.BusySlots }

func (l *Lab) readyWaits(ctx context.Context, s *rig.System, starts *startTimes) (*rig.Sample, error) {
	w, err := l.measureWaits(ctx, s, starts, "small")
	if err != nil {
		return nil, err
	}
	return w.Ready, nil
}

// Rows returns the report.
func (n *Neighbour) Rows() []Row {
	p99 := func(s *rig.Sample) float64 { return toMilliseconds(s.Quantile(.99)) }
	gaps := ""
	if n.Gaps > 0 {
		gaps = fmt.Sprintf("; %d times they had ended before there were more", n.Gaps)
	}

	bound := func(s *rig.Sample) string {
		return fmt.Sprintf("p50 %s, p99 %s ms; alone p50 %s, p99 %s ms; %d slots busy with units of %v%s",
			Number(toMilliseconds(s.Quantile(.5))), Number(p99(s)), Number(toMilliseconds(n.Alone.Quantile(.5))), Number(p99(n.Alone)), rig.BusySlots, n.Nap, gaps)
	}

	name := fmt.Sprintf("a small tenant's wait p99 beside %s queued units", Number(float64(n.Queued)))
	return []Row{
		{name, p99(n.Beside) / p99(n.Alone), "× alone", atMost(3), bound(n.Beside)},
		{fmt.Sprintf("— with %d more units held by the worker", n.Prefetch), p99(n.PrefetchedBeside) / p99(n.Alone), "× alone", nil, bound(n.PrefetchedBeside)},
	}
}
