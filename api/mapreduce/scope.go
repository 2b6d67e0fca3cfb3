package mapreduce

// A ScopeKind says what a scope is.
type ScopeKind uint8

// The kinds of scopes, from the widest on.
const (
	FleetKind ScopeKind = iota
	TenantKind
	JobKind
)

// A Scope is what something is granted for: the whole fleet, a tenant, or a job. The
// zero Scope is the fleet. Scopes can be compared.
type Scope struct {
	Kind ScopeKind
	Name string // of the tenant, or the id of the job
}

// FleetScope returns the scope of all that runs.
func FleetScope() Scope { return Scope{} }

// TenantScope returns the scope of a tenant.
func TenantScope(t TenantID) Scope { return Scope{TenantKind, string(t)} }

// JobScope returns the scope of a job.
func JobScope(j JobID) Scope { return Scope{JobKind, string(j)} }

// Job returns the job of a scope, if it is one of a job.
func (s Scope) Job() (JobID, bool) { return JobID(s.Name), s.Kind == JobKind }
