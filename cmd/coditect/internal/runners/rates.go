package runners

import (
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners/asked"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
)

// The times that plans assume. docs/plan.md states them.
const (
	rulesUnitTime = time.Millisecond // of a core, for a unit of the rules beside reading
	rulesReadRate = 1_000_000        // tokens a second that a core reads by the rules
	callTime      = 2 * time.Second  // until a model begins to answer
	writeRate     = 60               // tokens a second that it writes
)

// PlanRates returns the function that gives the rates that a job's plan assumes.
func (r *Runners) PlanRates() (func(*mapreduce.JobSpec) plan.Rates, error) {
	prices, err := r.Models.PriceList()
	if err != nil {
		return nil, err
	}
	return func(spec *mapreduce.JobSpec) plan.Rates {
		if spec.Provider == RulesProvider {
			return ruleRates(spec)
		}
		return modelRates(spec, prices)
	}, nil
}

// KnowingAll returns, for each provider, an agent for the checks of jobs that need
// no key.
func (r *Runners) KnowingAll() (map[string]*model.Agent, error) {
	prices, err := r.Models.PriceList()
	if err != nil {
		return nil, err
	}

	askers := make(map[string]*model.Agent)
	for _, name := range ModelProviders() {
		if askers[name], err = keylessAgentWithPrices(name, prices); err != nil {
			return nil, err
		}
	}
	return askers, nil
}

// PromptOverhead returns the function that gives the tokens of a job's calls for the
// prompt and for the answer, which leave less of the budget for reading.
func PromptOverhead(askers map[string]*model.Agent) func(*mapreduce.JobSpec) (prompt, answer int64) {
	return func(spec *mapreduce.JobSpec) (prompt, answer int64) {
		if asker := askers[spec.Provider]; asker != nil {
			prompt, answer, _ = asker.Overhead(spec) // a job that is wrong is refused elsewhere
		}
		return prompt, answer
	}
}

// MostAnswer returns the most tokens of an answer of a model in a job.
func MostAnswer(spec *mapreduce.JobSpec) int64 {
	if asked.KeyVariables[spec.Provider] == "" {
		return 0
	}
	return settings.AnswerOf(spec)
}

// JobCost returns the function that gives what tokens cost at most by the dearest model of a job. The
// function is called for each unit, so the prices that a job brings with it are read once.
func (r *Runners) JobCost() (func(*mapreduce.JobSpec, mapreduce.Tokens) int64, error) {
	listed, err := r.Models.PriceList()
	if err != nil {
		return nil, err
	}

	var mu sync.Mutex // guards the others
	file, own := "", listed
	pricesOf := func(spec *mapreduce.JobSpec) *llm.Prices {
		mu.Lock()
		defer mu.Unlock()
		if brought := spec.Vars[settings.VarPrices]; brought != file {
			if with, err := listed.With([]byte(brought)); err == nil { // else the job is refused elsewhere
				file, own = brought, with
			}
		}
		return own
	}

	return func(spec *mapreduce.JobSpec, t mapreduce.Tokens) (most int64) {
		prices := pricesOf(spec)
		for _, name := range spec.ModelNames() {
			provider, model, _ := strings.Cut(name, "/")
			cost, _ := prices.Most(provider, llm.Model(model), t.In, t.Out, spec.Vars[string(parameters.Tier)])
			most = max(most, cost)
		}
		return most
	}, nil
}

// NeedsPriming returns the function that reports whether the first unit of a job must
// run alone. The function is called often, so the agents are made once.
func NeedsPriming(askers map[string]*model.Agent) func(*mapreduce.JobSpec) bool {
	return func(spec *mapreduce.JobSpec) bool {
		asker := askers[spec.Provider]
		if asker == nil {
			return false
		}
		warms, err := asker.Warms(spec)
		return err == nil && warms // else the job is refused elsewhere
	}
}

// ruleRates returns the rates of the rules, which call no model. Units beyond the
// number of cores slow each other down.
func ruleRates(spec *mapreduce.JobSpec) plan.Rates {
	shared := max(1, float64(spec.Parallelism)/float64(runtime.GOMAXPROCS(0)))
	return plan.Rates{
		Merge: plan.MergeTyped, ReadRate: rulesReadRate / shared, UnitTime: time.Duration(float64(rulesUnitTime) * shared),
	}
}

// dearestTariff returns the highest prices of the models of a job: any of them may be asked.
func dearestTariff(spec *mapreduce.JobSpec, prices *llm.Prices) (most llm.Tariff) {
	for _, name := range spec.ModelNames() {
		provider, model, _ := strings.Cut(name, "/")
		t, _ := prices.Tariff(provider, llm.Model(model))
		t = t.In(settings.PlannedTier(spec))
		most.Input, most.Output = max(most.Input, t.Input), max(most.Output, t.Output)
	}
	return most
}

// modelRates returns the rates of a model. A model without a known price costs nothing.
func modelRates(spec *mapreduce.JobSpec, prices *llm.Prices) plan.Rates {
	t := dearestTariff(spec, prices)
	r := plan.Rates{Model: true, CallTime: callTime, WriteRate: writeRate, InPrice: int64(t.Input), OutPrice: int64(t.Output)}
	if asked.KeyVariables[spec.Provider] == "" {
		return r
	}

	if set, err := settings.Read(spec); err == nil { // else the job is refused elsewhere
		r.Merge, r.Answer, r.Rounds = plan.Merge(set.Merge), set.AnswerBound(), int64(set.Glean)
	}
	if there, err := keylessAgentWithPrices(spec.Provider, prices); err == nil {
		r.Prompt, _ = there.Prompt(spec) // likewise
		r.Written, r.Short = there.Expect(spec)
	}
	if r.Short != nil {
		r.Rounds = 1 // at most: it asks where values stand
	}
	return r
}
