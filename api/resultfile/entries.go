package resultfile

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Citation is an entry of citations.
type Citation struct {
	Document  mapreduce.DocumentID `json:"document_id"`
	Start     int64                `json:"start"` // code points, half-open
	End       int64                `json:"end"`
	ByteStart int64                `json:"byte_start"`
	ByteEnd   int64                `json:"byte_end"`
	Quote     string               `json:"quote"`
	Grade     string               `json:"grade"`
	Unit      mapreduce.UnitID     `json:"unit_id"`
	Outside   bool                 `json:"outside,omitempty"`      // outside of the chunk that the unit read
	Others    int                  `json:"other_places,omitempty"` // other places that match as well
	Coverage  float64              `json:"coverage,omitempty"`     // for fuzzy citations
	Density   float64              `json:"density,omitempty"`
	Via       *Via                 `json:"via,omitempty"` // if the document is a record of another job
	Location  *Location            `json:"location,omitempty"`
	Label     string               `json:"label,omitempty"`
	URI       string               `json:"uri,omitempty"` // where evidence is from
}

// A Location is the location of a citation.
type Location struct {
	Place     string `json:"place"`
	Page      int    `json:"page,omitempty"`
	Boxes     []Box  `json:"boxes,omitempty"`
	Sheet     string `json:"sheet,omitempty"`
	Cell      string `json:"cell,omitempty"`
	Slide     int    `json:"slide,omitempty"`
	Paragraph int    `json:"paragraph,omitempty"`
	Part      string `json:"part,omitempty"`
	Header    string `json:"header,omitempty"`
	Chapter   string `json:"chapter,omitempty"`
	// Recognised is how sure recognition was of its least sure word, of a text in a picture.
	Recognised float64 `json:"recognised,omitempty"`
}

// A Box is a box of a location, in points, or in pixels of a picture, from the top left corner of its page.
type Box struct {
	Page   int     `json:"page"`
	Left   float64 `json:"left"`
	Top    float64 `json:"top"`
	Right  float64 `json:"right"`
	Bottom float64 `json:"bottom"`
}

// LocationOf returns a location as it is written; nil of none.
func LocationOf(l *mapreduce.Location) *Location {
	if l == nil {
		return nil
	}

	out := &Location{
		Place: l.String(), Page: l.Page, Sheet: l.Sheet, Cell: l.Cell, Slide: l.Slide, Paragraph: l.Paragraph,
		Part: l.Part, Header: l.Header, Chapter: l.Chapter, Recognised: l.Recognised,
	}
	for _, b := range l.Boxes {
		out.Boxes = append(out.Boxes, Box(b))
	}

	return out
}

// CitationOf returns a citation as it is written.
func CitationOf(c *mapreduce.Citation) Citation {
	return Citation{
		Document: c.Document, Start: c.Start, End: c.End, ByteStart: c.ByteStart, ByteEnd: c.ByteEnd,
		Quote: c.Quote, Grade: c.Grade, Unit: c.Unit,
		Outside: c.Outside, Others: c.Others, Coverage: c.Coverage, Density: c.Density,
		Via: ViaOf(c), Location: LocationOf(c.Location), Label: c.Label, URI: c.URI,
	}
}

// appendTo appends the citation as it is written, with a space behind each colon. It
// returns false for one with members that few citations have.
//
// A large result has a million citations. To encode them by reflection would take most of
// the time to write it.
func (c *Citation) appendTo(b []byte) ([]byte, bool) {
	if c.Outside || c.Others != 0 || c.Coverage != 0 || c.Density != 0 || c.Via != nil || c.Location != nil || c.Label != "" || c.URI != "" {
		return b, false
	}

	b = appendText(append(b, `{"document_id": `...), string(c.Document))
	for _, n := range [...]struct {
		name  string
		value int64
	}{{`,"start": `, c.Start}, {`,"end": `, c.End}, {`,"byte_start": `, c.ByteStart}, {`,"byte_end": `, c.ByteEnd}} {
		b = strconv.AppendInt(append(b, n.name...), n.value, 10)
	}

	b = appendText(append(b, `,"quote": `...), c.Quote)
	b = appendText(append(b, `,"grade": `...), c.Grade)
	b = appendText(append(b, `,"unit_id": `...), string(c.Unit))
	return append(b, '}'), true
}

