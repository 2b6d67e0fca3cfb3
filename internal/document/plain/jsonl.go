package plain

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/folder"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/charset"
)

// JSONLinesKind is the name of the format.
const JSONLinesKind document.Kind = "jsonl"

// JSONLinesFormat returns the format of files that hold a document on each line, as JSON. Such a
// file has no parser: whoever submits it reads it by JSONLines.
func JSONLinesFormat() document.Format {
	return document.Format{
		Kind: JSONLinesKind, Sniff: sniff,
		Extensions: []string{".jsonl", ".ndjson"},
		MediaTypes: []string{
			"application/jsonl", "application/x-jsonl", "application/jsonlines", "application/x-jsonlines",
			"application/x-ndjson", "application/ndjson",
		},
	}
}

func sniff(begin []byte) document.Match {
	if holdsRecord(document.TrimBegin(begin)) {
		return document.Resembles
	}
	return document.Possible
}

// holdsRecord reports whether begin is the beginning of JSON lines.
func holdsRecord(begin []byte) bool {
	line, _, _ := bytes.Cut(begin, []byte("\n"))
	return bytes.HasPrefix(line, []byte("{")) && (bytes.Contains(line, []byte(`"text"`)) || bytes.Contains(line, []byte(`"passage"`)) || bytes.Contains(line, []byte(`"url"`)))
}

// LineOptions configure Lines.
type LineOptions struct {
	// Name is that of the file, for errors and for documents without an id.
	// Defaults to "stdin".
	Name string

	// MaxBytes bounds a line. Defaults to document.DefaultMaxBytes.
	MaxBytes int
}

// A LineRecord is a document of a file of JSON lines.
type LineRecord struct {
	ID       string         // see folder.ID; made from its name, or from the file's name, # and the line
	Name     string         // as the file gives it; empty if it does not
	Text     string         // never blank
	Citation bool           // it is a passage that somebody has chosen: its line has "passage"
	Metadata map[string]any // all other members; numbers are json.Number
	Line     int            // from 1
}

// A LineError tells why a line is not a document.
type LineError struct {
	File   string
	Line   int // from 1
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// JSONLines yields the documents of r, one a line, each an object of the form
// {"id": …, "text": …} with metadata as further members. A citation has "passage" in place
// of "text", and may have "document_id" in place of "id"; that stays in its metadata. A
// source that is elsewhere has "url" in place of "text": its text is what the line says of
// it. Lines skips empty lines. A line that is not a document yields a *LineError, and the
// next line follows. Any other error is a read error and ends the sequence. Lines holds one
// line at a time in memory.
func JSONLines(r io.Reader, o LineOptions) iter.Seq2[LineRecord, error] {
	o.Name = cmp.Or(o.Name, "stdin")
	o.MaxBytes = cmp.Or(o.MaxBytes, document.DefaultMaxBytes)

	return func(yield func(LineRecord, error) bool) {
		l := lineReader{r: bufio.NewReaderSize(r, 64<<10), max: o.MaxBytes}
		for n := 1; ; n++ {
			line, err := l.next()
			if err != nil && !errors.Is(err, errTooLong) {
				if !errors.Is(err, io.EOF) {
					yield(LineRecord{}, fmt.Errorf("document: read %s, line %d: %w", o.Name, n, err))
				}
				return
			}

			// Editors may have written a byte order mark at the beginning.
			if n == 1 {
				line = bytes.TrimPrefix(line, []byte(charset.BOM))
			}
			line = bytes.TrimSpace(line)
			if err == nil && len(line) == 0 {
				continue
			}

			var rec LineRecord
			if err == nil {
				rec, err = parseRecord(line, o.Name, n)
			}
			if err != nil {
				rec, err = LineRecord{}, &LineError{File: o.Name, Line: n, Reason: err.Error()}
			}

			if !yield(rec, err) {
				return
			}
		}
	}
}

var errTooLong = errors.New("the line is too long")

// A lineReader reads lines up to a length.
type lineReader struct {
	r   *bufio.Reader
	buf []byte // holds the line returned last
	max int
}

// next returns the next line, valid until the next call; io.EOF if there is
// none. A line above the maximum is read to its end and gives errTooLong.
func (l *lineReader) next() ([]byte, error) {
	l.buf = l.buf[:0]
	read, long := false, false

	// A line may come in several parts, and is held only as long as it is not too long.
	for {
		part, err := l.r.ReadSlice('\n')
		read = read || len(part) > 0
		if long = long || len(l.buf)+len(part) > l.max+len("\r\n"); !long {
			l.buf = append(l.buf, part...)
		}

		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && read, err == nil:
			if long || len(bytes.TrimRight(l.buf, "\r\n")) > l.max {
				return nil, fmt.Errorf("%w: more than %d bytes", errTooLong, l.max)
			}
			return l.buf, nil
		default:
			return nil, err
		}
	}
}

