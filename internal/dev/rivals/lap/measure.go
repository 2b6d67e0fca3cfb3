package lap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

// Settings are how much is measured.
type Settings struct {
	Dir      string        // holds the folders of servers; empty for the temporary folder
	Share    float64       // of the units that a system's lap has
	Arrivals int           // units that arrive at an idle queue
	Pause    time.Duration // between arrivals, on average
	Kills    int           // workers that are killed
}

// A Result is what was measured in a lap.
type Result struct {
	Info    Info
	Version string // of the module

	PerSecond float64  // units that do nothing
	Told      Quantile // from when a submitter was told that its unit is kept, to the unit's first line
	Asked     Quantile // the same from before the submission
	Elsewhere Quantile // from a kill to the unit's first line in another process
	Kills     int
}

// A Quantile is the median of times, and what 99 in a hundred do not exceed.
type Quantile struct{ P50, P99 time.Duration }

func quantile(s *rig.Sample) Quantile { return Quantile{s.Quantile(.5), s.Quantile(.99)} }

// idleSlots is how many units at once a worker takes while the queue is idle, as many as in the
// figures of the project alone.
const idleSlots = 20

// victims is how many workers are killed in one round.
const victims = 8

// measure opens a system's server and measures everything of it, in turn.
func measure(ctx context.Context, s System, set Settings) (r *Result, err error) {
	dir, err := os.MkdirTemp(set.Dir, "rivals-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	server, err := s.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()

	r = &Result{Info: s.Info(), Version: versionOf(s.Info().Module)}
	m := &measurement{server: server, info: r.Info}
	if err := m.measureWaits(ctx, set, r); err != nil {
		return nil, fmt.Errorf("latency: %w", err)
	}
	if err := m.measureUnits(ctx, int(float64(r.Info.Units)*set.Share), r); err != nil {
		return nil, fmt.Errorf("units: %w", err)
	}
	if err := m.measureKills(ctx, set, r); err != nil {
		return nil, fmt.Errorf("kills: %w", err)
	}
	return r, nil
}

// A measurement is that of one server.
type measurement struct {
	server    Server
	info      Info
	submitted int // units, of all figures so far
}

// submit makes n units, and returns their names.
func (m *measurement) submit(ctx context.Context, n int) error {
	names := m.names(n)
	return m.server.Submit(ctx, names)
}

// names returns the names of the next n units. All have as many bytes as the text of a unit has in
// the figures of the project alone.
func (m *measurement) names(n int) []string {
	names := make([]string, n)
	for i := range names {
		m.submitted++
		names[i] = fmt.Sprintf("unit-%07d.txt", m.submitted)
	}
	return names
}

// Text is what a unit works on: noise of 256 bytes, which no compression makes much less.
func Text(unit string) string {
	var b strings.Builder
	for seed := unit; b.Len() < rig.TextBytes; {
		seed = hash(seed)
		b.WriteString(seed)
	}
	return b.String()[:rig.TextBytes]
}

// measureWaits lets units arrive by a Poisson process, whether or not earlier ones have ended.
func (m *measurement) measureWaits(ctx context.Context, set Settings, r *Result) error {
	var mu sync.Mutex // guards started
	started := make(map[string]time.Time)
	note := func(_ context.Context, unit string) error {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		if _, again := started[unit]; !again {
			started[unit] = now
		}
		return nil
	}

	return m.working(ctx, Worker{Name: "idle", Slots: idleSlots, Run: note}, func(ctx context.Context) error {
		// Later ones find connections and caches made.
		for range 5 {
			if err := m.submit(ctx, 1); err != nil {
				return err
			}
			if _, err := m.server.AwaitEnded(ctx, m.submitted); err != nil {
				return err
			}
		}

		names := m.names(set.Arrivals)
		asked, told := make([]time.Time, len(names)), make([]time.Time, len(names))
		errs := make([]error, len(names)+1)
		var submitting sync.WaitGroup
		errs[len(names)] = rig.CallAt(ctx, rig.Arrivals(len(names), set.Pause), func(i int) error {
			submitting.Go(func() {
				asked[i] = time.Now()
				errs[i] = m.server.Submit(ctx, names[i:i+1])
				told[i] = time.Now()
			})
			return nil
		})

		submitting.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if _, err := m.server.AwaitEnded(ctx, m.submitted); err != nil {
			return err
		}

		fromTold, fromAsked := new(rig.Sample), new(rig.Sample)
		mu.Lock()
		defer mu.Unlock()
		for i, name := range names {
			at, ok := started[name]
			if !ok {
				return fmt.Errorf("unit %s has ended, and nobody saw it begin", name)
			}
			fromTold.Add(at.Sub(told[i]))
			fromAsked.Add(at.Sub(asked[i]))
		}
		r.Told, r.Asked = quantile(fromTold), quantile(fromAsked)
		return nil
	})
}

// measureUnits submits units that do nothing, then runs all of them.
func (m *measurement) measureUnits(ctx context.Context, n int, r *Result) error {
	if err := m.submit(ctx, n); err != nil {
		return err
	}

	nothing := func(context.Context, string) error { return nil }
	start := time.Now()
	return m.working(ctx, Worker{Name: "busy", Run: nothing}, func(ctx context.Context) error {
		ended, err := m.server.AwaitEnded(ctx, m.submitted)
		if err == nil {
			r.PerSecond = rig.PerSecond(n, ended.Sub(start))
		}
		return err
	})
}

// working calls fn while a worker runs in this process. If the worker ends before, fn's context
// does, too.
func (m *measurement) working(ctx context.Context, w Worker, fn func(ctx context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	var worker sync.WaitGroup
	var failed error
	done := make(chan struct{})
	working, rest := context.WithCancel(ctx)
	worker.Go(func() {
		failed = m.server.Work(working, w)
		select {
		case <-done:
		default:
			stop(errors.Join(errors.New("the worker has ended too early"), failed))
		}
	})

	err := fn(ctx)
	close(done)
	rest()
	worker.Wait()
	return errors.Join(err, failed)
}
