package check

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
)

// Texts returns the text that a unit may cite under the name of a document, with the
// unit's name; nil if the unit may not cite the document. It is asked once for each
// document of an output.
type Texts func(document string) *Text

// MapTexts are the texts that a unit may cite which works on a document, or on a part of
// one, and on evidence; nil if it has no evidence.
func MapTexts(t Text, evidence output.EvidenceFinder) Texts {
	return func(document string) *Text {
		if evidence != nil && document != t.Document && mapreduce.DocumentID(document).IsEvidence() {
			return textOf(evidence(document), t.Unit)
		}
		return &t // which refuses what is of another document
	}
}

// BundleTexts are the texts that a unit may cite which works on several documents, or none,
// and on evidence; nil if it has no evidence.
func BundleTexts(unit string, docs []payload.Document, evidence output.EvidenceFinder) Texts {
	at := make(map[string]int, len(docs))
	for i, d := range docs {
		at[d.Document] = i
	}

	return func(document string) *Text {
		if i, ok := at[document]; ok {
			d := docs[i]
			sum := sha256.Sum256(d.Text)
			return &Text{Document: document, Unit: unit, Hash: output.HashDocument(document, sum[:]), Content: d.Text, Metadata: d.Metadata}
		}
		if evidence == nil {
			return nil
		}
		return textOf(evidence(document), unit)
	}
}

// textOf returns the evidence as citations of it are checked; nil of nil.
func textOf(e *output.Evidence, unit string) *Text {
	if e == nil {
		return nil
	}
	return &Text{Document: e.Document, Unit: unit, Hash: output.HashDocument(e.Document, e.SHA256), Content: e.Text, Metadata: e.Metadata}
}

// checkCited checks citations against the texts that a unit may cite, one text after the
// other.
func checkCited(unit string, texts Texts, cited []output.Citation) error {
	slices.SortFunc(cited, func(a, b output.Citation) int { return cmp.Compare(a.Document, b.Document) })
	for len(cited) > 0 {
		document := cited[0].Document
		n := 1
		for n < len(cited) && cited[n].Document == document {
			n++
		}

		// The text is asked for once for all citations of a document, as it may have to be
		// fetched.
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
