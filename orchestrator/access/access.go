// Package access decides which jobs and tenants a principal may use: its types stand
// before a Service and a Fleet, and let through what the roles of the caller allow.
//
// To a caller, the jobs of other tenants are not there: the answer about one is that about
// a job that has never been.
package access

import (
	"context"
	"fmt"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// Rules decide what principals may do. TenantOf returns the tenant of a job, or
// errs.NotFound.
type Rules struct {
	TenantOf func(ctx context.Context, id mapreduce.JobID) (mapreduce.TenantID, error)
	// AdmitCall refuses a call of a tenant that makes more than it may; nil refuses none.
	AdmitCall func(ctx context.Context, t mapreduce.TenantID) error
}

// admit refuses a call of a tenant that makes more than it may. A caller that acts for
// every tenant is not bound by the quota of one.
func (r Rules) admit(ctx context.Context, by mapreduce.Principal) error {
	if r.AdmitCall == nil || by.Tenant == "" || by.Has(mapreduce.Admin) {
		return nil
	}
	return r.AdmitCall(ctx, by.Tenant)
}

// NoJob is the error about a job that is not there for its caller.
func NoJob(id mapreduce.JobID) error {
	return &errs.Error{
		Kind: errs.NotFound, Reason: "JOB_NOT_FOUND",
		Message: fmt.Sprintf("no job has the id %q; `coditect mapreduce list` shows those there are", id),
	}
}

// needs refuses a principal that does not have a role.
func needs(by mapreduce.Principal, role mapreduce.Role) error {
	if by.Has(role) {
		return nil
	}
	return errs.New(errs.Denied, "%s may not do this: it does not have the role %s", by.Name, role)
}

// UseJob refuses a principal that has not the role, or that does not act for the tenant of
// a job. To it there is no such job.
func (r Rules) UseJob(ctx context.Context, by mapreduce.Principal, role mapreduce.Role, id mapreduce.JobID) error {
	if err := needs(by, role); err != nil || by.Has(mapreduce.Admin) {
		return err
	}
	if err := r.admit(ctx, by); err != nil {
		return err
	}
	return r.ownJob(ctx, by, id)
}

// ownJob refuses a job of another tenant than that of a principal.
func (r Rules) ownJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) error {
	if by.Has(mapreduce.Admin) {
		return nil
	}

	t, err := r.TenantOf(ctx, id)
	switch {
	case err != nil && errs.KindOf(err) != errs.NotFound:
		return err
	case err != nil || t != by.Tenant:
		return NoJob(id)
	}
	return nil
}

// TenantFor returns the tenant that a call is for: the caller's own. One that may act for
// every tenant may name another.
func (r Rules) TenantFor(ctx context.Context, by mapreduce.Principal, role mapreduce.Role, named mapreduce.TenantID) (mapreduce.TenantID, error) {
	if err := needs(by, role); err != nil {
		return "", err
	}
	if err := r.admit(ctx, by); err != nil {
		return "", err
	}

	switch {
	case named == "" || named == by.Tenant:
		return by.Tenant, nil
	case by.Has(mapreduce.Admin):
		return named, nil
	}
	return "", errs.New(errs.Denied, "%s does not act for tenant %q; leave the tenant out", by.Name, named)
}

// ListedTenant returns whose jobs a principal sees that asks for those of a tenant, or of
// all if it names none. An empty answer stands for all.
func (r Rules) ListedTenant(ctx context.Context, by mapreduce.Principal, named mapreduce.TenantID) (mapreduce.TenantID, error) {
	if by.Has(mapreduce.Admin) {
		return named, nil
	}
	t, err := r.TenantFor(ctx, by, mapreduce.Observer, named)
	if err == nil && t == "" {
		err = errs.New(errs.Denied, "%s has no tenant whose jobs it could list", by.Name) // it would list the jobs of all
	}
	return t, err
}
