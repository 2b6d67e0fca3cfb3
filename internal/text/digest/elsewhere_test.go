package digest_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/text/digest"
)

// A sentence that says only where else to read opens no report, if others bear on the question.
func TestSentencesThatLeadElsewhere(t *testing.T) {
	const question = "How are transactions retried after a conflict?"
	for _, pointer := range []string{
		"See the guide on retrying transactions after a conflict.",
		"For more information on how transactions are retried after a conflict, see the manual.",
		"Learn more about transactions and how they are retried after a conflict.",
		"Please refer to Transactions for how they are retried after a conflict.",
	} {
		passages := []digest.Passage{
			{Ref: "REF_1", Text: pointer + " The client repeats its transaction with a new version after a conflict."},
			{Ref: "REF_2", Text: "A conflict ends a transaction, which the library retries."},
		}
		r := digest.Compose(digest.NewQuery(question), digest.EachPassage(digest.NewQuery(question), passages, 4), digest.Parts{Opening: true})
		if strings.Contains(r.Opening+r.Body, strings.TrimRight(pointer, ".")) {
			t.Errorf("the report has %q: %s\n%s", pointer, r.Opening, r.Body)
		}
	}
}
