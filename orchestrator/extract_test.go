package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker"
)

// collected is a result as a client sees it.
type collected struct {
	records   []map[string]any
	citations map[string]*mapreduce.Citation
	sources   map[mapreduce.UnitID][]string
	summary   *mapreduce.Summary
	conflicts []string
	drops     []string // dropped_citations
	removed   []string
}

func (n *node) result(id mapreduce.JobID) *collected {
	n.t.Helper()
	return n.collect(id, false)
}

func (n *node) collect(id mapreduce.JobID, partial bool) *collected {
	n.t.Helper()
	c := &collected{citations: make(map[string]*mapreduce.Citation), sources: make(map[mapreduce.UnitID][]string)}
	err := n.GetResult(n.t.Context(), id, partial, func(p *mapreduce.ResultPart) error {
		switch {
		case p.Record != nil:
			var rec map[string]any
			if err := json.Unmarshal(p.Record, &rec); err != nil {
				return err
			}
			c.records = append(c.records, rec)
		case p.Citation != nil:
			if c.citations[p.Citation.Ref] != nil {
				return fmt.Errorf("citation %s comes twice", p.Citation.Ref)
			}
			c.citations[p.Citation.Ref] = p.Citation
		case p.Source != nil:
			c.sources[p.Source.Unit] = p.Source.Errors
		case p.Summary != nil:
			c.summary = p.Summary
		case p.Conflict != nil:
			c.conflicts = append(c.conflicts, string(p.Conflict))
		case p.Dropped != nil:
			c.drops = append(c.drops, string(p.Dropped))
		case p.Removed != nil:
			c.removed = append(c.removed, string(p.Removed))
		}
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

func extracting(t *testing.T, source string) mapreduce.JobSpec {
	t.Helper()
	s, err := schema.Parse("schema.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return mapreduce.JobSpec{Schema: s.Canonical()}
}

func texts(byID map[string]string, order ...string) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for _, id := range order {
			d := &mapreduce.Document{ID: mapreduce.DocumentID(id), Content: []byte(byID[id])}
			if strings.HasSuffix(id, ".html") {
				d.MediaType = "text/html"
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// cited checks that every value of every record rests on a quote that stands in
// its document where the citation says.
func (c *collected) cited(t *testing.T, docs map[string]string) {
	t.Helper()
	for _, rec := range c.records {
		citations, _ := rec["_citations"].(map[string]any)
		for field, v := range rec {
			if strings.HasPrefix(field, "_") || v == nil {
				continue
			}
			ids, _ := citations[field].([]any)
			if len(ids) == 0 {
				t.Errorf("%v: %s has no citation", rec["_sources"], field)
			}
			for _, id := range ids {
				cite := c.citations[id.(string)]
				if cite == nil {
					t.Errorf("%v: %s cites %s, which is not there", rec["_sources"], field, id)
					continue
				}
				text, known := docs[string(cite.Document)]
				if !known {
					continue
				}
				if got := string([]rune(text)[cite.Start:cite.End]); got != cite.Quote {
					t.Errorf("%s: characters %d to %d are %q, quote %q", cite.Document, cite.Start, cite.End, got, cite.Quote)
				}
				if got := text[cite.ByteStart:cite.ByteEnd]; got != cite.Quote {
					t.Errorf("%s: bytes %d to %d are %q, quote %q", cite.Document, cite.ByteStart, cite.ByteEnd, got, cite.Quote)
				}
			}
		}
	}
}

func ruled(t *testing.T) *node {
	t.Helper()
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	c.workerFor("rules", byRules(), worker.Config{Slots: 4, Prefetch: 4}, n)
	return n
}

func (n *node) run(spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (mapreduce.JobID, *collected) {
	n.t.Helper()
	job, err := n.SubmitJob(context.Background(), spec, docs)
	if err != nil {
		n.t.Fatal(err)
	}
	n.wantEnd(job.ID, mapreduce.JobComplete)
	return job.ID, n.result(job.ID)
}

const orders = `
title: order
type: object
properties:
  order: {type: string, x-coditect: {labels: [ORDER]}}
  city: {type: string, x-coditect: {labels: [CITY]}}
  total: {type: number, x-coditect: {labels: [TOTAL], merge: max}}
`

func TestRulesOnWholeDocuments(t *testing.T) {
	n := ruled(t)
	docs := map[string]string{
		"a.txt":       "ORDER: A-1\nCITY: Köln\nTOTAL: 12.50\n",
		"b.txt":       "Größe — ORDER: B-2\nTOTAL: 7\n",
		"page.html":   "<html><body><p>ORDER: C-3</p><p>CITY: Ipoh</p><script>TOTAL: 99</script></body></html>",
		"nothing.txt": "nothing to see\n",
		"empty.txt":   "",
	}
	id, got := n.run(extracting(t, orders), texts(docs, "a.txt", "b.txt", "empty.txt", "page.html", "nothing.txt"))
	delete(docs, "page.html") // its text is not its source
	got.cited(t, docs)
	var rows []string
	for _, r := range got.records {
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
	if len(got.summary.Skipped) != 1 || got.summary.Skipped[0].Document != "empty.txt" {
		t.Errorf("skipped: %+v", got.summary.Skipped)
	}
}

// TestPagesThatCannotBeRead submits web pages of which one has no text, and one is not text.
// Both are skipped, each for its reason.
func TestPagesThatCannotBeRead(t *testing.T) {
	n := ruled(t)
	docs := map[string]string{
		"a.html":     "<p>ORDER: A-1</p>",
		"blank.html": "<html><script>ORDER: B-2</script><img src=x></html>",
		"nul.html":   strings.Repeat("\x00", 100),
	}
	id, got := n.run(extracting(t, orders), texts(docs, "a.html", "blank.html", "nul.html"))
	if len(got.records) != 1 || got.records[0]["order"] != "A-1" {
		t.Errorf("records: %v", got.records)
	}
	skipped := []mapreduce.SkippedDocument{
		{Document: "blank.html", Reason: "no text"},
		{Document: "nul.html", Reason: "not text: 100 NUL and 0 other control characters in 100 bytes"},
	}
	if diff := cmp.Diff(skipped, got.summary.Skipped); diff != "" {
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
	n.sound()
}

// sound fails the test if doctor finds anything wrong.
func (n *node) sound() {
	n.t.Helper()
	err := n.CheckStore(n.t.Context(), mapreduce.CheckQuery{}, func(found mapreduce.Finding) error {
		if found.Severity > mapreduce.Info {
			n.t.Errorf("doctor: %+v", found)
		}
		return nil
	})
	if err != nil {
		n.t.Error(err)
	}
}

// TestOnlyPagesWithoutText submits nothing that can be mapped.
func TestOnlyPagesWithoutText(t *testing.T) {
	n := ruled(t)
	job, err := n.SubmitJob(t.Context(), extracting(t, orders), texts(map[string]string{"blank.html": "<p></p>"}, "blank.html"))
	if err != nil {
		t.Fatal(err)
	}
	job = n.wantEnd(job.ID, mapreduce.JobFailed)
	if want := "no document is left to process; the first that was skipped, blank.html: no text"; job.Error != want {
		t.Errorf("job failed with %q, want %q", job.Error, want)
	}
}

// keyed documents name the same orders again and again.
func keyed(n int) (map[string]string, []string) {
	docs, order := make(map[string]string), make([]string, n)
	for i := range n {
		order[i] = fmt.Sprintf("doc%03d", i)
		docs[order[i]] = fmt.Sprintf("ORDER: K-%d\nCITY: City%d\nTOTAL: %d\n%s\n", i%7, i%3, i, strings.Repeat("padding words here. ", 40))
	}
	return docs, order
}

func TestResultDoesNotDependOnTheTree(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	n := ruled(t)
	docs, order := keyed(120)
	var first []map[string]any
	for _, tt := range []struct {
		name   string
		tokens int
		ask    ask
	}{
		{"one reduce", 0, ask{batches(1<<30, 0)}},
		{"levels of ten", 0, ask{batches(1, 0)}},
		{"documents in chunks, levels of ten", 60, ask{batches(1, 0)}},
		{"static, pairs", 0, ask{static(2)}},
		{"static, groups of seven", 0, ask{static(7)}},
		{"static, one group", 0, ask{static(1000)}},
		{"documents in chunks, static", 60, ask{static(3)}},
		{"adaptive, small bins", 0, ask{budget(300)}},
		{"adaptive, large bins", 0, ask{budget(3000)}},
		{"adaptive, one level", 0, ask{budget(300), levels(1)}},
		{"adaptive, no progress", 0, ask{budget(1)}},
		{"documents in chunks, adaptive", 60, ask{budget(300)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := extracting(t, orders+"x-coditect: {key: [order]}\n")
			spec.MaxTokensPerUnit, spec.ChunkOverlap = tt.tokens, 8
			for _, a := range tt.ask {
				a(&spec)
			}
			_, got := n.run(spec, texts(docs, order...))
			if len(got.records) != 7 {
				t.Fatalf("%d records, want one for each of 7 keys", len(got.records))
			}
			got.cited(t, docs)
			for _, r := range got.records {
				delete(r, "_confidence")
				delete(r, "_citations") // the same places, of other units
			}
			if first == nil {
				first = got.records
			}
			if diff := cmp.Diff(first, got.records); diff != "" {
				t.Errorf("records differ from those of one reduce (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneSummaryOfAllDocuments(t *testing.T) {
	n := ruled(t)
	docs, order := keyed(30)
	spec := extracting(t, orders+"x-coditect: {key: []}\n")
	spec.ReduceContextLimit = 1
	_, got := n.run(spec, texts(docs, order...))
	if len(got.records) != 1 || !got.summary.Single || got.records[0]["total"] != 29.0 {
		t.Errorf("summary: %v %v", got.summary.Single, got.records)
	}
	got.cited(t, docs)
}

// TestNearKeysAreOneEntity: documents that misspell what they are about belong to
// it, whatever tree of reduces they go through.
func TestNearKeysAreOneEntity(t *testing.T) {
	n := ruled(t)
	docs, order := keyed(60)
	for i, id := range order {
		name := []string{"Ankerhaus Handel", "Ankerhuas Handel", "Handel, Ankerhaus", "Brunnen Vertrieb", "Brunnnen Vertrieb"}[i%5]
		docs[id] = strings.Replace(docs[id], fmt.Sprintf("K-%d", i%7), name, 1)
	}
	var first []map[string]any
	for _, limit := range []int{1 << 30, 1} {
		spec := extracting(t, orders+"x-coditect: {key: [order], match: near}\n")
		spec.ReduceContextLimit = limit
		_, got := n.run(spec, texts(docs, order...))
		got.cited(t, docs)
		if len(got.records) != 2 || len(got.records[0]["_sources"].([]any)) != 36 {
			t.Fatalf("%d records, the first of %v; want two, of 36 and 24 documents", len(got.records), got.records[0]["_sources"])
		}
		if first == nil {
			first = got.records
		}
		if diff := cmp.Diff(first, got.records); diff != "" {
			t.Errorf("records differ from those of one reduce (-want +got):\n%s", diff)
		}
	}
}
