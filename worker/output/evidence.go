package output

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/bibliography"
	"github.com/coditect/mapreduce/worker/ground"
	"github.com/coditect/mapreduce/worker/merge"
	"github.com/coditect/mapreduce/worker/output/payload"
	"github.com/coditect/mapreduce/worker/refs"
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
		Document: e.Document, Unit: unit, Label: labelOf(e.Document, e.Metadata),
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

// labelOf describes a document in one line, see Citation.Label.
func labelOf(document string, metadata map[string]string) string {
	source := bibliography.FromMetadata(document, metadata)
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

// Texts returns the text that a unit may cite under the name of a document, with the
// unit's name; nil if the unit may not cite the document. It is asked once for each
// document of an output.
type Texts func(document string) *Text

// MapTexts are the texts that a unit may cite which works on a document, or on a part of
// one, and on evidence; nil if it has no evidence.
func MapTexts(t Text, evidence EvidenceFinder) Texts {
	return func(document string) *Text {
		if evidence != nil && document != t.Document && mapreduce.DocumentID(document).IsEvidence() {
			return evidence(document).textOf(t.Unit)
		}
		return &t // which refuses what is of another document
	}
}

// BundleTexts are the texts that a unit may cite which works on several documents, or none,
// and on evidence; nil if it has no evidence.
func BundleTexts(unit string, docs []payload.Document, evidence EvidenceFinder) Texts {
	at := make(map[string]int, len(docs))
	for i, d := range docs {
		at[d.Document] = i
	}
	return func(document string) *Text {
		if i, ok := at[document]; ok {
			d := docs[i]
			sum := sha256.Sum256(d.Text)
			return &Text{Document: document, Unit: unit, Hash: HashDocument(document, sum[:]), Content: d.Text, Metadata: d.Metadata}
		}
		if evidence == nil {
			return nil
		}
		return evidence(document).textOf(unit)
	}
}

// textOf returns the evidence as citations of it are checked; nil of nil.
func (e *Evidence) textOf(unit string) *Text {
	if e == nil {
		return nil
	}
	return &Text{Document: e.Document, Unit: unit, Hash: HashDocument(e.Document, e.SHA256), Content: e.Text, Metadata: e.Metadata}
}

// checkCited checks citations against the texts that a unit may cite, one text after the
// other.
func checkCited(unit string, texts Texts, cited []Citation) error {
	slices.SortFunc(cited, func(a, b Citation) int { return cmp.Compare(a.Document, b.Document) })
	for len(cited) > 0 {
		document := cited[0].Document
		n := 1
		for n < len(cited) && cited[n].Document == document {
			n++
		}
		t := texts(document)
		if t == nil {
			return breachError("%s cites %s, which it did not read", unit, document)
		}
		if err := t.checkCitations(cited[:n]); err != nil {
			return err
		}
		cited = cited[n:]
	}
	return nil
}

// CitesEvidence reports whether the output cites evidence that the unit itself found.
func (o *Output) CitesEvidence(unit string) bool { return len(o.evidenceOf(unit)) > 0 }

// evidenceOf returns the evidence that the output cites as found by the unit.
func (o *Output) evidenceOf(unit string) map[string]bool {
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

// ownCitations returns the citations that none of the inputs has, which a unit may have
// found itself.
func (c *reduceCheck) ownCitations(o *Output) (own []Citation, rest map[merge.Citation]bool) {
	rest = make(map[merge.Citation]bool)
	for id := range o.usedCitations() {
		cite, ok := o.Citations[id]
		if ok && cite.Key() == id && !slices.Contains(c.given[id], cite) {
			own = append(own, cite)
			continue
		}
		rest[id] = true
	}
	return own, rest
}
