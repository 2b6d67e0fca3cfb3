package digest

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/text/claims"
	"github.com/coditect/mapreduce/internal/text/prose"
)

// A Passage is a text with the reference that a report names it by.
type Passage struct {
	Ref       string // "" for a text that cannot be cited
	Text      string
	Relevance float64
}

// A Finding is what one or several passages say, in whole sentences of theirs.
type Finding struct {
	Topic string   // a few words
	Text  string   // with references in brackets behind the sentences that have one
	Refs  []string // of all passages behind it
}

// profile is what a passage is about, apart from the question.
type profile struct {
	weights map[string]float64 // by stem
	norm    float64
}

// themeLikeness is how alike two passages have to be to share a theme: the cosine of what
// they are about.
const themeLikeness = 0.16

// Themes returns the themes of passages, at most so many. The themes are in the order of
// their first passages; each has the best sentence of that passage as its finding, and those of the
// passages behind it that say something about the question by themselves.
func Themes(q *Query, passages []Passage, most int) []Finding {
	words := newVocabulary(q, passages)
	groups := words.group(passages, most)

	findings := make([]Finding, 0, len(groups))
	for _, group := range groups {
		f := Finding{Topic: words.nameTopic(group)}
		var sentences []string
		for n, i := range group {
			best := bestSentence(q, passages[i].Text)
			if n == 0 || len(sentences) < maxSentences && stands(best) && !pointsBack(best) && q.BearsOn(best) {
				sentences = append(sentences, cite(best, passages[i].Ref))
			}
			if ref := passages[i].Ref; ref != "" && !slices.Contains(f.Refs, ref) {
				f.Refs = append(f.Refs, ref)
			}
		}
		f.Text = strings.Join(sentences, " ")
		findings = append(findings, f)
	}
	return findings
}

// maxSentences is how many sentences of one passage a report has at most.
const maxSentences = 3

// EachPassage returns findings for each passage, its best sentences as far as a report has
// room for them, under the topics of the themes that the passages have in common.
func EachPassage(q *Query, passages []Passage, most int) []Finding {
	words := newVocabulary(q, passages)
	// The fewer passages there are, the more sentences of each have room.
	each := max(1, min(maxSentences, maxParagraphs*inParagraph/max(1, len(passages))))

	var findings []Finding
	for _, group := range words.group(passages, most) {
		topic := words.nameTopic(group)
		for _, i := range group {
			p := passages[i]
			for _, sentence := range bestSentences(q, p.Text, each) {
				f := Finding{Topic: topic, Text: cite(sentence, p.Ref)}
				if p.Ref != "" {
					f.Refs = []string{p.Ref}
				}
				findings = append(findings, f)
			}
		}
	}

	return findings
}

// cite puts a reference behind a sentence, before its full stop.
func cite(sentence, ref string) string {
	if ref == "" || sentence == "" {
		return sentence
	}

	end := strings.TrimRight(sentence, ".!")
	return end + " [" + ref + "]."
}

// A vocabulary is what passages are about.
type vocabulary struct {
	texts    []string // of the passages, as far as they are prose
	profiles []profile
	shown    map[string]map[string]int // by stem, the words that have it
}

func newVocabulary(q *Query, passages []Passage) *vocabulary {
	v := &vocabulary{shown: make(map[string]map[string]int)}
	in := make(map[string]int) // passages that have a stem

	counts := make([]map[string]int, len(passages))
	for i, p := range passages {
		v.texts = append(v.texts, proseOf(p.Text))
		counts[i] = make(map[string]int)

		for _, w := range prose.Words(v.texts[i]) {
			if w.Common || w.Number || utf8.RuneCountInString(w.Lower) < 3 || q.weights[w.Stem] > 0 || w.Lower == "ref" {
				continue
			}

			if counts[i][w.Stem]++; counts[i][w.Stem] == 1 {
				in[w.Stem]++
			}
			if v.shown[w.Stem] == nil {
				v.shown[w.Stem] = make(map[string]int)
			}
			v.shown[w.Stem][w.Lower]++
		}
	}

	// The weight is that of tf-idf, with a logarithm so that no word that is repeated
	// outweighs all others.
	for i := range passages {
		p := profile{weights: make(map[string]float64, len(counts[i]))}
		for _, stem := range sortedStems(counts[i]) {
			rare := math.Log(1 + float64(len(passages))/float64(in[stem]))
			w := (1 + math.Log(float64(counts[i][stem]))) * rare
			p.weights[stem] = w
			p.norm += w * w
		}

		p.norm = math.Sqrt(p.norm)
		v.profiles = append(v.profiles, p)
	}
	return v
}

// proseOf returns the sentences of a text, tidied, or all of it if it has none.
func proseOf(text string) string {
	var sentences []string
	for _, span := range prose.Sentences(text) {
		if one := tidySentence(span.In(text)); prose.IsSentence(one) {
			sentences = append(sentences, one)
		}
	}

	if len(sentences) == 0 {
		return tidySentence(text)
	}
	return strings.Join(sentences, " ")
}

