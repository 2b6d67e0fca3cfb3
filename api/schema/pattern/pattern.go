// Package pattern compiles the regular expressions of schemas and finds their
// matches in work that is bounded and that can be stopped.
//
// RE2 is linear in a text, but each character may cost as much as the program has
// instructions, times the groups that each of them keeps: 12 kB of "(a?)" held a
// core for hours. So a pattern has bounds on both, which are checked before it is
// compiled, and matching reads the text in pieces: between two pieces it looks
// whether it is to stop, and a piece costs some milliseconds at most.
//
// It is pure and imports nothing of the project.
package pattern

import (
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds on one pattern. The matcher keeps the places of all groups for each
// instruction, so that the two are bounded by their product as well.
const (
	MaxInstructions = 10_000  // of the compiled program, about a character each
	MaxGroups       = 64      // that capture
	MaxState        = 100_000 // instructions times groups
)

// MaxWork bounds the product of a text's bytes and a pattern's instructions. With
// it the largest document still has room for 4,096 instructions.
const MaxWork = 64 << 20 << 12

// pieceWork is the work, in characters times instructions, that is done between
// two looks at whether to stop.
const pieceWork = 1 << 20

// wholeWork is the work up to which one search is not interrupted, and batchWork
// that of several: the library is faster on a string than on a reader.
const (
	wholeWork = 1 << 21
	batchWork = 1 << 26
)

// A Pattern is a compiled regular expression in which ^ and $ stand for the ends
// of lines, whether these end in LF or CR LF. It is immutable and safe for
// concurrent use.
type Pattern struct {
	first *regexp.Regexp // finds in a text from its beginning
	later *regexp.Regexp // finds behind the first character of a text; nil if first does as well
	size  int            // instructions
}

// Compile compiles a regular expression in the syntax of RE2. The error says what
// is wrong with it, or which bound it exceeds.
func Compile(expr string) (*Pattern, error) {
	tree, err := Parse(expr)
	if err != nil {
		return nil, err
	}

	p := &Pattern{size: max(Size(tree), 1)}
	allowCR(tree)

	lines := tree.String()
	if p.first, err = regexp.Compile(lines); err != nil {
		return nil, err
	}

	if looksBehind(tree) {
		// A pattern that looks at what stands before it has to see that, also when the
		// search goes on in the middle.
		p.later, err = regexp.Compile(behindFirst + "(" + lines + ")")
	}

	return p, err
}

// Parse checks that a regular expression is one and keeps the bounds, without
// the cost of compiling it.
func Parse(expr string) (*syntax.Regexp, error) {
	tree, err := syntax.Parse("(?m)"+expr, syntax.Perl)
	if err != nil {
		// Lines are what ^ and $ stand for; the option is not shown to the author of the
		// pattern.
		var bad *syntax.Error
		if as(err, &bad) {
			return nil, fmt.Errorf("%s: `%s`", bad.Code, strings.TrimPrefix(bad.Expr, "(?m)"))
		}
		return nil, err
	}

	n, groups := Size(tree), tree.MaxCap()
	switch {
	case groups > MaxGroups:
		return nil, fmt.Errorf("the pattern has %d groups, of %d at most; write (?:…) for those that only hold together", groups, MaxGroups)
	case n > MaxInstructions:
		return nil, fmt.Errorf("the pattern is too large: it takes %d instructions, of %d at most", n, MaxInstructions)
	case n*(groups+1) > MaxState:
		return nil, fmt.Errorf("the pattern is too large for its %d groups: it takes %d instructions, of %d at most", groups, n, MaxState/(groups+1))
	}

	return tree, nil
}

// as is errors.As for the one error that syntax.Parse returns.
func as(err error, target **syntax.Error) bool {
	bad, ok := err.(*syntax.Error) //nolint:errorlint // syntax.Parse wraps nothing
	*target = bad
	return ok
}

// Size returns the instructions that tree compiles to, repetitions written out, or
// a few more.
func Size(tree *syntax.Regexp) int {
	inner := 0
	// The bound keeps nested repetitions from overflowing.
	for _, sub := range tree.Sub {
		inner = min(inner+Size(sub), 1<<40)
	}

	switch tree.Op {
	case syntax.OpConcat:
		return inner
	case syntax.OpAlternate:
		return inner + len(tree.Sub) - 1
	case syntax.OpLiteral:
		return len(tree.Rune)
	case syntax.OpCapture, syntax.OpStar:
		return inner + 2
	case syntax.OpRepeat:
		return (inner + 1) * max(tree.Min+1, tree.Max)
	default:
		return inner + 1
	}
}

// allowCR lets a CR stand before each end of a line.
func allowCR(tree *syntax.Regexp) {
	for i, sub := range tree.Sub {
		if sub.Op != syntax.OpEndLine {
			allowCR(sub)
			continue
		}
		cr := &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{'\r'}}
		tree.Sub[i] = &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{
			{Op: syntax.OpQuest, Sub: []*syntax.Regexp{cr}}, sub,
		}}
	}
}

