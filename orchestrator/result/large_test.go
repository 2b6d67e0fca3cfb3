package result_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
)

const letters = `
title: letter
type: object
properties:
  sender: {type: string, x-coditect: {labels: [FROM]}}
  body: {type: string, x-coditect: {pattern: '(?m)^BODY (?P<value>.*)$', merge: longest}}
x-coditect: {key: %s}
`

// largeLetters are documents of which several are of one sender and no two say the
// same, with a line of so many bytes.
func largeLetters(n, senders, size int) (map[string]string, []string) {
	docs, order := make(map[string]string), make([]string, n)
	for i := range n {
		order[i] = fmt.Sprintf("doc%04d", i)
		line := strings.Repeat(fmt.Sprintf("word%d ", i), size)[:size-1] + "."
		docs[order[i]] = fmt.Sprintf("FROM: Sender %d\nBODY %s\n", i%senders, line)
	}
	return docs, order
}

// TestMergedRecordsLargerThanAnOutput: what all reduces together merge is more than
// one output may be. Records for which a reduce has no room go on as names, and
// the result is the same.
func TestMergedRecordsLargerThanAnOutput(t *testing.T) {
	testenv.Lengthy(t)
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	const documents, size, mostOutput = 360, 16 << 10, 5 << 20
	n := enginetest.Ruled(t)
	for _, tt := range []struct {
		name    string
		key     string
		senders int
		ask     enginetest.Ask
	}{
		{"a key, in batches", "[sender]", documents / 4, enginetest.Ask{enginetest.Batches(1, 0)}},
		{"one summary, static", "[]", 1, enginetest.Ask{enginetest.Static(10)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs, order := largeLetters(documents, tt.senders, size)
			spec := enginetest.Extracting(t, fmt.Sprintf(letters, tt.key))
			for _, a := range tt.ask {
				a(&spec)
			}
			id, got := n.Run(spec, enginetest.Texts(docs, order...))
			if len(got.Records) != tt.senders || len(got.Conflicts) != len(got.Records) {
				t.Fatalf("%d records with %d conflicts, want %d with one each", len(got.Records), len(got.Conflicts), tt.senders)
			}
			for _, r := range got.Records {
				if sources := r["_sources"].([]any); len(sources) != documents/tt.senders {
					t.Fatalf("a record of %d documents, want %d", len(sources), documents/tt.senders)
				}
			}
			if len(got.Sources) != documents { // A11
				t.Errorf("%d source units, want %d", len(got.Sources), documents)
			}
			got.Cited(t, docs)
			quoted := 0
			for _, c := range got.Citations {
				quoted += len(c.Quote)
			}
			if quoted < documents*size {
				t.Errorf("quotes of %d bytes, want those of all %d documents", quoted, documents)
			}
			if most := largestOutput(n, id); most > mostOutput {
				t.Errorf("the largest output of a reduce takes %d bytes, want at most %d", most, mostOutput)
			}
			n.Sound()
		})
	}
}

// largestOutput returns the bytes of the largest output of a job's reduces.
func largestOutput(n *enginetest.Node, id mapreduce.JobID) (most int) {
	n.T.Helper()
	q := mapreduce.ListUnitsQuery{Job: id, Outputs: true, PageSize: 100}
	for {
		page, err := n.ListUnits(n.T.Context(), q)
		if err != nil {
			n.T.Fatal(err)
		}
		for _, u := range page.Units {
			if u.Level > 0 {
				most = max(most, len(u.Output))
			}
		}
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			return most
		}
	}
}
