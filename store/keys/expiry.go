package keys

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// ExpiryKeys are the keys of jobs that have ended and are kept for a time of their own.
type ExpiryKeys struct{ space *Space }

// Expiry returns the keys of jobs that are kept for a time of their own.
func (s *Space) Expiry() ExpiryKeys { return ExpiryKeys{s} }

func (e ExpiryKeys) key() []byte { return e.space.nameKey("expires") }

// Job returns the key that lists a job by when the time is over for which it is kept.
func (e ExpiryKeys) Job(micros int64, j mapreduce.JobID) []byte {
	return tuple.AppendString(tuple.AppendInt(e.key(), micros), string(j))
}

// All returns the range of all these jobs.
func (e ExpiryKeys) All() store.Range { return childRange(e.key()) }

// Before returns the range of the jobs whose own time was over before a time.
func (e ExpiryKeys) Before(micros int64) store.Range {
	return store.Range{Begin: e.All().Begin, End: tuple.AppendInt(e.key(), micros)}
}
