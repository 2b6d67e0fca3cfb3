package mapreduce

import "slices"

// A Principal is the caller of a service.
type Principal struct {
	Tenant TenantID // for whom it calls; empty for the default tenant
	Name   string   // for display
	Roles  []Role
}

// A Role allows a principal more than calls for its own tenant.
type Role string

// Operator is the role of those who may call for every tenant, and look at the store
// as a whole.
const Operator Role = "operator"

// Local returns the principal of a caller without authentication, such as one on this
// machine. It may do everything, and calls for a tenant if it names one.
func Local(t TenantID) Principal {
	return Principal{Tenant: t, Name: "local", Roles: []Role{Operator}}
}

// Has reports whether p has a role.
func (p Principal) Has(r Role) bool { return slices.Contains(p.Roles, r) }

// ActsFor reports whether p may call for a tenant.
func (p Principal) ActsFor(t TenantID) bool { return p.Tenant == t || p.Has(Operator) }
