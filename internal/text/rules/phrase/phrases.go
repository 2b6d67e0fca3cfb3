// Package phrase finds all occurrences of many phrases in a text in one pass, whatever stands
// between their letters, and also where a scanner has confused some. It folds texts for that.
//
// It is pure. Of the project it imports api/schema/format and internal/text/rules/form.
package phrase

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// Label marks a phrase as a label; a number from 0 is the value it stands for.
const Label = -1

// maxTable bounds the automaton, in transitions of 4 bytes.
const maxTable = 1 << 22

// minConfusable is the least number of letters and digits in a phrase that is
// still recognised with confused letters. A shorter phrase would match by chance.
const minConfusable = 4

// An entry is something to search for.
type entry struct {
	field  int
	value  int // Label, or the index of the value
	rank   int // of a label, from the best
	folded int // bytes
	strict string
}

// A Mark is one occurrence of a phrase.
type Mark struct {
	form.Span
	Phrase int
	Field  int
	Value  int  // Label, or the index of the value
	Rank   int  // of a label, from the best
	Exact  bool // no letters were confused
}

// Set finds all occurrences of many phrases in one pass (Aho and Corasick,
// 1975), as a complete automaton over the bytes that occur in phrases.
type Set struct {
	list  []entry
	class [256]uint16 // of a folded byte; 0 means that it occurs in no phrase
	width int
	next  []int32 // state * width + class
	ends  []int32 // by state: the last entry of out for it, -1 if none
	out   []output
}

// An output says that a phrase ends in a state; shorter phrases that end there
// too follow by link.
type output struct {
	phrase int
	link   int32
}

// A Builder collects the phrases of a Set.
type Builder struct {
	list   []entry
	folded [][]byte
	seen   map[string]bool
}

// Add adds a phrase. Those that fold to nothing were refused with the schema.
func (b *Builder) Add(text string, field, value, rank int) {
	folded := foldText(text)
	if len(folded) == 0 {
		return
	}

	key := fmt.Sprintf("%d %d %s", field, value, folded)
	if b.seen[key] {
		return
	}

	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.seen[key] = true

	b.list = append(b.list, entry{field: field, value: value, rank: rank, folded: len(folded), strict: Fold(text)})
	b.folded = append(b.folded, folded)
}

// Build makes the automaton.
func (b *Builder) Build() (*Set, error) {
	p := &Set{list: b.list, width: 1}
	states := 1
	for _, folded := range b.folded {
		states += len(folded)
		for _, c := range folded {
			if p.class[c] == 0 {
				p.class[c] = uint16(p.width)
				p.width++
			}
		}
	}

	// Each state has a transition for each class of bytes.
	if states*p.width > maxTable {
		return nil, fmt.Errorf("labels and phrases of the schema are too large: %d characters", states-1)
	}

	p.buildTrie(b.folded)
	p.linkSuffixes()

	return p, nil
}

// buildTrie builds the trie of all phrases. Missing transitions are 0.
func (p *Set) buildTrie(folded [][]byte) {
	p.next = make([]int32, p.width)

	p.ends = []int32{-1}
	for i, text := range folded {
		state := 0
		for _, c := range text {
			// Each state has a row of transitions in one slice. State 0 is the root, to
			// which none leads, so 0 means none.
			at := state*p.width + int(p.class[c])
			if p.next[at] == 0 {
				p.next[at] = int32(len(p.ends))
				p.next = append(p.next, make([]int32, p.width)...)
				p.ends = append(p.ends, -1)
			}
			state = int(p.next[at])
		}

		p.out = append(p.out, output{phrase: i, link: p.ends[state]})
		p.ends[state] = int32(len(p.out) - 1)
	}
}

// linkSuffixes turns the trie into an automaton, breadth first: a missing
// transition becomes that of the longest suffix that is in the trie too.
func (p *Set) linkSuffixes() {
	fail := make([]int32, len(p.ends))

	queue := []int32{0}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]

		// States near the root come first, so what a state falls back to is complete already.
		for c := range p.width {
			at := int(state)*p.width + c
			to := p.next[at]
			back := int32(0)
			if state != 0 {
				back = p.next[int(fail[state])*p.width+c]
			}

			if to == 0 {
				p.next[at] = back
				continue
			}

			fail[to] = back
			p.appendOutputs(to, back)
			queue = append(queue, to)
		}
	}
}

