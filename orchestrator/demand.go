package orchestrator

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// Demand implements mapreduce.Demander, for all tenants: package access leaves to a caller
// what it may see. The count of a tenant's own jobs shows others only by the limits that
// all share.
func (o *Orchestrator) Demand(ctx context.Context, _ mapreduce.Principal) ([]mapreduce.Demand, error) {
	all, err := o.scaler.Demand(ctx)
	return slices.Clone(all), err
}
