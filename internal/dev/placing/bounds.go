package main

import (
	"math"
	"time"
)

// hindsight is what a job costs at best if it is known beforehand when each batch returns: those that return
// in time are waited for, and the rest is bought at once. It is false if the job cannot end in time even so, if it
// had the fleet for itself.
func hindsight(g *group, j *job) (cost float64, feasible bool) {
	rest := j.calls()
	for i, takes := range j.takes {
		n := float64(min(j.size, j.work.Units-int64(i)*j.size))
		if takes <= j.deadline {
			cost, rest = cost+n*byBatch, rest-n
		}
		if takes+j.takesAgain[i] <= j.deadline {
			cost, rest = cost+n*j.again*byBatch, rest-n*j.again
		}
	}
	after := (j.takesReally + j.thenReally).Seconds()
	return cost + j.bought(rest, j.offer.Flex), rest/g.alone(j)+after <= j.deadline.Seconds()
}

// alone is how many calls a second a job makes that has the fleet for itself.
func (g *group) alone(j *job) float64 {
	pace := float64(min(g.slots, j.work.AtOnce)) / j.takesReally.Seconds()
	if g.tokens > 0 {
		pace = min(pace, g.tokens/j.tokens/60)
	}
	return pace
}

// instants is into how many steps the time of a job is divided.
const instants = 120

// uninformed is the expected cost of the best policy that knows how batches are drawn, how fast calls are, and
// not when a batch will return, and that is never late. It is found by dynamic programming, backwards over
// time and the number of batches that are out. In each step any of them may be ended, and as many have to be
// as could not be bought any more if none returned: ending them takes ten minutes. What it leaves out is in
// its favour: time is in steps, within which batches return before they have to be ended.
//
// It is of a job that is alone, whose units ask once.
func uninformed(g *group) float64 {
	j := g.jobs[0]
	most := len(j.takes)
	each, pace := float64(j.work.Units)/float64(most), g.alone(j)
	step := j.deadline / instants
	price := j.bought(1, j.offer.Flex)

	// may is how many may be out at an instant.
	may := func(at int) int {
		room := (j.deadline - j.thenReally - time.Duration(at)*step - 10*time.Minute).Seconds()
		if room <= 0 {
			return 0
		}
		return min(most, int(room*pace/each))
	}

	// After the deadline none is out.
	value := make([]float64, most+1)
	for n := range value {
		value[n] = float64(n) * each * price
	}

	for at := instants - 1; at >= 0; at-- {
		gone, then := j.batches.returned(time.Duration(at)*step), j.batches.returned(time.Duration(at+1)*step)
		returns := 1.0
		if gone < 1 {
			returns = (then - gone) / (1 - gone)
		}
		kept := expected(value, returns, each*byBatch)

		// The best number to keep is found for each number that is out.
		best := make([]float64, most+1)
		for out := range best {
			best[out] = math.Inf(1)
			for keep := 0; keep <= min(out, may(at)); keep++ {
				best[out] = min(best[out], float64(out-keep)*each*price+kept[keep])
			}
		}
		value = best
	}
	return value[most]
}

// expected returns what so many batches come to of which each returns within a step with a probability, and
// costs so much then; what is left costs value by its number.
func expected(value []float64, returns, costs float64) []float64 {
	out := make([]float64, len(value))
	for n := range out {
		p := math.Pow(1-returns, float64(n)) // that none returns
		for k := 0; k <= n; k++ {
			if returns >= 1 {
				p = 0
				if k == n {
					p = 1
				}
			}
			out[n] += p * (float64(k)*costs + value[n-k])
			if k < n && returns < 1 {
				p *= float64(n-k) / float64(k+1) * returns / (1 - returns)
			}
		}
	}
	return out
}

// atOnce is what a job costs that is bought in real time.
func atOnce(j *job) float64 { return j.bought(j.calls(), j.offer.Flex) }
