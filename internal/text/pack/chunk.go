package pack

import (
	"cmp"
	"fmt"
)

// Defaults of the service.
const (
	DefaultMaxTokens = 50_000
	DefaultOverlap   = 500 // tokens
)

// minCore is the least size, in tokens, of the core of a piece: one character, which
// may need a token for each of its bytes.
const minCore = 4

// A Counter counts tokens. Cut relies on two properties: a text has no more tokens
// than bytes, and cutting a text in two changes the sum only by a few.
type Counter interface {
	Count(text string) int
}

// Options configure Cut.
type Options struct {
	// MaxTokens bounds the tokens of a piece with its context.
	// Defaults to DefaultMaxTokens.
	MaxTokens int

	// Overlap bounds the tokens that neighbouring pieces share: half of them
	// before the cut and half behind it, so that both pieces hold a statement
	// that lies across the cut. It must leave at least four tokens of MaxTokens
	// to the core. Defaults to 0, no context.
	Overlap int

	// Counter counts the tokens. Defaults to counting bytes.
	Counter Counter
}

// A Piece is one part of a document. All offsets are in bytes of the
// document's text, never inside a character; ranges are half-open.
type Piece struct {
	Start, End         int  // the text of the piece, context included
	CoreStart, CoreEnd int  // the part that belongs to this piece alone
	Tokens             int  // of [Start, End)
	Exact              bool // Tokens was counted; otherwise it is an upper bound, the bytes
}

func (o Options) withDefaults() Options {
	o.MaxTokens = cmp.Or(o.MaxTokens, DefaultMaxTokens)
	if o.Counter == nil {
		o.Counter = byteCounter{}
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.MaxTokens < minCore:
		return fmt.Errorf("chunk: max tokens is %d, must be at least %d", o.MaxTokens, minCore)
	case o.Overlap < 0:
		return fmt.Errorf("chunk: overlap is %d, must not be negative", o.Overlap)
	case o.MaxTokens-o.Overlap < minCore:
		return fmt.Errorf("chunk: overlap is %d, must be at most %d with max tokens %d",
			o.Overlap, o.MaxTokens-minCore, o.MaxTokens)
	}
	return nil
}

type byteCounter struct{}

func (byteCounter) Count(text string) int { return len(text) }

// Cut cuts text into pieces. A text of at most MaxTokens is one piece, an empty text
// none. A larger text is cut into pieces of similar size. Each cut is at the end of
// a paragraph if there is one near the ideal place, otherwise at the end of a line,
// a sentence or a word, otherwise between two characters.
//
// Cut does not count a text with no more bytes than MaxTokens. It counts any other
// text about twice, in time linear in its length. The same text and options give
// the same pieces.
func Cut(text string, o Options) ([]Piece, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}

	if text == "" {
		return nil, nil
	}

	whole := Piece{End: len(text), CoreEnd: len(text), Tokens: len(text)}
	if len(text) <= o.MaxTokens {
		return []Piece{whole}, nil
	}

	c := newCutter(text, o)
	if c.mayFit() {
		whole.Tokens, whole.Exact = o.Counter.Count(text), true
		if whole.Tokens <= o.MaxTokens {
			return []Piece{whole}, nil
		}
	}
	return c.cutPieces()
}
