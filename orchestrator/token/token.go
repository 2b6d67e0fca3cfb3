// Package token says how many tokens a text has: as the provider has counted
// them, or else as an estimator does. A Counter counts them as the models of today
// see them, with a vocabulary that is embedded in the binary: no network, no files.
//
// It imports nothing of the project. A Counter satisfies chunk.Counter.
package token

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// The tokenizer splits text into pieces, words mostly, by a regular expression,
// and then looks each up. The expression takes nearly all the time, and time
// quadratic in a run of white space, so pieces are found here, by hand (see
// split.go), and the tokenizer is asked for each piece that was not seen lately.
const (
	cachedBytes = 32      // longer pieces are rare and not remembered
	cachedWords = 1 << 15 // with the words themselves, about 3 MB
	pieceBytes  = 4 << 10 // no piece is counted whole that is longer
	spaceBytes  = 256     // nor one of white space
)

// A Counter counts tokens in the o200k_base encoding. Its zero value is ready;
// the vocabulary (22 ms, 29 MB) is loaded by the first Count. It is safe for
// concurrent use.
type Counter struct {
	once  sync.Once
	codec *codec.Codec // written under once, only read afterwards
	seed  maphash.Seed // likewise
	// The words counted latest, each at the place that its hash gives.
	words [cachedWords]atomic.Pointer[word]
}

// A word is a piece with its tokens.
type word struct {
	text   string
	tokens int
}

// New returns a Counter.
func New() *Counter { return &Counter{} }

// Count returns the number of tokens in text, never more than its bytes, in
// time linear in them. It is what the tokenizer would return, except where a
// text runs for 4 KiB without a word's end, or for 256 bytes in white space:
// there a token may be counted as two.
func (c *Counter) Count(text string) int {
	c.once.Do(func() {
		c.codec, c.seed = codec.NewO200kBase(), maphash.MakeSeed()
	})
	total := 0
	for text != "" {
		n := next(text)
		total += c.piece(text[:n])
		text = text[n:]
	}
	return total
}

// piece counts the tokens of a piece.
func (c *Counter) piece(text string) int {
	if len(text) == 1 {
		return 1
	}
	if len(text) > cachedBytes {
		return c.long(text)
	}
	at := &c.words[maphash.String(c.seed, text)%cachedWords]
	if w := at.Load(); w != nil && w.text == text {
		return w.tokens
	}
	w := &word{text: strings.Clone(text)} // else it would keep all of the document
	w.tokens = c.ask(w.text)
	at.Store(w)
	return w.tokens
}

// long counts the tokens of a long piece, in parts if need be.
func (c *Counter) long(text string) int {
	most := pieceBytes
	if r, _ := utf8.DecodeRuneInString(text); classOf(r).in(blank) {
		most = spaceBytes
	}
	total := 0
	for len(text) > most {
		end := most
		for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		total += c.ask(text[:end])
		text = text[end:]
	}
	return total + c.ask(text)
}

// ask asks the tokenizer. Bytes bound the answer because each token holds at
// least one; the tokenizer forgets this for text that is not UTF-8.
func (c *Counter) ask(text string) int {
	n, err := c.codec.Count(text)
	if err != nil {
		return len(text)
	}
	return min(n, len(text))
}
