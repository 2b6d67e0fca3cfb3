package main

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/coditect/mapreduce/internal/placement"
)

// A turnaround is how long batches take from their creation on: each is drawn alone.
type turnaround struct {
	name  string
	after func(p float64) time.Duration // by which so large a part of them has returned
}

// Batches return neither sooner nor later.
const (
	soonest = 5 * time.Minute
	latest  = 24 * time.Hour
)

// within bounds what is drawn.
func within(seconds float64) time.Duration {
	return time.Duration(min(max(seconds, soonest.Seconds()), latest.Seconds()) * float64(time.Second))
}

// turnarounds are those that jobs are drawn of.
var turnarounds = []turnaround{
	{"log-normal, half in 7 minutes, nine tenths in an hour", func(p float64) time.Duration {
		return within(math.Exp(math.Log(420) + 1.676*math.Sqrt2*math.Erfinv(2*p-1)))
	}},
	{"log-normal, half in 2 hours, nine tenths in 12", func(p float64) time.Duration {
		return within(math.Exp(math.Log(7200) + 1.398*math.Sqrt2*math.Erfinv(2*p-1)))
	}},
	{"heavy tail, half in 10 minutes", func(p float64) time.Duration {
		return within(300 / (1 - min(p, 1-1e-9)))
	}},
	{"two humps, four fifths in 10 minutes, the rest in 10 hours to a day", func(p float64) time.Duration {
		if p < 0.8 {
			return within(300 + 600*p/0.8)
		}
		return within(36_000 + 50_400*(p-0.8)/0.2)
	}},
	{"as one account reported: seven tenths in an hour, nine in four, the rest in 8 to 24", func(p float64) time.Duration {
		switch {
		case p < 0.7:
			return within(300 + 3300*p/0.7)
		case p < 0.9:
			return within(3600 + 10_800*(p-0.7)/0.2)
		}
		return within(28_800 + 57_600*(p-0.9)/0.1)
	}},
	{"even, 5 minutes to a day", func(p float64) time.Duration {
		return within(soonest.Seconds() + p*(latest-soonest).Seconds())
	}},
}

// returned is which part of batches have returned after a time.
func (t turnaround) returned(after time.Duration) float64 {
	low, high := 0.0, 1.0
	for range 40 {
		if half := (low + high) / 2; t.after(half) <= after {
			low = half
		} else {
			high = half
		}
	}
	return low
}

// A job is one that is simulated.
type job struct {
	work     placement.Work // as it is known
	offer    placement.Offer
	deadline time.Duration // from its begin on
	pace     float64       // calls a second in real time, as it is
	batches  turnaround
	size     int64           // calls of a batch
	takes    []time.Duration // of each batch that all calls make
	cancels  []time.Duration // how long each takes to be cancelled
	room     float64         // part of the calls for which there is room in flex
}

// draw draws a job: 10 to 50,000 calls of 2 to 30 seconds, half an hour to two days before its deadline.
func draw(random *rand.Rand, offer placement.Offer) *job {
	spread := func(low, high float64) float64 { return low * math.Pow(high/low, random.Float64()) }
	j := &job{offer: offer, batches: turnarounds[random.IntN(len(turnarounds))], room: random.Float64()}
	j.deadline = time.Duration(spread(1800, 172_800) * float64(time.Second))
	j.work = placement.Work{
		Calls: int64(spread(10, 50_000)), AtOnce: []int64{10, 20, 50}[random.IntN(3)],
		Call: time.Duration(spread(2, 30) * float64(time.Second)),
	}

	// Calls take a fifth more or less than they are known to.
	j.pace = float64(j.work.AtOnce) / (j.work.Call.Seconds() * (0.8 + 0.4*random.Float64()))

	j.size = placement.BatchOf(j.work, offer, j.deadline)
	if j.size == 0 {
		j.size = j.work.Calls
	}
	for range (j.work.Calls-1)/j.size + 1 {
		j.takes = append(j.takes, j.batches.after(random.Float64()))
		j.cancels = append(j.cancels, time.Duration(random.Float64()*float64(10*time.Minute)))
	}
	return j
}

// isRefused reports whether the job would be refused when it is submitted: what is known of its calls says
// that it cannot be done in time.
func (j *job) isRefused() bool { return j.work.RealTime(j.work.Calls) > j.deadline }

// realTime is how long all calls take if they are bought at once, as fast as calls are.
func (j *job) realTime() time.Duration {
	return time.Duration(float64(j.work.Calls+j.work.AtOnce) / j.pace * float64(time.Second))
}

// bought is what calls cost in real time, in prices of the standard tier.
func (j *job) bought(calls float64, flex bool) float64 {
	if flex {
		return calls * (1 - j.room/2)
	}
	return calls
}

// byBatch is what a call costs in a batch.
const byBatch = 0.5
