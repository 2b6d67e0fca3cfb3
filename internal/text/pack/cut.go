package pack

import (
	"fmt"
	"unicode/utf8"
)

// An atom is a short stretch of text that is never cut. It begins where the one
// before it ends.
type atom struct {
	end    int   // offset in the text
	tokens int32 // counted alone, and at least 1: a Counter may round down, and no text is free
	rank   rank  // of the place at end
}

// Bounds of an atom, in bytes. Shorter atoms allow finer cuts and context, but each
// adds about a token of error.
const (
	maxAtom = 256
	minAtom = 16
)

// slack is by how many tokens a Counter may count higher when a text is cut in two.
const slack = 4

// A cutter holds a text in atoms while it is cut into pieces.
type cutter struct {
	text  string
	o     Options
	atoms []atom
	sums  []int // sums[i] is the tokens of atoms[:i]
}

func newCutter(text string, o Options) *cutter {
	c := &cutter{text: text, o: o}
	size := atomSize(o)
	c.atoms = make([]atom, 0, len(text)*4/(size*3)+1)

	start, at := 0, afterParagraph
	for s := (scanner{}); start < len(text); {
		var end int
		end, at = nextAtom(&s, text, size, at)
		c.atoms = append(c.atoms, atom{end: end, tokens: int32(max(1, o.Counter.Count(text[start:end]))), rank: at})
		start = end
	}

	c.sums = make([]int, len(c.atoms)+1)
	for i, a := range c.atoms {
		c.sums[i+1] = c.sums[i] + int(a.tokens)
	}
	return c
}

// atomSize returns the greatest size of an atom in bytes: small enough that any atom
// fits a core, and that a core has many atoms.
func atomSize(o Options) int {
	core := o.MaxTokens - o.Overlap
	return min(core, max(minAtom, min(core/8, maxAtom)))
}

// nextAtom returns the end of the atom that begins at s.pos, a place of rank from,
// and moves s there. The atom ends at the first place of a better rank, so that
// every good place ends an atom unless another is near. Otherwise it ends at the
// best place between half of size and size, the last of equals.
func nextAtom(s *scanner, text string, size int, from rank) (end int, at rank) {
	start := s.pos
	// The first character belongs to the atom, whatever stands before it.
	s.rankNext(text)

	best, at := *s, rank(-1)
	for s.pos-start <= size {
		if s.pos == len(text) {
			return s.pos, afterParagraph
		}

		here := *s
		r := s.rankNext(text)
		if r > from {
			best, at = here, r
			break
		}

		if here.pos == best.pos || here.pos-start >= size/2 && r >= at {
			best, at = here, r
		}
	}

	*s = best
	return best.pos, at
}

// mayFit reports whether the whole text may fit one piece: the sum of its atoms is
// only a little more than its tokens.
func (c *cutter) mayFit() bool {
	return c.sums[len(c.atoms)] <= c.o.MaxTokens+slack*len(c.atoms)
}

// cutPieces cuts the pieces one by one.
func (c *cutter) cutPieces() ([]Piece, error) {
	var pieces []Piece
	for i := 0; i < len(c.atoms); {
		p, next, err := c.cutPiece(i)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, p)
		i = next
	}
	return pieces, nil
}

// cutPiece returns the piece whose core begins with atom i, and the atom after its
// core. It counts the piece as a whole, because the sum of its atoms is not exact,
// and makes the piece smaller while it is too large.
func (c *cutter) cutPiece(i int) (Piece, int, error) {
	for less := 0; ; {
		next := c.coreEnd(i, c.o.MaxTokens-c.o.Overlap-less)
		p := Piece{CoreStart: c.atomStart(i), CoreEnd: c.atomStart(next)}
		p.Start, p.End = p.CoreStart, p.CoreEnd
		if less < c.o.MaxTokens-c.o.Overlap { // otherwise not even the core fits
			p.Start, p.End = c.contextStart(i), c.contextEnd(next)
		}

		p.Tokens, p.Exact = c.o.Counter.Count(c.text[p.Start:p.End]), true
		over := p.Tokens - c.o.MaxTokens
		if over <= 0 {
			return p, next, nil
		}

		if next == i+1 && p.Start == p.CoreStart && p.End == p.CoreEnd {
			return Piece{}, 0, fmt.Errorf("chunk: %d tokens counted in the %d bytes at offset %d: more tokens than bytes",
				p.Tokens, p.End-p.Start, p.Start)
		}

		// Each try takes off more than the one before, so that few are needed.
		less = 2*less + over
	}
}

