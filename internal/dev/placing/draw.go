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

// A group is jobs that share a fleet and a model.
type group struct {
	slots  int64
	tokens float64 // of the model in a minute; 0 is no limit
	jobs   []*job
}

// A job is one that is simulated.
type job struct {
	name, tenant string
	work         placement.Work // as it is known
	offer        placement.Offer
	begins       time.Duration
	deadline     time.Duration // from its begin on
	tokens       float64       // of a call
	again        float64       // part of the units that ask a second time

	takesReally time.Duration // a call
	thenReally  time.Duration // what comes after all of its calls

	batches    turnaround
	size       int64           // units of a batch
	takes      []time.Duration // of each batch that all units make
	takesAgain []time.Duration // of those of their second calls
	cancels    []time.Duration // how long each takes to be cancelled
	room       float64         // part of the calls for which there is room in flex
}

// due is when the job is to end.
func (j *job) due() time.Duration { return j.begins + j.deadline }

// calls are all of the job.
func (j *job) calls() float64 { return float64(j.work.Units) * (1 + j.again) }

// spread draws a number whose logarithm is even.
func spread(random *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, random.Float64())
}

// draw draws one to four jobs that begin within two hours: of a half the fleet has more slots than all of them use, and
// of a half the model bears more tokens.
func draw(random *rand.Rand, offer placement.Offer) *group {
	g := new(group)
	wanted, rate := int64(0), 0.0
	for i := range 1 + random.IntN(4) {
		j := drawJob(random, offer)
		if j.name, j.tenant = string(rune('a'+i)), []string{"north", "south"}[random.IntN(2)]; i > 0 {
			j.begins = time.Duration(random.Float64() * float64(2*time.Hour))
		}
		wanted += j.work.AtOnce
		rate += 60 * j.tokens * float64(j.work.AtOnce) / j.work.Call.Seconds()
		g.jobs = append(g.jobs, j)
	}

	g.slots = max(1, int64(float64(wanted)*spread(random, 0.4, 2.5)))
	if random.IntN(2) == 0 {
		g.tokens = rate * spread(random, 0.2, 2)
	}
	for _, j := range g.jobs {
		if g.tokens > 0 {
			j.work.Minute = max(1, int64(g.tokens/j.tokens))
		}
		j.drawBatches(random)
	}
	return g
}

// drawJob draws a job: 10 to 50,000 units of 2 to 30 seconds, half an hour to two days before its deadline. In a half of
// the jobs some units ask twice, and in a third others come after all of them.
func drawJob(random *rand.Rand, offer placement.Offer) *job {
	j := &job{offer: offer, batches: turnarounds[random.IntN(len(turnarounds))], room: random.Float64()}
	j.deadline = time.Duration(spread(random, 1800, 172_800) * float64(time.Second))
	j.tokens = spread(random, 500, 20_000)
	j.work = placement.Work{
		Units: int64(spread(random, 10, 50_000)), Each: 1, AtOnce: []int64{10, 20, 50}[random.IntN(3)],
		Call: time.Duration(spread(random, 2, 30) * float64(time.Second)),
	}

	// Calls take a fifth more or less than they are known to, and a twentieth more or fewer units ask twice.
	slower := 0.8 + 0.4*random.Float64()
	j.takesReally = time.Duration(slower * float64(j.work.Call))
	if random.IntN(2) == 0 {
		planned := 0.6 * random.Float64()
		j.work.Each, j.again = 1+planned, planned*(0.95+0.1*random.Float64())
	}
	if random.IntN(3) == 0 {
		j.work.Then = time.Duration(1+random.IntN(5)) * j.work.Call
		j.thenReally = time.Duration(slower * float64(j.work.Then))
	}
	return j
}

// drawBatches draws how long the batches of a job take.
func (j *job) drawBatches(random *rand.Rand) {
	if j.size = placement.BatchOf(j.work, j.offer, j.deadline); j.size == 0 {
		j.size = j.work.Units
	}
	for range (j.work.Units-1)/j.size + 1 {
		j.takes = append(j.takes, j.batches.after(random.Float64()))
		j.takesAgain = append(j.takesAgain, j.batches.after(random.Float64()))
		j.cancels = append(j.cancels, time.Duration(random.Float64()*float64(10*time.Minute)))
	}
}

// isRefused reports whether the job would be refused when it is submitted: what is known of its calls says
// that it cannot be done in time.
func (j *job) isRefused() bool {
	w := j.work
	w.Minute = 0 // which nobody knows then
	return w.RealTime(w.Units) > j.deadline
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
