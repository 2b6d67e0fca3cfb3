package wire

import (
	"math"
	"strconv"
	"strings"
)

// Tokens is a count of tokens as a server wrote it. A count that cannot be read does not
// spoil the answer around it: it decodes as one that no call has.
type Tokens int64

// impossible is a count that no call has.
const impossible Tokens = -1

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (t *Tokens) UnmarshalJSON(raw []byte) error {
	*t, _ = ParseTokens(string(raw))
	return nil
}

// ParseTokens reads a count, and reports whether there is one. A server may write it as a
// text, or with a fraction of zero.
func ParseTokens(raw string) (t Tokens, there bool) {
	text := strings.Trim(raw, `"`)
	if text == "" || text == "null" {
		return 0, false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Tokens(n), true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return impossible, true
	}
	return Tokens(f), true
}
