package digest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/prose"
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
const leastShare = 0.45

// leastShareOfTwo is leastShare for questions of two words or one: a sentence that has one word of
// two is seldom about both.
const leastShareOfTwo = 0.55

// Compose makes a report of findings, which are in order. The findings that bear most on
// the question, and have most passages behind them, go first; there is room for 24. Findings that
// bear on it much less than the best one are left out. A part that the report does not have is empty, and
// what would stand in it stands in the body.
func Compose(q *Query, findings []Finding, parts Parts) Report {
	ranked := rank(q, distinct(single(findings)))
	if len(ranked) == 0 {
		return Report{}
	}

	opening, closing, body := divide(ranked[:min(len(ranked), maxParagraphs*inParagraph)], parts)
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

	return Report{Opening: opening, Body: strings.Join(bodies, "\n\n"), Closing: closing, Topics: topics[:min(len(topics), maxTopics)]}
}

// single returns a finding for each sentence of findings, under the same topic.
func single(findings []Finding) []Finding {
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
	texts := make([]string, len(findings))
	for i, f := range findings {
		texts[i] = f.Text
	}

	q = q.among(texts)

	relevance := make(map[string]float64, len(findings)) // by text, which is another for each
	best := 0.0
	for _, f := range findings {
		relevance[f.Text] = q.Relevance(f.Text)
		if !isWhole(f.Text) || pointsAway(f.Text) {
			relevance[f.Text] /= 4 // what is no prose, or leads elsewhere, goes behind all that is
		}
		best = max(best, relevance[f.Text])
	}

	share := leastShare
	if len(q.weights) <= 2 {
		share = leastShareOfTwo
	}
	findings = slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return relevance[f.Text] < share*best })

	score := func(f Finding) float64 {
		s := relevance[f.Text] + 0.04*float64(min(len(f.Refs), 5))
		if pointsBack(firstSentence(f.Text)) {
			s -= 0.15 // it opens and closes no report
		}
		return s
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(score(b), score(a)) })
	return findings
}

// isWhole reports whether the first sentence of a finding is one that can be read by itself.
func isWhole(text string) bool {
	first := tidy(firstSentence(text))
	return prose.IsSentence(first) || !strings.Contains(text, "REF_")
}

// divide divides findings, the best first, into the sentences of the opening, the sentence of the
// closing, and the findings of the body without these sentences. What is said elsewhere is repeated
// only where there are too few findings for all parts.
func divide(ranked []Finding, parts Parts) (opening, closing string, body []Finding) {
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

// firstSentence returns the first sentence of a finding, with its references.
func firstSentence(text string) string {
	if spans := prose.Sentences(text); len(spans) > 0 {
		return spans[0].In(text)
	}
	return text
}

// distinct returns findings without those that say the same as one before them, whose
// references that one gets.
func distinct(findings []Finding) []Finding {
	var out []Finding
	at := make(map[string]int)
	for _, f := range findings {
		if f.Text == "" {
			continue
		}

		key := strings.ToLower(tidy(f.Text))
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
