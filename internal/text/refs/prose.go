package refs

import (
	"regexp"
	"strings"
)

// A mention is one id in prose, or several in one pair of brackets. Unknown may be
// among them.
type mention struct {
	start, end int      // bytes of the text, brackets included
	names      []string // canonical; the digits alone for numbers
	number     bool     // bracketed numbers, which the writer was not asked for
}

var (
	// Within brackets, anything after the mark was meant as an id, however
	// mangled.
	bracketed = regexp.MustCompile(`(?i)\[\s*(?:\?` + separatorPattern + `)*` + loosePattern + `(?:` + separatorPattern + `(?:\?|` + loosePattern + `))*\s*\]`)

	// Without brackets it must look like an id: REF_COUNT is a word.
	bare = regexp.MustCompile(`(?i)` + loosePattern)

	numbers = regexp.MustCompile(`\[\s*[0-9]+(?:(?:\s*[,;–-]\s*)[0-9]+)*\s*\]`)
	listed  = regexp.MustCompile(`(?i)\?|` + loosePattern)
	digits  = regexp.MustCompile(`[0-9]+`)
)

const (
	loosePattern     = `REF_[0-9A-Za-z_]*[0-9A-Za-z]`
	separatorPattern = `(?:\s*[-–—,;&/|]\s*(?:and\s+)?|\s+and\s+|\s+)`
)

// Canonical returns an id as it is spelled here, whatever case it was written in.
func Canonical(name string) string {
	if len(name) < len(Mark) || !strings.EqualFold(name[:len(Mark)], Mark) {
		return name
	}
	return Mark + strings.ToLower(name[len(Mark):])
}

// findMentions returns the ids in the prose of text, in order. known tells which
// canonical names were issued. An issued name is an id wherever it stands.
func findMentions(text string, known func(name string) bool) []mention {
	var all []mention
	for _, p := range proseOf(text) {
		all = append(all, mentionsIn(text, p, known)...)
	}
	return all
}

// mentionsIn returns the mentions in one span of prose, from left to right.
func mentionsIn(text string, p span, known func(string) bool) []mention {
	var all []mention
	ids := newFinder(bracketed, text, p)
	words := newFinder(bare, text, p)
	nums := newFinder(numbers, text, p)

	for at := p.start; ; {
		// Of the next mention of each form the one that begins first is taken.
		m, ok := mention{}, false
		for _, next := range []func(int) (mention, bool){
			func(at int) (mention, bool) { return parseList(text, ids.next(at)) },
			func(at int) (mention, bool) { return findBareID(text, p, words, at, known) },
			func(at int) (mention, bool) { return parseNumbers(text, nums.next(at)) },
		} {
			if n, found := next(at); found && (!ok || n.start < m.start) {
				m, ok = n, true
			}
		}

		if !ok {
			return all
		}
		all = append(all, m)
		at = m.end
	}
}

// A finder finds the matches of an expression. It keeps the latest match until the
// caller has passed it, so that the text is searched only once.
type finder struct {
	re   *regexp.Regexp
	text string
	end  int
	last span
	done bool
}

func newFinder(re *regexp.Regexp, text string, p span) *finder {
	return &finder{re: re, text: text, end: p.end, last: span{-1, -1}}
}

// next returns the first match that begins at or behind at, or an empty span.
func (f *finder) next(at int) span {
	for !f.done && f.last.start < at {
		i := f.re.FindStringIndex(f.text[at:f.end])
		if i == nil {
			f.done = true
			break
		}
		f.last = span{at + i[0], at + i[1]}
	}

	if f.done {
		return span{}
	}
	return f.last
}

// parseList reads ids in brackets.
func parseList(text string, s span) (mention, bool) {
	if s.start == s.end {
		return mention{}, false
	}

	m := mention{start: s.start, end: s.end}
	for _, name := range listed.FindAllString(text[s.start:s.end], -1) {
		m.names = append(m.names, Canonical(name))
	}
	return m, true
}

// findBareID finds the next id that stands without brackets.
func findBareID(text string, p span, f *finder, at int, known func(string) bool) (mention, bool) {
	for {
		s := f.next(at)
		if s.start == s.end {
			return mention{}, false
		}

		at = s.end
		if name := Canonical(text[s.start:s.end]); !endsInsideWord(text[p.start:s.start]) && (known(name) || looksIssued(name)) {
			return mention{start: s.start, end: s.end, names: []string{name}}, true
		}
	}
}

// endsInsideWord reports whether the text behind before continues a word. A single
// underscore may begin emphasis.
func endsInsideWord(before string) bool {
	before = strings.TrimSuffix(before, "_")
	return before != "" && isAlphanumeric(before[len(before)-1])
}

// minIntendedDigits is the least length of a name that was not issued but counts as
// an intended id.
const minIntendedDigits = 4

// looksIssued reports whether a canonical name that was not issued was intended as
// an id.
func looksIssued(name string) bool {
	id := name[len(Mark):]
	return len(id) >= minIntendedDigits && (strings.ContainsAny(id, "0123456789") || strings.Trim(id, "abcdef") == "")
}

func isAlphanumeric(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// parseNumbers reads numbers in brackets.
func parseNumbers(text string, s span) (mention, bool) {
	if s.start == s.end {
		return mention{}, false
	}
	return mention{start: s.start, end: s.end, names: digits.FindAllString(text[s.start:s.end], -1), number: true}, true
}
