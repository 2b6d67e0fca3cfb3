package chunk

import (
	"fmt"
	"unicode/utf8"
)

// An atom is a short stretch of text that no cut goes through. It begins where
// the one before it ends.
type atom struct {
	end    int   // offset in the text
	tokens int32 // counted alone, and at least 1: a Counter may round down, and no text is free
	rank   rank  // of the place at end
}

// Bounds of an atom, in bytes. Shorter atoms place cuts and context more
// finely; each costs about a token of error.
const (
	maxAtom = 256
	minAtom = 16
)

// slack is by how many tokens a Counter may count a text higher when it is cut
// in two.
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

// atomSize returns the most bytes of an atom: few enough that any atom fits a
// core, and that many make one up.
func atomSize(o Options) int {
	core := o.MaxTokens - o.Overlap
	return min(core, max(minAtom, min(core/8, maxAtom)))
}

// nextAtom returns where the atom that begins at s.pos, a place of rank from,
// ends: at the first place that is better, so that every good place is the end
// of an atom unless another is near; else at the best between half of size and
// size, the last of equals. It leaves s there.
func nextAtom(s *scanner, text string, size int, from rank) (end int, at rank) {
	start := s.pos
	s.next(text)
	best, at := *s, rank(-1)
	for s.pos-start <= size {
		if s.pos == len(text) {
			return s.pos, afterParagraph
		}
		here := *s
		r := s.next(text)
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

// mayFit reports whether the text may count as few enough tokens for one
// piece: the sum of its atoms exceeds it by little.
func (c *cutter) mayFit() bool {
	return c.sums[len(c.atoms)] <= c.o.MaxTokens+slack*len(c.atoms)
}

// cut makes the pieces one by one.
func (c *cutter) cut() ([]Piece, error) {
	var pieces []Piece
	for i := 0; i < len(c.atoms); {
		p, next, err := c.piece(i)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, p)
		i = next
	}
	return pieces, nil
}

// piece returns the piece whose core begins with atom i, and the atom after its
// core. Atoms are counted apart, so the piece is counted again as a whole, and
// made smaller while it is too large.
func (c *cutter) piece(i int) (Piece, int, error) {
	for less := 0; ; {
		next := c.coreEnd(i, c.o.MaxTokens-c.o.Overlap-less)
		p := Piece{CoreStart: c.start(i), CoreEnd: c.start(next)}
		p.Start, p.End = p.CoreStart, p.CoreEnd
		if less < c.o.MaxTokens-c.o.Overlap { // else not even the core has room
			p.Start, p.End = c.before(i), c.behind(next)
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
		less = 2*less + over
	}
}

// start returns the offset at which atom i begins.
func (c *cutter) start(i int) int {
	if i == 0 {
		return 0
	}
	return c.atoms[i-1].end
}

// coreEnd returns the atom after a core of at most room tokens that begins with
// atom i. What is left of the text is divided evenly, so that no small rest
// stays behind, and the cut is made at the best place within a tenth of where
// it would fall, the nearest of equals. A core has at least one atom.
func (c *cutter) coreEnd(i, room int) int {
	left := c.sums[len(c.atoms)] - c.sums[i]
	if left <= room {
		return len(c.atoms)
	}
	room = max(room, 1)
	parts := left/(room-room/20) + 1 // a twentieth is kept for choosing a place
	aim := left / parts
	best, bestAt := i+1, rank(-1)
	for j := c.reach(i, aim-aim/10); j <= len(c.atoms); j++ {
		size := c.sums[j] - c.sums[i]
		if size > room || size > aim+aim/10 {
			break
		}
		at := c.atoms[j-1].rank
		if at > bestAt || at == bestAt && distance(size, aim) < distance(c.sums[best]-c.sums[i], aim) {
			best, bestAt = j, at
		}
	}
	if bestAt >= 0 {
		return best
	}
	best = c.reach(i, aim)
	if c.sums[best]-c.sums[i] > room {
		best--
	}
	return max(best, i+1)
}

// reach returns the first j > i for which atoms i to j hold at least tokens
// tokens, or one more than there are atoms.
func (c *cutter) reach(i, tokens int) int {
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

// before returns the offset at which the context before atom i begins: whole
// atoms, and of the next as many bytes as there is room for tokens.
func (c *cutter) before(i int) int {
	room, first := c.o.Overlap/2, i
	for first > 0 && c.sums[i]-c.sums[first-1] <= room {
		first--
	}
	to := c.start(first)
	if first == 0 {
		return to
	}
	from := to - min(room-(c.sums[i]-c.sums[first]), to-c.start(first-1))
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

// behind returns the offset at which the context behind a core that ends before
// atom i ends.
func (c *cutter) behind(i int) int {
	room, last := c.o.Overlap/2, i
	for last < len(c.atoms) && c.sums[last+1]-c.sums[i] <= room {
		last++
	}
	from := c.start(last)
	if last == len(c.atoms) {
		return from
	}
	to := from + min(room-(c.sums[last]-c.sums[i]), c.atoms[last].end-from)
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

func distance(a, b int) int {
	if a > b {
		return a - b
	}
	return b - a
}
