// Package token counts the tokens of a text as the models of today see them,
// with a vocabulary that is embedded in the binary: no network, no files.
//
// It imports nothing of the project. A Counter satisfies chunk.Counter.
package token

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// A text is counted in segments, so that neither memory nor time grows faster
// than the text. The tokenizer splits text by a regular expression whose time
// is quadratic in a run of white space that holds line breaks (3 s for 64 KiB),
// hence the second bound.
const (
	segmentBytes = 32 << 10 // aim for segments of this many bytes
	searchBytes  = 4 << 10  // how far before that to look for a seam
	spaceBytes   = 256      // no run of white space in a segment is longer
)

// A Counter counts tokens in the o200k_base encoding. Its zero value is ready;
// the vocabulary (22 ms, 29 MB) is loaded by the first Count. It is safe for
// concurrent use.
type Counter struct {
	once  sync.Once
	codec *codec.Codec // written under once, only read afterwards
}

// New returns a Counter.
func New() *Counter { return &Counter{} }

// Count returns the number of tokens in text, never more than its bytes, in
// time linear in them. It is what the tokenizer would return, except where a
// text runs for 32 KiB without a word's end, or for 256 bytes in white space:
// there a token may be counted as two.
func (c *Counter) Count(text string) int {
	if text == "" {
		return 0
	}
	c.once.Do(func() { c.codec = codec.NewO200kBase() })
	total := 0
	for text != "" {
		n := segment(text)
		total += c.count(text[:n])
		text = text[n:]
	}
	return total
}

// count asks the tokenizer. Bytes bound the answer because each token holds at
// least one; the tokenizer forgets this for text that is not UTF-8.
func (c *Counter) count(text string) int {
	n, err := c.codec.Count(text)
	if err != nil {
		return len(text)
	}
	return min(n, len(text))
}

// segment returns how many bytes of text to count next: all, or up to a seam,
// or as many as the bounds allow.
func segment(text string) int {
	limit := spaceLimit(text)
	if limit == len(text) {
		return limit
	}
	for p := limit; p > limit-searchBytes && p > 0; p-- {
		if seam(text, p) {
			return p
		}
	}
	for limit > 1 && !utf8.RuneStart(text[limit]) && limit > segmentBytes-utf8.UTFMax {
		limit--
	}
	return limit
}

// spaceLimit returns the length of the longest prefix of text, up to
// segmentBytes, in which no run of white space reaches spaceBytes before its
// end.
func spaceLimit(text string) int {
	end := min(len(text), segmentBytes)
	run := 0 // bytes of white space that end at p
	for p := 0; p < end; {
		r, size := rune(text[p]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[p:])
		}
		p += size
		if !unicode.IsSpace(r) {
			run = 0
			continue
		}
		if run += size; run >= spaceBytes {
			return p
		}
	}
	return end
}

// seam reports whether no token reaches over offset p of text and the tokens
// on either side do not depend on the other: a letter or digit stands before
// p, and behind it what can neither continue a word nor begin a contraction.
func seam(text string, p int) bool {
	if p >= len(text) {
		return p == len(text)
	}
	if !utf8.RuneStart(text[p]) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(text[:p])
	behind, _ := utf8.DecodeRuneInString(text[p:])
	return (unicode.IsLetter(before) || unicode.IsNumber(before)) &&
		!unicode.IsLetter(behind) && !unicode.IsNumber(behind) &&
		!unicode.IsMark(behind) && behind != '\'' && behind != utf8.RuneError
}
