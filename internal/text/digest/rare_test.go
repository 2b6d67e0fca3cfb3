package digest_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/text/digest"
)

// TestRareWords: a word of the question that most texts have weighs less than one that few have.
func TestRareWords(t *testing.T) {
	q := digest.NewQuery("How does an agent retry after a validation error?")
	const common, telling = "An agent ends with an error.", "An invalid answer is tried again after validation: a retry."
	texts := []string{"An agent has an error.", "The error of an agent.", "Each agent has errors.", "An agent runs.", common, telling}

	if q.Relevance(common) < q.Relevance(telling) {
		t.Fatal("the texts tell nothing: without weights the telling one is not behind")
	}

	rare := q.Rare(texts)
	if a, b := rare.Relevance(common), rare.Relevance(telling); a >= b {
		t.Errorf("relevance %.2f of %q and %.2f of %q, want less for the common words", a, common, b, telling)
	}
	if got, want := q.Rare(texts[:2]).Relevance(common), q.Relevance(common); got != want {
		t.Errorf("relevance %.2f among two texts, want %.2f: they do not tell what is rare", got, want)
	}

	// What no text has is not taken out of the question.
	if got := q.Rare(texts[:5]).Relevance(common); got > 0.5 {
		t.Errorf("relevance %.2f of a text without the rare words, want at most 0.50", got)
	}
}
