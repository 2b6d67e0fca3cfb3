package ingest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
)

// TestUnfitDocumentsAreSkippedAlone: a document with an id, or a reason to be left out,
// that no record can have is skipped, with a reason that is bounded, and refuses no other.
func TestUnfitDocumentsAreSkippedAlone(t *testing.T) {
	unfit := []*mapreduce.Document{
		{ID: mapreduce.DocumentID(strings.Repeat("x", mapreduce.MaxDocumentID+1)), Content: []byte("text")},
		{ID: mapreduce.DocumentID(strings.Repeat("ö", 50_000)), Content: []byte("text")},
		{ID: "a\x00b\nc", Content: []byte("text")},
		{ID: "latin \xf6", Content: []byte("text")},
		{ID: "skipped", Skip: strings.Repeat("because ", 100_000)},
		{ID: "skipped too", Skip: "it is \xff"},
		{ID: "large", Content: []byte("text"), Metadata: map[string]string{"a": strings.Repeat("x", mapreduce.MaxMetadata)}},
	}
	n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	w := enginetest.Greet(t, n, "w", 1)
	job, err := n.SubmitJob(t.Context(), enginetest.Script(nil), func(yield func(*mapreduce.Document, error) bool) {
		for i, d := range append(unfit, &mapreduce.Document{}, &mapreduce.Document{}) {
			if d.ID == "" {
				d.ID, d.Content = mapreduce.DocumentID(fmt.Sprint("good ", i)), []byte("text")
			}
			if !yield(d, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.Report(w.Assigned(), enginetest.AsIs)
	}
	job = n.WantEnd(job.ID, mapreduce.JobComplete)
	skipped, err := n.Jobs.View.Skipped(t.Context(), job.ID, 0, 100)
	if err != nil || len(skipped) != len(unfit) || job.Coverage.Documents.Skipped != int64(len(unfit)) || job.Coverage.Documents.Mapped != 2 {
		t.Fatalf("%d documents are skipped, and %+v counted (%v), want %d", len(skipped), job.Coverage.Documents, err, len(unfit))
	}
	seen := make(map[mapreduce.DocumentID]bool)
	for i, s := range skipped {
		if len(s.Document) > mapreduce.MaxDocumentID || len(s.Reason) > 2<<10 || s.Reason == "" || seen[s.Document] || strings.ContainsAny(string(s.Document), "\x00\n") {
			t.Errorf("document %d is skipped as %q: %.80q, of %d bytes", i, s.Document, s.Reason, len(s.Reason))
		}
		seen[s.Document] = true
	}
	n.Sound()
}
