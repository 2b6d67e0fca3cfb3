package result

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// A droppedCitation is an entry of dropped_citations: one that the value of a
// field does not rest on, though a unit found it.
type droppedCitation struct {
	Ref    string         `json:"ref"`
	Field  string         `json:"field"`
	Key    map[string]any `json:"key,omitempty"`     // of the record
	Unit   string         `json:"unit_id,omitempty"` // the reduce, if one did it
	Reason string         `json:"reason"`
}

// A removedReference is an entry of removed_references: a part of a reducer's
// answer that was not taken.
type removedReference struct {
	Name   string `json:"name"`
	Field  string `json:"field"`
	Unit   string `json:"unit_id"`
	Reason string `json:"reason"`
}

// writeDroppedCitation writes an entry of dropped_citations.
func (r *result) writeDroppedCitation(d droppedCitation) error {
	b, err := marshalJSON(d)
	if err != nil {
		return err
	}
	return r.sink(&mapreduce.ResultPart{Dropped: b})
}

// writeDecisions tells of the conflicts that reducers decided. What speaks for values
// that were not chosen is among the citations that were not passed on.
func (r *result) writeDecisions() error {
	for i := range r.last.Decided {
		d := &r.last.Decided[i]
		c := merge.Conflict{Field: d.Field, Key: d.Key, Candidates: d.Candidates, Chosen: d.Chosen, Strategy: byModel, Rationale: d.Rationale}
		r.names.RespellConflict(&c, citationsOf(d.Candidates))

		out := r.names.ConflictView(c)
		out.Unit = d.Unit
		b, err := marshalJSON(out)
		if err == nil {
			err = r.sink(&mapreduce.ResultPart{Conflict: b})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// byModel is the strategy of conflicts that reducers decided.
const byModel hint.Merge = "model"

// citationsOf are the citations of some values.
func citationsOf(some []merge.Choice) (ids []merge.Citation) {
	for _, c := range some {
		ids = append(ids, c.Citations...)
	}
	return ids
}

// reducedCitations writes the citations that reducers did not pass on, behind all records.
func (r *result) reducedCitations(ctx context.Context, texts *contexts) error {
	keys := make(map[*output.Shared]map[string]any)
	for _, d := range r.last.Dropped {
		if err := r.writeCitation(ctx, texts, r.last.Citations[d.Citation]); err != nil {
			return err
		}

		one := droppedCitation{Ref: r.names.Spell(refs.ID([]byte(d.Citation))), Field: d.Field, Unit: d.Unit, Reason: d.Reason}
		if s := r.sharedBy(d.Record); s != nil {
			// An entity is read once, however many of its citations were dropped.
			if _, known := keys[s]; !known {
				e, _, err := r.readSharedEntity(ctx, s)
				if err != nil {
					return err
				}

				f := merge.Resolve(r.schema, e.Accumulator)
				r.names.RespellEntity(&f)
				keys[s] = f.Key
			}
			one.Key = keys[s]
		}

		if err := r.writeDroppedCitation(one); err != nil {
			return err
		}
	}
	return nil
}

func (r *result) removedReferences() error {
	if r.job.Passages {
		return nil // those of all units are told of
	}

	for _, m := range r.last.Removed {
		b, err := marshalJSON(removedReference{Name: m.Name, Field: m.Field, Unit: m.Unit, Reason: m.Reason})
		if err == nil {
			err = r.sink(&mapreduce.ResultPart{Removed: b})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// untrueQuoteError is what a result fails with that would show a quote which is not the
// text: whatever made it was wrong, or the store is damaged.
func untrueQuoteError(job mapreduce.JobID, c *output.Citation, why error) error {
	return errs.New(errs.DataLoss, "job %s: %.80q cites bytes %d to %d of %.80q for what does not stand there: %v",
		job, c.Unit, c.ByteStart, c.ByteEnd, c.Document, why)
}
