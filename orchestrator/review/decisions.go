package review

import (
	"context"
	"iter"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/result"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/review"
	"github.com/coditect/mapreduce/store/keys"
)

// pageSize is how many decisions are read at once.
const pageSize = 200

// Decisions returns what was decided about values of a job's result, in the order of its records; of
// one record, if it is named. It holds a page of them. The last of the sequence may be an error.
func Decisions(ctx context.Context, j *jobs.Jobs, id mapreduce.JobID, record mapreduce.RecordID) iter.Seq2[*mapreduce.Decision, error] {
	return func(yield func(*mapreduce.Decision, error) bool) {
		q := mapreduce.ListDecisionsQuery{Job: id, Record: record, PageSize: pageSize}
		for {
			page, next, err := j.Review.List(ctx, q)
			if err != nil {
				yield(nil, err)
				return
			}

			for _, d := range page {
				if !yield(decisionOf(d), nil) {
					return
				}
			}

			if q.PageToken = next; next == "" {
				return
			}
		}
	}
}

// decisionOf returns a stored decision.
func decisionOf(d *review.Decision) *mapreduce.Decision {
	out := &mapreduce.Decision{
		Record: d.Record, Field: d.Field, Number: d.Number, Request: mapreduce.RequestID(d.Request),
		Time: time.UnixMicro(d.TimeMicros).UTC(), By: d.Principal,
		Verdict: mapreduce.ReviewVerdict(d.Verdict), Value: d.Value, Note: d.Note, Model: d.Model, Waited: d.Waited,
	}
	if d.Passage != nil {
		out.Passage = result.ShownCitation(d.Passage)
	}
	return out
}

// storedDecision returns a decision as it is stored, of a principal, without its number and its time.
func storedDecision(by mapreduce.Principal, d *mapreduce.Decision) *review.Decision {
	out := &review.Decision{
		DecisionAt: keys.DecisionAt{Record: d.Record, Field: d.Field},
		Decision: &storagev1.Decision{
			Verdict: uint32(d.Verdict), Value: d.Value, Note: d.Note, Model: d.Model,
			Principal: by.Name, Tenant: string(by.Tenant), Request: string(d.Request),
		},
	}
	if d.Passage != nil {
		out.Passage = result.StoredCitation(d.Passage)
	}
	return out
}

// ClaimRecords says which records somebody is about to review.
func (r *Reviewer) ClaimRecords(ctx context.Context, by mapreduce.Principal, c mapreduce.Claim) ([]mapreduce.RecordClaim, error) {
	if c.Time < 0 || c.Time > mapreduce.MaxClaimTime {
		return nil, errs.Field("time", "is %v; records are held for at most %v, or 0 to give them back", c.Time, mapreduce.MaxClaimTime)
	}
	for _, id := range c.Records {
		if _, _, valid := id.Parse(); !valid {
			return nil, errs.Field("record_ids", "%q is not the id of a record", string(id))
		}
	}

	if len(c.Records) == 0 {
		return r.jobs.Review.Claims(ctx, c.Job, by.Name)
	}
	return r.jobs.Review.Claim(ctx, c, by.Name)
}
