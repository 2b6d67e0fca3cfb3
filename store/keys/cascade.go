package keys

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// CascadeKeys are the keys of which answers of a member of a job's cascade are accepted.
type CascadeKeys struct {
	space  *Space
	job    mapreduce.JobID
	member int64
}

// Cascade returns the keys of a member of a job's cascade, by its number from 0.
func (s *Space) Cascade(j mapreduce.JobID, member int64) CascadeKeys {
	return CascadeKeys{s, j, member}
}

// Trial returns the key of the trial.
func (c CascadeKeys) Trial() []byte {
	return tuple.AppendInt(c.space.jobKey("cascade", c.job), c.member)
}

// Part returns the key of a part of the units of the trial, by its number from 0.
func (c CascadeKeys) Part(i int64) []byte { return tuple.AppendInt(c.Trial(), i) }

// Cascades returns the range of all keys of cascades of a job.
func (s *Space) Cascades(j mapreduce.JobID) store.Range { return childRange(s.jobKey("cascade", j)) }

// Certificate returns the key of a certificate of a tenant's cascades.
func (t TenantKeys) Certificate(id mapreduce.CertificateID) []byte {
	return tuple.AppendString(t.key("certificate"), string(id))
}

// Certificates returns the range of all tenants' certificates.
func (a AllTenants) Certificates() store.Range { return a.keys("certificate") }

// Certificates returns the range of a tenant's certificates.
func (t TenantKeys) Certificates() store.Range { return childRange(t.key("certificate")) }
