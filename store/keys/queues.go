package keys

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// QueueKeys are the keys of a job's units that wait: to be claimed, for a time, for
// something outside, or for other units; and of those that failed for good.
type QueueKeys struct {
	space *Space
	job   mapreduce.JobID
}

// Queues returns the keys of a job's units that wait.
func (s *Space) Queues(j mapreduce.JobID) QueueKeys { return QueueKeys{s, j} }

func (q QueueKeys) key(name string) []byte { return q.space.jobKey(name, q.job) }

// Ready returns the key of a queue entry.
func (q QueueKeys) Ready(shard int64, class uint32, seq int64) []byte {
	k := tuple.AppendInt(q.key("ready"), shard)
	return tuple.AppendInt(tuple.AppendInt(k, int64(class)), seq)
}

// AllReady returns the range of all of the job's queue entries.
func (q QueueKeys) AllReady() store.Range { return childRange(q.key("ready")) }

// ReadyLevel returns the range of the entries of a class that wait for a level.
func (q QueueKeys) ReadyLevel(shard int64, class uint32, level int64) store.Range {
	return store.Range{Begin: q.Ready(shard, class, Seq(level, 0)), End: q.Ready(shard, class, Seq(level+1, 0))}
}

// NumberedDelayed returns the range of the units backing off whose ids are prefix
// and a number.
func (q QueueKeys) NumberedDelayed(prefix string) store.Range {
	return numberedRange(q.key("delayed"), prefix)
}

// Delayed returns the key of a unit that is backing off.
func (q QueueKeys) Delayed(u mapreduce.UnitID) []byte {
	return tuple.AppendString(q.key("delayed"), string(u))
}

// AllDelayed returns the range of the job's units that are backing off.
func (q QueueKeys) AllDelayed() store.Range { return childRange(q.key("delayed")) }

// Parked returns the key of the record that says what a parked unit waits for.
func (q QueueKeys) Parked(u mapreduce.UnitID) []byte {
	return tuple.AppendString(q.key("parked"), string(u))
}

// AllParked returns the range of the Parked keys of the job.
func (q QueueKeys) AllParked() store.Range { return childRange(q.key("parked")) }

// NumberedParked returns the range of the parked units whose ids are prefix and a
// number.
func (q QueueKeys) NumberedParked(prefix string) store.Range {
	return numberedRange(q.key("parked"), prefix)
}

// Woken returns the key of the last call that woke a unit.
func (q QueueKeys) Woken(u mapreduce.UnitID) []byte {
	return tuple.AppendString(q.key("woken"), string(u))
}

// AllWoken returns the range of the calls that woke the job's units.
func (q QueueKeys) AllWoken() store.Range { return childRange(q.key("woken")) }

// NumberedWoken returns the range of the calls that woke units whose ids are prefix and a
// number.
func (q QueueKeys) NumberedWoken(prefix string) store.Range {
	return numberedRange(q.key("woken"), prefix)
}

// Failed returns the key that lists a unit that failed for good.
func (q QueueKeys) Failed(level int64, u mapreduce.UnitID) []byte {
	return tuple.AppendString(tuple.AppendInt(q.key("failed"), level), string(u))
}

// AllFailed returns the range of the job's failed units, by level.
func (q QueueKeys) AllFailed() store.Range { return childRange(q.key("failed")) }

// FailedLevel returns the range of the job's failed units of one level.
func (q QueueKeys) FailedLevel(level int64) store.Range {
	return childRange(tuple.AppendInt(q.key("failed"), level))
}

// Wait returns the key of the Waiting of a reduce.
func (q QueueKeys) Wait(level, index int64) []byte {
	return tuple.AppendInt(tuple.AppendInt(q.key("wait"), level), index)
}

// WaitLevel returns the range of the Wait keys of a level.
func (q QueueKeys) WaitLevel(level int64) store.Range {
	return childRange(tuple.AppendInt(q.key("wait"), level))
}

// Waits returns the range of the Wait keys of the job.
func (q QueueKeys) Waits() store.Range { return childRange(q.key("wait")) }
