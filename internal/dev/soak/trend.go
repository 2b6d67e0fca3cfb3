package main

import (
	"math"
	"strings"
	"time"
)

// A point is a figure at a time.
type point struct {
	at    time.Duration // since the beginning
	value float64
}

// A trend is how a figure went over the second half of the time.
type trend struct {
	first, last, mean float64
	least, most       float64
	hourly            float64 // slope of the line of least squares, an hour
	growth            float64 // by that line, over the whole half
	noise             float64 // standard error of growth
}

// enough is how many samples a half needs to be judged.
const enough = 8

// trendOf returns the trend of the second half of the time that points cover. There is none where
// they are too few.
func trendOf(all []point) (t trend, ok bool) {
	if len(all) == 0 {
		return t, false
	}
	half := (all[0].at + all[len(all)-1].at) / 2
	for len(all) > 0 && all[0].at < half {
		all = all[1:]
	}
	if len(all) < enough {
		return t, false
	}

	n := float64(len(all))
	var meanAt float64 // hours
	t.first, t.last, t.least, t.most = all[0].value, all[len(all)-1].value, math.Inf(1), math.Inf(-1)
	for _, p := range all {
		meanAt += p.at.Hours() / n
		t.mean += p.value / n
		t.least, t.most = min(t.least, p.value), max(t.most, p.value)
	}

	var xx, xy, rest float64
	for _, p := range all {
		x := p.at.Hours() - meanAt
		xx += x * x
		xy += x * (p.value - t.mean)
	}
	t.hourly = xy / xx
	for _, p := range all {
		off := p.value - t.mean - t.hourly*(p.at.Hours()-meanAt)
		rest += off * off
	}
	long := (all[len(all)-1].at - all[0].at).Hours()
	t.growth, t.noise = t.hourly*long, math.Sqrt(rest/(n-2)/xx)*long
	return t, true
}

// A bound is how much a figure may grow over the second half of the time: by a share of its mean, or by
// so much where that is more. A figure with a reason may grow.
type bound struct {
	share, floor float64
	reason       string
}

const mebi = 1 << 20

// boundOf returns the bound of a figure. Floors are what comes and goes with jobs that
// happen to run when a sample is taken.
func boundOf(figure string) bound {
	process, what, of := strings.Cut(figure, ": ")
	switch {
	case of && what == cpuSeconds:
		return bound{reason: "it is a sum"}
	case of && what == "memory":
		return bound{share: 0.1, floor: 16 * mebi}
	case of && what == "objects":
		return bound{share: 0.1, floor: 50_000}
	case of:
		return bound{share: 0.1, floor: 8}
	}

	switch process {
	case allKeys:
		return bound{reason: "each of its kinds is judged"}
	case allBytes:
		return bound{share: 0.1, floor: 4 * mebi}
	case diskBytes:
		return bound{share: 0.2, floor: 64 * mebi} // logs and tables until they are compacted
	case jobsKept:
		return bound{share: 0.1, floor: 8}
	}
	if reason := reasons[strings.TrimPrefix(process, "keys of kind ")]; reason != "" {
		return bound{reason: reason}
	}
	return bound{share: 0.1, floor: 200}
}

// reasons are why keys of some kinds become more.
var reasons = map[string]string{
	"log":  "it names each job that was deleted",
	"cost": "costs are kept by day",
}

// limit is how much it may grow, given its mean.
func (b bound) limit(mean float64) float64 { return max(b.share*math.Abs(mean), b.floor) }

// breaks reports whether a figure grows by more than its bound, and by more than chance.
func (b bound) breaks(t trend) bool {
	return b.reason == "" && t.growth > b.limit(t.mean) && t.growth > 3*t.noise
}
