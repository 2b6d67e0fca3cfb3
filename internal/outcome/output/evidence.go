package output

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// Evidence is a text that a tool brought to a unit, as the outputs of the unit cite it: as
// a document of its own, which is described as bibliographies describe their sources.
type Evidence struct {
	Document string // see mapreduce.EvidenceID
	SHA256   []byte // of Text
	Metadata map[string]string
	Text     []byte
}

// EvidenceOf returns evidence with its text as outputs cite it.
func EvidenceOf(e *mapreduce.Evidence, text []byte) *Evidence {
	return &Evidence{Document: string(e.Document), SHA256: e.SHA256, Metadata: e.Source(), Text: text}
}

// An EvidenceFinder returns evidence of one unit by the id of the document; nil if the unit
// has none of that id.
type EvidenceFinder func(document string) *Evidence

// Cite returns the citation of a place of the text that unit found. The place has to be
// within the text: an aligner has found it, see Aligner.
func (e *Evidence) Cite(unit string, at ground.Span) Citation {
	quote := string(e.Text[at.ByteStart:at.ByteEnd])
	c := Citation{
		ID:       refs.New(HashDocument(e.Document, e.SHA256), at.ByteStart, at.ByteEnd, quote),
		Document: e.Document, Unit: unit, Label: LabelOf(e.Document, e.Metadata),
		Start: int64(at.Start), End: int64(at.End), ByteStart: int64(at.ByteStart), ByteEnd: int64(at.ByteEnd),
		Quote: quote, Grade: string(at.Grade), Others: max(0, at.Places-1),
	}

	if at.Grade == ground.Fuzzy {
		c.Coverage, c.Density = at.Coverage, at.Density
	}
	return c
}

// Aligner returns what finds quotes in the text. It holds some thirty times the text.
func (e *Evidence) Aligner() ground.Unit {
	return ground.Unit{Chunk: ground.NewChunk(string(e.Text), false, false)}
}

// LabelOf describes a document in one line, see Citation.Label.
func LabelOf(document string, metadata map[string]string) string {
	source := refs.FromMetadata(document, metadata)
	return source.Label()
}

// OfCitations returns an output that has citations and nothing else: what a unit may refer
// to beside the outputs that it reads, see IssueAll and NewValue.
func OfCitations(all ...Citation) *Output {
	o := &Output{}
	for _, c := range all {
		o.Cite(c)
	}
	return o
}

// CitesEvidence reports whether the output cites evidence that the unit itself found.
func (o *Output) CitesEvidence(unit string) bool { return len(o.EvidenceOf(unit)) > 0 }

// EvidenceOf returns the evidence that the output cites as found by the unit, by the id of
// its document; nil if there is none.
func (o *Output) EvidenceOf(unit string) map[string]bool {
	var found map[string]bool
	for _, c := range o.Citations {
		if c.Unit == unit && mapreduce.DocumentID(c.Document).IsEvidence() {
			if found == nil {
				found = make(map[string]bool)
			}
			found[c.Document] = true
		}
	}
	return found
}