// parseRecord returns the document in a line. Its errors are reasons for LineError.
func parseRecord(line []byte, file string, n int) (LineRecord, error) {
	if !utf8.Valid(line) {
		return LineRecord{}, fmt.Errorf("not UTF-8: column %d", charset.FirstInvalid(line)+1)
	}

	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		return LineRecord{}, notObject(err)
	}
	if members == nil {
		return LineRecord{}, errors.New("not a JSON object but null")
	}

	rec := LineRecord{Line: n}

	var err error
	name := members["id"]
	if members["passage"] != nil && members["text"] == nil && name == nil {
		name = members["document_id"]
	}

	// A record without a name is named by its line.
	if rec.Name, err = recordName(name); err != nil {
		return LineRecord{}, err
	}
	rec.ID = folder.ID(cmp.Or(rec.Name, fmt.Sprintf("%s#%d", file, n)))
	if reason := folder.TooLong(rec.ID); reason != "" {
		return LineRecord{}, errors.New(reason)
	}

	text := "text"
	if _, has := members[text]; !has && members["passage"] != nil {
		rec.Citation, text = true, "passage"
	}

	if members[text] == nil && members["url"] != nil {
		if rec.Text, err = sourceText(members); err != nil {
			return LineRecord{}, err
		}
	} else if rec.Text, err = recordText(text, members[text]); err != nil {
		return LineRecord{}, err
	}

	// What is left is what the record says beside its text.
	delete(members, "id")
	delete(members, text)
	rec.Metadata, err = decodeMetadata(members)
	return rec, err
}

// sourceText returns what a line says of a source that is elsewhere: a line for each of its
// texts, by name. The line has a url in place of a text.
func sourceText(members map[string]json.RawMessage) (string, error) {
	if _, err := recordText("url", members["url"]); err != nil {
		return "", err
	}

	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if raw := members[name]; len(raw) > 0 && raw[0] == '"' && name != "id" {
			text, err := recordText(name, raw)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "%s: %s\n", name, text)
		}
	}

	return b.String(), nil
}

// notObject explains why a line is not a JSON object.
func notObject(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: column %d: %s", syntax.Offset, errs.JSONFault(syntax))
	case errors.As(err, &kind):
		return fmt.Errorf("not a JSON object but %s", kind.Value)
	}
	return err
}

// recordName returns the name in the member id, or "" if it is missing.
func recordName(id json.RawMessage) (string, error) {
	if len(id) == 0 || string(id) == "null" {
		return "", nil
	}

	if id[0] == '"' {
		return stringMember("id", id)
	}

	var n json.Number
	if err := json.Unmarshal(id, &n); err != nil {
		return "", errors.New("id is neither a string nor a number")
	}
	return n.String(), nil
}

// recordText returns the text in a member, which is called by its name.
func recordText(name string, text json.RawMessage) (string, error) {
	switch {
	case len(text) == 0:
		return "", fmt.Errorf("%s is missing", name)
	case text[0] != '"':
		return "", fmt.Errorf("%s is not a string", name)
	}

	s, err := stringMember(name, text)
	if err != nil {
		return "", err
	}

	if strings.TrimSpace(s) == "" {
		return "", fmt.Errorf("%s is empty", name)
	}

	if reason := charset.Unreadable(s); reason != "" {
		return "", errors.New(reason)
	}
	return s, nil
}

// stringMember decodes a JSON string. It refuses an escaped half of a surrogate
// pair, which the decoder would silently replace by U+FFFD.
func stringMember(name string, raw json.RawMessage) (string, error) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if strings.ContainsRune(s, utf8.RuneError) && strings.Count(s, "\ufffd") > countReplacements(raw) {
		return "", fmt.Errorf("%s escapes half a surrogate pair", name)
	}
	return s, nil
}

// countReplacements counts U+FFFD in raw, escaped or not.
func countReplacements(raw []byte) int {
	return bytes.Count(raw, []byte("\ufffd")) + bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`))
}

// decodeMetadata decodes the members other than id and text.
func decodeMetadata(members map[string]json.RawMessage) (map[string]any, error) {
	if len(members) == 0 {
		return nil, nil
	}

	out := make(map[string]any, len(members))
	for name, raw := range members {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()

		var v any
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = v
	}

	return out, nil
}
