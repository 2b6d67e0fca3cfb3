package figures

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/worker/agent"
)

// Latency is how long a unit that may run waits until it does, on an idle fleet:
// jobs of one document arrive by a Poisson process.
type Latency struct {
	Waits
	Floor *rig.Floor
}

// Waits are those of the map units of single-unit jobs.
type Waits struct {
	Ready  *rig.Sample // from the commit that made the job one that may run
	Submit *rig.Sample // from before the submission
}

// MeasureLatency measures it.
func MeasureLatency(ctx context.Context, l *Lab) (*Latency, error) {
	floor, err := l.MeasureFloor(ctx, rig.Arrivals(l.Arrivals/2, l.Pause))
	if err != nil {
		return nil, err
	}

	lat := &Latency{Floor: floor}
	err = l.WithSystem(func(s *rig.System) error {
		starts := newStarts()
		if _, err := s.RunWorker(&rig.Bencher{Output: 2, Do: starts.recordStart}, 20, rig.PrefetchFor(20)); err != nil {
			return err
		}
		w, err := l.measureWaits(ctx, s, starts, "")
		if err == nil {
			lat.Waits = *w
		}
		return err
	})

	return lat, err
}

// measureWaits submits single-unit jobs of a tenant at their times of arrival, whether
// or not earlier ones are done.
func (l *Lab) measureWaits(ctx context.Context, s *rig.System, starts *startTimes, tenant mapreduce.TenantID) (*Waits, error) {
	w := &Waits{new(rig.Sample), new(rig.Sample)}
	spec := rig.NoopSpec(20)
	spec.Tenant = tenant
	if err := s.WarmUp(ctx, spec); err != nil {
		return nil, err
	}

	ids, begun := make([]mapreduce.JobID, l.Arrivals), make([]time.Time, l.Arrivals)
	errs := make([]error, l.Arrivals+1)
	var submitting sync.WaitGroup
	errs[l.Arrivals] = rig.CallAt(ctx, rig.Arrivals(l.Arrivals, l.Pause), func(i int) error {
		// The next job arrives whether this one was taken in or not.
		submitting.Go(func() {
			begun[i] = time.Now()
			ids[i], errs[i] = s.SubmitDocuments(ctx, spec, 1)
		})
		return nil
	})

	submitting.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}

	for i, id := range ids {
		if err := s.AwaitComplete(ctx, id); err != nil {
			return nil, err
		}
		at := starts.startOf(id)
		w.Ready.Add(at.Sub(s.Observer.ReadyAt(id)))
		w.Submit.Add(at.Sub(begun[i]))
	}
	return w, nil
}

// startTimes notes when the first map unit of each job began.
type startTimes struct {
	mu   sync.Mutex // guards jobs
	jobs map[mapreduce.JobID]time.Time
}

func newStarts() *startTimes { return &startTimes{jobs: make(map[mapreduce.JobID]time.Time)} }

func (s *startTimes) recordStart(_ context.Context, task *agent.Task) error {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.jobs[task.Job]; !ok && rig.IsMap(task) {
		s.jobs[task.Job] = now
	}
	return nil
}

func (s *startTimes) startOf(id mapreduce.JobID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[id]
}

// Rows returns the report.
func (l *Latency) Rows() []Row {
	floor := func(q float64) string {
		return fmt.Sprintf("one commit %s ms, of which a sync %s ms",
			Number(toMilliseconds(l.Floor.Commit.Quantile(q))), Number(toMilliseconds(l.Floor.Sync.Quantile(q))))
	}

	// The goals are in commits of the same run, as their time is that of the disk.
	p50 := atMost(2 * toMilliseconds(l.Floor.Commit.Quantile(.5)))
	p99 := atMost(3 * toMilliseconds(l.Floor.Commit.Quantile(.99)))

	return []Row{
		{"ready → start, idle fleet, p50", toMilliseconds(l.Ready.Quantile(.5)), "ms", p50, floor(.5)},
		{"ready → start, idle fleet, p99", toMilliseconds(l.Ready.Quantile(.99)), "ms", p99, floor(.99)},
		{"submission → start, p50", toMilliseconds(l.Submit.Quantile(.5)), "ms", nil, "begin, stage, flip, claim: four commits"},
		{"submission → start, p99", toMilliseconds(l.Submit.Quantile(.99)), "ms", nil, ""},
	}
}
