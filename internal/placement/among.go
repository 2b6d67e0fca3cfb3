package placement

import (
	"math"
	"time"
)

// A Claim is a job that has use for calls in real time.
type Claim struct {
	Tenant, Model string
	Work          Work // as if it were alone: AtOnce is what it may have by itself
	Offer         Offer
	Left          time.Duration // until its deadline; Ever of a job that asks in real time all the while
}

// Ever is the time that is left of a job without a deadline.
const Ever time.Duration = math.MaxInt64

// Bounds are what jobs share; 0 is no limit.
type Bounds struct {
	Calls int64 // at once, of all models
	Model int64 // at once, of the model of a job
}

// Among returns the work of a job with what others leave it while it buys its calls in real time: its part, as
// tenants take turns and then the jobs of each, and no less than the others have no use for. Of limits in a
// minute it has what its calls at once are of all calls at once of its model.
//
// Only those count that may be buying at the same time: between when the batches of a job have to be ended, if it had
// no more than an even part, and its deadline.
func (c Claim) Among(others []Claim, b Bounds) Work {
	var same []Claim
	for _, other := range others {
		if other.Model == c.Model {
			same = append(same, other)
		}
	}

	w := c.Work
	w.AtOnce = max(1, w.AtOnce)
	for _, of := range []struct {
		others []Claim
		most   int64
	}{{others, b.Calls}, {same, b.Model}} {
		if of.most > 0 {
			tenants, jobs, theirs := c.rivals(of.others, of.most)
			w.AtOnce = min(w.AtOnce, max(1, of.most/(tenants*jobs), of.most-theirs))
		}
	}

	if w.Minute > 0 {
		most := lower(b.Calls, b.Model)
		_, _, theirs := c.rivals(same, most)
		if most > 0 {
			theirs = min(theirs, max(0, most-w.AtOnce))
		}
		w.Minute = max(1, int64(float64(w.Minute)*float64(w.AtOnce)/float64(w.AtOnce+theirs)))
	}
	return w
}

// rivals counts the tenants that may have calls to buy while a job does, with its own, and the jobs of its own
// tenant; and returns how many calls at once other jobs have use for.
func (c Claim) rivals(others []Claim, most int64) (tenants, jobs, theirs int64) {
	least := max(1, c.Work.AtOnce)
	if most > 0 {
		least = max(1, most/int64(len(others)+1))
	}
	begin, end := c.window(least)

	seen := map[string]bool{c.Tenant: true}
	jobs = 1
	for _, other := range others {
		from, to := other.window(least)
		if from >= end || to <= begin {
			continue
		}
		if seen[other.Tenant] = true; other.Tenant == c.Tenant {
			jobs++
		}
		theirs += max(1, other.Work.AtOnce)
	}
	return int64(len(seen)), jobs, theirs
}

// window is from when on and until when a job may buy calls that has so many at once, from now on.
func (c Claim) window(atOnce int64) (begin, end time.Duration) {
	if c.Left == Ever {
		return 0, Ever
	}
	w := c.Work
	w.AtOnce = min(max(1, w.AtOnce), atOnce)
	begin = c.Left - Until(w, c.Offer, w.Units)
	if begin <= 0 || !c.Offer.Batch { // it buys now, and perhaps behind its deadline
		return 0, w.Needs(w.Units)
	}
	return begin, c.Left
}

// lower returns the lower of two limits of which 0 is none.
func lower(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
