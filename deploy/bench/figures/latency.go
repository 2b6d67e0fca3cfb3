package figures

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

// Latency is how long a unit that may run waits until it does, on an idle fleet:
// jobs of one document arrive by a Poisson process.
type Latency struct {
	Waits
	Floor   *Floor
	Cluster bool
}

// Waits are those of the map units of single-unit jobs.
type Waits struct {
	Ready  *Sample // from the commit that made the job one that may run
	Submit *Sample // from before the submission
}

// MeasureLatency measures it.
func MeasureLatency(ctx context.Context, l *Lab) (*Latency, error) {
	floor, err := l.floor(ctx)
	if err != nil {
		return nil, err
	}
	lat := &Latency{Floor: floor, Cluster: l.Cluster != ""}
	err = l.with(func(s *system) error {
		starts := newStarts()
		if _, err := s.work(&bencher{output: 2, run: starts.note}, 20, prefetch(20)); err != nil {
			return err
		}
		w, err := l.waits(ctx, s, starts, "")
		if err == nil {
			lat.Waits = *w
		}
		return err
	})
	return lat, err
}

// waits submits single-unit jobs of a tenant at their times of arrival, whether
// or not earlier ones are done.
func (l *Lab) waits(ctx context.Context, s *system, starts *starts, tenant mapreduce.TenantID) (*Waits, error) {
	w := &Waits{new(Sample), new(Sample)}
	spec := spec(20)
	spec.Tenant = tenant
	if err := s.warm(ctx, spec); err != nil {
		return nil, err
	}
	ids, begun := make([]mapreduce.JobID, l.Arrivals), make([]time.Time, l.Arrivals)
	errs := make([]error, l.Arrivals+1)
	var submitting sync.WaitGroup
	errs[l.Arrivals] = paced(ctx, arrivals(l.Arrivals, l.Pause), func(i int) error {
		submitting.Go(func() {
			begun[i] = time.Now()
			ids[i], errs[i] = s.submit(ctx, spec, 1)
		})
		return nil
	})
	submitting.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i, id := range ids {
		if err := s.end(ctx, id); err != nil {
			return nil, err
		}
		at := starts.of(id)
		w.Ready.Add(at.Sub(s.observer.readyAt(id)))
		w.Submit.Add(at.Sub(begun[i]))
	}
	return w, nil
}

// warm runs a few jobs, so that what is made once is made.
func (s *system) warm(ctx context.Context, spec mapreduce.JobSpec) error {
	for range 5 {
		id, err := s.submit(ctx, spec, 1)
		if err != nil {
			return err
		}
		if err := s.end(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// starts notes when the first map unit of each job began.
type starts struct {
	mu   sync.Mutex // guards jobs
	jobs map[mapreduce.JobID]time.Time
}

func newStarts() *starts { return &starts{jobs: make(map[mapreduce.JobID]time.Time)} }

func (s *starts) note(_ context.Context, task *agent.Task) error {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.jobs[task.Job]; !ok && isMap(task) {
		s.jobs[task.Job] = now
	}
	return nil
}

func (s *starts) of(id mapreduce.JobID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[id]
}

// Rows returns the report.
func (l *Latency) Rows() []Row {
	floor := func(q float64) string {
		return fmt.Sprintf("one commit %s ms, of which a sync %s ms",
			Number(millis(l.Floor.Commit.Quantile(q))), Number(millis(l.Floor.Sync.Quantile(q))))
	}
	p50, p99 := atMost(1), atMost(10)
	if l.Cluster {
		p50, p99 = atMost(5), atMost(25)
	}
	return []Row{
		{"ready → start, idle fleet, p50", millis(l.Ready.Quantile(.5)), "ms", p50, floor(.5)},
		{"ready → start, idle fleet, p99", millis(l.Ready.Quantile(.99)), "ms", p99, floor(.99)},
		{"submission → start, p50", millis(l.Submit.Quantile(.5)), "ms", nil, "begin, stage, flip, claim: four commits"},
		{"submission → start, p99", millis(l.Submit.Quantile(.99)), "ms", nil, ""},
	}
}
