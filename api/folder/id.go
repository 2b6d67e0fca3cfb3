package folder

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// ID returns the id of the document at path, or of the name that a client gave. It
// is path itself with three things percent-encoded, byte by byte: invalid UTF-8;
// control characters and line breaks; and a percent sign that would otherwise read
// as an encoding. If the result is reserved, one more character is encoded.
//
// Path decodes an id back to its path, so different paths have different ids.
// Apply ID only once. The result may be longer than mapreduce.MaxDocumentID; see
// TooLong.
func ID(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); {
		r, size := utf8.DecodeRuneInString(path[i:])
		if r == utf8.RuneError && size == 1 || isUnprintable(r) || r == '%' && isEncoded(path[i:]) {
			percentEncode(&b, path[i:i+size])
		} else {
			b.WriteString(path[i : i+size])
		}
		i += size
	}

	return string(mapreduce.Unreserve(mapreduce.DocumentID(b.String())))
}

// Path returns the path, or the name, that ID turned into id.
func Path(id string) string {
	var b strings.Builder
	for i := 0; i < len(id); i++ {
		if id[i] != '%' || !isEncoded(id[i:]) {
			b.WriteByte(id[i])
			continue
		}

		c, err := strconv.ParseUint(id[i+1:i+3], 16, 8)
		if err != nil { // isEncoded has checked both digits
			panic(err)
		}

		b.WriteByte(byte(c))
		i += 2
	}

	return b.String()
}

// TooLong returns the reason why id is too long for a document, or "" if it is
// not.
func TooLong(id string) string {
	if len(id) <= mapreduce.MaxDocumentID {
		return ""
	}
	return fmt.Sprintf("its id would have %d bytes, more than %d; give it a shorter name", len(id), mapreduce.MaxDocumentID)
}

// isUnprintable reports whether r would break a line or a terminal.
func isUnprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

// isEncoded reports whether s begins with a percent sign and two digits.
func isEncoded(s string) bool {
	return len(s) >= 3 && isHex(s[1]) && isHex(s[2])
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'F' || 'a' <= c && c <= 'f'
}

func percentEncode(b *strings.Builder, s string) {
	for i := range len(s) {
		fmt.Fprintf(b, "%%%02X", s[i])
	}
}

// A Roster remembers the ids of documents and refuses duplicates. The zero Roster
// is ready.
type Roster struct {
	origins map[string]string
}

// Add adds the id of a document that comes from origin. If another document has
// the id, the error names the origins of both.
func (r *Roster) Add(id, origin string) error {
	if first, ok := r.origins[id]; ok {
		return fmt.Errorf("document: %s and %s have the same id %q", first, origin, id)
	}
	if r.origins == nil {
		r.origins = map[string]string{}
	}
	r.origins[id] = origin
	return nil
}