func sortedStems[T any](m map[string]T) []string {
	stems := make([]string, 0, len(m))
	for stem := range m {
		stems = append(stems, stem)
	}

	sort.Strings(stems)
	return stems
}

// likeness is the cosine of two profiles.
func (p *profile) likeness(other *profile) float64 {
	if p.norm == 0 || other.norm == 0 {
		return 0
	}

	sum := 0.0
	for _, stem := range sortedStems(p.weights) {
		sum += p.weights[stem] * other.weights[stem]
	}

	return sum / (p.norm * other.norm)
}

// group groups passages by what they are about: each joins the first theme that is like
// it most. With as many themes as may be, the rest join the one that is most like them.
func (v *vocabulary) group(passages []Passage, most int) [][]int {
	var groups [][]int
	for i := range passages {
		best, likeness := -1, 0.0
		for g, group := range groups {
			if like := v.profiles[group[0]].likeness(&v.profiles[i]); like > likeness+1e-12 {
				best, likeness = g, like
			}
		}

		// The first passage of a theme stands for it, so that themes do not drift.
		if len(groups) < most && likeness < themeLikeness {
			groups = append(groups, []int{i})
			continue
		}

		best = max(best, 0)
		groups[best] = append(groups[best], i)
	}
	return groups
}

// Lengths of sentences that are best to read, in characters.
const (
	shortSentence = 40
	longSentence  = 360
)

// bestSentence returns the sentence of a text that bears most on the question.
func bestSentence(q *Query, text string) string { return bestSentences(q, text, 1)[0] }

// bestSentences returns the sentences of a text that bear most on the question, at most so
// many and at least one, in their order. A sentence that claims something goes before one
// that does not, and one that can be read by itself before one that begins by pointing
// back. Only the first may claim nothing, or be no prose.
func bestSentences(q *Query, text string, most int) []string {
	type scored struct {
		text  string
		at    int
		score float64
	}

	var all []scored
	for i, span := range prose.Sentences(text) {
		one := tidySentence(span.In(text))
		if one == "" {
			continue
		}

		n := utf8.RuneCountInString(one)
		s := q.Relevance(one) + 0.05/float64(1+i)

		// The parts of the score are large enough that the question decides only between
		// sentences of one kind.
		if claims.Claims(one) {
			s += 0.5
		}
		if n < shortSentence || n > longSentence {
			s -= 0.3
		}
		if pointsBack(one) {
			s -= 0.4
		}
		if !stands(one) && !isAllOf(one, text) {
			s-- // fragments, asides, tables, markup and code, which claim much by the look of them
		}

		all = append(all, scored{one, i, s})
	}

	if len(all) == 0 {
		return []string{endSentence(clip(tidySentence(text)))}
	}

	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })

	chosen := all[:1]
	for _, one := range all[1:] {
		if len(chosen) < most && one.score >= 0.5 {
			chosen = append(chosen, one)
		}
	}

	chosen = slices.Clone(chosen)
	slices.SortFunc(chosen, func(a, b scored) int { return cmp.Compare(a.at, b.at) })

	sentences := make([]string, len(chosen))
	for i, one := range chosen {
		sentences[i] = endSentence(clip(one.text))
	}
	return sentences
}

// isAllOf reports whether a readable sentence is all that its text says.
func isAllOf(sentence, text string) bool {
	return len(sentence) >= len(strings.TrimSpace(text))*9/10 && prose.IsReadable(sentence) && !pointsAway(sentence)
}

// clip cuts a sentence that nobody would read.
func clip(text string) string {
	if r := []rune(text); len(r) > 2*longSentence {
		return strings.TrimRight(string(r[:2*longSentence]), " ,;:")
	}
	return text
}

// endSentence ends a text with a full stop.
func endSentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, "?") {
		return text
	}
	return strings.TrimRight(text, ",;:") + "."
}

// maxContradictions bounds the contradictions that are listed of some passages.
const maxContradictions = 5

// Contradictions returns where the best sentence of one passage says otherwise than
// another passage, each with the references of both.
func Contradictions(q *Query, passages []Passage) []string {
	var all []string
	for i, a := range passages {
		sentence := bestSentence(q, a.Text)

		for k, b := range passages {
			if i == k || len(all) == maxContradictions || a.Ref == "" || b.Ref == "" {
				continue
			}
			// Each pair of passages is listed once, whichever contradicted the other.
			if v := claims.Check(sentence, b.Text); v.Grade == claims.Contradicted && len(v.Reasons) > 0 && !slices.ContainsFunc(all, func(s string) bool {
				return strings.Contains(s, a.Ref) && strings.Contains(s, b.Ref)
			}) {
				all = append(all, strings.TrimRight(sentence, ".")+" ["+a.Ref+"]; otherwise in ["+b.Ref+"]: "+v.Reasons[0])
			}
		}
	}
	return all
}
