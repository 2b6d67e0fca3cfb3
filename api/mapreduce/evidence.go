package mapreduce

import (
	"bytes"
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
//
// A picture of a page is evidence as well: for people, who see it beside what is cited of
// the page. It is stored in place of a text, has no characters, and cannot be cited.
type Evidence struct {
	Document   DocumentID // see EvidenceID
	URI        string     // where it is from: an address, or a path below the root of the tool
	Title      string     // may be empty
	Tool       string     // that brought it
	Media      string     // type of what the text was made of, such as text/html; may be empty
	Retrieved  time.Time  // when it was read
	SHA256     []byte     // of the text
	Bytes      int64      // of the text
	Characters int64      // of the text: Unicode code points; 0 of a picture
	Metadata   map[string]string
}

// Bounds of the evidence of a unit.
const (
	MaxEvidenceItems     = 512      // of a unit
	MaxEvidenceBytes     = 64 << 20 // of the texts of a unit
	MaxEvidenceText      = 4 << 20  // bytes of one text
	MaxEvidencePicture   = 1 << 20  // bytes of one picture
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

// PictureType returns the media type of a picture that evidence may be, image/png or
// image/jpeg, by how it begins; "" of anything else. No picture is valid UTF-8.
func PictureType(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	}
	return ""
}

// IsPicture reports whether the evidence is a picture. DescribeText was called.
func (e *Evidence) IsPicture() bool { return e.Characters == 0 }

// DescribeText sets what follows from the text of the evidence, or from the picture: its
// hash, its sizes and its id.
func (e *Evidence) DescribeText(text []byte) {
	sum := sha256.Sum256(text)
	e.SHA256, e.Bytes, e.Characters = sum[:], int64(len(text)), int64(utf8.RuneCount(text))
	if PictureType(text) != "" {
		e.Characters = 0
	}
	e.Document = EvidenceID(e.URI, e.SHA256)
}

// CheckText returns an error for bytes that are neither a text nor a picture of the type
// that the evidence says it is.
func (e *Evidence) CheckText(text []byte) error {
	switch media := PictureType(text); {
	case media != "" && media != e.Media:
		return errs.Field("evidence.media_type", "is %.80q, and the evidence is a picture of the type %s", e.Media, media)
	case media == "" && !utf8.Valid(text):
		return errs.Field("evidence", "the text of %.200q is not UTF-8", e.URI)
	}
	return nil
}

// Check returns an error that names the field of evidence which is out of bounds, or which
// does not follow from the others.
func (e *Evidence) Check() error {
	size, most := 0, int64(MaxEvidenceText)
	if e.IsPicture() {
		most = MaxEvidencePicture
	}

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
		{e.Bytes > 0 && e.Bytes <= most, "size_bytes", fmt.Sprintf("must be 1 to %d", most)},
		{e.Characters >= 0 && e.Characters <= e.Bytes, "characters", "must be no more than the bytes"},
		{!e.IsPicture() || e.Media == "image/png" || e.Media == "image/jpeg", "media_type", "must be image/png or image/jpeg of evidence without characters"},
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
