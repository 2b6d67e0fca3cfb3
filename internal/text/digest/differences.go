package digest

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/text/claims"
	"github.com/coditect/mapreduce/internal/text/prose"
)

// Bounds of differences.
const (
	maxDifferences = 3
	maxFigures     = 4 // of one difference; of more the least and the greatest are said
	aroundFigure   = 4 // words between a number and the word that says what was done
)

// A figure is a number of things in a sentence of a source: 120 houses, which were evacuated.
type figure struct {
	source  int      // which of the findings
	number  string   // in canonical form
	noun    string   // the stem of what is counted
	about   []string // stems of the other words of the sentence that say something, but for names
	words   []prose.Word
	at      int    // of the number among words
	nounAt  int    // of the noun
	text    string // the sentence
	refs    []string
	inQuery bool // the noun stands in the question
}

// Differences returns sentences that say in which numbers findings differ, each of which is a
// source: of the same things, of which the same is said. Each sentence consists of words of the
// findings, and its references support it. Numbers that the question does not ask for are left
// out, and a source that gives several numbers of the same things.
func Differences(q *Query, findings []Finding) []string {
	var all []figure
	for i, f := range findings {
		all = append(all, figuresOf(q, i, f)...)
	}

	var sentences []string
	seen := make(map[string]bool) // noun and what is said of it
	for _, f := range all {
		for _, about := range f.about {
			key := f.noun + "\x00" + about
			if seen[key] || seen[f.noun] || !f.inQuery && q.weights[about] == 0 || len(sentences) == maxDifferences {
				continue
			}
			seen[key] = true
			if s := tellDifference(all, f.noun, about); s != "" {
				seen[f.noun] = true
				sentences = append(sentences, s)
			}
		}
	}
	return sentences
}

// behindSentence matches references behind a sentence.
var behindSentence = regexp.MustCompile(`\s*\[(REF_[^\]]*)\]`)

// figuresOf returns the figures of a finding.
func figuresOf(q *Query, source int, f Finding) []figure {
	var all []figure
	for _, span := range prose.Sentences(f.Text) {
		cited := span.In(f.Text)

		refs := f.Refs
		if m := behindSentence.FindStringSubmatch(cited); m != nil {
			refs = strings.FieldsFunc(m[1], func(c rune) bool { return c == ',' || c == ' ' })
		}

		text := behindSentence.ReplaceAllString(cited, "")
		words := prose.Words(text)

		for at, w := range words {
			nounAt := nounBehind(words, at)
			if nounAt < 0 || len(refs) == 0 {
				continue
			}

			// A number counts only with what it counts, and with somebody to cite for it.
			one := figure{
				source: source, number: w.Stem, noun: words[nounAt].Stem, words: words, at: at, nounAt: nounAt,
				text: text, refs: refs, inQuery: q.weights[words[nounAt].Stem] > 0,
			}

			for i, other := range words {
				if i != nounAt && !other.Number && !other.Name && !other.Common && len(other.Lower) > 3 {
					one.about = append(one.about, other.Stem)
				}
			}

			all = append(all, one)
		}
	}
	return all
}

// plainFigure matches numbers in digits; year matches those that may be years.
var (
	plainFigure = regexp.MustCompile(`^\d[\d.,]*$`)
	year        = regexp.MustCompile(`^(?:19|20)\d\d$`)
)

// nounBehind returns which word says what a number counts, -1 if none does or if the word is no number.
func nounBehind(words []prose.Word, at int) int {
	if w := words[at]; !w.Number || !plainFigure.MatchString(w.Lower) || year.MatchString(w.Lower) {
		return -1
	}

	for i := at + 1; i < min(len(words), at+3); i++ {
		switch w := words[i]; {
		case w.Number || w.Common:
			return -1
		case i+1 < len(words) && i == at+1 && !words[i+1].Common && !words[i+1].Number && strings.HasSuffix(words[i+1].Lower, "s") && !strings.HasSuffix(w.Lower, "s"):
			// an adjective: 120 old houses
		default:
			return i
		}
	}
	return -1
}

// tellDifference returns the sentence that says in which numbers of a noun, of which something is
// said, sources differ; "" if they do not.
func tellDifference(all []figure, noun, about string) string {
	bySource := make(map[int][]figure)
	var sources []int
	for _, f := range all {
		if f.noun == noun && slices.Contains(f.about, about) {
			if bySource[f.source] == nil {
				sources = append(sources, f.source)
			}
			bySource[f.source] = append(bySource[f.source], f)
		}
	}

	var figures []figure // one for each number
	for _, source := range sources {
		of := bySource[source]
		if slices.ContainsFunc(of, func(f figure) bool { return f.number != of[0].number }) {
			continue // nothing tells which of its numbers is meant
		}
		if i := slices.IndexFunc(figures, func(f figure) bool { return f.number == of[0].number }); i >= 0 {
			figures[i].refs = slices.Concat(figures[i].refs, of[0].refs)
			continue
		}
		figures = append(figures, of[0])
	}
	if len(figures) < 2 {
		return ""
	}

	sentence := sayFigures(figures, about)

	var passages []string
	for _, f := range figures {
		passages = append(passages, f.text)
	}

	// The sentence is checked as those of a model are, by its own quotes.
	if claims.Check(behindSentence.ReplaceAllString(sentence, ""), passages...).Grade != claims.Supported {
		return ""
	}

	return sentence
}

// sayFigures says all of some figures, or of many the least and the greatest.
func sayFigures(figures []figure, about string) string {
	slices.SortStableFunc(figures, func(a, b figure) int { return compareNumbers(a.number, b.number) })

	said := figures
	if len(figures) > maxFigures {
		said = []figure{figures[0], figures[len(figures)-1]}
	}

	parts := make([]string, len(said))
	for i, f := range said {
		parts[i] = "“" + f.phrase(about) + "” [" + strings.Join(f.refs, ", ") + "]"
	}

	last := len(parts) - 1
	if len(figures) > maxFigures {
		return "The sources differ, from " + parts[0] + " to " + parts[last] + "."
	}
	return "The sources differ: " + strings.Join(parts[:last], ", ") + ", or " + parts[last] + "."
}

// compareNumbers orders numbers in canonical form.
func compareNumbers(a, b string) int {
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	if !okX || !okY {
		return strings.Compare(a, b)
	}
	return x.Cmp(y)
}

// phrase returns the words of the sentence around the number: to what is said, if it stands near.
func (f *figure) phrase(about string) string {
	from, to := f.at, f.nounAt

	for i, w := range f.words {
		switch {
		case w.Stem != about:
		case i > to && i-to <= aroundFigure:
			to = i
		case i < from && from-i <= aroundFigure:
			from = i
		}
	}

	return strings.Join(strings.Fields(f.text[f.words[from].Start:f.words[to].End]), " ")
}
