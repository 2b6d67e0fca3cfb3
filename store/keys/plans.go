package keys

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// PlanKeys are the keys of what is planned of a job: how far, and which inputs units have
// that are no range.
type PlanKeys struct {
	space *Space
	job   mapreduce.JobID
}

// Plans returns the keys of what is planned of a job.
func (s *Space) Plans(j mapreduce.JobID) PlanKeys { return PlanKeys{s, j} }

func (p PlanKeys) key(name string) []byte { return p.space.jobKey(name, p.job) }

// Cursor returns the key of the cursor of planning a level.
func (p PlanKeys) Cursor(level int64) []byte {
	return tuple.AppendInt(p.key("plan"), level)
}

// Cursors returns the range of the job's planning cursors.
func (p PlanKeys) Cursors() store.Range { return childRange(p.key("plan")) }

// Picks returns the key of the inputs that a reduce picked from the unit with
// index first on.
func (p PlanKeys) Picks(level, index, first int64) []byte {
	return tuple.AppendInt(p.picksOf(level, index), first)
}

func (p PlanKeys) picksOf(level, index int64) []byte {
	return tuple.AppendInt(tuple.AppendInt(p.key("picks"), level), index)
}

// PicksOf returns the range of all inputs that a reduce picked.
func (p PlanKeys) PicksOf(level, index int64) store.Range {
	return childRange(p.picksOf(level, index))
}

// PicksLevel returns the range of the inputs that reduces of a level picked.
func (p PlanKeys) PicksLevel(level int64) store.Range {
	return childRange(tuple.AppendInt(p.key("picks"), level))
}

// AllPicks returns the range of the inputs that reduces of the job picked.
func (p PlanKeys) AllPicks() store.Range { return childRange(p.key("picks")) }
