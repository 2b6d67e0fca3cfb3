// Package digest makes extracts of texts without a model: the passages that bear on a
// question, the themes that passages have in common, and a report of whole sentences of
// them, each with the reference of the passage that it is from. Equal texts give equal
// extracts.
//
// It is pure. It imports internal/text/prose and internal/text/claims, and nothing else of the project.
package digest

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// A Query is what passages are chosen for, made ready.
type Query struct {
	weights map[string]float64 // by stem
	total   float64
}

// NewQuery reads a question.
func NewQuery(question string) *Query {
	q := &Query{weights: make(map[string]float64)}

	for _, w := range prose.Words(question) {
		if w.Common && !w.Number || asking[w.Lower] || q.weights[w.Stem] > 0 {
			continue
		}

		weight := 1.0
		if w.Name || w.Number {
			weight = 1.5
		}

		q.weights[w.Stem] = weight
		q.total += weight
	}
	return q
}

// asking are words of questions that say nothing of what is asked for.
var asking = func() map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq("describe explain discuss summarize summarise tell give please list key main question answer happened happen difference differences kind kinds") {
		m[w] = true
	}
	return m
}()

// Relevance says how much of the question a text is about, in [0,1]: the share of the
// question's words that it has, and a little more if it has them often.
func (q *Query) Relevance(text string) float64 {
	if q.total == 0 {
		return 0
	}

	counts := make(map[string]int)
	words := 0
	for _, w := range prose.Words(text) {
		if q.weights[w.Stem] > 0 {
			counts[w.Stem]++
		}
		words++
	}

	// Words that are repeated count a little more, and ever less.
	share, often := 0.0, 0.0
	for stem, n := range counts {
		share += q.weights[stem]
		often += q.weights[stem] * (1 - 1/float64(1+n))
	}

	score := 0.8*share/q.total + 0.2*often/q.total
	return math.Round(score*1e4) / 1e4
}

// BearsOn reports whether a text has two words of the question, or the one that a question of one word has.
func (q *Query) BearsOn(text string) bool {
	has := make(map[string]bool)
	for _, w := range prose.Words(text) {
		if q.weights[w.Stem] > 0 {
			has[w.Stem] = true
		}
	}
	return len(has) >= min(2, len(q.weights))
}

// Empty reports whether the question says nothing that could be looked for.
func (q *Query) Empty() bool { return q.total == 0 }

// Rare returns the query with the words weighted by how few of the texts have them: a word that stands in most
// texts tells little of any. A word that stands in none counts most, so that no text has more of the question
// than it says.
func (q *Query) Rare(texts []string) *Query {
	among := q.among(texts)
	if among == q {
		return q
	}

	// In fixed order, so that sums of floats are the same each time.
	rare := &Query{weights: make(map[string]float64, len(q.weights))}
	for _, stem := range sortedStems(q.weights) {
		w, ok := among.weights[stem]
		if !ok {
			w = q.weights[stem]
		}
		rare.weights[stem] = w
		rare.total += w
	}
	return rare
}

// leastPassages is how few passages show which words of a question tell them apart.
const leastPassages = 4

// among returns the query with the words weighted by how many of the texts lack them: a word that
// stands in all of them, as their subject does, tells nothing of any. Words that stand in none are
// left out.
func (q *Query) among(texts []string) *Query {
	if len(texts) < leastPassages {
		return q
	}

	in := make(map[string]int)
	for _, text := range texts {
		seen := make(map[string]bool)
		for _, w := range prose.Words(text) {
			if q.weights[w.Stem] > 0 && !seen[w.Stem] {
				seen[w.Stem] = true
				in[w.Stem]++
			}
		}
	}

	// In fixed order, so that sums of floats are the same each time.
	weighted := &Query{weights: make(map[string]float64)}
	for _, stem := range sortedStems(in) {
		w := q.weights[stem] * math.Log(1+float64(len(texts))/float64(in[stem])) / math.Log(1+float64(len(texts)))
		weighted.weights[stem] = w
		weighted.total += w
	}

	return weighted
}

// A Place is a part of a text that was chosen.
type Place struct {
	prose.Span
	Relevance float64
}

// leastRelevance is the share of a question that a passage must have to be chosen.
const leastRelevance = 0.12

// Choose returns the places of a text that bear most on a question, at most so many, each
// of whole sentences and about so many characters long. They are in the order of the
// text. Of a question that says nothing the first places are chosen. Code, markup and
// tables are chosen only of a text that has nothing else.
func Choose(text string, q *Query, most, length int64) []Place {
	var all, unreadable []Place
	for _, span := range sentenceWindows(text, int(length)) {
		one := Place{span, q.Relevance(span.In(text))}
		switch {
		case one.Relevance < leastRelevance && !q.Empty():
		case isReadable(span.In(text)):
			all = append(all, one)
		default:
			unreadable = append(unreadable, one)
		}
	}

	if len(all) == 0 {
		all = unreadable
	}

	slices.SortStableFunc(all, func(a, b Place) int { return cmp.Compare(b.Relevance, a.Relevance) })
	if most > 0 {
		all = all[:min(len(all), int(most))]
	}

	// Those that were chosen go back into the order of the text.
	slices.SortFunc(all, func(a, b Place) int { return cmp.Compare(a.Start, b.Start) })
	return all
}

// isReadable reports whether half of a text, or more, is sentences that read as prose.
func isReadable(text string) bool {
	readable := 0
	for _, s := range prose.Sentences(text) {
		if prose.IsReadable(s.In(text)) {
			readable += s.End - s.Start
		}
	}
	return readable*2 >= len(text)
}

// sentenceWindows cuts a text into parts of whole sentences, each up to so many characters unless
// one sentence is longer. An empty line ends a part that has half of them. Blocks of code and marks
// of markup are in none, unless there is nothing else.
func sentenceWindows(text string, length int) []prose.Span {
	if all := windowsBeside(prose.CodeBlocks(text), text, length); len(all) > 0 {
		return all
	}
	return windowsBeside(nil, text, length)
}

// windowsBeside cuts a text into such parts, none of which has any of the code.
func windowsBeside(code []prose.Span, text string, length int) []prose.Span {
	var all []prose.Span
	var open prose.Span
	for _, s := range prose.Sentences(text) {
		for len(code) > 0 && code[0].End <= s.Start {
			code = code[1:]
		}

		if len(code) > 0 && code[0].Start < s.End { // a part ends where code begins
			if open.End > 0 {
				all = append(all, open)
				open = prose.Span{}
			}
			continue
		}

		long := utf8.RuneCountInString(text[open.Start:s.End]) > length
		apart := open.End > 0 && strings.Contains(text[open.End:s.Start], "\n\n") && (open.End-open.Start)*2 > length

		if open.End > 0 && (long || apart) {
			all = append(all, open)
			open = prose.Span{}
		}

		if open.End == 0 {
			open.Start = s.Start
		}
		open.End = s.End
	}

	if open.End > 0 {
		all = append(all, open)
	}

	return slices.DeleteFunc(all, func(s prose.Span) bool {
		return !strings.ContainsFunc(s.In(text), func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	})
}
