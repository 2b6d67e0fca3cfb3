package result

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	outcome "github.com/coditect/mapreduce/internal/outcome/review"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/review"
)

// decisionsOf returns the decisions that values of an entity rest on, by field, and counts them. What the
// record says of a value that a person has given is that person's, and no confidence of a model's.
func (r *result) decisionsOf(e *output.Entry, f *found) (map[string]*review.Decision, error) {
	if len(r.job.Decisions) == 0 {
		return nil, nil
	}

	by, err := outputs.AsReviewed(r.schema, &f.Result, e.Members, func(unit int64) ([]*review.Decision, error) { return r.job.Decisions[unit], nil })
	for field, d := range by {
		verdict := mapreduce.ReviewVerdict(d.Verdict)
		outcome.Count(&r.reviewed, verdict, 1)
		if verdict != mapreduce.ReviewAccept || d.Unverified {
			delete(f.Confidence, field)
			delete(f.Said, field)
		}
	}
	return by, err
}

// reviewedCount returns how often something was decided; nil if nothing was.
func (r *result) reviewedCount() *mapreduce.ReviewCount {
	if r.reviewed == (mapreduce.ReviewCount{}) {
		return nil
	}
	count := r.reviewed
	return &count
}

// entriesOf returns what a record says of decisions.
func entriesOf(decided map[string]*review.Decision) map[string]outcome.Entry {
	all := make(map[string]outcome.Entry, len(decided))
	for field, d := range decided {
		e := outcome.EntryOf(&mapreduce.Decision{
			Verdict: mapreduce.ReviewVerdict(d.Verdict), By: d.Principal, Time: time.UnixMicro(d.TimeMicros), Note: d.Note,
		})
		e.Model, e.Unverified = d.Model, d.Unverified

		// A value that was accepted as it was has its own citations still.
		if e.Verdict != mapreduce.ReviewAccept.String() || d.Unverified {
			e.Citations, e.Confidence = stoodOn(d)
		}
		all[field] = e
	}
	return all
}

// stoodOn returns the references of the passages on which a value rested before it was decided about,
// and how sure it was; nil of what there was not.
func stoodOn(d *review.Decision) (references, confidence json.RawMessage) {
	var names []string
	for _, c := range d.Found {
		names = append(names, c.Ref)
	}
	if len(names) > 0 {
		references, _ = marshalJSON(names) // texts
	}

	if d.Confidence > 0 {
		confidence, _ = marshalJSON(d.Confidence) // a number of [0,1]
	}
	return references, confidence
}

// writeFound writes the citations of values that were decided about.
func (r *result) writeFound(decided map[string]*review.Decision) error {
	written := make(map[string]bool) // a passage may be that of several values
	for _, field := range slices.Sorted(maps.Keys(decided)) {
		d := decided[field]
		if mapreduce.ReviewVerdict(d.Verdict) == mapreduce.ReviewAccept && !d.Unverified {
			continue
		}

		for _, c := range d.Found {
			if written[c.Ref] {
				continue
			}
			written[c.Ref] = true
			if err := r.sink(&mapreduce.ResultPart{Citation: ShownCitation(c)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Waiting writes the records of the output that a unit waits with, with their citations and conflicts, as
// a result has them: each quote is checked against the text once more.
func Waiting(ctx context.Context, s jobs.Reader, id mapreduce.JobID, of *schema.Schema, out *output.Output, sink func(*mapreduce.ResultPart) error) error {
	r := &result{
		reading: newReading(s, Job{ID: id, Schema: of}), sink: sink, locations: outputs.NewLocator(s, id),
		shown: make(map[mapreduce.DocumentID]bool), places: make(map[string]string),
		statistics: merge.NewStatistics(of), duplicates: make(map[string]int64), broken: make(map[constraint]int64),
	}
	r.names = speller{Spelling: refs.NewSpelling(func(yield func(refs.ID) bool) {
		for _, id := range slices.Sorted(maps.Keys(out.Citations)) {
			if !yield(refs.ID([]byte(id))) {
				return
			}
		}
	})}

	texts := &contexts{r: r.reading}
	for i := range out.Entries {
		e := &out.Entries[i]
		f := found{merge.Resolve(of, output.Believed(of, e.Accumulator, out.Citations)), out}
		if err := r.writeEntity(&f.Result, mapreduce.NewRecordID(e.Members[0].Unit, e.Members[0].Record), nil); err != nil {
			return err
		}
		if err := r.writeCitations(ctx, texts, &f); err != nil {
			return err
		}
		if err := r.writeDecision(&f.Result); err != nil {
			return err
		}
	}
	return nil
}
