package digest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// Parts are those that a report has beside its body.
type Parts struct{ Opening, Closing bool }

// A Report is a text in its parts, which consists of whole sentences of findings. No sentence
// stands in two parts, unless there are too few for all.
type Report struct {
	Opening string   // 1 or 2 sentences that bear most on the question
	Body    string   // up to 4 paragraphs, by topic, with empty lines between them
	Closing string   // 1 sentence
	Topics  []string // that the body covers, at most maxTopics
}

// Bounds of a report.
const (
	maxParagraphs = 4
	inParagraph   = 6 // findings
	maxTopics     = 8
)

// leastShare is the part of the relevance of the best finding that others must have: what bears on
// the question less is not part of its answer.
const leastShare = 0.55

// A report of fewer than enough findings has others as well that bear on the question by shareOfFew.
const (
	enough     = 5
	shareOfFew = 0.35
)

// leastShareOfTwo is leastShare for questions of two words or one: a sentence that has one word of
// two is seldom about both.
const leastShareOfTwo = 0.6

// onlyNearest stands in front of findings of which none answers the question. It ends with a colon, as
// it claims nothing of a source.
const onlyNearest = "No passage has more than one word of the question; what is nearest to it:"

// maxNearest is how many findings a report has of which none answers the question.
const maxNearest = 4

// Compose makes a report of findings, which are in order. The findings that bear most on
// the question, and have most passages behind them, go first; there is room for 24. Findings that
// bear on it much less than the best one, or say what a better one says, are left out. If none has
// two words of the question, the report says so, and has the few that are nearest to it. A part that
// the report does not have is empty, and what would stand in it stands in the body.
func Compose(q *Query, findings []Finding, parts Parts) Report {
	ranked := rank(q, withoutRepeats(singleSentences(findings)))
	if len(ranked) == 0 {
		return Report{}
	}

	nearest := !slices.ContainsFunc(ranked, func(f Finding) bool { return q.BearsOn(f.Text) })
	if nearest {
		ranked = ranked[:min(len(ranked), maxNearest)]
	} else {
		ranked = slices.DeleteFunc(ranked, func(f Finding) bool { return !q.BearsOn(f.Text) })
	}

	opening, closing, body := divideFindings(ranked[:min(len(ranked), maxParagraphs*inParagraph)], parts)
	if nearest && parts.Opening {
		opening = onlyNearest + "\n\n" + opening
	}
	topics := topicsOf(body)

	// Topics are spread over the paragraphs as evenly as they go, and stay whole.
	paragraphs := min(maxParagraphs, len(topics))
	var bodies []string
	for n := range paragraphs {
		var sentences []string
		for _, topic := range topics[n*len(topics)/paragraphs : (n+1)*len(topics)/paragraphs] {
			for _, f := range body {
				if f.Topic == topic {
					sentences = append(sentences, f.Text)
				}
			}
		}
		bodies = append(bodies, strings.Join(sentences, " "))
	}

	return Report{Opening: opening, Body: strings.Join(bodies, "\n\n"), Closing: closing, Topics: namesOf(topics)}
}

// singleSentences returns a finding for each sentence of findings, under the same topic.
func singleSentences(findings []Finding) []Finding {
	var all []Finding
	for _, f := range findings {
		for _, s := range prose.Sentences(f.Text) {
			all = append(all, Finding{Topic: f.Topic, Text: s.In(f.Text), Refs: f.Refs})
		}
	}
	return all
}

// rank returns the findings that bear on the question, those first that bear on it most, and have
// most passages behind them.
func rank(q *Query, findings []Finding) []Finding {
	findings = presentable(findings)
	texts := make([]string, len(findings))
	for i, f := range findings {
		texts[i] = f.Text
	}

	among := q.among(texts)
	relevance := make(map[string]float64, len(findings)) // by text, which is another for each
	best := 0.0
	for _, f := range findings {
		relevance[f.Text] = among.Relevance(f.Text)
		best = max(best, relevance[f.Text])
	}

	share := leastShare
	if len(q.weights) <= 2 {
		share = leastShareOfTwo
	}
	score := func(f Finding) float64 {
		s := relevance[f.Text] + 0.04*float64(min(len(f.Refs), 5))
		if pointsBack(firstSentence(f.Text)) {
			s -= 0.15 // it opens and closes no report
		}
		return s
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(score(b), score(a)) })

	few := 0
	return slices.DeleteFunc(unlike(findings), func(f Finding) bool {
		if relevance[f.Text] >= share*best || few < enough && relevance[f.Text] >= shareOfFew*best {
			few++
			return false
		}
		return true
	})
}

// leastPresentable is how many findings are enough to leave out those that lean on another sentence.
const leastPresentable = 3

