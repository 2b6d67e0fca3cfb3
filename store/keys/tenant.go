package keys

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// TenantKeys are the keys of a tenant: its jobs, its requests, and the answers that its
// jobs share.
type TenantKeys struct {
	space  *Space
	tenant mapreduce.TenantID
}

// Tenant returns the keys of a tenant.
func (s *Space) Tenant(t mapreduce.TenantID) TenantKeys { return TenantKeys{s, t} }

func (t TenantKeys) key(name string) []byte {
	return tuple.AppendString(t.space.nameKey(name), string(t.tenant))
}

// Job returns the key that lists a job of a tenant by its time of submission.
func (t TenantKeys) Job(micros int64, j mapreduce.JobID) []byte {
	return tuple.AppendString(tuple.AppendInt(t.key("tenantjobs"), micros), string(j))
}

// Jobs returns the range of a tenant's jobs by time of submission.
func (t TenantKeys) Jobs() store.Range {
	return childRange(t.key("tenantjobs"))
}

// Run returns the key that lets a job run.
func (t TenantKeys) Run(j mapreduce.JobID) []byte {
	return tuple.AppendString(t.key("run"), string(j))
}

// Request returns the key of a tenant's request.
func (t TenantKeys) Request(r mapreduce.RequestID) []byte {
	return tuple.AppendString(t.key("idem"), string(r))
}

func (t TenantKeys) answerKey(sha256 []byte) []byte {
	return tuple.AppendBytes(t.key("answer"), sha256)
}

// Answer returns the key of a model's answer that a tenant's jobs share.
func (t TenantKeys) Answer(sha256 []byte) []byte { return t.answerKey(sha256) }

// AnswerChunks returns the range of the chunks of an answer.
func (t TenantKeys) AnswerChunks(sha256 []byte) store.Range {
	return childRange(t.answerKey(sha256))
}

// AnswerChunk returns the key of chunk i of an answer.
func (t TenantKeys) AnswerChunk(sha256 []byte, i int64) []byte {
	return tuple.AppendInt(t.answerKey(sha256), i)
}

// Answers returns the range of a tenant's answers with their chunks.
func (t TenantKeys) Answers() store.Range {
	return childRange(t.key("answer"))
}

// Aged returns the key that lists an answer by when it was kept.
func (t TenantKeys) Aged(micros int64, sha256 []byte) []byte {
	return tuple.AppendBytes(tuple.AppendInt(t.key("aged"), micros), sha256)
}

// AllAged returns the range of a tenant's answers by age.
func (t TenantKeys) AllAged() store.Range {
	return childRange(t.key("aged"))
}

// Kept returns the key of a count of a tenant's answers.
func (t TenantKeys) Kept(what int64) []byte {
	return tuple.AppendInt(t.key("kept"), what)
}
