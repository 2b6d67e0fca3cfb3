package digest

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/worker/claims"
	"github.com/coditect/mapreduce/worker/prose"
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
// their first passages; each has the best sentence of that passage as its finding.
func Themes(q *Query, passages []Passage, most int) []Finding {
	words := newVocabulary(q, passages)
	groups := words.group(passages, most)
	findings := make([]Finding, 0, len(groups))
	for _, group := range groups {
		first := passages[group[0]]
		f := Finding{Topic: words.topic(group), Text: cite(bestSentence(q, first.Text), first.Ref)}
		for _, i := range group {
			if ref := passages[i].Ref; ref != "" && !slices.Contains(f.Refs, ref) {
				f.Refs = append(f.Refs, ref)
			}
		}
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
	each := max(1, min(maxSentences, maxParagraphs*inParagraph/max(1, len(passages))))
	var findings []Finding
	for _, group := range words.group(passages, most) {
		topic := words.topic(group)
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
	profiles []profile
	shown    map[string]map[string]int // by stem, the words that have it
}

func newVocabulary(q *Query, passages []Passage) *vocabulary {
	v := &vocabulary{shown: make(map[string]map[string]int)}
	in := make(map[string]int) // passages that have a stem
	counts := make([]map[string]int, len(passages))
	for i, p := range passages {
		counts[i] = make(map[string]int)
		for _, w := range prose.Words(p.Text) {
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
		if len(groups) < most && likeness < themeLikeness {
			groups = append(groups, []int{i})
			continue
		}
		best = max(best, 0)
		groups[best] = append(groups[best], i)
	}
	return groups
}

// topic names what passages have in common: the two words that tell most.
func (v *vocabulary) topic(group []int) string {
	total := make(map[string]float64)
	for _, i := range group {
		for stem, w := range v.profiles[i].weights {
			total[stem] += w
		}
	}
	for stem := range total {
		total[stem] *= v.telling(stem)
	}
	stems := sortedStems(total)
	slices.SortStableFunc(stems, func(a, b string) int { return cmp.Compare(total[b], total[a]) })
	var words []string
	for _, stem := range stems[:min(2, len(stems))] {
		best := ""
		for _, w := range sortedStems(v.shown[stem]) {
			if best == "" || v.shown[stem][w] > v.shown[stem][best] {
				best = w
			}
		}
		words = append(words, best)
	}
	slices.Sort(words)
	if len(words) == 0 {
		return "other"
	}
	return strings.Join(words, " and ")
}

// telling says how well a word names a topic: names of things do better than what is said
// of them.
func (v *vocabulary) telling(stem string) float64 {
	verbs, all := 0, 0
	for w, n := range v.shown[stem] {
		all += n
		if strings.HasSuffix(w, "ed") || strings.HasSuffix(w, "ing") || strings.HasSuffix(w, "ly") || strings.HasSuffix(w, "ive") || strings.HasSuffix(w, "ous") {
			verbs += n
		}
	}
	return 1 - 0.7*float64(verbs)/float64(max(1, all))
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
		one := tidy(span.In(text))
		if one == "" {
			continue
		}
		n := utf8.RuneCountInString(one)
		s := q.Relevance(one) + 0.05/float64(1+i)
		if claims.Claims(one) {
			s += 0.5
		}
		if n < shortSentence || n > longSentence {
			s -= 0.3
		}
		if pointsBack(one) {
			s -= 0.15
		}
		if !prose.IsReadable(span.In(text)) {
			s -= 1 // tables, markup and code, which claim much by the look of them
		}
		all = append(all, scored{one, i, s})
	}
	if len(all) == 0 {
		return []string{endSentence(clip(tidy(text)))}
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

// pointsBack reports whether a sentence begins with a word that stands for something before
// it.
func pointsBack(sentence string) bool {
	word, _, _ := strings.Cut(strings.ToLower(sentence), " ")
	switch strings.TrimRight(word, ",") {
	case "this", "these", "it", "they", "he", "she", "such", "however", "therefore", "thus", "moreover", "furthermore", "also", "but", "and", "so":
		return true
	}
	return false
}

// bracketed matches the references of a text of somebody else's, which would be taken for
// the report's own, and marks of lists and headings.
var bracketed = regexp.MustCompile(`\s?\[\s*[0-9?]{1,4}(?:\s*[,;–-]\s*[0-9]{1,4})*\s*\]|\bREF_[0-9A-Za-z]+`)

var leadingMark = regexp.MustCompile(`^(?:[-*+•#>]+|[0-9]{1,3}[.)])\s+`)

// link matches a link of Markdown; its first group is the text.
var link = regexp.MustCompile(`\[([^\[\]]+)\]\([^()\s]*\)`)

// tidy returns a sentence on one line, without references, links and marks of its own text.
func tidy(sentence string) string {
	sentence = link.ReplaceAllString(sentence, "$1")
	sentence = strings.ReplaceAll(sentence, "**", "")
	sentence = bracketed.ReplaceAllString(sentence, "")
	sentence = strings.Join(strings.Fields(sentence), " ")
	return strings.TrimSpace(leadingMark.ReplaceAllString(sentence, ""))
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
			if v := claims.Check(sentence, b.Text); v.Grade == claims.Contradicted && len(v.Reasons) > 0 && !slices.ContainsFunc(all, func(s string) bool {
				return strings.Contains(s, a.Ref) && strings.Contains(s, b.Ref)
			}) {
				all = append(all, strings.TrimRight(sentence, ".")+" ["+a.Ref+"]; otherwise in ["+b.Ref+"]: "+v.Reasons[0])
			}
		}
	}
	return all
}
