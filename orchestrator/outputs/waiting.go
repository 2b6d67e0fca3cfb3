package outputs

import (
	"bytes"
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/gate"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/review"
)

// Held returns the encoded output that a unit waits with, or waited with, under a handle, of its journal.
// Nobody has checked it. It returns errs.DataLoss if the journal has none.
func Held(ctx context.Context, s jobs.Reader, id mapreduce.JobID, u *records.Unit, handle string) ([]byte, error) {
	entries, err := s.Journal(ctx, id, u)
	if err != nil {
		return nil, err
	}

	for _, raw := range entries {
		e, err := journal.Decode(raw)
		if err != nil || e.Key != handle || e.Begun {
			continue // the worker says what is wrong with others
		}
		h, err := gate.DecodeHeld(e.Result)
		if err != nil || gate.Handle(h.Output) != handle {
			break
		}
		return h.Output, nil
	}
	return nil, errs.New(errs.DataLoss, "the journal of unit %s of job %s has not what the unit waits with", u.ID, id)
}

// Standing returns what people have decided about values of an output that a unit waits with, given all
// decisions about its records: of several about a value the last one, unless it was withdrawn. One about
// another value than was found counts not.
func Standing(s *schema.Schema, out *output.Output, all []*review.Decision) (standing []gate.Decided) {
	type value struct {
		record mapreduce.RecordID
		field  string
	}
	last := make(map[value]*review.Decision)
	var order []value
	for _, d := range all {
		if !d.Waited {
			continue
		}
		at := value{d.Record, d.Field}
		if last[at] == nil {
			order = append(order, at)
		}
		last[at] = d // they come by number
	}

	for _, at := range order {
		d := last[at]
		if verdict := mapreduce.ReviewVerdict(d.Verdict); verdict != mapreduce.ReviewWithdraw && bytes.Equal(d.Model, gate.Found(s, out, d.Record, d.Field)) {
			standing = append(standing, decidedOf(d, verdict))
		}
	}
	return standing
}

func decidedOf(d *review.Decision, verdict mapreduce.ReviewVerdict) gate.Decided {
	one := gate.Decided{Record: d.Record, Field: d.Field, Verdict: verdict, Value: d.Value}
	if verdict == mapreduce.ReviewAccept {
		one.Value = d.Model
	}

	if c := d.Passage.GetCitation(); c != nil {
		one.Passage = &output.Citation{
			Document: c.Document, Unit: c.Unit, Start: c.Start, End: c.End, ByteStart: c.ByteStart, ByteEnd: c.ByteEnd,
			Quote: c.Quote, Grade: c.Grade, Outside: c.Outside, Others: int(c.Others), Coverage: c.Coverage, Density: c.Density,
		}
		copy(one.Passage.ID[:], c.Id)
	}
	return one
}

// AsReviewed returns a result of merging as people have decided about the values of its records: by
// field, the decision that the value of the record rests on. Decisions about values that lost to others
// are not in it.
func AsReviewed(s *schema.Schema, r *merge.Result, members []output.Member, decisions func(unit int64) ([]*review.Decision, error)) (map[string]*review.Decision, error) {
	by := make(map[string]*review.Decision)
	for _, m := range members {
		all, err := decisions(m.Unit)
		if err != nil {
			return nil, err
		}

		record := mapreduce.NewRecordID(m.Unit, m.Record)
		last := make(map[string]*review.Decision)
		for _, d := range all {
			if d.Waited && d.Record == record {
				last[d.Field] = d
			}
		}
		for field, d := range last {
			if by[field] == nil && restsOn(s, r, d) {
				by[field] = d
			}
		}
	}
	return by, nil
}

// restsOn reports whether the value of a field is as a decision says.
func restsOn(s *schema.Schema, r *merge.Result, d *review.Decision) bool {
	value, has := r.Values[d.Field]
	p := s.Field(d.Field)
	if p == nil {
		return false
	}

	switch verdict := mapreduce.ReviewVerdict(d.Verdict); verdict {
	case mapreduce.ReviewAccept, mapreduce.ReviewCorrect:
		right, err := gate.Value(p, decidedOf(d, verdict).Value)
		return err == nil && has && merge.Identity(p, right) == merge.Identity(p, value)
	case mapreduce.ReviewReject, mapreduce.ReviewAbsent:
		return !has
	}
	return false
}
