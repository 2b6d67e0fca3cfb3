package read

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/content"
)

// ReadText calls sink with the text of a document that a unit read, part after part. It is
// the whole text, also if the unit read a chunk of it. What a unit parsed are the bytes of
// the document, as it was submitted.
func (r *Reader) ReadText(ctx context.Context, _ mapreduce.Principal, id mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error {
	u, err := r.jobs.View.Unit(ctx, id, unit)
	if err != nil {
		return err
	}

	notRead := errs.New(errs.NotFound, "unit %q of job %q read no document %q", unit, id, document)
	if document.IsEvidence() {
		e, text, err := outputs.EvidenceOf(ctx, r.jobs.Reader(), id, u, document)
		switch {
		case err != nil:
			return err
		case e == nil:
			return notRead
		}
		return sink(text)
	}

	if u == nil || u.Source == nil {
		return notRead
	}

	if outputs.IsBundle(u) {
		docs, err := outputs.Documents(ctx, r.jobs.Reader(), id, u)
		if err != nil {
			return err
		}
		for _, d := range docs {
			if d.Document == string(document) {
				return sink(d.Text)
			}
		}
		return notRead
	}

	if u.Document != document {
		return notRead
	}
	return r.jobs.Content.TextParts(ctx, id, content.TextRange{SHA256: u.Source.SHA256, End: u.Source.Length, Length: u.Source.Length}, sink)
}
