package token

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// countTokens counts the tokens of a piece, or of a part of one, which the expression may split
// again. It bounds the result by the bytes: each token holds at least one, and a byte that is
// not UTF-8 is made three.
func countTokens(text string) int {
	size := len(text)
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}

	total := 0
	for text != "" {
		n := blankLinesEnd(text[:pieceEnd(text)])
		if rankOf(text[:n]) == noRank {
			total += merge(text[:n])
		} else {
			total++
		}
		text = text[n:]
	}
	return min(total, size)
}

// blankLinesEnd returns the end of a piece, or in white space the end of its first line breaks:
// the tokenizer with which documents have been cut so far leaves it there, so that blank lines
// with spaces in them count as a few tokens more than the encoding has, and the same document
// is cut at the same places as ever.
func blankLinesEnd(piece string) int {
	if runEnd(piece, 0, blank) < len(piece) {
		return len(piece)
	}
	if i := strings.IndexAny(piece, "\r\n"); i >= 0 {
		return runEnd(piece, i, newline)
	}
	return len(piece)
}

// stackBytes is the length of pieces whose parts need no memory of their own.
const stackBytes = 64

// A span is a token of a piece, from an offset to that of the next span.
type span struct {
	start uint32
	rank  uint32 // of the token that it would be with the next span
}

// merge counts the tokens of a piece as byte-pair encoding makes them (Sennrich, Haddow and
// Birch, 2016): at first each byte is one, and of two neighbours that are a token together, the
// pair of the lowest rank becomes one, the first of them if there are several, until no
// neighbours are a token.
func merge(piece string) int {
	var room [stackBytes + 1]span
	spans := slices.Grow(room[:0], len(piece)+1)
	for i := range len(piece) + 1 {
		spans = append(spans, span{uint32(i), noRank})
		if i >= 2 {
			spans[i-2].rank = rankOf(piece[i-2 : i])
		}
	}

	for {
		least, at := uint32(noRank), 0
		for i, s := range spans {
			if s.rank < least {
				least, at = s.rank, i
			}
		}
		if least == noRank {
			return len(spans) - 1 // the last span is the end of the piece
		}

		// What is merged forms other pairs with its neighbours.
		spans = slices.Delete(spans, at+1, at+2)
		spans[at].rank = pairRank(piece, spans, at)
		if at > 0 {
			spans[at-1].rank = pairRank(piece, spans, at-1)
		}
	}
}

// pairRank returns the rank of spans i and i+1 as one token.
func pairRank(piece string, spans []span, i int) uint32 {
	if i+2 >= len(spans) {
		return noRank
	}
	return rankOf(piece[spans[i].start:spans[i+2].start])
}
