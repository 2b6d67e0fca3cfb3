package rig

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A Sample is a set of durations. It may be added to concurrently.
type Sample struct {
	mu     sync.Mutex // guards values
	values []time.Duration
}

// Add adds d.
func (s *Sample) Add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values = append(s.values, d)
}

// Len returns how many durations there are.
func (s *Sample) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.values)
}

// Quantile returns the least duration that a part q of all do not exceed, or 0
// of none.
func (s *Sample) Quantile(q float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.values))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// newRandom returns a source of random numbers that is the same in every run.
func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// Arrivals returns n points in time of a Poisson process with a mean pause.
func Arrivals(n int, mean time.Duration) []time.Duration {
	r := newRandom(1)
	at := make([]time.Duration, n)
	t := time.Duration(0)
	for i := range at {
		t += time.Duration(r.ExpFloat64() * float64(mean))
		at[i] = t
	}
	return at
}

// LogNormal returns n durations with a mean and the deviation sigma of their
// logarithms.
func LogNormal(n int, mean time.Duration, sigma float64) []time.Duration {
	r := newRandom(2)
	mu := math.Log(float64(mean)) - sigma*sigma/2
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = time.Duration(math.Exp(mu + sigma*r.NormFloat64()))
	}
	return all
}

// EqualDurations returns n durations of d.
func EqualDurations(n int, d time.Duration) []time.Duration {
	return slices.Repeat([]time.Duration{d}, n)
}

// ListSchedule returns how long jobs take on so many machines when each machine
// takes the next of the list whenever it is free, and nothing else costs time
// (Graham, Bounds for certain multiprocessing anomalies, 1966).
func ListSchedule(jobs []time.Duration, machines int) time.Duration {
	free := make([]time.Duration, machines)
	for _, d := range jobs {
		first := 0
		for i := range free {
			if free[i] < free[first] {
				first = i
			}
		}
		free[first] += d
	}
	return slices.Max(free)
}

// PerSecond returns how many of n there were a second.
func PerSecond(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }
