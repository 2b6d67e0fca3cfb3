package digest

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"
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
	// The fewer passages there are, the more sentences of each have room.
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
		if one := tidy(span.In(text)); prose.IsSentence(one) {
			sentences = append(sentences, one)
		}
	}

	if len(sentences) == 0 {
		return tidy(text)
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

// topic names what passages have in common: the phrase of two words that tells most of them, as it
// stands there, or else the word that does.
func (v *vocabulary) topic(group []int) string {
	phrases := make(map[string]*phrase)
	for _, i := range group {
		v.addPhrases(phrases, i)
	}

	best := ""
	for _, key := range sortedStems(phrases) {
		if best == "" || phrases[key].score() > phrases[best].score()+1e-12 {
			best = key
		}
	}

	if best == "" {
		return "Other"
	}
	return capitalised(phrases[best].shown)
}

// A phrase is one word or two that stand side by side in passages.
type phrase struct {
	shown  string // as it stands where it stands first
	weight float64
	count  int
}

// score says how well a phrase names what it stands in.
func (p *phrase) score() float64 { return p.weight * (1 + math.Log(float64(p.count))) }

// addPhrases adds the phrases of a passage. A word of the question names a topic only beside
// another word.
func (v *vocabulary) addPhrases(to map[string]*phrase, i int) {
	text := v.texts[i]
	words := prose.Words(text)

	add := func(key, shown string, weight float64) {
		if to[key] == nil {
			to[key] = &phrase{shown: shown, weight: weight}
		}
		to[key].count++
	}

	for k, w := range words {
		weight := v.profiles[i].weights[w.Stem] * v.telling(w.Stem)
		if weight > 0 && isPlain(w) {
			add(w.Stem, text[w.Start:w.End], weight)
		}

		if k+1 == len(words) {
			break
		}

		// Two words are a phrase only if nothing but a space stands between them.
		next := words[k+1]
		also := v.profiles[i].weights[next.Stem] * v.telling(next.Stem)
		if text[w.End:next.Start] == " " && isPlain(w) && isPlain(next) && w.Stem != next.Stem && also > 0 && !isModifier(next.Lower) {
			add(w.Stem+" "+next.Stem, text[w.Start:next.End], 1.2*max(weight, also)+0.5*min(weight, also))
		}
	}
}

// isPlain reports whether a word may stand in the name of a topic: it says something by itself, and
// is no name of code.
func isPlain(w prose.Word) bool {
	return !w.Common && !w.Number && utf8.RuneCountInString(w.Lower) >= 3 && !strings.ContainsAny(w.Lower, "_0123456789") && !isAddressWord(w.Lower)
}

// isAddressWord reports whether a word is a part of addresses and names of files.
func isAddressWord(word string) bool {
	switch word {
	case "http", "https", "www", "com", "org", "net", "html", "pdf", "png", "csv", "github", "blob", "ref":
		return true
	}
	return false
}

// isModifier reports whether a word is about another one, so that no phrase ends with it.
func isModifier(word string) bool {
	return strings.HasSuffix(word, "ly") || strings.HasSuffix(word, "ive") || strings.HasSuffix(word, "ous") || strings.HasSuffix(word, "ed") || strings.HasSuffix(word, "able")
}

// capitalised returns a text with a capital as its first letter.
func capitalised(text string) string {
	first, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[n:]
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

		// The parts of the score are large enough that the question decides only between
		// sentences of one kind.
		if claims.Claims(one) {
			s += 0.5
		}
		if n < shortSentence || n > longSentence {
			s -= 0.3
		}
		if pointsBack(one) {
			s -= 0.15
		}
		if pointsAway(one) {
			s -= 0.8 // it claims nothing but where else to read
		}
		if !isProse(one, text) {
			s -= 1 // tables, menus, markup and code, which claim much by the look of them
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

// isProse reports whether a sentence of a text can stand in a report: it is whole, or it is all that
// its text says.
func isProse(sentence, text string) bool {
	return prose.IsSentence(sentence) || len(sentence) >= len(strings.TrimSpace(text))*9/10 && prose.IsReadable(sentence)
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

// elsewhere matches words of sentences that need what stands around them.
var elsewhere = regexp.MustCompile(`^(?:see|as (?:shown|described|noted|mentioned)|for example|the following)\b|\bdo(?:es|ing)? so\b|\b(?:the|this) (?:section|chapter|page|example)s?\b|\b(?:above|below)\b|\bthe following\b`)

// leadsAway matches the beginnings of sentences that send their reader elsewhere.
var leadsAway = regexp.MustCompile(`(?i)^\W*(?:(?:please |also |and )?(?:see|refer to|consult|visit|check out|have a look at|siehe|vgl\.?|voir)\s|(?:read|learn|find out) more\b|for (?:more|further|additional|full|the full|a full|details|instructions|examples?|information)\b[^.]*\b(?:see|refer|visit|read|consult|check)\b|(?:more|further) (?:details|information|examples?|on this)\b[^.]*\b(?:in|at|see|below|here)\b|to learn more\b)`)

// pointsAway reports whether a sentence says nothing but where else to read.
func pointsAway(sentence string) bool { return leadsAway.MatchString(sentence) }

// pointsBack reports whether a sentence begins with a word that stands for something before
// it, or speaks of what stands elsewhere.
func pointsBack(sentence string) bool {
	lower := strings.ToLower(sentence)

	if elsewhere.MatchString(lower) {
		return true
	}

	word, _, _ := strings.Cut(lower, " ")
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

// comment matches a comment of HTML, which may be cut off; reflink a link of Markdown that names its
// target, with the text as its first group.
var (
	comment = regexp.MustCompile(`<!--(?:.*?-->|.*$)`)
	reflink = regexp.MustCompile(`\[([^\[\]]+)\]\[[^\[\]]*\]`)
)

// role matches a text that reStructuredText marks as a reference: its second group is the text, and its
// third what it refers to.
var role = regexp.MustCompile("(?:(:[a-z:+-]+:)`([^`<>]+?)(\\s*<[^<>`]*>)?`)|`([^`<>]+?)\\s*<[^<>`]*>`_{0,2}")

// tidy returns a sentence on one line, without references, links and marks of its own text.
func tidy(sentence string) string {
	sentence = reflink.ReplaceAllString(comment.ReplaceAllString(sentence, ""), "$1")
	sentence = role.ReplaceAllString(link.ReplaceAllString(sentence, "$1"), "$2$4")
	sentence = strings.NewReplacer("**", "", "``", "`").Replace(sentence)
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