// presentable returns the findings that can be read by themselves. What is no whole statement is left
// out where anything is one, and what begins by pointing back where there are enough others.
func presentable(findings []Finding) []Finding {
	var whole, leaning, others []Finding
	for _, f := range findings {
		switch first := endSentence(tidySentence(strings.TrimRight(withoutReferences(firstSentence(f.Text)), "."))); {
		case len(f.Refs) > 0 && !stands(first):
			others = append(others, f)
		case pointsBack(first):
			leaning = append(leaning, f)
		default:
			whole = append(whole, f)
		}
	}

	switch {
	case len(whole) >= leastPresentable:
		return whole
	case len(whole)+len(leaning) > 0:
		return append(whole, leaning...)
	}
	return others
}

// divideFindings divides findings, the best first, into the sentences of the opening, the sentence of the
// closing, and the findings of the body without these sentences. What is said elsewhere is repeated
// only where there are too few findings for all parts.
func divideFindings(ranked []Finding, parts Parts) (opening, closing string, body []Finding) {
	opens, elsewhere := 0, 0 // findings whose first sentences stand in the opening, and in either part
	if parts.Opening {
		opens = max(1, min(2, len(ranked)-2))
		elsewhere = opens
	}

	if parts.Closing {
		last := ranked[0]
		if opens+1 < len(ranked) {
			last = ranked[opens] // the best that is not in the opening
			elsewhere = opens + 1
		}
		closing = firstSentence(last.Text)
	}

	if len(ranked) == 1 {
		elsewhere = 0
	}

	var sentences []string
	for _, f := range ranked[:opens] {
		sentences = append(sentences, firstSentence(f.Text))
	}
	for _, f := range ranked[:elsewhere] {
		if f.Text = strings.TrimSpace(strings.TrimPrefix(f.Text, firstSentence(f.Text))); f.Text != "" {
			body = append(body, f)
		}
	}
	return strings.Join(sentences, " "), closing, append(body, ranked[elsewhere:]...)
}

// topicsOf returns the topics of findings, each once, in the order of the findings.
func topicsOf(findings []Finding) []string {
	var topics []string
	for _, f := range findings {
		if !slices.Contains(topics, f.Topic) {
			topics = append(topics, f.Topic)
		}
	}
	return topics
}

// namesOf returns the topics that tell a reader something, at most maxTopics: those of several words, or
// all that there are if none has.
func namesOf(topics []string) []string {
	names := slices.DeleteFunc(slices.Clone(topics), func(topic string) bool { return topic == noTopic })
	several := slices.DeleteFunc(slices.Clone(names), func(topic string) bool { return !strings.Contains(topic, " ") })
	if len(several) > 0 {
		names = several
	}
	return names[:min(len(names), maxTopics)]
}

// firstSentence returns the first sentence of a finding, with its references.
func firstSentence(text string) string {
	if spans := prose.Sentences(text); len(spans) > 0 {
		return spans[0].In(text)
	}
	return text
}

// withoutRepeats returns findings without those that say the same as one before them, whose
// references that one gets.
func withoutRepeats(findings []Finding) []Finding {
	var out []Finding
	at := make(map[string]int)
	for _, f := range findings {
		if f.Text == "" {
			continue
		}

		key := strings.ToLower(tidySentence(f.Text))
		if i, seen := at[key]; seen {
			for _, ref := range f.Refs {
				if !slices.Contains(out[i].Refs, ref) {
					// The references are the caller's, so they are copied before one is
					// added.
					out[i].Refs = append(slices.Clone(out[i].Refs), ref)
				}
			}
			continue
		}

		at[key] = len(out)
		out = append(out, f)
	}
	return out
}

// alikeWords is the share of words that two findings have in common from which on they say the same.
const alikeWords = 0.7

// unlike returns findings, the best first, without those that say almost in the same words, and with the
// same numbers, what one before them says: versions of a text often do.
func unlike(ranked []Finding) []Finding {
	var kept []Finding
	var said []map[string]bool
	for _, f := range ranked {
		words := stemsOf(f.Text)
		if slices.ContainsFunc(said, func(other map[string]bool) bool { return sayTheSame(words, other) }) {
			continue
		}
		kept, said = append(kept, f), append(said, words)
	}
	return kept
}

// stemsOf returns the stems of the words of a finding that say something; numbers begin with a mark.
func stemsOf(text string) map[string]bool {
	stems := make(map[string]bool)
	for _, w := range prose.Words(withoutReferences(tidySentence(text))) {
		switch {
		case w.Number:
			stems["#"+w.Stem] = true
		case !w.Common:
			stems[w.Stem] = true
		}
	}
	return stems
}

// sayTheSame reports whether two sets of stems have most in common, and all of their numbers.
func sayTheSame(a, b map[string]bool) bool {
	common := 0
	for stem := range a {
		switch {
		case b[stem]:
			common++
		case stem[0] == '#':
			return false
		}
	}

	for stem := range b {
		if stem[0] == '#' && !a[stem] {
			return false
		}
	}

	return float64(common) >= alikeWords*float64(len(a)+len(b)-common)
}
