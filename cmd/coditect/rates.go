package main

import (
	"runtime"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/plan"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/llm"
)

// What plans assume of time. docs/plan.md says so to users.
const (
	rulesUnitTime = time.Millisecond // of a core, for a unit of the rules beside reading
	rulesReadRate = 1_000_000        // tokens a second that a core reads by the rules
	callTime      = 2 * time.Second  // until a model begins to answer
	writeRate     = 60               // tokens a second that it writes
)

// planRates returns what says of a job what its plan assumes of calls.
func (a *app) planRates() (func(*mapreduce.JobSpec) plan.Rates, error) {
	prices, err := a.models.priceList()
	if err != nil {
		return nil, err
	}
	return func(spec *mapreduce.JobSpec) plan.Rates {
		if spec.Provider == rulesProvider {
			return ruleRates(spec)
		}
		return modelRates(spec, prices)
	}, nil
}

// knowingAll returns, for each provider, an agent that knows of jobs what can be
// known without a key.
func (a *app) knowingAll() (map[string]*model.Agent, error) {
	prices, err := a.models.priceList()
	if err != nil {
		return nil, err
	}
	askers := make(map[string]*model.Agent)
	for _, name := range modelProviders() {
		if askers[name], err = keylessAgentWithPrices(name, prices); err != nil {
			return nil, err
		}
	}
	return askers, nil
}

// promptOverhead returns what says of a job what its calls take of the budget beside
// what they read.
func promptOverhead(askers map[string]*model.Agent) func(*mapreduce.JobSpec) (prompt, answer int64) {
	return func(spec *mapreduce.JobSpec) (prompt, answer int64) {
		if asker := askers[spec.Provider]; asker != nil {
			prompt, answer, _ = asker.Overhead(spec) // a job that is wrong is refused elsewhere
		}
		return prompt, answer
	}
}

// needsPriming returns what says of a job whether its first unit is to run alone. What it
// looks at is made once for each provider: it is asked whenever a job is seen.
func needsPriming(askers map[string]*model.Agent) func(*mapreduce.JobSpec) bool {
	return func(spec *mapreduce.JobSpec) bool {
		asker := askers[spec.Provider]
		if asker == nil {
			return false
		}
		warms, err := asker.Warms(spec)
		return err == nil && warms // else the job is refused elsewhere
	}
}

// ruleRates are those of the rules, which call no model. Units that are more
// than the cores slow each other down.
func ruleRates(spec *mapreduce.JobSpec) plan.Rates {
	shared := max(1, float64(spec.Parallelism)/float64(runtime.GOMAXPROCS(0)))
	return plan.Rates{
		Merge: plan.MergeTyped, ReadRate: rulesReadRate / shared, UnitTime: time.Duration(float64(rulesUnitTime) * shared),
	}
}

// modelRates are those of a model. One whose price is not known costs nothing.
func modelRates(spec *mapreduce.JobSpec, prices *llm.Prices) plan.Rates {
	t, _ := prices.Tariff(spec.Provider, llm.Model(spec.Model))
	r := plan.Rates{Model: true, CallTime: callTime, WriteRate: writeRate, InPrice: int64(t.Input), OutPrice: int64(t.Output)}
	if keyVariables[spec.Provider] == "" {
		return r
	}
	if set, err := model.Read(spec); err == nil { // else the job is refused elsewhere
		r.Merge, r.Answer, r.Rounds = plan.Merge(set.Merge), set.MaxAnswer, int64(set.Glean)
	}
	if there, err := keylessAgent(spec.Provider); err == nil {
		r.Prompt, _ = there.Prompt(spec) // likewise
	}
	return r
}
