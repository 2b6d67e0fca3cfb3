// Package scaler answers how many workers a fleet has use for: how many units could run
// at once if there were workers enough. What waits for a limit of a model, for the
// parallelism of its job or for its budget is not counted, as no worker would help it.
package scaler

import (
	"math"
	"slices"

	"github.com/coditect/mapreduce/store/jobs/limit"
)

// A Claim is what one job has use for.
type Claim struct {
	Model   string // whose limits its units share; empty if they ask none
	Running int64  // units that workers hold
	Wanted  int64  // units that could run but for the limits that jobs share
	Exempt  bool   // of the limit of its model
}

// Limits are what jobs share.
type Limits struct {
	Calls  int64            // units at once that ask models, over all models
	Models map[string]int64 // units at once of a model; a model that is missing has no limit
}

// Divide returns how many units of each claim may be with workers at once. Where a limit
// binds, what runs is counted first, and the rest goes by what is wanted. The parts of
// the claims on a model add up to its limit, so that fleets that are scaled apart, each by
// its own jobs, together come to no more than the limit.
func Divide(claims []Claim, l Limits) []int64 {
	units := make([]int64, len(claims))
	models := make(map[string][]int)
	var asking []int
	for i, c := range claims {
		units[i] = max(0, c.Wanted)
		if c.Model == "" {
			continue
		}
		asking = append(asking, i)
		if !c.Exempt {
			models[c.Model] = append(models[c.Model], i)
		}
	}

	for model, of := range models {
		most, limited := l.Models[model]
		if limited {
			reduceTo(units, claims, of, most)
		}
	}

	// All models together have a limit as well.
	reduceTo(units, claims, asking, l.Calls)
	return units
}

// reduceTo lowers the units of some claims so that they add up to most at the most.
func reduceTo(units []int64, claims []Claim, of []int, most int64) {
	sum := int64(0)
	running, waiting := make([]int64, len(of)), make([]int64, len(of))
	for k, i := range of {
		sum += units[i]
		running[k] = min(units[i], max(0, claims[i].Running))
		waiting[k] = units[i] - running[k]
	}

	if sum <= most {
		return
	}

	// Units that run come before those that wait.
	if all := sumOf(running); all >= most {
		running, waiting = limit.Divide(most, running), make([]int64, len(of))
	} else {
		waiting = limit.Divide(most-all, waiting)
	}

	for k, i := range of {
		units[i] = running[k] + waiting[k]
	}
}

func sumOf(all []int64) (n int64) {
	for _, v := range all {
		n += v
	}
	return n
}

// A Call is what one call of a model takes.
type Call struct {
	Seconds float64
	In, Out float64 // tokens
}

// Rates are what may be asked of a model in a minute; 0 is no limit.
type Rates struct{ Requests, Input, Output float64 }

// CallsAtOnce returns how many calls at once use up the rates of a model, by Little's
// law: more would wait. It returns 0 if nothing limits them, or a call takes no time.
func CallsAtOnce(r Rates, c Call) int64 {
	least := math.Inf(1)
	for _, one := range [][2]float64{{r.Requests, 1}, {r.Input, c.In}, {r.Output, c.Out}} {
		if rate, each := one[0], one[1]; rate > 0 && each > 0 {
			least = min(least, rate/each)
		}
	}
	if math.IsInf(least, 1) || c.Seconds <= 0 {
		return 0
	}
	return max(1, int64(math.Ceil(least/60*c.Seconds)))
}

// lower returns the lower one of limits of which 0 is none.
func lower(limits ...int64) int64 {
	limits = slices.DeleteFunc(limits, func(n int64) bool { return n == 0 })
	if len(limits) == 0 {
		return 0
	}
	return slices.Min(limits)
}
