package unit

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker/agent"
)

// Evidence returns evidence of a unit with its text, as outputs cite it. It returns
// errs.NotFound if the unit has none of that id that can be cited.
func Evidence(ctx context.Context, keeper agent.EvidenceKeeper, id mapreduce.DocumentID) (*output.Evidence, error) {
	all := keeper.Evidence()
	i := slices.IndexFunc(all, func(e mapreduce.Evidence) bool { return e.Document == id && !e.IsPicture() })
	if i < 0 {
		return nil, errs.New(errs.NotFound, "the unit has no evidence %s", id)
	}
	text, err := keeper.EvidenceText(ctx, id)
	if err != nil {
		return nil, err
	}
	return output.EvidenceOf(&all[i], text), nil
}

// InEvidence returns the place of what the aligner of evidence has found in it.
func InEvidence(e *output.Evidence, u ground.Unit, s ground.Span) Place {
	at := At(u, s)
	at.Evidence = e
	return at
}

// OnEvidence returns the unit as one whose document is evidence, for records that are
// found in it alone: they are records of the evidence.
func OnEvidence(task *agent.Task, e *output.Evidence) *agent.Task {
	one := *task
	one.Inputs, one.Whole = nil, nil
	one.Text = &protocol.Text{
		Document: mapreduce.DocumentID(e.Document), SHA256: e.SHA256, Metadata: e.Metadata, Content: e.Text,
		CoreEnd: len(e.Text), Chunks: 1, Length: int64(len(e.Text)),
	}
	return &one
}
