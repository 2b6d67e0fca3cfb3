package mapreduce

import (
	"context"
	"slices"
)

// A Principal is the caller of a service.
type Principal struct {
	Tenant TenantID // for whom it calls; empty for the default tenant
	Name   string   // stable, for display and for the audit trail
	Roles  []Role
}

// A Role is what a principal may do.
type Role string

// The roles. Those of an observer, a viewer, a submitter, a reviewer and an operator are for the jobs of their own
// tenant; no role of these reaches beyond it.
const (
	Observer  Role = "observer"  // sees how jobs and units are, and nothing of what they are about: see WithoutContents
	Viewer    Role = "viewer"    // reads jobs, their units, events and results; is an observer too
	Submitter Role = "submitter" // submits and plans jobs; is a viewer too
	Reviewer  Role = "reviewer"  // decides about values; is a viewer too
	Operator  Role = "operator"  // resumes, pauses, cancels and deletes jobs, wakes units, and looks after the tenant's answers; is a reviewer too
	Worker    Role = "worker"    // runs units: of all tenants, or of its own if it has one; sees nothing else
	Scaler    Role = "scaler"    // counts the units of all tenants that could run; sees nothing else
	Admin     Role = "admin"     // does for every tenant what the first five do, and looks at the store as a whole
)

// Roles returns all roles.
func Roles() []Role {
	return []Role{Observer, Viewer, Submitter, Reviewer, Operator, Worker, Scaler, Admin}
}

// Local returns the principal of a caller without authentication, such as one on this
// machine. It may do everything, and calls for a tenant if it names one.
func Local(t TenantID) Principal {
	return Principal{Tenant: t, Name: "local", Roles: []Role{Admin, Worker}}
}

// Has reports whether p has a role, by its name or by another that includes it.
func (p Principal) Has(r Role) bool {
	if slices.Contains(p.Roles, r) {
		return true
	}

	switch r {
	case Observer:
		return p.Has(Viewer)
	case Viewer:
		return slices.ContainsFunc(p.Roles, func(r Role) bool { return r == Submitter || r == Reviewer || r == Operator || r == Admin })
	case Reviewer:
		return p.Has(Operator)
	case Submitter, Operator:
		return slices.Contains(p.Roles, Admin)
	}
	return false
}

// AllRoles returns the roles that p has, with those that others of them include.
func (p Principal) AllRoles() []Role {
	return slices.DeleteFunc(Roles(), func(r Role) bool { return !p.Has(r) })
}

// ActsFor reports whether p may call for a tenant.
func (p Principal) ActsFor(t TenantID) bool { return p.Tenant == t || p.Has(Admin) }

// A callerKey is the key of a call's principal in its context.
type callerKey struct{}

// WithCaller returns a context of calls of a principal.
func WithCaller(ctx context.Context, by Principal) context.Context {
	return context.WithValue(ctx, callerKey{}, by)
}

// An actorKey is the key of the principal for whom something is done.
type actorKey struct{}

// WithActor returns a context of what is done because a principal has asked for it: the
// audit trail names it. The context of a call alone does not say so, as its caller may be
// a worker whose report brings something about.
func WithActor(ctx context.Context, by Principal) context.Context {
	return context.WithValue(ctx, actorKey{}, by)
}

// ActorOf returns the principal who has asked for what is done under ctx. Found is false if
// nobody has.
func ActorOf(ctx context.Context) (by Principal, found bool) {
	by, found = ctx.Value(actorKey{}).(Principal)
	return by, found
}

// CallerOf returns the principal whose call ctx is of. Found is false if nobody has asked
// who calls.
func CallerOf(ctx context.Context) (by Principal, found bool) {
	by, found = ctx.Value(callerKey{}).(Principal)
	return by, found
}
