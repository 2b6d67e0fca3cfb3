package orchestrator

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// Demand implements mapreduce.Demander. Of the jobs of others, a principal that is no
// operator sees nothing, and neither does the count of its own show them but by the
// limits that all share.
func (o *Orchestrator) Demand(ctx context.Context, by mapreduce.Principal) ([]mapreduce.Demand, error) {
	all, err := o.scaler.Demand(ctx)
	if err != nil || by.Has(mapreduce.Operator) {
		return slices.Clone(all), err
	}
	var own []mapreduce.Demand
	for _, d := range all {
		if by.ActsFor(d.Tenant) {
			own = append(own, d)
		}
	}
	return own, nil
}
