package runners

import (
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/batching"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
)

// Batches returns what sees to batches of the providers that this process offers and has the keys of; nil
// if there is none.
func (r *Runners) Batches() (worker.Batcher, error) {
	all, err := r.StepRegistry()
	if err != nil {
		return nil, err
	}

	var names []string
	for name, asker := range r.askers {
		if slices.Contains(all.Names(), name) && asker.CanBatch() {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	slices.Sort(names)

	return batching.New(batching.Config{
		Names:  names,
		Vendor: func(o *mapreduce.BatchOrder) (batch.Vendor, error) { return r.askers[o.Provider].Batches(o) },
		Prices: func(o *mapreduce.BatchOrder) (*llm.Prices, error) { return r.askers[o.Provider].BatchPrices(o) },
		Logger: r.log,
	}), nil
}
