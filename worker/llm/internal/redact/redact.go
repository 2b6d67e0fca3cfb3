// Package redact makes texts fit to be shown: keys print as stars, and the texts of servers
// are free of keys, on one line and not too long.
package redact

import (
	"log/slog"
	"regexp"
	"strings"

	"github.com/coditect/mapreduce/api/shorten"
)

// A Key is a credential. It prints, encodes and logs as stars, whatever it is
// part of; only a provider's request holds it in the clear.
type Key struct{ secret string }

// NewKey returns the key that was read from the environment or a file.
func NewKey(secret string) Key { return Key{strings.TrimSpace(secret)} }

const stars = "***"

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.secret == "" }

// String returns stars.
func (Key) String() string { return stars }

// GoString returns stars, for %#v.
func (Key) GoString() string { return stars }

// MarshalText returns stars, for every encoder.
func (Key) MarshalText() ([]byte, error) { return []byte(stars), nil }

// LogValue returns stars, for slog.
func (Key) LogValue() slog.Value { return slog.StringValue(stars) }

// keyLike is how the vendors' keys look. Their errors repeat them, in part.
var keyLike = regexp.MustCompile(`\b(sk|pk|rk)-[A-Za-z0-9_*.-]{4,}|(?i)\bbearer\s+[^\s"',]*[0-9*][^\s"',]*`)

// Scrub takes the key, in whatever form, and what looks like a key out of a text of a server.
func (k Key) Scrub(text string) string {
	return keyLike.ReplaceAllString(hideForms(text, k.secret), stars)
}

// Secret returns the key in the clear. Only the packages of vendors can call it.
func Secret(k Key) string { return k.secret }

// maxMessage bounds a message, in runes.
const maxMessage = 600

// OneLine returns a text on one line, without what is no UTF-8.
func OneLine(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
}

// ShortenLine returns a text on one line and not too long.
func ShortenLine(text string) string {
	return shorten.Line(text, maxMessage)
}
