// Package overhead measures what TLS, telemetry and quotas cost a service whose units do
// nothing: how much slower they pass, and how much more of the processors each takes. Plain
// laps and laps of the others take turns in one process, so that what else the machine does
// harms both alike.
//
// It wires real parts together as the command does, and may import any of them.
package overhead

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Config says how much is measured.
type Config struct {
	Dir       string               // holds the stores
	Units     int                  // of a lap
	Rounds    int                  // of laps of each kind, at most
	Kinds     []string             // that are measured, in this order. Defaults to Kinds()
	Within    time.Duration        // no round begins later, but for the first three; 0 bounds nothing
	Slots     int                  // of the worker
	Processor func() time.Duration // what this process has used of the processors so far
}

// The kinds of services that are compared with a plain one.
const (
	TLS        = "mutual TLS"
	Telemetry  = "traces and metrics"
	Quotas     = "quotas of everything"
	Everything = "all of it, with a policy"
)

// Kinds returns them, in the order in which they are measured.
func Kinds() []string { return []string{TLS, Telemetry, Quotas, Everything} }

// Plain is the kind of the service that others are compared with.
const Plain = "plain"

// A Lap is one job of units that do nothing.
type Lap struct {
	Rate      float64 // units a second, from the worker's start to the last acknowledgement
	Processor float64 // microseconds a unit
}

// A Cost is how a kind of service compares with a plain one, in parts of one: the medians
// of its laps, each compared with the mean of the plain laps before and after it.
type Cost struct {
	Kind      string
	Slower    float64 // units a second
	Dearer    float64 // processor time a unit
	DearerLow float64 // the lower quartile of the same
	DearerTop float64 // the upper quartile
	Laps      int
}

// A Result is what was measured.
type Result struct {
	Plain Lap // the medians
	Costs []Cost
	// NoiseRate and NoiseProcessor are the medians of how far a plain lap is from the mean
	// of the plain laps before and after it: what is smaller than these shows nothing.
	NoiseRate, NoiseProcessor float64
	Rounds                    int // of laps of each kind that were run
}

// leastRounds is how many laps of each kind there are however long they take: the median of
// fewer is no better than each of them.
const leastRounds = 3