// appendOutputs makes the outputs of a suffix follow those of state.
func (p *Set) appendOutputs(state, suffix int32) {
	if p.ends[state] < 0 {
		p.ends[state] = p.ends[suffix]
		return
	}
	last := p.ends[state]
	for p.out[last].link >= 0 {
		last = p.out[last].link
	}
	p.out[last].link = p.ends[suffix]
}

// Find returns all occurrences in order of their ends.
func (p *Set) Find(text string) []Mark {
	if len(p.list) == 0 {
		return nil
	}

	var marks []Mark
	var buf [8 * utf8.UTFMax]byte
	offsets := make([]int32, 0, len(text)) // of the folded bytes, in text
	state := int32(0)

	for i := 0; i < len(text); {
		// A character may fold to several bytes or to none; the automaton reads the folded
		// ones.
		size := 1
		folded := buf[:0]
		if c := text[i]; c < utf8.RuneSelf {
			if b := foldTable[c]; b != 0 {
				folded = append(folded, b)
			}
		} else {
			var r rune
			r, size = utf8.DecodeRuneInString(text[i:])
			folded = foldRune(folded, r)
		}

		for _, b := range folded {
			offsets = append(offsets, int32(i))
			state = p.next[int(state)*p.width+int(p.class[b])]
			// Each output links to that of the longest phrase that is a suffix of it.
			for o := p.ends[state]; o >= 0; o = p.out[o].link {
				ph := p.out[o].phrase
				start := int(offsets[len(offsets)-p.list[ph].folded])
				if m, ok := p.verifyMatch(text, ph, start, i+size); ok {
					marks = append(marks, m)
				}
			}
		}

		i += size
	}

	return marks
}

// verifyMatch reports whether text[start:end], which folds like the phrase, is
// the phrase.
func (p *Set) verifyMatch(text string, index, start, end int) (Mark, bool) {
	ph := p.list[index]
	m := Mark{Span: form.NewSpan(start, end), Phrase: index, Field: ph.field, Value: ph.value, Rank: ph.rank}
	if !wholeWords(text, start, end) {
		return m, false
	}
	if ph.value == Label && !isLabel(text, start, end, ph.folded) {
		return m, false
	}
	m.Exact = Fold(text[start:end]) == ph.strict
	return m, m.Exact || ph.folded >= minConfusable && strings.ContainsFunc(text[start:end], unicode.IsLetter)
}

// isLabel reports whether text[start:end] can be a label: on one line, not
// stretched by punctuation, and not part of a compound that means something
// else, such as SUB-TOTAL, SUB TOTAL or Pre-Depends.
func isLabel(text string, start, end, folded int) bool {
	if end-start > 2*folded+4 || strings.IndexByte(text[start:end], '\n') >= 0 {
		return false
	}

	before, after := text[:start], text[end:]
	if n := len(before); n > 1 && (before[n-1] == '-' || before[n-1] == '_') && form.IsLetter(before[n-2]) {
		return false
	}
	if len(after) > 1 && (after[0] == '-' || after[0] == '_') && form.IsLetter(after[1]) {
		return false
	}

	word := strings.TrimRight(before, " -.")
	if len(word) >= 3 && strings.EqualFold(word[len(word)-3:], "sub") && (len(word) == 3 || !form.IsLetter(word[len(word)-4])) {
		return len(word) == len(before) // else a word of its own right before it
	}

	return true
}

// Between returns the marks that begin in [start, end).
func Between(marks []Mark, start, end int) []Mark {
	by := func(m Mark, i int) int { return m.Start - i }
	lo, _ := slices.BinarySearchFunc(marks, start, by)
	hi, _ := slices.BinarySearchFunc(marks[lo:], end, by)
	return marks[lo : lo+hi]
}
