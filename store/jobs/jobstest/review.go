package jobstest

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/review"
	"github.com/coditect/mapreduce/store/keys"
)

// NewDecision is a decision that a request makes about a value.
func NewDecision(record mapreduce.RecordID, field string, v mapreduce.ReviewVerdict, request string) *review.Decision {
	d := &review.Decision{
		DecisionAt: keys.DecisionAt{Record: record, Field: field},
		Decision:   &storagev1.Decision{Verdict: uint32(v), Model: []byte("1"), Principal: "ann", Request: request},
	}
	if v == mapreduce.ReviewCorrect {
		d.Value = []byte("2")
	}
	return d
}

// Decide adds a decision about a value of a job that is complete.
func (w *World) Decide(j *jobs.Jobs, id mapreduce.JobID, d *review.Decision) *review.Decision {
	w.Helper()
	ctl, err := j.View.Control(w.Ctx, id)
	w.Must(err)
	kept, err := j.Review.Decide(w.Ctx, id, ctl.Epoch, d)
	w.Must(err)
	return kept
}
