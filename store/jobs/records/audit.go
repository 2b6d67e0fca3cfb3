package records

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
)

// CheckpointsAfter returns the range of the checkpoints after the one with a stamp.
func (rec *JobRecords) CheckpointsAfter(id mapreduce.JobID, stamp []byte) store.Range {
	r := rec.keys.Job(id).Checkpoints()
	if len(stamp) == len(store.Versionstamp{}) {
		r.Begin = store.Single(rec.keys.Job(id).Checkpoint(store.Versionstamp(stamp))).End
	}
	return r
}
