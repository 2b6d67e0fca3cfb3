package result_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
)

func TestRulesOnWholeDocuments(t *testing.T) {
	n := enginetest.Ruled(t)
	docs := map[string]string{
		"a.txt":       "ORDER: A-1\nCITY: Köln\nTOTAL: 12.50\n",
		"b.txt":       "Größe — ORDER: B-2\nTOTAL: 7\n",
		"page.html":   "<html><body><p>ORDER: C-3</p><p>CITY: Ipoh</p><script>TOTAL: 99</script></body></html>",
		"nothing.txt": "nothing to see\n",
		"empty.txt":   "",
	}
	id, got := n.Run(enginetest.Extracting(t, enginetest.Orders), enginetest.Texts(docs, "a.txt", "b.txt", "empty.txt", "page.html", "nothing.txt"))
	delete(docs, "page.html") // its text is not its source
	got.Cited(t, docs)
	var rows []string
	for _, r := range got.Records {
		rows = append(rows, fmt.Sprint(r["_sources"], " ", r["order"], " ", r["city"], " ", r["total"]))
	}
	want := []string{
		"[a.txt] A-1 Köln 12.5", "[b.txt] B-2 <nil> 7", "[page.html] C-3 Ipoh <nil>", "[nothing.txt] <nil> <nil> <nil>",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	job, err := n.GetJob(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if l := job.Coverage.Documents; l != (mapreduce.Ledger{Total: 5, Mapped: 4, Skipped: 1}) {
		t.Errorf("ledger of documents: %+v", l)
	}
	if l := job.Coverage.Characters; l.Total == 0 || l.Mapped != l.Total {
		t.Errorf("ledger of characters: %+v", l)
	}
	if len(got.Summary.Skipped) != 1 || got.Summary.Skipped[0].Document != "empty.txt" {
		t.Errorf("skipped: %+v", got.Summary.Skipped)
	}
}

// TestPagesThatCannotBeRead submits web pages of which one has no text, and one is not text.
// Both are skipped, each for its reason.
func TestPagesThatCannotBeRead(t *testing.T) {
	n := enginetest.Ruled(t)
	docs := map[string]string{
		"a.html":     "<p>ORDER: A-1</p>",
		"blank.html": "<html><script>ORDER: B-2</script><img src=x></html>",
		"nul.html":   strings.Repeat("\x00", 100),
	}
	id, got := n.Run(enginetest.Extracting(t, enginetest.Orders), enginetest.Texts(docs, "a.html", "blank.html", "nul.html"))
	if len(got.Records) != 1 || got.Records[0]["order"] != "A-1" {
		t.Errorf("records: %v", got.Records)
	}
	skipped := []mapreduce.SkippedDocument{
		{Document: "blank.html", Reason: "no text"},
		{Document: "nul.html", Reason: "not text: 100 NUL and 0 other control characters in 100 bytes"},
	}
	if diff := cmp.Diff(skipped, got.Summary.Skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	job, err := n.GetJob(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if l := job.Coverage.Documents; l != (mapreduce.Ledger{Total: 3, Mapped: 1, Skipped: 2}) {
		t.Errorf("ledger of documents: %+v", l)
	}
	unread := int64(len(docs["blank.html"]) + len(docs["nul.html"]))
	if l := job.Coverage.Unread; l != (mapreduce.Ledger{Total: unread, Skipped: unread}) {
		t.Errorf("bytes that were not read: %+v, want %d skipped", l, unread)
	}
	if diff := cmp.Diff(skipped, job.Skipped); diff != "" {
		t.Errorf("skipped documents of the job (-want +got):\n%s", diff)
	}
	n.Sound()
}

// TestOnlyPagesWithoutText submits nothing that can be mapped.
func TestOnlyPagesWithoutText(t *testing.T) {
	n := enginetest.Ruled(t)
	job, err := n.SubmitJob(t.Context(), enginetest.Extracting(t, enginetest.Orders), enginetest.Texts(map[string]string{"blank.html": "<p></p>"}, "blank.html"))
	if err != nil {
		t.Fatal(err)
	}
	job = n.WantEnd(job.ID, mapreduce.JobFailed)
	if want := "no document is left to process; the first that was skipped, blank.html: no text"; job.Error != want {
		t.Errorf("job failed with %q, want %q", job.Error, want)
	}
}

func TestResultDoesNotDependOnTheTree(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	n := enginetest.Ruled(t)
	docs, order := enginetest.Keyed(120)
	var first []map[string]any
	for _, tt := range []struct {
		name   string
		tokens int
		ask    enginetest.Ask
	}{
		{"one reduce", 0, enginetest.Ask{enginetest.Batches(1<<30, 0)}},
		{"levels of ten", 0, enginetest.Ask{enginetest.Batches(1, 0)}},
		{"documents in chunks, levels of ten", 60, enginetest.Ask{enginetest.Batches(1, 0)}},
		{"static, pairs", 0, enginetest.Ask{enginetest.Static(2)}},
		{"static, groups of seven", 0, enginetest.Ask{enginetest.Static(7)}},
		{"static, one group", 0, enginetest.Ask{enginetest.Static(1000)}},
		{"documents in chunks, static", 60, enginetest.Ask{enginetest.Static(3)}},
		{"adaptive, small bins", 0, enginetest.Ask{enginetest.Budget(300)}},
		{"adaptive, large bins", 0, enginetest.Ask{enginetest.Budget(3000)}},
		{"adaptive, one level", 0, enginetest.Ask{enginetest.Budget(300), enginetest.Levels(1)}},
		{"adaptive, no progress", 0, enginetest.Ask{enginetest.Budget(1)}},
		{"documents in chunks, adaptive", 60, enginetest.Ask{enginetest.Budget(300)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order]}\n")
			spec.MaxTokensPerUnit, spec.ChunkOverlap = tt.tokens, 8
			for _, a := range tt.ask {
				a(&spec)
			}
			_, got := n.Run(spec, enginetest.Texts(docs, order...))
			if len(got.Records) != 7 {
				t.Fatalf("%d records, want one for each of 7 keys", len(got.Records))
			}
			got.Cited(t, docs)
			for _, r := range got.Records {
				delete(r, "_confidence")
				delete(r, "_citations") // the same places, of other units
			}
			if first == nil {
				first = got.Records
			}
			if diff := cmp.Diff(first, got.Records); diff != "" {
				t.Errorf("records differ from those of one reduce (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneSummaryOfAllDocuments(t *testing.T) {
	n := enginetest.Ruled(t)
	docs, order := enginetest.Keyed(30)
	spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: []}\n")
	spec.ReduceContextLimit = 1
	_, got := n.Run(spec, enginetest.Texts(docs, order...))
	if len(got.Records) != 1 || !got.Summary.Single || got.Records[0]["total"] != 29.0 {
		t.Errorf("summary: %v %v", got.Summary.Single, got.Records)
	}
	got.Cited(t, docs)
}

// TestNearKeysAreOneEntity: documents that misspell what they are about belong to
// it, whatever tree of reduces they go through.
func TestNearKeysAreOneEntity(t *testing.T) {
	n := enginetest.Ruled(t)
	docs, order := enginetest.Keyed(60)
	for i, id := range order {
		name := []string{"Ankerhaus Handel", "Ankerhuas Handel", "Handel, Ankerhaus", "Brunnen Vertrieb", "Brunnnen Vertrieb"}[i%5]
		docs[id] = strings.Replace(docs[id], fmt.Sprintf("K-%d", i%7), name, 1)
	}
	var first []map[string]any
	for _, limit := range []int{1 << 30, 1} {
		spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order], match: near}\n")
		spec.ReduceContextLimit = limit
		_, got := n.Run(spec, enginetest.Texts(docs, order...))
		got.Cited(t, docs)
		if len(got.Records) != 2 || len(got.Records[0]["_sources"].([]any)) != 36 {
			t.Fatalf("%d records, the first of %v; want two, of 36 and 24 documents", len(got.Records), got.Records[0]["_sources"])
		}
		if first == nil {
			first = got.Records
		}
		if diff := cmp.Diff(first, got.Records); diff != "" {
			t.Errorf("records differ from those of one reduce (-want +got):\n%s", diff)
		}
	}
}
