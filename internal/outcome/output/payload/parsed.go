package payload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/layout"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// A Parsed is what a document was parsed into. The output of a unit whose document has
// no text is empty.
type Parsed struct {
	Format  string   // name of the format
	Charset string   // of the document's bytes; empty if the format has none
	Notes   []string // what readers of the document should know
	Title   string   // what the document calls itself; empty if it does not say
	Text    []byte   // UTF-8
	Layout  []byte   // of Text, in the stored form of internal/text/layout; empty if it has none
}

// ErrParsed is what is refused as the output of a unit that parses.
var ErrParsed = errors.New("payload: this is no parsed document")

// Bounds of what is said of a parsed document.
const (
	MaxNotes  = 32  // notes
	MaxNote   = 512 // bytes of one
	MaxTitle  = 600 // bytes
	headBytes = 4   // length of the length of the head
)

// Encode returns the stored form of p. The error is ErrParsed if p is not within its
// bounds.
func (p *Parsed) Encode() ([]byte, error) {
	head := &storagev1.ParsedHead{
		Format: p.Format, Charset: p.Charset, Notes: p.Notes, Title: p.Title,
		TextLength: int64(len(p.Text)), LayoutLength: int64(len(p.Layout)),
	}

	if err := checkHead(head); err != nil {
		return nil, err
	}

	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParsed, err)
	}

	data := make([]byte, 0, headBytes+len(b)+len(p.Text)+len(p.Layout))
	data = append(binary.BigEndian.AppendUint32(data, uint32(len(b))), b...)
	return append(append(data, p.Text...), p.Layout...), nil
}

// checkHead returns an error if a head is beyond its bounds.
func checkHead(h *storagev1.ParsedHead) error {
	if len(h.Format) > MaxNote || len(h.Charset) > MaxNote || len(h.Title) > MaxTitle || len(h.Notes) > MaxNotes || h.TextLength < 0 || h.LayoutLength < 0 {
		return fmt.Errorf("%w: its head is beyond its bounds", ErrParsed)
	}
	for _, note := range h.Notes {
		if len(note) > MaxNote {
			return fmt.Errorf("%w: a note of it has %d bytes", ErrParsed, len(note))
		}
	}
	return nil
}

// A ParsedHead is what the beginning of an encoded Parsed says of the rest.
type ParsedHead struct {
	Format, Charset string
	Title           string
	Notes           []string
	TextAt          int64 // byte of the encoded form at which the text begins
	TextLength      int64 // bytes
	LayoutAt        int64 // byte at which the layout begins
	LayoutLength    int64 // bytes; 0 if there is none
}

// ReadParsedHead reads the head of an encoded Parsed of size bytes. read returns bytes
// [from, to) of that; its errors are returned as they are. Others are ErrParsed.
func ReadParsedHead(size int64, read func(from, to int64) ([]byte, error)) (*ParsedHead, error) {
	if size < headBytes {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrParsed, size)
	}

	b, err := read(0, headBytes)
	if err != nil {
		return nil, err
	}

	at := headBytes + int64(binary.BigEndian.Uint32(b))
	if at > min(size, 1<<20) {
		return nil, fmt.Errorf("%w: its head has %d of %d bytes", ErrParsed, at-headBytes, size)
	}

	// The bound is far above any head that checkHead takes, and keeps a damaged length from
	// being allocated.
	if b, err = read(headBytes, at); err != nil {
		return nil, err
	}

	var h storagev1.ParsedHead
	if err := proto.Unmarshal(b, &h); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParsed, err)
	}
	if err := checkHead(&h); err != nil {
		return nil, err
	}

	if rest := size - at; h.TextLength > rest || h.LayoutLength != rest-h.TextLength {
		return nil, fmt.Errorf("%w: a text of %d bytes and a layout of %d are not the %d that there are", ErrParsed, h.TextLength, h.LayoutLength, rest)
	}

	return &ParsedHead{
		Format: h.Format, Charset: h.Charset, Title: h.Title, Notes: h.Notes,
		TextAt: at, TextLength: h.TextLength, LayoutAt: at + h.TextLength, LayoutLength: h.LayoutLength,
	}, nil
}

// DecodeParsed returns a Parsed from its encoded form, whose bytes it keeps. Empty bytes
// are those of a document without text.
func DecodeParsed(data []byte) (*Parsed, error) {
	if len(data) == 0 {
		return &Parsed{}, nil
	}

	h, err := ReadParsedHead(int64(len(data)), func(from, to int64) ([]byte, error) { return data[from:to], nil })
	if err != nil {
		return nil, err
	}

	p := &Parsed{
		Format: h.Format, Charset: h.Charset, Title: h.Title, Notes: h.Notes,
		Text: data[h.TextAt:h.LayoutAt:h.LayoutAt], Layout: data[h.LayoutAt:],
	}

	// A document without text is empty bytes, and has one form alone.
	if len(p.Text) == 0 {
		return nil, fmt.Errorf("%w: it has no text, and says more", ErrParsed)
	}
	return p, nil
}

// metadataTitle is the name of the metadata that describes a source by its title.
const metadataTitle = "title"

// Describe returns the metadata of a document with the title that it calls itself, unless the
// metadata has one, or no room for it. It does not change the metadata.
func (p *Parsed) Describe(metadata map[string]string) map[string]string {
	if _, known := metadata[metadataTitle]; known || p.Title == "" {
		return metadata
	}

	described := make(map[string]string, len(metadata)+1)
	maps.Copy(described, metadata)
	described[metadataTitle] = p.Title

	if (&mapreduce.Document{Metadata: described}).ExcessMetadata() != "" {
		return metadata
	}
	return described
}

// CheckParsed returns an error unless data is the output that a unit may have which
// parses a document: a text that is UTF-8, and a layout that fits it. Whether these are
// the document's, only its parser knows.
func CheckParsed(data []byte) error {
	p, err := DecodeParsed(data)
	if err != nil {
		return err
	}
	if !utf8.Valid(p.Text) {
		return fmt.Errorf("%w: its text is not UTF-8", ErrParsed)
	}
	return layout.Check(p.Layout, len(p.Text))
}
