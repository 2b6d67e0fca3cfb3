// Package token counts the tokens of a text: as the provider has counted them, or
// otherwise by an estimator. A Counter counts them as current models do, with a
// vocabulary that is embedded in the binary, in a form that needs no making when a process
// starts. It needs no network and no files.
//
// It imports nothing of the project. A Counter satisfies chunk.Counter.
package token

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// The encoding splits text into pieces, mostly words, by a regular expression, and then
// makes tokens of each. The expression would take nearly all the time, and time quadratic
// in a run of white space. So this package splits text by hand (see split.go), and makes
// tokens (see merge.go) only of pieces that are not in its cache.
const (
	cachedBytes = 32      // longer pieces are rare and not cached
	cachedWords = 1 << 16 // with the words themselves, about 6 MB
	placesEach  = 4       // of a word in the cache: words that share one place only would displace each other again and again
	// Longer pieces are counted in parts, as making tokens takes time quadratic in a piece.
	partBytes = 256
)

// A Counter counts tokens in the o200k_base encoding. Its zero value is ready; the cache is
// made by the first Count: a process has a Counter for each provider of models, and most of
// these are never asked. It is safe for concurrent use.
type Counter struct {
	once sync.Once
	// What is made: written under once, only read afterwards.
	seed  maphash.Seed
	cache *cache
}

// A cache has the words counted latest, each at one of the places that its hash gives.
type cache struct {
	words [cachedWords]atomic.Pointer[word]
	// marks are parts of the hashes of words, at the same places. They tell most other words
	// apart without a look at their text, which is far away in memory.
	marks [cachedWords]atomic.Uint32
}

// A word is a piece with its tokens.
type word struct {
	text   string
	tokens int
}

// New returns a Counter.
func New() *Counter { return &Counter{} }

// Count returns the number of tokens in text, never more than its bytes, in time
// linear in them. The result is that of the encoding, except in runs of
// 256 bytes without the end of a word, where a token may count as two.
func (c *Counter) Count(text string) int {
	c.once.Do(func() { c.seed, c.cache = maphash.MakeSeed(), new(cache) })

	total := 0
	for text != "" {
		n := pieceEnd(text)
		total += c.countPiece(text[:n])
		text = text[n:]
	}
	return total
}

// countPiece counts the tokens of a piece.
func (c *Counter) countPiece(text string) int {
	if len(text) == 1 {
		return 1
	}
	if len(text) > cachedBytes {
		return countLong(text)
	}

	hash := maphash.String(c.seed, text)
	first, start, mark := hash%(cachedWords/placesEach)*placesEach, hash>>60, uint32(hash>>28)|1
	at := first + start%placesEach // if no place is free, as good as any
	for i := range uint64(placesEach) {
		place := first + (start+i)%placesEach
		found := c.cache.marks[place].Load()
		if found == 0 {
			at = place
			break
		}
		if found == mark {
			// Another word may have the same mark: the text decides.
			if w := c.cache.words[place].Load(); w != nil && w.text == text {
				return w.tokens
			}
		}
	}

	w := &word{text: strings.Clone(text)} // otherwise it would keep the whole document in memory
	w.tokens = countTokens(w.text)

	// The word comes before the mark, which says that there is one.
	c.cache.words[at].Store(w)
	c.cache.marks[at].Store(mark)
	return w.tokens
}

// countLong counts the tokens of a long piece, in parts if necessary. What is that long is
// often one letter over and over, so equal parts that follow each other are counted once.
func countLong(text string) int {
	total, part, tokens := 0, "", 0
	for len(text) > partBytes {
		end := partBytes
		for end > partBytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}

		if text[:end] != part {
			part = text[:end]
			tokens = countTokens(part)
		}

		total += tokens
		text = text[end:]
	}
	return total + countTokens(text)
}
