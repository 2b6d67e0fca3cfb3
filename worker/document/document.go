// Package document turns the inputs of users into text. It finds the files that
// inputs name, detects the kind of each and decodes it, with a map from the text
// back to the bytes of the file. It refuses a file that is not text, with a
// reason, and never guesses.
//
// It imports nothing of the project but worker/offset.
package document

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/worker/offset"
)

// A Kind is the format of a document.
type Kind string

// Kinds.
const (
	Text     Kind = "text"
	Markdown Kind = "markdown" // kept as it is
	HTML     Kind = "html"
	JSONL    Kind = "jsonl" // one document a line, see Lines
)

// Parsers returns the names of the parsers that documents may need: one for each
// kind that Read takes.
func Parsers() []string { return []string{string(HTML), string(Markdown), string(Text)} }

// A RefusedError tells why bytes are not a document.
type RefusedError struct {
	Reason string // as it stands in the ledger
}

func (e *RefusedError) Error() string { return "document: refused: " + e.Reason }

// ErrNoText is the error of Read for a document that is empty or has no readable
// text.
var ErrNoText error = &RefusedError{Reason: "no text"}

func newRefusal(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// A Document is a text and where it came from.
type Document struct {
	Kind    Kind
	Charset string      // charset of the bytes, such as "utf-8"
	Text    string      // valid UTF-8
	Source  *offset.Map // from bytes of Text to bytes of the file
}

// Read returns the document in data. A declared media type takes precedence over
// the name; both may be empty. The error is a RefusedError if data is not a
// document. JSON lines are for Lines.
func Read(name string, data []byte, mediaType string) (*Document, error) {
	kind, err := Detect(name, data, mediaType)
	if err != nil {
		return nil, err
	}
	if kind == JSONL {
		return nil, fmt.Errorf("document: %s holds one document a line", name)
	}
	text, back, charset, err := decodeText(data, declaredCharset(kind, data, mediaType))
	if err != nil {
		return nil, err
	}
	d := &Document{Kind: kind, Charset: charset, Text: text, Source: back}
	if kind == HTML {
		d.Text, d.Source = htmlText(text, back)
	}
	if strings.TrimSpace(d.Text) == "" {
		return nil, ErrNoText
	}
	return d, nil
}

// Detect returns the kind of a document, judging by its declared media type, its
// name and its first bytes. It refuses formats that are known not to be text. Read
// checks the rest of the document.
func Detect(name string, data []byte, mediaType string) (Kind, error) {
	for _, f := range foreignFormats {
		if bytes.HasPrefix(data, []byte(f.magic)) {
			return "", newRefusal("%s, not text", f.name)
		}
	}
	if kind, ok, err := kindOfMediaType(mediaType); ok || err != nil {
		return kind, err
	}
	if kind := kindOfName(name); kind != "" {
		return kind, nil
	}
	switch begin := sniffPrefix(data); {
	case hasPrefixFold(begin, "<!doctype html"), hasPrefixFold(begin, "<html"):
		return HTML, nil
	case filepath.Ext(name) == "" && holdsRecord(begin):
		return JSONL, nil
	}
	return Text, nil
}

// foreignFormats may consist of text characters, but are not readable as text.
var foreignFormats = [...]struct{ magic, name string }{
	{"%PDF-", "a PDF file"},
	{"%!PS", "a PostScript file"},
	{`{\rtf`, "an RTF file"},
}

// sniffBytes is the length of the beginning that Detect inspects.
const sniffBytes = 4096

func sniffPrefix(data []byte) []byte {
	data = data[:min(len(data), sniffBytes)]
	return bytes.TrimSpace(bytes.TrimPrefix(data, []byte(utf8BOM)))
}

func hasPrefixFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && strings.EqualFold(string(b[:len(prefix)]), prefix)
}

// holdsRecord reports whether begin is the beginning of JSON lines.
func holdsRecord(begin []byte) bool {
	line, _, _ := bytes.Cut(begin, []byte("\n"))
	return bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line, []byte(`"text"`))
}

// kindOfMediaType returns the kind that a media type declares, if it does.
func kindOfMediaType(mediaType string) (kind Kind, ok bool, err error) {
	if mediaType == "" {
		return "", false, nil
	}
	m, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		return "", false, newRefusal("declared as %q, which is not a media type", mediaType)
	}
	switch m {
	case "application/octet-stream", "text/plain": // too general to tell anything
		return "", false, nil
	case "text/html", "application/xhtml+xml":
		return HTML, true, nil
	case "text/markdown", "text/x-markdown":
		return Markdown, true, nil
	case "application/jsonl", "application/x-jsonl", "application/jsonlines", "application/x-jsonlines",
		"application/x-ndjson", "application/ndjson":
		return JSONL, true, nil
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml":
		return Text, true, nil
	}
	if strings.HasPrefix(m, "text/") || strings.HasSuffix(m, "+xml") || strings.HasSuffix(m, "+json") || strings.HasSuffix(m, "+yaml") {
		return Text, true, nil
	}
	return "", false, newRefusal("declared as %s, not text", m)
}

// kindOfName returns the kind that a file's extension stands for, if any.
func kindOfName(name string) Kind {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".html", ".htm", ".xhtml":
		return HTML
	case ".md", ".markdown", ".mdown", ".mkd":
		return Markdown
	case ".jsonl", ".ndjson":
		return JSONL
	case ".txt", ".text":
		return Text
	}
	return ""
}

// unreadableText returns the reason why text is not readable, or "" if it is. It
// is not if more than one character in a hundred is a control character other than
// those that lay out text.
func unreadableText(text string) string {
	controls, nuls := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == 0:
			controls, nuls = controls+1, nuls+1
		case c < ' ' && !strings.ContainsRune("\t\n\v\f\r\b\x1b", rune(c)), c == 0x7f:
			controls++
		}
	}
	if controls*100 <= utf8.RuneCountInString(text) {
		return ""
	}
	return fmt.Sprintf("not text: %d NUL and %d other control characters in %d bytes", nuls, controls-nuls, len(text))
}

// notUTF8 refuses data that is not UTF-8, and names the format that it resembles.
func notUTF8(data []byte, at int) error {
	like, _, _ := strings.Cut(http.DetectContentType(data), ";")
	if !strings.HasPrefix(like, "text/") && like != "application/octet-stream" {
		return newRefusal("not text: looks like %s", like)
	}
	return newRefusal("not UTF-8: byte 0x%02x at offset %d, and no other charset is declared", data[at], at)
}
