// Package placement decides in which tier the calls of a job are made that is to end by a deadline: by
// batch, in flex, in the standard tier, or in priority.
//
// A call that waits in a batch costs nothing until it is answered, and nothing if the batch is ended before:
// then it is bought in real time, at the price that it would have had at once. So nothing is gained by
// buying a call before it has to be, and each waits as long as the rest can still be bought. No policy that
// does not know when a batch will return, and is never late, is cheaper.
//
// What always holds:
//
//  1. Calls wait only while all of them could still be bought in real time by the deadline, with all that
//     waits for their answers: after their batch was ended, which takes EndBatch, at the pace that is known and that
//     other jobs leave, with a margin.
//  2. The later it is, the fewer may wait: a call that may not wait now may not wait at any later time,
//     unless others were answered meanwhile.
//  3. A dearer tier is chosen only where a cheaper one could make the job late.
//  4. With too little time for any of it the quickest is chosen, and never none.
//
// It is pure: it reads no clock, and imports nothing of the project but the names of tiers.
package placement

import (
	"cmp"
	"math"
	"time"

	"github.com/coditect/mapreduce/api/parameters"
)

const (
	// EndBatch is how long it takes until the calls of a batch that is to end can be bought: vendors take up
	// to ten minutes to cancel one, as far as they say, and a minute is for noticing that.
	EndBatch = 11 * time.Minute

	// FlexTakes is how long a call in flex may take at most before it is given up for the standard tier.
	FlexTakes = 15 * time.Minute

	// WorthWaiting is how long a call has to be able to wait for it to be put in a batch at all: few batches
	// return sooner.
	WorthWaiting = 5 * time.Minute

	// slack is kept free before each deadline, whatever is left to do.
	slack = time.Minute
)

// margin is how many times as long as they are known to calls may take.
const margin = 1.25

// An Offer is what tiers the models of a job have beside the standard one.
type Offer struct {
	Batch, Flex, Priority bool

	// FlexTakes is how long a call in flex may take before it is given up; FlexTakes if it is 0.
	FlexTakes time.Duration

	// Soonest is how soon batches of the model have returned of late at the soonest; 0 if that is not known.
	Soonest time.Duration
}

// Work is what is left of a job at a moment. A unit that waits in a batch waits with one call, behind which are the
// others of that unit, and behind all units what the job does with their answers.
type Work struct {
	Units  int64         // at hand that have not ended
	Each   float64       // calls of one of them, one after the other; one if it is less
	Call   time.Duration // one call in real time
	AtOnce int64         // calls in real time; one if it is less
	Minute int64         // calls that may be begun in a minute; 0 is no limit
	Then   time.Duration // what comes after these units, in real time

	// Short says that the budget is too small for all of them at once: while some wait, for what is set aside for them
	// others cannot be asked.
	Short bool
}

// RealTime returns how long so many of the units take in real time, with all that comes after them.
func (w Work) RealTime(units int64) time.Duration {
	if units <= 0 || w.Units <= 0 {
		return 0
	}
	if w.Short {
		units = max(units, w.Units)
	}

	calls := math.Ceil(float64(units) * max(1, w.Each))
	rounds := max(math.Ceil(w.Each), math.Ceil(calls/float64(max(1, w.AtOnce))))
	took := stretch(w.Call, rounds)
	if w.Minute > 0 {
		took = max(took, stretch(time.Minute, calls/float64(w.Minute)))
	}
	return addTo(took, w.Then)
}

// Needs returns how long before the deadline so many units have to be begun in real time.
func (w Work) Needs(units int64) time.Duration {
	if units <= 0 || w.Units <= 0 {
		return 0
	}
	return addTo(slack, stretch(w.RealTime(units), margin))
}

// lead is how long before calls have to be begun in real time their batch has to be ended.
func (o Offer) lead() time.Duration {
	if o.Flex {
		return EndBatch + o.flexTakes() // at the price of a batch
	}
	return EndBatch
}

func (o Offer) flexTakes() time.Duration { return cmp.Or(o.FlexTakes, FlexTakes) }

// MayWait returns how many of the units may wait in batches with so much time left.
func MayWait(w Work, o Offer, left time.Duration) int64 {
	if !o.Batch || w.Units <= 0 {
		return 0
	}

	// What so many units need grows with their number.
	fits := func(units int64) bool { return left >= Until(w, o, units) }
	low, high := int64(0), w.Units+1
	for low+1 < high {
		if half := low + (high-low)/2; fits(half) {
			low = half
		} else {
			high = half
		}
	}
	return low
}

// Until returns how long before the deadline the batches of so many units that wait have to be ended.
func Until(w Work, o Offer, waiting int64) time.Duration {
	return addTo(o.lead(), w.Needs(waiting))
}

// MayJoin returns how many of the units may be put in batches with so much time left: those that may wait until
// the soonest batch would have returned.
func MayJoin(w Work, o Offer, left time.Duration) int64 {
	return MayWait(w, o, left-max(WorthWaiting, o.Soonest))
}

// RealTimeTier returns the tier in which a call is made at once with so much time left: the cheapest that is
// quick enough. The tier parameters.FlexFirst is flex where there is room. Once the deadline is past nothing is
// gained by haste.
func RealTimeTier(w Work, o Offer, left time.Duration) string {
	need := w.Needs(w.Units)
	switch {
	case o.Flex && left >= addTo(need, o.flexTakes()):
		return parameters.FlexFirst
	case o.Priority && left > 0 && left < addTo(slack, w.RealTime(w.Units)):
		return parameters.Priority
	}
	return parameters.Standard
}

// mostParts bounds the batches of a job that are of a size chosen here.
const mostParts = 16

// BatchOf returns how many units go in one batch; 0 leaves that to the vendor. A batch is ended as a whole, so
// where units would have to be bought one after the other for much of the time that is left, several batches
// let the last of them wait the longest.
func BatchOf(w Work, o Offer, left time.Duration) int64 {
	room := left - o.lead()
	if room <= 0 || w.Needs(w.Units) < room/mostParts {
		return 0
	}
	return max(1, (w.Units-1)/mostParts+1)
}

// stretch returns d × by, or the longest duration if that is none.
func stretch(d time.Duration, by float64) time.Duration {
	f := float64(d) * by
	if f >= math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	return time.Duration(f)
}

// addTo returns the sum of durations, or the longest if that is none.
func addTo(d, e time.Duration) time.Duration {
	if sum := d + e; sum >= d {
		return sum
	}
	return math.MaxInt64
}
