package costs

import "github.com/coditect/mapreduce/api/mapreduce"

// Planned is what a job was expected to take, beside what it took.
type Planned struct {
	Units Compared     `json:"units"`
	Calls Compared     `json:"model_calls"`
	In    Compared     `json:"tokens_in"`
	Out   Compared     `json:"tokens_out"`
	Cost  ComparedCost `json:"cost"`
}

// Compared is a number of a plan beside what it came to.
type Compared struct {
	Planned    int64    `json:"planned"`
	Actual     int64    `json:"actual"`
	Difference *float64 `json:"difference_percent"` // null as long as the job runs, and if nothing was planned
}

// ComparedCost is the cost of a plan beside what it came to, in US dollars; null if it is not known.
type ComparedCost struct {
	Planned    *float64 `json:"planned"`
	Actual     *float64 `json:"actual"`
	Difference *float64 `json:"difference_percent"`
}

// PlannedOf compares a job with its plan, given the cost that is known of it; nil if it has no plan.
func PlannedOf(j *mapreduce.Job, prices Pricing, cost *float64) *Planned {
	p := j.Plan
	if p == nil {
		return nil
	}

	differ := func(planned, actual int64) *float64 {
		percent, ok := mapreduce.Deviation(planned, actual)
		if !ok || j.State.Running() {
			return nil
		}
		return &percent
	}
	compare := func(planned, actual int64) Compared {
		return Compared{planned, actual, differ(planned, actual)}
	}

	c := &Planned{
		Units: compare(p.Units, j.TotalUnits), Calls: compare(p.Calls, j.Calls),
		In: compare(p.Tokens.In, j.TotalTokens.In), Out: compare(p.Tokens.Out, j.TotalTokens.Out),
		Cost: ComparedCost{Planned: prices.Cost(p.Tokens, p.CostMicros), Actual: cost},
	}
	if c.Cost.Planned != nil && c.Cost.Actual != nil {
		c.Cost.Difference = differ(p.CostMicros, j.CostMicros)
	}
	return c
}