// atomStart returns the offset at which atom i begins.
func (c *cutter) atomStart(i int) int {
	if i == 0 {
		return 0
	}
	return c.atoms[i-1].end
}

// coreEnd returns the atom after a core of at most room tokens that begins with atom
// i. It divides the rest of the text evenly, so that no small piece is left at the
// end. It cuts at the best place within a tenth of the even share, the nearest of
// equals. A core has at least one atom.
func (c *cutter) coreEnd(i, room int) int {
	left := c.sums[len(c.atoms)] - c.sums[i]
	if left <= room {
		return len(c.atoms)
	}

	room = max(room, 1)
	parts := left/(room-room/20) + 1 // a twentieth is kept for choosing a place
	aim := left / parts

	best, bestAt := i+1, rank(-1)
	for j := c.atomReaching(i, aim-aim/10); j <= len(c.atoms); j++ {
		size := c.sums[j] - c.sums[i]
		if size > room || size > aim+aim/10 {
			break
		}
		at := c.atoms[j-1].rank
		if at > bestAt || at == bestAt && absDifference(size, aim) < absDifference(c.sums[best]-c.sums[i], aim) {
			best, bestAt = j, at
		}
	}

	if bestAt >= 0 {
		return best
	}

	// No atom ends near the even share.
	best = c.atomReaching(i, aim)
	if c.sums[best]-c.sums[i] > room {
		best--
	}
	return max(best, i+1)
}

// atomReaching returns the first j > i for which atoms i to j hold at least tokens
// tokens, or one more than there are atoms.
func (c *cutter) atomReaching(i, tokens int) int {
	lo, hi := i+1, len(c.atoms)+1
	for lo < hi {
		mid := (lo + hi) / 2
		if c.sums[mid]-c.sums[i] >= tokens {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// contextStart returns the offset at which the context before atom i begins: whole
// atoms, and as many bytes of the next atom as tokens are left.
func (c *cutter) contextStart(i int) int {
	room, first := c.o.Overlap/2, i
	for first > 0 && c.sums[i]-c.sums[first-1] <= room {
		first--
	}

	to := c.atomStart(first)
	if first == 0 {
		return to
	}

	from := to - min(room-(c.sums[i]-c.sums[first]), to-c.atomStart(first-1))
	// It begins behind a space, if there is one.
	for p := from; p < to; p++ {
		if p > 0 && c.text[p-1] == ' ' {
			return p
		}
	}

	for from < to && !utf8.RuneStart(c.text[from]) {
		from++
	}
	return from
}

// contextEnd returns the offset at which the context behind a core that ends before
// atom i ends.
func (c *cutter) contextEnd(i int) int {
	room, last := c.o.Overlap/2, i
	for last < len(c.atoms) && c.sums[last+1]-c.sums[i] <= room {
		last++
	}

	from := c.atomStart(last)
	if last == len(c.atoms) {
		return from
	}

	to := from + min(room-(c.sums[last]-c.sums[i]), c.atoms[last].end-from)
	// It ends before a space, if there is one.
	for p := to; p > from; p-- {
		if p < len(c.text) && c.text[p] == ' ' {
			return p
		}
	}

	for to > from && to < len(c.text) && !utf8.RuneStart(c.text[to]) {
		to--
	}
	return to
}

func absDifference(a, b int) int {
	if a > b {
		return a - b
	}
	return b - a
}
