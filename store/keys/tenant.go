package keys

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// TenantKeys are the keys of a tenant: its jobs, its requests, the answers that its jobs
// share, what its jobs use, and its log.
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

// Use returns the key that counts what the jobs of a tenant use; day is 0 but for tokens.
func (t TenantKeys) Use(what Used, day int64) []byte {
	return tuple.AppendInt(tuple.AppendInt(t.key("use"), int64(what)), day)
}

// UseDays returns the range of the counts of something from one day up to another.
func (t TenantKeys) UseDays(what Used, from, to int64) store.Range {
	return store.Range{Begin: t.Use(what, from), End: t.Use(what, to)}
}

// UseDraw returns the key on which transactions conflict that use more of something.
func (t TenantKeys) UseDraw(what Used) []byte {
	return tuple.AppendInt(t.key("usedraw"), int64(what))
}

// Rate returns the key of the calls of a tenant.
func (t TenantKeys) Rate() []byte { return t.key("rate") }

// Ended returns the key that lists a job of a tenant by when it ended.
func (t TenantKeys) Ended(micros int64, j mapreduce.JobID) []byte {
	return tuple.AppendString(tuple.AppendInt(t.key("ended"), micros), string(j))
}

// EndedBefore returns the range of a tenant's jobs that ended before a time.
func (t TenantKeys) EndedBefore(micros int64) store.Range {
	key := t.key("ended")
	return store.Range{Begin: childRange(key).Begin, End: tuple.AppendInt(key, micros)}
}

// AfterEnded returns the first key of the list of ended jobs behind those of a tenant.
func (t TenantKeys) AfterEnded() []byte { return t.space.After(t.key("ended")) }

// LogEntry returns the key of the n-th entry of a tenant's log, counted from 1.
func (t TenantKeys) LogEntry(n int64) []byte { return tuple.AppendInt(t.key("log"), n) }

// Log returns the range of a tenant's log.
func (t TenantKeys) Log() store.Range { return childRange(t.key("log")) }

// AllTenants are the keys that tenants have, for what goes through those of all tenants:
// each range is in order of the tenants.
type AllTenants struct{ space *Space }

// AllTenants returns the keys of all tenants.
func (s *Space) AllTenants() AllTenants { return AllTenants{s} }

func (a AllTenants) keys(name string) store.Range { return childRange(a.space.nameKey(name)) }

// Jobs returns the range of all tenants' jobs by time of submission.
func (a AllTenants) Jobs() store.Range { return a.keys("tenantjobs") }

// Runs returns the range of the jobs that may run.
func (a AllTenants) Runs() store.Range { return a.keys("run") }

// Requests returns the range of all tenants' requests.
func (a AllTenants) Requests() store.Range { return a.keys("idem") }

// Answers returns the range of all tenants' answers with their chunks.
func (a AllTenants) Answers() store.Range { return a.keys("answer") }

// Kept returns the range of the counts of all tenants' answers.
func (a AllTenants) Kept() store.Range { return a.keys("kept") }

// Uses returns the range of what all tenants use.
func (a AllTenants) Uses() store.Range { return a.keys("use") }

// UseAt returns what a key of TenantKeys.Use counts.
func (a AllTenants) UseAt(key []byte) (t mapreduce.TenantID, what Used, day int64, err error) {
	_, rest, err := a.space.Last(key)
	if err != nil {
		return "", 0, 0, err
	}
	t, what, day = mapreduce.TenantID(rest.Text()), Used(rest.Int()), rest.Int()
	return t, what, day, rest.Err()
}

// Ended returns the range of all jobs that have ended.
func (a AllTenants) Ended() store.Range { return a.keys("ended") }

// EndedAt returns which job a key of TenantKeys.Ended lists.
func (a AllTenants) EndedAt(key []byte) (t mapreduce.TenantID, micros int64, j mapreduce.JobID, err error) {
	_, rest, err := a.space.Last(key)
	if err != nil {
		return "", 0, "", err
	}
	t, micros, j = mapreduce.TenantID(rest.Text()), rest.Int(), mapreduce.JobID(rest.Text())
	return t, micros, j, rest.Err()
}

// Logs returns the range of the logs of all tenants.
func (a AllTenants) Logs() store.Range { return a.keys("log") }

// LogAt returns which entry of a tenant's log a key is.
func (a AllTenants) LogAt(key []byte) (t mapreduce.TenantID, n int64, err error) {
	_, rest, err := a.space.Last(key)
	if err != nil {
		return "", 0, err
	}
	t, n = mapreduce.TenantID(rest.Text()), rest.Int()
	return t, n, rest.Err()
}
