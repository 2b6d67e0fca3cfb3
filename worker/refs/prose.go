package refs

import (
	"regexp"
	"strings"
)

// A mention is one id in prose, or several in one pair of brackets, where Unknown
// may stand among them.
type mention struct {
	start, end int      // bytes of the text, brackets included
	names      []string // canonical; of numbers the digits alone
	number     bool     // bracketed numbers, that nobody asked a writer for
}

var (
	// Whatever follows the mark in brackets was meant as an id, however it was
	// mangled.
	bracketed = regexp.MustCompile(`(?i)\[\s*(?:\?` + separator + `)*` + loose + `(?:` + separator + `(?:\?|` + loose + `))*\s*\]`)

	// Without brackets it has to look like one: REF_COUNT is a word.
	bare = regexp.MustCompile(`(?i)` + loose)

	numbers = regexp.MustCompile(`\[\s*[0-9]+(?:(?:\s*[,;–-]\s*)[0-9]+)*\s*\]`)
	listed  = regexp.MustCompile(`(?i)\?|` + loose)
	digits  = regexp.MustCompile(`[0-9]+`)
)

const (
	loose     = `REF_[0-9A-Za-z_]*[0-9A-Za-z]`
	separator = `(?:\s*[-–—,;&/|]\s*(?:and\s+)?|\s+and\s+|\s+)`
)

// Canonical returns an id as it is spelled here, whatever case it was written in.
func Canonical(name string) string {
	if len(name) < len(Mark) || !strings.EqualFold(name[:len(Mark)], Mark) {
		return name
	}
	return Mark + strings.ToLower(name[len(Mark):])
}

// mentions returns the ids in the prose of text, in order. known tells which
// canonical names were issued: a name that was is an id wherever it stands.
func mentions(text string, known func(name string) bool) []mention {
	var all []mention
	for _, p := range proseOf(text) {
		all = append(all, mentionsIn(text, p, known)...)
	}
	return all
}

// mentionsIn goes through one stretch of prose from left to right.
func mentionsIn(text string, p span, known func(string) bool) []mention {
	var all []mention
	ids := newFinder(bracketed, text, p)
	words := newFinder(bare, text, p)
	nums := newFinder(numbers, text, p)
	for at := p.start; ; {
		m, ok := mention{}, false
		for _, next := range []func(int) (mention, bool){
			func(at int) (mention, bool) { return list(text, ids.next(at)) },
			func(at int) (mention, bool) { return word(text, p, words, at, known) },
			func(at int) (mention, bool) { return numeric(text, nums.next(at)) },
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

// A finder finds the matches of an expression, each once: the latest is kept
// until it lies behind, so a text is searched only once.
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

// list reads ids in brackets.
func list(text string, s span) (mention, bool) {
	if s.start == s.end {
		return mention{}, false
	}
	m := mention{start: s.start, end: s.end}
	for _, name := range listed.FindAllString(text[s.start:s.end], -1) {
		m.names = append(m.names, Canonical(name))
	}
	return m, true
}

// word finds the next id that stands without brackets.
func word(text string, p span, f *finder, at int, known func(string) bool) (mention, bool) {
	for {
		s := f.next(at)
		if s.start == s.end {
			return mention{}, false
		}
		at = s.end
		if name := Canonical(text[s.start:s.end]); !continues(text[p.start:s.start]) && (known(name) || looksIssued(name)) {
			return mention{start: s.start, end: s.end, names: []string{name}}, true
		}
	}
}

// continues reports whether what follows before is the rest of a word. An
// underscore alone may be the begin of emphasis.
func continues(before string) bool {
	before = strings.TrimSuffix(before, "_")
	return before != "" && alphanumeric(before[len(before)-1])
}

// minMeant is how many letters and digits make an id of what was not issued.
const minMeant = 4

// looksIssued reports whether a canonical name that was not issued was meant as
// an id all the same.
func looksIssued(name string) bool {
	id := name[len(Mark):]
	return len(id) >= minMeant && (strings.ContainsAny(id, "0123456789") || strings.Trim(id, "abcdef") == "")
}

func alphanumeric(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// numeric reads numbers in brackets.
func numeric(text string, s span) (mention, bool) {
	if s.start == s.end {
		return mention{}, false
	}
	return mention{start: s.start, end: s.end, names: digits.FindAllString(text[s.start:s.end], -1), number: true}, true
}
