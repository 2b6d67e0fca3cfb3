package digest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/prose"
)

// A Report is a text in its parts, which consists of whole sentences of findings.
type Report struct {
	Opening string   // 2 sentences that bear most on the question, if there are as many
	Body    string   // up to 4 paragraphs, by topic, with empty lines between them
	Closing string   // 1 sentence
	Topics  []string // that the body covers
}

// Bounds of a report.
const (
	maxParagraphs = 4
	inParagraph   = 6 // findings
)

// Compose makes a report of findings, which are in order. The findings that bear most on
// the question, and have most passages behind them, go first; there is room for 24.
func Compose(q *Query, findings []Finding) Report {
	findings = distinct(findings)
	if len(findings) == 0 {
		return Report{}
	}
	ranked := make([]int, len(findings))
	for i := range ranked {
		ranked[i] = i
	}
	score := func(i int) float64 {
		return q.Relevance(findings[i].Text) + 0.04*float64(min(len(findings[i].Refs), 5))
	}
	slices.SortStableFunc(ranked, func(a, b int) int { return cmp.Compare(score(b), score(a)) })
	var r Report
	r.Opening = strings.Join(opening(findings, ranked), " ")
	r.Closing = firstSentence(findings[ranked[min(2, len(ranked)-1)]].Text) // the best that is not in the opening
	chosen := ranked[:min(len(ranked), maxParagraphs*inParagraph)]
	topics := topicsOf(findings, chosen)
	paragraphs := min(maxParagraphs, len(topics))
	var bodies []string
	for n := range paragraphs {
		var sentences []string
		for _, topic := range topics[n*len(topics)/paragraphs : (n+1)*len(topics)/paragraphs] {
			r.Topics = append(r.Topics, topic)
			for _, i := range chosen {
				if findings[i].Topic == topic {
					sentences = append(sentences, findings[i].Text)
				}
			}
		}
		bodies = append(bodies, strings.Join(sentences, " "))
	}
	r.Body = strings.Join(bodies, "\n\n")
	return r
}

// opening returns the first sentences of the two best findings, or of one both.
func opening(findings []Finding, ranked []int) []string {
	var sentences []string
	for _, i := range ranked[:min(2, len(ranked))] {
		sentences = append(sentences, firstSentence(findings[i].Text))
	}
	return sentences
}

// topicsOf returns the topics of findings, each once, in the order of the findings.
func topicsOf(findings []Finding, chosen []int) []string {
	var topics []string
	for _, i := range chosen {
		if !slices.Contains(topics, findings[i].Topic) {
			topics = append(topics, findings[i].Topic)
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
