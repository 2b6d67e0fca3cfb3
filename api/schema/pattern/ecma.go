package pattern

import (
	"errors"
	"fmt"
	"slices"
	"unicode"
)

// The bounds of expressions in the syntax of ECMAScript.
const (
	maxExpression = 50_000  // characters
	maxParens     = 200     // groups in groups
	maxSteps      = 300_000 // of one match
)

// ErrSteps is what a match panics with that takes too many steps. Whoever matches values
// by an Ecma recovers from it: the interface of validators has no room for an error.
var ErrSteps = errors.New("the pattern takes too many steps on this text")

// An Ecma is a regular expression in the syntax of ECMAScript, which JSON Schema asks for:
// with look-ahead and look-behind, references to groups, and repetitions of any size. It
// goes through all ways to match one after another, so that its work is counted. It is
// immutable and safe for concurrent use.
type Ecma struct {
	expr   string
	root   part
	groups int
}

// CompileEcma compiles an expression. It finds anywhere in a text, and ^ and $ stand for
// the ends of the text.
func CompileEcma(expr string) (*Ecma, error) {
	p := &ecmaParser{text: []rune(expr), names: map[string]int{}}
	if len(p.text) > maxExpression {
		return nil, fmt.Errorf("the pattern has %d characters, of %d at most", len(p.text), maxExpression)
	}

	p.findNames()

	root, err := p.parseChoice(0)
	if err == nil && p.at < len(p.text) {
		err = fmt.Errorf("unexpected ): `%s`", string(p.text[:p.at+1]))
	}

	// What is left can only be a parenthesis that closes none.
	if err != nil {
		return nil, err
	}

	return &Ecma{expr: expr, root: root, groups: p.groups}, nil
}

// String returns the expression.
func (e *Ecma) String() string { return e.expr }

// MatchString reports whether the expression matches somewhere in a text. It panics with
// ErrSteps if that takes too many steps to tell.
func (e *Ecma) MatchString(text string) bool {
	m := &ecmaMatch{text: []rune(text), left: maxSteps, groups: make([]stretch, e.groups+1)}
	for at := 0; at <= len(m.text); at++ {
		if m.match(e.root, at, func(int) bool { return true }) {
			return true
		}
	}
	return false
}

// A part is a node of an expression.
type part any

// The parts of an expression.
type (
	charSet struct { // one character
		holds func(rune) bool
	}
	sequence []part
	choice   []part
	loop     struct {
		of       part
		min, max int // max < 0 has no bound
		lazy     bool
	}
	capture struct {
		of part
		n  int
	}
	backward struct{ n int } // what a group matched
	look     struct {
		of             part
		behind, absent bool
	}
	place struct { // between two characters
		holds func(text []rune, at int) bool
	}
)

// A stretch is what a group matched: half-open, in characters; set tells whether it did.
type stretch struct {
	start, end int
	set        bool
}

// An ecmaMatch is an attempt to match a text.
type ecmaMatch struct {
	text   []rune
	left   int // steps
	groups []stretch
}

// match reports whether a part matches at a place so that what comes behind it does too.
func (m *ecmaMatch) match(p part, at int, then func(int) bool) bool {
	if m.left--; m.left < 0 {
		panic(ErrSteps)
	}

	switch p := p.(type) {
	case charSet:
		return at < len(m.text) && p.holds(m.text[at]) && then(at+1)
	case place:
		return p.holds(m.text, at) && then(at)
	case sequence:
		return m.matchSequence(p, at, then)
	case choice:
		return slices.ContainsFunc(p, func(one part) bool { return m.match(one, at, then) })
	case loop:
		return m.matchLoop(p, at, 0, then)
	case capture:
		return m.matchCapture(p, at, then)
	case backward:
		return m.matchBackward(p, at, then)
	case look:
		return m.matchLook(p, at, then)
	}
	return false
}

func (m *ecmaMatch) matchSequence(all sequence, at int, then func(int) bool) bool {
	if len(all) == 0 {
		return then(at)
	}
	return m.match(all[0], at, func(at int) bool { return m.matchSequence(all[1:], at, then) })
}

// matchLoop matches a repetition of which n have matched. One that matches no characters
// is not repeated beyond the least number.
func (m *ecmaMatch) matchLoop(p loop, at, n int, then func(int) bool) bool {
	if m.left--; m.left < 0 {
		panic(ErrSteps)
	}
	// more tries one repetition. One that matched no characters counts only up to the least
	// number.
	more := func() bool {
		return (p.max < 0 || n < p.max) && m.match(p.of, at, func(next int) bool {
			return (next > at || n < p.min) && m.matchLoop(p, next, n+1, then)
		})
	}

	switch {
	case n < p.min:
		return more()
	case p.lazy:
		return then(at) || more()
	}
	return more() || then(at)
}

func (m *ecmaMatch) matchCapture(p capture, at int, then func(int) bool) bool {
	before := m.groups[p.n]
	// What comes behind it sees the capture; if that fails, the capture of before is in
	// force again.
	if m.match(p.of, at, func(end int) bool {
		had := m.groups[p.n]
		m.groups[p.n] = stretch{at, end, true}
		if then(end) {
			return true
		}
		m.groups[p.n] = had
		return false
	}) {
		return true
	}

	m.groups[p.n] = before
	return false
}

func (m *ecmaMatch) matchBackward(p backward, at int, then func(int) bool) bool {
	if p.n >= len(m.groups) || !m.groups[p.n].set {
		return then(at) // a group that took no part matches nothing
	}
	want := m.text[m.groups[p.n].start:m.groups[p.n].end]
	m.left -= len(want)
	return at+len(want) <= len(m.text) && slices.Equal(m.text[at:at+len(want)], want) && then(at+len(want))
}

// matchLook matches what stands ahead or behind, without going there.
func (m *ecmaMatch) matchLook(p look, at int, then func(int) bool) bool {
	before := slices.Clone(m.groups)

	found := false
	if p.behind {
		for from := at; from >= 0 && !found; from-- {
			found = m.match(p.of, from, func(end int) bool { return end == at })
		}
	} else {
		found = m.match(p.of, at, func(int) bool { return true })
	}

	if found == p.absent {
		copy(m.groups, before)
		return false
	}
	// What an absent part captured does not hold.
	if p.absent {
		copy(m.groups, before)
	}

	if then(at) {
		return true
	}

	copy(m.groups, before)
	return false
}

// isWord reports whether a character is one of a word, as \w and \b have it.
func isWord(c rune) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isSpace reports whether a character is white space, as \s has it.
func isSpace(c rune) bool {
	return c >= '\t' && c <= '\r' || c == '\u2028' || c == '\u2029' || c == '\ufeff' || unicode.Is(unicode.Zs, c)
}

// isLineEnd reports whether a character ends a line, which the point does not match.
func isLineEnd(c rune) bool { return c == '\n' || c == '\r' || c == '\u2028' || c == '\u2029' }

func atStart(_ []rune, at int) bool { return at == 0 }

func atEnd(text []rune, at int) bool { return at == len(text) }

func atWordEnd(text []rune, at int) bool {
	return (at > 0 && isWord(text[at-1])) != (at < len(text) && isWord(text[at]))
}
