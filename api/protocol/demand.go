package protocol

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Demand says how many units of one job could run at once, if there were workers
// enough: what an autoscaler has to know.
type Demand struct {
	Job    mapreduce.JobID
	Tenant mapreduce.TenantID
	// Model is what the units ask, "provider/model", or empty if they ask no model.
	Model string
	Needs mapreduce.Requirements
	// Running counts the units that workers hold.
	Running int64
	// Units counts those that could be with workers: the running ones, and those that
	// wait and are kept from running by nothing but the lack of a worker. It is bounded
	// by the parallelism of the job, by what is left of its budget, and by the limits of
	// its model, which all its jobs share.
	Units int64
}

// A Demander knows the demand for workers.
type Demander interface {
	// Demand returns the demand of each job that may run and that the principal may see.
	// It may be a second old.
	Demand(ctx context.Context, by mapreduce.Principal) ([]Demand, error)
}
