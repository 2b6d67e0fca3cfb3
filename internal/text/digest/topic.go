package digest

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// nameTopic names what passages have in common: the phrase of two words that tells most of them, as it
// stands there, or else the word that does. A phrase that stands there twice goes before others.
func (v *vocabulary) nameTopic(group []int) string {
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
		return noTopic
	}
	return capitalised(phrases[best].shown)
}

// noTopic is the topic of passages that have no phrase in common.
const noTopic = "Other"

// A phrase is one word or two that stand side by side in passages.
type phrase struct {
	shown  string // as it stands where it stands first
	weight float64
	count  int
	words  int
}

// score says how well a phrase names what it stands in: one word tells less than two.
func (p *phrase) score() float64 {
	s := p.weight * (1 + math.Log(float64(p.count)))
	if p.words > 1 {
		s *= 3
	}
	return s
}

// maxTopic is how many words a topic has at most.
const maxTopic = 3

// addPhrases adds the phrases of a passage: runs of words that name things, each as far as it goes, and
// these words. A word of the question names a topic only beside another word.
func (v *vocabulary) addPhrases(to map[string]*phrase, i int) {
	text := v.texts[i]
	words := prose.Words(text)
	for at := 0; at < len(words); {
		end := v.runEnd(text, words, at)
		run := words[max(at, end-maxTopic):end]
		at = max(end, at+1)
		if len(run) == 0 || !v.isNoun(run[len(run)-1]) || end < len(words) && text[words[end-1].End:words[end].Start] == " " && opensPhrase(words[end].Lower) {
			continue // what stands before an article is rather a verb
		}

		for _, w := range run {
			if v.isNoun(w) {
				v.addPhrase(to, i, []prose.Word{w})
			}
		}

		for k := range len(run) - 1 {
			for n := k + 2; n <= len(run); n++ {
				if v.isNoun(run[n-1]) {
					v.addPhrase(to, i, run[k:n])
				}
			}
		}
	}
}

// runEnd returns where the run of words that begins at a word ends: words that may stand in the name of a
// topic, with single blanks between them.
func (v *vocabulary) runEnd(text string, words []prose.Word, at int) int {
	end := at
	for end < len(words) && isPlain(words[end]) && !v.isVerb(words[end]) && (end == at || text[words[end-1].End:words[end].Start] == " ") {
		end++
	}
	return end
}

// addPhrase adds words of a passage as a phrase, unless all of them are words of the question or one stands
// in it twice.
func (v *vocabulary) addPhrase(to map[string]*phrase, i int, words []prose.Word) {
	var stems []string
	sum, most := 0.0, 0.0
	for _, w := range words {
		if slices.Contains(stems, w.Stem) {
			return
		}
		weight := v.profiles[i].weights[w.Stem]
		stems, sum, most = append(stems, w.Stem), sum+weight, max(most, weight)
	}
	if sum == 0 {
		return
	}

	key := strings.Join(stems, " ")
	if to[key] == nil {
		to[key] = &phrase{shown: v.texts[i][words[0].Start:words[len(words)-1].End], weight: 0.7*most + 0.3*sum, words: len(words)}
	}
	to[key].count++
}

// isPlain reports whether a word may stand in the name of a topic: it says something by itself, and
// is no name of code.
func isPlain(w prose.Word) bool {
	return !w.Common && !w.Number && utf8.RuneCountInString(w.Lower) >= 3 && !strings.ContainsAny(w.Lower, "_0123456789'") && !isAddressWord(w.Lower) && !vague[w.Lower]
}

// isNoun reports whether a word may end the name of a topic, as far as its form tells.
func (v *vocabulary) isNoun(w prose.Word) bool {
	return isPlain(w) && !isModifier(w.Lower) && !strings.HasSuffix(w.Lower, "ing") && !v.isVerb(w)
}

// isVerb reports whether a word is said of things rather than names them: it is a form of verbs, or most
// forms of its stem in the passages are.
func (v *vocabulary) isVerb(w prose.Word) bool {
	return finite[w.Lower] || v.telling(w.Stem) < leastTelling
}

// leastTelling is how well a word tells that names a topic.
const leastTelling = 0.6

// vague are words that name no topic, as all texts have them.
var vague = wordSet(`multiple different single new several various possible main general common specific current previous similar large small good bad
	better easy simple important useful many first second last next example examples case cases way ways thing things kind kinds type types term terms section
	sections result results form forms name names number numbers part parts end point points order time times value values use user users set sets line lines
	note page pages document documents file files table figure item items list option options additional certain particular entire whole full own able
	long short high low great due respective previously currently year years day days priori`)

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
	for _, ending := range []string{"ly", "ive", "ous", "ed", "able", "ible", "ful", "less", "ical", "ic", "est"} {
		if strings.HasSuffix(word, ending) {
			return true
		}
	}
	return false
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
