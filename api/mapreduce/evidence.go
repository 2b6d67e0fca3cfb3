package mapreduce

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
)

// Evidence describes a text that a tool brought to a unit: a page, a file, a passage with
// its surroundings. The text is stored with the unit. What the unit comes to may cite it
// as it cites a document.
type Evidence struct {
	Document   DocumentID // see EvidenceID
	URI        string     // where it is from: an address, or a path below the root of the tool
	Title      string     // may be empty
	Tool       string     // that brought it
	Media      string     // type of what the text was made of, such as text/html; may be empty
	Retrieved  time.Time  // when it was read
	SHA256     []byte     // of the text
	Bytes      int64      // of the text
	Characters int64      // of the text: Unicode code points
	Metadata   map[string]string
}

// Bounds of the evidence of a unit.
const (
	MaxEvidenceItems     = 512      // of a unit
	MaxEvidenceBytes     = 64 << 20 // of the texts of a unit
	MaxEvidenceText      = 4 << 20  // bytes of one text
	MaxEvidenceURI       = 2 << 10  // bytes
	MaxEvidenceTitle     = 1 << 10  // bytes
	MaxEvidenceName      = 256      // bytes of the name of a tool, and of a media type
	MaxEvidenceMetadata  = 4 << 10  // bytes of names and values together
	MaxEvidenceListBytes = 8 << 20  // of the descriptions of all evidence of a unit, as a blob
)

// EvidenceID returns the id of a text that was found at uri, of which sum is the SHA-256:
// the same text at the same place is the same document. No client can give such an id to
// a document, see Unreserve.
func EvidenceID(uri string, sum []byte) DocumentID {
	h := sha256.New()
	h.Write([]byte(uri))
	h.Write([]byte{0})
	h.Write(sum)
	return DocumentID("evidence_" + hex.EncodeToString(h.Sum(nil)[:8]))
}

// IsEvidence reports whether id has the form of an EvidenceID.
func (id DocumentID) IsEvidence() bool { return evidenceName.MatchString(string(id)) }

var evidenceName = regexp.MustCompile(`^` + evidencePattern + `$`)

const evidencePattern = `evidence_[0-9a-f]{16}`

// DescribeText sets what follows from the text of the evidence: its hash, its sizes and its
// id.
func (e *Evidence) DescribeText(text []byte) {
	sum := sha256.Sum256(text)
	e.SHA256, e.Bytes, e.Characters = sum[:], int64(len(text)), int64(utf8.RuneCount(text))
	e.Document = EvidenceID(e.URI, e.SHA256)
}

// Check returns an error that names the field of evidence which is out of bounds, or which
// does not follow from the others.
func (e *Evidence) Check() error {
	size := 0
	for name, value := range e.Metadata {
		size += len(name) + len(value)
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return errs.Field("evidence.metadata", "%q is not valid UTF-8", name)
		}
	}
	for _, f := range []struct {
		ok          bool
		field, rule string
	}{
		{e.URI != "" && len(e.URI) <= MaxEvidenceURI && utf8.ValidString(e.URI), "uri", fmt.Sprintf("must have 1 to %d bytes of UTF-8", MaxEvidenceURI)},
		{len(e.Title) <= MaxEvidenceTitle && utf8.ValidString(e.Title), "title", fmt.Sprintf("must have at most %d bytes of UTF-8", MaxEvidenceTitle)},
		{e.Tool != "" && len(e.Tool) <= MaxEvidenceName && utf8.ValidString(e.Tool), "tool", fmt.Sprintf("must have 1 to %d bytes of UTF-8", MaxEvidenceName)},
		{len(e.Media) <= MaxEvidenceName && utf8.ValidString(e.Media), "media_type", fmt.Sprintf("must have at most %d bytes of UTF-8", MaxEvidenceName)},
		{size <= MaxEvidenceMetadata, "metadata", fmt.Sprintf("must have at most %d bytes", MaxEvidenceMetadata)},
		{len(e.SHA256) == sha256.Size, "sha256", fmt.Sprintf("must have %d bytes", sha256.Size)},
		{e.Bytes > 0 && e.Bytes <= MaxEvidenceText, "size_bytes", fmt.Sprintf("must be 1 to %d", MaxEvidenceText)},
		{e.Characters > 0 && e.Characters <= e.Bytes, "characters", "must be at least 1, and no more than the bytes"},
		{e.Document == EvidenceID(e.URI, e.SHA256), "document_id", "does not follow from the URI and the text"},
	} {
		if !f.ok {
			return errs.Field("evidence."+f.field, "%s", f.rule)
		}
	}
	return nil
}

// Source returns the evidence as metadata describe a document that is cited: with the title,
// or the URI if there is none, and the URI as url.
func (e *Evidence) Source() map[string]string {
	m := maps.Clone(e.Metadata)
	if m == nil {
		m = make(map[string]string, 2)
	}
	delete(m, "document_id")
	m["title"], m["url"] = e.Title, e.URI
	if e.Title == "" {
		m["title"] = e.URI
	}
	return m
}
