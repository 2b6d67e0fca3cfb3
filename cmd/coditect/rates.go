package main

import (
	"runtime"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/plan"
	"github.com/coditect/mapreduce/worker/llm"
)

// What plans assume of time. docs/plan.md says so to users.
const (
	rulesUnitTime = time.Millisecond // of a core, for a unit of the rules beside reading
	rulesReadRate = 1_000_000        // tokens a second that a core reads by the rules
	callTime      = 2 * time.Second  // until a model begins to answer
	writeRate     = 60               // tokens a second that it writes
)

// rates returns what the plan of a job assumes of the calls of its provider.
// Those of a model whose price is not known cost nothing.
func rates(spec *mapreduce.JobSpec) plan.Rates {
	if spec.Provider == rulesProvider {
		// Units that are more than the cores slow each other down.
		shared := max(1, float64(spec.Parallelism)/float64(runtime.GOMAXPROCS(0)))
		return plan.Rates{
			Merge: plan.MergeTyped, ReadRate: rulesReadRate / shared, UnitTime: time.Duration(float64(rulesUnitTime) * shared),
		}
	}
	r := plan.Rates{Model: true, CallTime: callTime, WriteRate: writeRate}
	if prices, err := llm.ListPrices(); err == nil { // they are part of the program
		t, _ := prices.Tariff(spec.Provider, llm.Model(spec.Model))
		r.InPrice, r.OutPrice = int64(t.Input), int64(t.Output)
	}
	return r
}
