package result

import (
	"cmp"
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// checkOutput checks an output of the result once more, but for the citations of map
// units, which are checked as they are shown; and notes whose records it has.
func (r *reading) checkOutput(ctx context.Context, u *records.Unit, out *output.Output) error {
	why := check.Values(r.schema, out)

	if outputs.IsBundle(u) {
		docs, err := outputs.Documents(ctx, r.source, r.job.ID, u)
		if err != nil {
			return err
		}
		var unread error
		why = cmp.Or(why, check.Direct(string(u.ID), u.Index, docs, outputs.FindEvidence(ctx, r.source, r.job.ID, u, &unread), out))
		if unread != nil {
			return unread
		}
	} else if why == nil {
		why = check.Records(outputs.CitedText(u, nil), out)
	}

	if why != nil {
		return r.refusedOutputError(string(u.ID), why)
	}

	// Only the records of entities that have several are looked up later.
	for i := range out.Entries {
		for _, m := range out.Entries[i].Members {
			if r.merged[m] != nil || r.within[m] != nil {
				r.seen[m] = maker{string(u.Document), string(u.ID)}
			}
		}
	}
	return nil
}

// refusedOutputError returns the error of a result with an output that no unit may have:
// the code that made it was wrong, or the store is damaged.
func (r *reading) refusedOutputError(unit string, why error) error {
	return errs.New(errs.DataLoss, "job %s: the output of %s is not one that a unit can have: %v", r.job.ID, unit, why)
}

// trueMembers checks that entities of several records stand for records that there
// are, and cite no other documents than these are of.
func (r *reading) trueMembers() error {
	if err := check.Values(r.schema, r.last); err != nil {
		return r.refusedOutputError("the last reduce", err)
	}

	for first, s := range r.merged {
		documents, units := make(map[string]bool), make(map[string]bool)
		for _, m := range s.Members {
			made, ok := r.seen[m]
			if !ok {
				return r.refusedOutputError("the last reduce", errs.New(errs.DataLoss, "it names record %d of unit %d, which does not exist", m.Record, m.Unit))
			}
			documents[made.document], units[made.unit] = true, true
		}

		if s.Held == nil || documents[""] { // those of a unit over several documents were checked with it
			continue
		}
		if cite := r.foreignCitation(s.Held, documents, units); cite != nil {
			return r.refusedOutputError("the last reduce", errs.New(errs.DataLoss, "record %d of unit %d cites %s, which it is not of", first.Record, first.Unit, cite.Document))
		}
	}
	return nil
}

// foreignCitation returns a citation of an entry that is of no document of its own, nor of
// evidence of the units that made its records, or nil.
func (r *reading) foreignCitation(e *output.Entry, documents, units map[string]bool) (strange *output.Citation) {
	e.Cited(func(id merge.Citation) {
		c := r.last.Citations[id]
		if own := mapreduce.DocumentID(c.Document).IsEvidence() && units[c.Unit]; !own && !documents[c.Document] {
			strange = &c
		}
	})
	return strange
}