// appendText appends a text as JSON, as Encode writes it.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			encoded, err := Encode(s)
			if err != nil { // no text is refused
				panic(err)
			}
			return append(b, encoded...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// Evidence is an entry of evidence.
type Evidence struct {
	Document   mapreduce.DocumentID `json:"document_id"`
	URI        string               `json:"uri"`
	Title      string               `json:"title,omitempty"`
	Tool       string               `json:"tool"`
	Media      string               `json:"media_type,omitempty"`
	Retrieved  *time.Time           `json:"retrieved,omitempty"`
	SHA256     string               `json:"sha256"`
	Bytes      int64                `json:"bytes"`
	Characters int64                `json:"characters"`
	Metadata   map[string]string    `json:"metadata,omitempty"`
	Unit       mapreduce.UnitID     `json:"unit_id"`
}

// EvidenceOf returns evidence as it is written.
func EvidenceOf(e *mapreduce.CitedEvidence) Evidence {
	out := Evidence{
		Document: e.Document, URI: e.URI, Title: e.Title, Tool: e.Tool, Media: e.Media, SHA256: hex.EncodeToString(e.SHA256),
		Bytes: e.Bytes, Characters: e.Characters, Metadata: e.Metadata, Unit: e.Unit,
	}
	if !e.Retrieved.IsZero() {
		out.Retrieved = &e.Retrieved
	}
	return out
}

// A FailedUnit is an entry of failed_units.
type FailedUnit struct {
	Unit     mapreduce.UnitID     `json:"unit_id"`
	Document mapreduce.DocumentID `json:"document_id,omitempty"` // that it read, if it was one
	Errors   []string             `json:"errors"`
	Advice   string               `json:"advice,omitempty"` // what to do
	Retry    bool                 `json:"-"`                // trying it again can help
}

// FailedOf returns a unit that failed as it is written.
func FailedOf(s *mapreduce.Source) FailedUnit {
	return FailedUnit{
		Unit: s.Unit, Document: s.Document, Errors: s.Errors, Advice: FailAdvice(s.Lasting, s.Errors), Retry: CanRetry(s.Lasting, s.Errors),
	}
}

// A SkippedDocument is an entry of skipped_documents of result.json.
type SkippedDocument struct {
	Document mapreduce.DocumentID `json:"document_id"`
	Reason   string               `json:"reason"`
	Advice   string               `json:"advice,omitempty"` // what to do
}

// SkippedOf returns the entries of skipped_documents; none is an empty list.
func SkippedOf(all []mapreduce.SkippedDocument) []SkippedDocument {
	list := make([]SkippedDocument, len(all))
	for i, d := range all {
		list[i] = SkippedDocument{d.Document, d.Reason, SkipAdvice(d.Reason)}
	}
	return list
}

// A DocumentNote is an entry of document_notes of result.json.
type DocumentNote struct {
	Document mapreduce.DocumentID `json:"document_id,omitempty"`
	Note     string               `json:"note"`
}

// NotesOf returns the entries of document_notes. The last says how many are left out.
func NotesOf(s *mapreduce.Summary) []DocumentNote {
	list := make([]DocumentNote, 0, len(s.Notes)+1)
	for _, n := range s.Notes {
		list = append(list, DocumentNote{n.Document, n.Note})
	}
	if s.MoreNotes > 0 {
		list = append(list, DocumentNote{Note: fmt.Sprintf("and %d more notes, which stand in units.jsonl", s.MoreNotes)})
	}
	return list
}

// A warning is an entry of warnings.
type warning struct {
	Field      string `json:"field"`
	Constraint string `json:"constraint"`
	Records    int64  `json:"records"`
	Message    string `json:"message"`
}

func warningsOf(s *mapreduce.Summary) []warning {
	list := make([]warning, len(s.Broken))
	for i, b := range s.Broken {
		list[i] = warning{b.Field, b.Constraint, b.Records, b.String()}
	}
	return list
}

// A Ledger counts documents or characters by their outcome.
type Ledger struct {
	Total   int64 `json:"total"`
	Mapped  int64 `json:"mapped"`
	Failed  int64 `json:"failed"`
	Skipped int64 `json:"skipped"`
}

// A Coverage accounts for every document and every character.
type Coverage struct {
	Documents  Ledger `json:"documents"`
	Characters Ledger `json:"characters"`
	Unread     Ledger `json:"unread_bytes"` // of documents that gave no text
}

// CoverageOf returns the JSON form of a job's coverage.
func CoverageOf(c mapreduce.Coverage) Coverage {
	return Coverage{Documents: Ledger(c.Documents), Characters: Ledger(c.Characters), Unread: Ledger(c.Unread)}
}

// A Review counts the values that people have decided about.
type Review struct {
	Accepted  int64 `json:"accepted"`
	Corrected int64 `json:"corrected"`
	Rejected  int64 `json:"rejected"`
	Absent    int64 `json:"absent"`
	Unfitting int64 `json:"unfitting_decisions"` // that are not in the result
}

// ReviewOf returns the JSON form of what was counted.
func ReviewOf(c *mapreduce.ReviewCount) Review { return Review(*c) }
