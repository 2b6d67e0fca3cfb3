package jobstest

import (
	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// MapAll completes all map units of a job.
func (w *World) MapAll(j *jobs.Jobs, id mapreduce.JobID) *lifecycle.Status {
	w.Helper()
	w.EndAll(j, id, w.Session(j))
	status, err := j.Levels.Status(w.Ctx, id)
	w.Must(err)
	if !status.Ended() {
		w.Fatalf("level 0 has not ended: %+v", status)
	}
	return status
}

// EndAll has a session run all units of a job that wait.
func (w *World) EndAll(j *jobs.Jobs, id mapreduce.JobID, s Binding) {
	w.Helper()
	for {
		units := w.Claim(j, id, s, records.MaxBatch)
		if len(units) == 0 {
			return
		}
		t := &queue.Turn{Job: id, Release: []queue.HeldID{{Session: s.ID, Claim: units[0].Claim}}}
		for _, u := range units {
			t.Reports = append(t.Reports, queue.Report{Report: Done(id, u)})
		}
		w.Turn(j, t)
	}
}

// Set stores a message.
func (k *Kept) Set(key []byte, m proto.Message) {
	k.Helper()
	value, err := proto.Marshal(m)
	k.Must(err)
	k.Write(func(tx store.Tx) { tx.Set(key, value) })
}
