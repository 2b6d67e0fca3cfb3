package ground

import (
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// An index lists the tokens of a text by their word.
type index struct {
	text         string
	tokens       []token
	ids          map[string]int  // tokens by their text: the vocabulary, numbered from 0
	tokenIDs     []int           // the vocabulary number of each token
	firstAt      []int           // where in tokenNumbers those of each vocabulary number begin
	tokenNumbers []int           // numbers of tokens, by vocabulary number, in order
	senses       []atomic.Uint32 // cache of senseOf by vocabulary number, 0 if not known yet

	once       sync.Once
	vocabulary string // the vocabulary; written under once, then only read
}

// newIndex indexes the tokens of text, in time linear in its length.
func newIndex(text string) *index {
	x := &index{text: text, tokens: splitTokens(text), ids: make(map[string]int)}
	x.tokenIDs = make([]int, len(x.tokens))

	var counts []int
	for i, t := range x.tokens {
		s := text[t.start:t.end]
		id, ok := x.ids[s]
		if !ok {
			id = len(counts)
			x.ids[s] = id
			counts = append(counts, 0)
		}

		x.tokenIDs[i] = id
		counts[id]++
	}

	// The tokens are sorted by their words, by counting, as their number is known for each.
	x.senses = make([]atomic.Uint32, len(counts))
	x.firstAt = make([]int, len(counts)+1)
	for id, n := range counts {
		x.firstAt[id+1] = x.firstAt[id] + n
	}

	x.tokenNumbers = make([]int, len(x.tokens))
	next := slices.Clone(x.firstAt)
	for i, id := range x.tokenIDs {
		x.tokenNumbers[next[id]] = i
		next[id]++
	}

	return x
}

// tokensOf returns the numbers of the tokens with vocabulary number id, in order.
func (x *index) tokensOf(id int) []int { return x.tokenNumbers[x.firstAt[id]:x.firstAt[id+1]] }

// rarestToken returns the token of a quote that is rarest in the text. It reports
// false if the text lacks one of the tokens.
func (x *index) rarestToken(quote string, of []token) (t token, list []int, ok bool) {
	for _, q := range of {
		id, there := x.ids[quote[q.start:q.end]]
		if !there {
			return t, nil, false
		}
		if l := x.tokensOf(id); !ok || len(l) < len(list) {
			t, list, ok = q, l, true
		}
	}
	return t, list, ok
}

// A tier tells whether the ends of a quote may cut words of the text.
type tier int8

const (
	whole tier = iota // its first and last token are tokens of the text
	cut               // they may be parts of them
)

// maxCompared bounds the bytes that are compared to find one quote by its rarest
// token. Beyond it a scan of the whole text, which is linear, is faster.
const maxCompared = 1 << 24

// findStarts returns the offsets at or behind from at which quote stands.
func (x *index) findStarts(quote string, tier tier, from int) iter.Seq[int] {
	words := splitTokens(quote)
	if len(words) > 0 && words[0].kind == symbol {
		words = words[1:] // it may be a symbol only because nothing stands before it
	}

	if len(words) == 0 {
		return x.scanText(quote, from)
	}

	// The first and last token may be parts of words, so only those between them can be
	// looked up.
	if tier == cut {
		if len(words) <= 2 {
			if !x.inVocabulary(quote, words) {
				return func(func(int) bool) {}
			}
			return x.scanText(quote, from)
		}

		words = words[1 : len(words)-1]
	}

	anchor, list, ok := x.rarestToken(quote, words)
	switch {
	case !ok:
		return func(func(int) bool) {}
	case len(list)*len(quote) > maxCompared:
		return x.scanText(quote, from)
	}

	return x.startsAroundAnchor(quote, anchor, list, from)
}

// startsAroundAnchor returns the offsets at which quote stands. list holds the
// tokens of the text that equal anchor, a token of the quote.
func (x *index) startsAroundAnchor(quote string, anchor token, list []int, from int) iter.Seq[int] {
	return func(yield func(int) bool) {
		k, _ := slices.BinarySearchFunc(list, from+anchor.start, func(i, at int) int { return x.tokens[i].start - at })

		for _, i := range list[k:] {
			at := x.tokens[i].start - anchor.start
			if strings.HasPrefix(x.text[at:], quote) && !yield(at) {
				return
			}
		}
	}
}

// scanText returns the offsets at which quote stands, by a scan of the whole text.
func (x *index) scanText(quote string, from int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := from; ; at++ {
			i := strings.Index(x.text[at:], quote)
			if i < 0 {
				return
			}
			if at += i; !yield(at) {
				return
			}
		}
	}
}

// inVocabulary reports whether a quote of one or two tokens may stand in the text
// with parts of words at its ends. It searches the vocabulary, which is far
// shorter than the text.
func (x *index) inVocabulary(quote string, words []token) bool {
	x.once.Do(func() {
		var b strings.Builder
		b.WriteByte('\n')
		for s := range x.ids {
			b.WriteString(s)
			b.WriteByte('\n')
		}
		x.vocabulary = b.String()
	})

	// Each word of the vocabulary stands between line breaks, so that the end of one and
	// the beginning of the next do not match together.
	first, last := words[0], words[len(words)-1]
	if len(words) == 1 {
		return strings.Contains(x.vocabulary, quote[first.start:first.end])
	}
	return strings.Contains(x.vocabulary, quote[first.start:first.end]+"\n") &&
		strings.Contains(x.vocabulary, "\n"+quote[last.start:last.end])
}
