// Package access decides which jobs and tenants a principal may use.
package access

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// Rules decide what principals may do. TenantOf returns the tenant of a job, or
// errs.NotFound.
type Rules struct {
	TenantOf func(ctx context.Context, id mapreduce.JobID) (mapreduce.TenantID, error)
}

// UseJob refuses a principal that does not act for the tenant of a job. To it there is
// no such job.
func (r Rules) UseJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) error {
	if by.Has(mapreduce.Operator) {
		return nil
	}
	t, err := r.TenantOf(ctx, id)
	if err == nil && t != by.Tenant {
		err = errs.New(errs.NotFound, "tenant %q has no job with the id %q", by.Tenant, id)
	}
	return err
}

// UseTenant refuses a principal that does not act for a tenant.
func (r Rules) UseTenant(by mapreduce.Principal, t mapreduce.TenantID) error {
	if by.ActsFor(t) {
		return nil
	}
	return errs.New(errs.Denied, "%s of tenant %q does not act for tenant %q", by.Name, by.Tenant, t)
}

// UseStore refuses a principal that may not look at the store as a whole.
func (r Rules) UseStore(by mapreduce.Principal) error {
	if by.Has(mapreduce.Operator) {
		return nil
	}
	return errs.New(errs.Denied, "%s of tenant %q is no operator", by.Name, by.Tenant)
}

// ListedTenant returns whose jobs a principal sees that asks for those of t, or of all
// if that is empty. It refuses one that has no tenant and is no operator.
func (r Rules) ListedTenant(by mapreduce.Principal, t mapreduce.TenantID) (mapreduce.TenantID, error) {
	switch {
	case by.Has(mapreduce.Operator):
		return t, nil
	case t == "":
		t = by.Tenant
	}
	if t == "" {
		return t, r.UseStore(by) // it would list the jobs of all
	}
	return t, r.UseTenant(by, t)
}