// Measure measures all kinds.
func Measure(ctx context.Context, c Config) (r *Result, err error) {
	if len(c.Kinds) == 0 {
		c.Kinds = Kinds()
	}

	services := make(map[string]*service)
	defer func() {
		for _, s := range services {
			err = errors.Join(err, s.close())
		}
	}()

	for i, kind := range append([]string{Plain}, c.Kinds...) {
		var s *service
		labelled(ctx, kind, func(ctx context.Context) { s, err = open(ctx, filepath.Join(c.Dir, fmt.Sprint(i)), optionsOf(kind)) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		services[kind] = s
	}

	var series []measured // plain, other, plain, other, …, plain
	lap := func(kind string) error {
		var one Lap
		labelled(ctx, kind, func(ctx context.Context) { one, err = services[kind].lap(ctx, c) })
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		series = append(series, measured{kind, one})
		return nil
	}

	for _, kind := range append([]string{Plain}, c.Kinds...) { // what is compiled, opened and made large once
		if _, err := services[kind].lap(ctx, c); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
	}

	begun := time.Now()
	for round := range c.Rounds {
		if c.Within > 0 && round >= leastRounds && time.Since(begun) >= c.Within {
			break
		}
		for _, kind := range c.Kinds {
			if err := errors.Join(lap(Plain), lap(kind)); err != nil {
				return nil, err
			}
		}
	}

	if err := lap(Plain); err != nil {
		return nil, err
	}
	return compare(series), nil
}

// labelled runs what is of a kind of service, with all goroutines that it starts, under a
// label: "go tool pprof -tagfocus" then shows in one profile of a figure what a kind costs.
func labelled(ctx context.Context, kind string, run func(context.Context)) {
	pprof.Do(ctx, pprof.Labels("service", kind), run)
}

// A measured lap is one of a kind.
type measured struct {
	kind string
	Lap
}

// compare compares laps with the plain ones around them. Every other lap is plain, from the
// first to the last.
func compare(series []measured) *Result {
	r := &Result{}
	type changes struct{ rate, processor []float64 }
	of := make(map[string]*changes)
	var rates, processors []float64
	noise := &changes{}

	against := func(to *changes, one, before, after Lap) {
		to.rate = append(to.rate, one.Rate/((before.Rate+after.Rate)/2))
		to.processor = append(to.processor, one.Processor/((before.Processor+after.Processor)/2))
	}

	for i, m := range series {
		switch {
		case m.kind != Plain:
			if of[m.kind] == nil {
				of[m.kind] = &changes{}
			}
			against(of[m.kind], m.Lap, series[i-1].Lap, series[i+1].Lap)
		default:
			rates, processors = append(rates, m.Rate), append(processors, m.Processor)
			// A plain lap is compared with those before and after it, to show the noise.
			if i >= 2 && i+2 < len(series) {
				against(noise, m.Lap, series[i-2].Lap, series[i+2].Lap)
			}
		}
	}

	for _, c := range of {
		r.Rounds = max(r.Rounds, len(c.rate))
	}
	r.Plain = Lap{quantile(rates, .5), quantile(processors, .5)}
	r.NoiseRate, r.NoiseProcessor = distance(noise.rate), distance(noise.processor)

	for _, kind := range Kinds() {
		if c := of[kind]; c != nil {
			r.Costs = append(r.Costs, Cost{
				Kind: kind, Slower: 1 - quantile(c.rate, .5), Dearer: quantile(c.processor, .5) - 1,
				DearerLow: quantile(c.processor, .25) - 1, DearerTop: quantile(c.processor, .75) - 1, Laps: len(c.rate),
			})
		}
	}
	return r
}

// distance returns the median distance from 1.
func distance(ratios []float64) float64 {
	away := make([]float64, len(ratios))
	for i, v := range ratios {
		away[i] = math.Abs(v - 1)
	}
	return quantile(away, .5)
}

// quantile returns the value below which a part of all values is; 0 of none.
func quantile(all []float64, part float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	at := part * float64(len(all)-1)
	low := int(at)
	high := min(low+1, len(all)-1)
	return all[low] + (at-float64(low))*(all[high]-all[low])
}

// settle waits until what laps before have left to be done, such as the compaction of a store
// whose job was deleted, is done: another kind of service would pay for it. It waits no longer
// than a few seconds, as there may always be something.
func (c Config) settle(ctx context.Context) {
	const look = 50 * time.Millisecond
	runtime.GC()
	ticker := time.NewTicker(look)
	defer ticker.Stop()

	for range 60 {
		before := c.Processor()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if c.Processor()-before < look/10 {
			return
		}
	}
}

// lap runs a job of units that do nothing.
func (s *service) lap(ctx context.Context, c Config) (Lap, error) {
	c.settle(ctx)
	job, err := s.client.SubmitJob(ctx, mapreduce.JobSpec{
		Provider: provider, Schema: []byte(`{"type":"object"}`), Parallelism: c.Slots, Budget: int64(c.Units),
	}, documents(c.Units))
	if err != nil {
		return Lap{}, err
	}

	used, begun := c.Processor(), time.Now()
	stop, err := s.work(c.Slots)
	if err != nil {
		return Lap{}, err
	}

	err = s.client.WatchJob(ctx, job.ID, func(j *mapreduce.Job) error {
		if j.CompletedUnits >= int64(c.Units) || j.State.Ended() {
			job = j
			return errMapped
		}
		return nil
	})

	took, spent := time.Since(begun), c.Processor()-used
	if err = errors.Join(notMapped(err), stop()); err != nil {
		return Lap{}, err
	}

	if job.CompletedUnits < int64(c.Units) || job.FailedUnits > 0 {
		return Lap{}, fmt.Errorf("job %s is %v, %d of %d units complete, %d failed: %s", job.ID, job.State, job.CompletedUnits, c.Units, job.FailedUnits, job.Error)
	}

	if !job.State.Ended() {
		// Without workers it does not end but by what is under way.
		if _, err := s.client.CancelJob(ctx, job.ID); err != nil && !errors.Is(err, errs.Precondition) {
			return Lap{}, err
		}
	}

	return Lap{float64(c.Units) / took.Seconds(), float64(spent.Microseconds()) / float64(c.Units)}, s.client.DeleteJob(ctx, job.ID)
}

// errMapped ends a watch: all documents are mapped.
var errMapped = errors.New("mapped")

func notMapped(err error) error {
	if errors.Is(err, errMapped) {
		return nil
	}
	return err
}