// looksBehind reports whether what stands before a place decides whether tree
// matches there.
func looksBehind(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(tree.Sub, looksBehind)
}

// behindFirst stands before an expression in a group: with it the expression is
// found behind the first character of a text, and sees that character as what
// stands before.
const behindFirst = `\A(?s:.)(?s:.*?)`

// Size returns the instructions of the compiled pattern.
func (p *Pattern) Size() int { return p.size }

// Groups returns the names of the groups, by their numbers less one; empty for
// those without a name.
func (p *Pattern) Groups() []string { return p.first.SubexpNames()[1:] }

// FindAll calls yield with each match in text, in order and without overlap, until
// it returns false: the places where the match, and then each group, begins and
// ends; -1 for a group that took no part. Matches of no characters are left out.
// It asks stop every few milliseconds and returns what stop returns, if that is
// an error. It refuses a text that is too long for the pattern, see MaxWork.
func (p *Pattern) FindAll(text string, stop func() error, yield func(place []int) bool) error {
	if len(text)*p.size > MaxWork {
		return fmt.Errorf("the pattern of %d instructions is too large for %d bytes of text: their product is above %d", p.size, len(text), MaxWork)
	}

	at, more := p.findFirst(text, yield)
	for more && at <= len(text) {
		place, err := p.findNext(text, at, stop)
		if place == nil || err != nil {
			return err
		}

		// Matches of no characters are passed over.
		if place[0] < place[1] && !yield(place) {
			return nil
		}

		at = behind(text, place)
	}

	return stop()
}

// behind returns where the search goes on after a match.
func behind(text string, place []int) int {
	if place[0] < place[1] {
		return place[1]
	}
	_, width := utf8.DecodeRuneInString(text[place[1]:])
	return place[1] + max(width, 1)
}

// findFirst finds, in a text that is short for the pattern, as many matches as cannot
// take long together: the library is much faster when it is asked for several.
// It returns where to go on, and whether there may be more.
func (p *Pattern) findFirst(text string, yield func(place []int) bool) (at int, more bool) {
	work := (len(text) + 1) * p.size
	if work > wholeWork {
		return 0, true
	}

	most := max(batchWork/work, 1)
	places := p.first.FindAllStringSubmatchIndex(text, most)
	for _, place := range places {
		if place[0] < place[1] && !yield(place) {
			return 0, false
		}
		at = behind(text, place)
	}

	return at, len(places) == most
}

// findNext returns the first match that begins at or behind at, nil if there is none.
func (p *Pattern) findNext(text string, at int, stop func() error) ([]int, error) {
	if err := stop(); err != nil {
		return nil, err
	}

	re, from := p.first, at
	if at > 0 && p.later != nil {
		_, width := utf8.DecodeLastRuneInString(text[:at])
		re, from = p.later, at-width
	}

	rest := text[from:]
	var place []int
	// Only a long search goes through a reader, which asks stop at times: it is slower.
	if len(rest)*p.size <= wholeWork {
		place = re.FindStringSubmatchIndex(rest)
	} else {
		r := &reader{text: rest, stop: stop, piece: max(pieceWork/p.size, 1)}
		place = re.FindReaderSubmatchIndex(r)
		if r.err != nil {
			return nil, r.err
		}
	}

	if place == nil {
		return nil, nil
	}

	for i := range place {
		if place[i] >= 0 {
			place[i] += from
		}
	}

	if from < at {
		place = place[2:] // the group around the pattern, and those inside it
	}

	return place, nil
}

// A reader reads a text rune by rune until it is to stop; then the text ends.
type reader struct {
	text  string
	piece int // characters between two looks
	left  int // of the piece
	stop  func() error
	err   error // why it stopped
}

func (r *reader) ReadRune() (rune, int, error) {
	if r.left == 0 {
		if r.err = r.stop(); r.err != nil {
			return 0, 0, io.EOF
		}
		r.left = r.piece
	}

	r.left--
	if r.text == "" {
		return 0, 0, io.EOF
	}

	c, width := utf8.DecodeRuneInString(r.text)
	r.text = r.text[width:]
	return c, width, nil
}
