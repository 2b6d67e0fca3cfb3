package document

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxIDBytes is the most bytes of a document's id, so that the names made of it
// fit the keys of the store.
const MaxIDBytes = 1024

// Names that the units of a job have apart from documents: whole names, what
// begins with the mark of a parse unit, and what ends like a chunk or a part.
var (
	reservedName   = regexp.MustCompile(`(?s)^(final|direct|plan|batch_[0-9]+|reduce_L[0-9]+_[0-9]+|parse_.*)$`)
	reservedEnding = regexp.MustCompile(`_(chunk|part)_[0-9]+$`)
)

// Reserved reports whether id is, or looks like, the name of a unit that is not
// a whole document. No document has such an id.
func Reserved(id string) bool {
	return reservedName.MatchString(id) || reservedEnding.MatchString(id)
}

// ID returns the id of the document that path, or a name given by a client,
// stands for. It is path itself with three things percent-encoded, byte by
// byte: what is not valid UTF-8; control characters and line breaks; and a
// percent sign that would otherwise read as an encoding. If the rest is
// Reserved, one character more is encoded, so that it is not.
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
	return unreserve(b.String())
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

// unreserve encodes a character of an id that is reserved: the first, and the
// underscore before the number it ends in.
func unreserve(id string) string {
	var b strings.Builder
	if reservedName.MatchString(id) {
		encode(&b, id[:1])
		id = id[1:]
	}
	if reservedEnding.MatchString(id) {
		cut := strings.LastIndexByte(id, '_')
		b.WriteString(id[:cut])
		encode(&b, "_")
		id = id[cut+1:]
	}
	b.WriteString(id)
	return b.String()
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
