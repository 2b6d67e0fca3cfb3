package gather

import (
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/digest"
)

// BearsOn is the relevance from which a page is about a question.
const BearsOn = bearsOn

// Relevance says how much of a question a page is about.
func Relevance(question, title, text string) float64 {
	g := &gathering{query: digest.NewQuery(question)}
	return g.relevanceOf(&output.Evidence{Text: []byte(text), Metadata: map[string]string{"title": title}})
}

// Finding returns what a page says to a question.
func Finding(question, text string) string {
	x := &extract{evidence: &output.Evidence{Text: []byte(text)}, query: digest.NewQuery(question)}
	return x.findingSpan().In(text)
}

// Headline returns the headline of what a page says to a question.
func Headline(question, title, text string) string {
	x := &extract{evidence: &output.Evidence{Text: []byte(text), Metadata: map[string]string{"title": title}}, query: digest.NewQuery(question)}
	return x.titleSpan().In(text)
}

// IsFoundIn reports whether a page says something to a question.
func IsFoundIn(question, text string) bool {
	g := &gathering{query: digest.NewQuery(question)}
	return g.isFoundIn(&output.Evidence{Text: []byte(text)})
}

// DateOf returns the date of a page.
func DateOf(text string) string {
	iso, _ := dateOf(text)
	return iso
}

// Cited returns what is shown of a text that is cited whole, and its quote.
func Cited(text string) (shown, quote string) {
	x := &extract{unit: "u", evidence: &output.Evidence{Text: []byte(text)}}
	shown = x.cite(0, len(text))
	return shown, x.cited[0].Quote
}
