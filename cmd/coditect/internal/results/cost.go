package results

import (
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/llm"
)

// listed are the prices that come with the program, read once.
var listed = sync.OnceValues(llm.ListPrices)

// Cost returns what tokens of a job cost in US dollars, nil if that is not known:
// a vendor's model was asked for whose price nobody has named.
func Cost(spec *mapreduce.JobSpec, spent mapreduce.Tokens, micros int64) *float64 {
	dollars := USD(micros)
	if micros > 0 || spent.Total() == 0 || (spec.Provider != "anthropic" && spec.Provider != "openai") {
		return &dollars
	}
	prices, err := listed()
	if err != nil {
		return nil
	}
	if _, known := prices.Tariff(spec.Provider, llm.Model(spec.Model)); !known {
		return nil
	}
	return &dollars
}
