package results

import (
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
)

// embeddedPrices reads the prices that are embedded in the program, once.
var embeddedPrices = sync.OnceValues(llm.ListPrices)

// Cost returns the cost of a job's tokens in US dollars. It is nil if it is not
// known, because the job called a vendor's model without a known price. A job that
// was given prices has the price of its model.
func Cost(spec *mapreduce.JobSpec, spent mapreduce.Tokens, micros int64) *float64 {
	dollars := USD(micros)
	if micros > 0 || spent.Total() == 0 || spec.Vars[settings.VarPrices] != "" || (spec.Provider != "anthropic" && spec.Provider != "openai") {
		return &dollars
	}
	prices, err := embeddedPrices()
	if err != nil {
		return nil
	}
	if _, known := prices.Tariff(spec.Provider, llm.Model(spec.Model)); !known {
		return nil
	}
	return &dollars
}

// Savings are the savings of caches, as users read them.
type Savings struct {
	Answers     int64    `json:"answers"` // calls that were not made
	AnswersCost *float64 `json:"answers_cost"`
	CacheWrite  int64    `json:"cache_write_tokens"`
	CacheRead   int64    `json:"cache_read_tokens"`
	PromptsCost *float64 `json:"prompts_cost"` // null if it is not known, like answers_cost
}

// SavingsOf returns the savings of caches in a job or a part of it.
func SavingsOf(spec *mapreduce.JobSpec, s mapreduce.Savings) Savings {
	tokens := func(n int64) mapreduce.Tokens { return mapreduce.Tokens{In: n} }
	prompts := Cost(spec, tokens(s.CacheWrite+s.CacheRead), s.PromptMicros)
	if s.PromptMicros < 0 {
		prompts = new(USD(s.PromptMicros))
	}
	return Savings{
		Answers: s.Answers, AnswersCost: Cost(spec, tokens(s.Answers), s.AnswerMicros),
		CacheWrite: s.CacheWrite, CacheRead: s.CacheRead, PromptsCost: prompts,
	}
}

// savingsOrNil returns nil if nothing was saved.
func savingsOrNil(spec *mapreduce.JobSpec, s mapreduce.Savings) *Savings {
	if s == (mapreduce.Savings{}) {
		return nil
	}
	return new(SavingsOf(spec, s))
}
