package result

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// evidenceTexts are the texts of evidence that were needed last: the citations of a value
// are not in the order of their documents.
type evidenceTexts struct {
	of    map[evidenceKey]unitText
	order []evidenceKey // in which they were read
	bytes int64
}

// An evidenceKey names evidence of a unit.
type evidenceKey struct{ unit, document string }

// maxEvidenceTexts is how many bytes of texts of evidence are kept.
const maxEvidenceTexts = 32 << 20

// loadEvidence gets the text of the evidence that a citation is of. Without such evidence
// there is no unit then.
func (c *contexts) loadEvidence(ctx context.Context, cite *output.Citation) error {
	key := evidenceKey{cite.Unit, cite.Document}
	text, known := c.evidence.of[key]
	if !known {
		var err error
		if text, err = c.readEvidence(ctx, key); err != nil {
			return err
		}
		c.evidence.keep(key, text)
	}

	c.name, c.unitText = "", text
	return nil
}

// readEvidence reads the text of evidence.
func (c *contexts) readEvidence(ctx context.Context, key evidenceKey) (unitText, error) {
	s, job := c.r.source, c.r.job.ID
	u, err := s.Unit(ctx, job, mapreduce.UnitID(key.unit))
	if err != nil || u == nil {
		return unitText{}, err
	}

	e, text, err := outputs.EvidenceOf(ctx, s, job, u, mapreduce.DocumentID(key.document))
	if err != nil || e == nil || e.IsPicture() {
		return unitText{}, err
	}

	all, err := s.Evidence(ctx, job, u)
	if err != nil {
		return unitText{}, err
	}

	found := output.EvidenceOf(e, text)
	read := check.BundleTexts(key.unit, nil, func(string) *output.Evidence { return found })(key.document)
	one := &records.Unit{ID: u.ID, Index: u.Index, Document: e.Document, Source: &records.Source{
		SHA256: e.SHA256, Length: e.Bytes, End: e.Bytes, Metadata: e.Source(),
	}}
	reader := check.NewReader(*read)
	pictures := slices.DeleteFunc(all, func(p mapreduce.Evidence) bool { return !p.IsPicture() || p.URI != e.URI })

	return unitText{unit: one, text: text, reader: reader, whole: reader, evidence: e, pictures: pictures[:min(len(pictures), maxPictures)]}, nil
}

// keep keeps a text, in place of those that were read first if there is no room.
func (t *evidenceTexts) keep(key evidenceKey, text unitText) {
	if t.of == nil {
		t.of = make(map[evidenceKey]unitText)
	}
	t.of[key], t.order, t.bytes = text, append(t.order, key), t.bytes+int64(len(text.text))
	for t.bytes > maxEvidenceTexts && len(t.order) > 1 {
		t.bytes -= int64(len(t.of[t.order[0]].text))
		delete(t.of, t.order[0])
		t.order = t.order[1:]
	}
}

// maxPictures is how many pictures of one text are shown.
const maxPictures = 8

// writeEvidence tells of the evidence that a citation is of, whose text was read last, and
// of the pictures of it: once for each document.
func (r *result) writeEvidence(texts *contexts) error {
	if texts.unitText.evidence == nil {
		return nil
	}

	for _, e := range append([]mapreduce.Evidence{*texts.unitText.evidence}, texts.unitText.pictures...) {
		if r.shown[e.Document] {
			continue
		}
		r.shown[e.Document] = true
		if err := r.sink(&mapreduce.ResultPart{Evidence: &mapreduce.CitedEvidence{Unit: texts.unit.ID, Evidence: e}}); err != nil {
			return err
		}
	}
	return nil
}

// A maker is the unit that made a record, and the document that it read; none if it read
// several.
type maker struct{ document, unit string }
