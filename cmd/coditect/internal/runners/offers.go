package runners

import (
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners/asked"
	"github.com/coditect/mapreduce/internal/placement"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
)

// Offers returns the function that says which tiers the models of a job have beside the standard one: those at
// a price that is known, of any model that the job's first choices are.
func (r *Runners) Offers() (func(*mapreduce.JobSpec) placement.Offer, error) {
	listed, err := r.Models.PriceList()
	if err != nil {
		return nil, err
	}
	endpoints, err := r.Models.baseURLs()
	if err != nil {
		return nil, err
	}

	return func(spec *mapreduce.JobSpec) (o placement.Offer) {
		prices, err := listed.With([]byte(spec.Vars[settings.VarPrices]))
		if err != nil {
			return o // the job is refused
		}
		_, stages, err := asked.ParametersOf(spec, endpoints)
		if err != nil {
			return o // likewise
		}

		for _, a := range stages {
			if a.Own.Tier != "" { // it stays in that, and one that goes by batch waits as long as it may
				o.Batch = o.Batch || a.Own.Tier == parameters.Batch && a.Limits.Batches
				continue
			}
			t, _ := prices.Tariff(a.Provider, a.Model)
			o.Batch = o.Batch || a.Limits.Batches
			o.Flex = o.Flex || slices.Contains(a.Limits.Tiers, parameters.Flex) && t.Flex > 0
			o.Priority = o.Priority || slices.Contains(a.Limits.Tiers, parameters.Priority) && t.Priority > 0
		}
		return o
	}, nil
}
