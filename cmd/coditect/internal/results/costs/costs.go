// Package costs says what a job has cost, and each of its units and levels, as people read it: in US
// dollars, and null where nobody knows a price, so that nothing looks free that is not. It adds up what
// metrics.json shows, and sets it beside the plan.
//
// It reads nothing and writes nothing but the entries that a Tally is given room for.
package costs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
	steps "github.com/coditect/mapreduce/worker/step" // step is a type here
)

// A Pricing says of which models of a job the prices are known. A job that was given prices has those.
type Pricing struct {
	// Unpriced are the models that the job may ask whose prices are not known, each
	// "provider/model", in the order in which they are named.
	Unpriced []string

	models int // that the job may ask
}

// PricingOf returns the prices that are known of a job's models. It reads the job's own prices, so ask for
// it once for all that is shown of a job.
func PricingOf(spec *mapreduce.JobSpec) (p Pricing) {
	names := steps.ModelsOf(spec)
	p.models = len(names)

	prices, err := llm.ListPrices()
	if err == nil {
		prices, err = prices.With([]byte(spec.Vars[settings.VarPrices]))
	}

	for _, name := range names {
		provider, model, _ := strings.Cut(name, "/")
		if err != nil {
			p.Unpriced = append(p.Unpriced, name)
		} else if _, known := prices.Tariff(provider, llm.Model(model)); !known {
			p.Unpriced = append(p.Unpriced, name)
		}
	}
	return p
}

// A TierCost is what a job is expected to cost with all calls in one tier.
type TierCost struct {
	Tier   string
	Micros int64 // millionths of a US dollar
}

// TierCosts returns what a job is expected to cost in each tier of its model whose price is known, the cheapest
// first, given what it is in the job's own; none if the model has no other tier, or others may be asked as well.
func TierCosts(spec *mapreduce.JobSpec, expected int64) (all []TierCost) {
	prices, err := llm.ListPrices()
	if err == nil {
		prices, err = prices.With([]byte(spec.Vars[settings.VarPrices]))
	}
	t, known := prices.Tariff(spec.Provider, llm.Model(spec.Model))
	if err != nil || !known || len(steps.ModelsOf(spec)) != 1 || t.Flex == 0 && t.Priority == 0 && t.Batch == 0 {
		return nil
	}

	own := settings.PlannedTier(spec)
	for _, tier := range append([]string{parameters.Batch}, parameters.Tiers()...) {
		if tier == parameters.Batch && spec.See() != mapreduce.SeeNever {
			continue // calls with pictures are asked in real time
		}
		if t.Share(tier) == 0 || tier == parameters.Flex && t.Flex == 0 || tier == parameters.Batch && t.Batch == 0 {
			continue
		}
		all = append(all, TierCost{tier, expected * t.Share(tier) / max(1, t.Share(own))})
	}
	return all
}

// MaxCost returns the budget of a job in US dollars; nil if it has none in dollars.
func MaxCost(spec *mapreduce.JobSpec) *float64 {
	if spec.MaxCost() == 0 {
		return nil
	}
	return new(USD(spec.MaxCost()))
}

// Cost returns the cost of tokens in US dollars; nil if it is not known, because a vendor's model
// without a known price may have been called. A sum over several models is not known if one of them
// has no price, as it may lack what that one cost. A cost of a single model that is not 0 is known:
// the worker that computed it had a price.
func (p Pricing) Cost(spent mapreduce.Tokens, micros int64) *float64 {
	if spent.Total() > 0 && len(p.Unpriced) > 0 && (micros == 0 || p.models > 1) {
		return nil
	}
	return new(USD(micros))
}

// UnitCost returns the cost of a unit in US dollars; nil if it is not known. It is known of a unit that
// only models with prices have answered, whatever stands for these: of one that had several attempts,
// the models of the latest alone are known.
func (p Pricing) UnitCost(u *mapreduce.Unit) *float64 {
	if u.Attempts <= 1 && len(u.Models) > 0 && !slices.ContainsFunc(u.Models, p.lacks) {
		return new(USD(u.CostMicros))
	}
	return p.Cost(u.Tokens, u.CostMicros)
}

// lacks reports whether the price of a model is not known that a unit names as one that answered it.
func (p Pricing) lacks(answered string) bool {
	asked, _, _ := strings.Cut(answered, " as ")
	return slices.Contains(p.Unpriced, asked)
}

// PriceAdvice says which models have no price, and what to do about it, in one line.
func PriceAdvice(unpriced []string) string {
	shown := unpriced[:min(len(unpriced), 4)]
	text := strings.Join(shown, ", ")
	if more := len(unpriced) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	have := "has"
	if len(unpriced) > 1 {
		have = "have"
	}

	return fmt.Sprintf("%s %s no price here; run with --prices FILE, which sets it", text, have)
}

// Savings are the savings of caches, as users read them.
type Savings struct {
	Answers     int64    `json:"answers"` // calls that were not made
	AnswersCost *float64 `json:"answers_cost"`
	CacheWrite  int64    `json:"cache_write_tokens"`
	CacheRead   int64    `json:"cache_read_tokens"`
	PromptsCost *float64 `json:"prompts_cost"` // null if it is not known, like answers_cost
}

// Savings returns the savings of caches in a job or a part of it.
func (p Pricing) Savings(s mapreduce.Savings) Savings {
	tokens := func(n int64) mapreduce.Tokens { return mapreduce.Tokens{In: n} }
	prompts := p.Cost(tokens(s.CacheWrite+s.CacheRead), s.PromptMicros)
	if s.PromptMicros < 0 {
		prompts = new(USD(s.PromptMicros))
	}
	return Savings{
		Answers: s.Answers, AnswersCost: p.Cost(tokens(s.Answers), s.AnswerMicros),
		CacheWrite: s.CacheWrite, CacheRead: s.CacheRead, PromptsCost: prompts,
	}
}

// savingsOrNil returns nil if nothing was saved.
func (p Pricing) savingsOrNil(s mapreduce.Savings) *Savings {
	if s == (mapreduce.Savings{}) {
		return nil
	}
	return new(p.Savings(s))
}

// USD returns millionths of a US dollar in dollars.
func USD(micros int64) float64 { return float64(micros) / 1e6 }
