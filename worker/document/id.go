package document

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// MaxIDBytes is the most bytes of a document's id, so that the names made of it
// fit the keys of the store.
const MaxIDBytes = 1024

// ID returns the id of the document that path, or a name given by a client,
// stands for. It is path itself with three things percent-encoded, byte by
// byte: what is not valid UTF-8; control characters and line breaks; and a
// percent sign that would otherwise read as an encoding. If the rest is
// reserved, one character more is encoded, so that it is not.
//
// Decoding each percent sign that two hexadecimal digits follow gives path
// back, so different paths have different ids. ID is to be applied once.
func ID(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); {
		r, size := utf8.DecodeRuneInString(path[i:])
		if r == utf8.RuneError && size == 1 || unprintable(r) || r == '%' && encoded(path[i:]) {
			encode(&b, path[i:i+size])
		} else {
			b.WriteString(path[i : i+size])
		}
		i += size
	}
	return string(mapreduce.Unreserve(mapreduce.DocumentID(b.String())))
}

// unprintable reports whether r would break a line or a terminal.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

// encoded reports whether s begins with a percent sign and two digits.
func encoded(s string) bool {
	return len(s) >= 3 && isHex(s[1]) && isHex(s[2])
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'F' || 'a' <= c && c <= 'f'
}

func encode(b *strings.Builder, s string) {
	for i := range len(s) {
		fmt.Fprintf(b, "%%%02X", s[i])
	}
}

// A Roster remembers the ids of documents, to refuse a second one of the same.
// The zero Roster is ready.
type Roster struct {
	origins map[string]string
}

// Add takes in the id of a document that comes from origin. If another has it,
// the error names the origins of both.
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
