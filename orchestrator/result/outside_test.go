package result_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

const notes = `
title: note
type: object
properties:
  buyer: {type: string}
  seller: {type: string}
  court: {type: string}
`

// contracts are two documents of several chunks each, that differ in who buys,
// and in what is said last.
func contracts() (map[string]string, []string) {
	filler := strings.Repeat("Whereas the parties wish to set out what they agreed upon in words. ", 12)
	text := func(buyer, court string) string {
		return "Köln, the first of May.\nThe buyer is " + buyer + ".\n" + filler + "\nThe seller is Ölwerk Nord AG.\n" + filler +
			"\nDisputes go to the " + court + ".\n"
	}
	return map[string]string{
		"a.txt": text("Ankerhaus GmbH & Co", "court of Kiel"),
		"b.txt": text("Brunnen Vertrieb SE", "court of Bonn"),
	}, []string{"a.txt", "b.txt"}
}

// quoted is a job whose units claim what the script says.
func quoted(t *testing.T, vars map[string]string) mapreduce.JobSpec {
	t.Helper()
	spec := enginetest.Extracting(t, notes)
	spec.MaxTokensPerUnit, spec.ChunkOverlap, spec.Vars = 120, 8, vars
	return spec
}

// flaky fails the first attempts at units once they have done their work.
type flaky struct {
	agent.Agent
	failures int
}

func (f flaky) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	res, err := f.Agent.Run(ctx, task, calls)
	if err == nil && task.Attempt <= f.failures {
		return nil, errors.New("the worker died of it")
	}
	return res, err
}

// TestQuotesOutsideTheirChunk: a quote that stands in another chunk of its
// document is found there, and marked; the unit that read the place and the one
// that did not speak of one mention. What stands in another document only is not
// found. None of that depends on how often units are tried, or where.
func TestQuotesOutsideTheirChunk(t *testing.T) {
	docs, order := contracts()
	vars := map[string]string{
		"script.quote.buyer.a.txt_chunk_0":  "The buyer is Ankerhaus GmbH & Co",
		"script.quote.buyer.a.txt_chunk_2":  "The buyer is Ankerhaus GmbH & Co", // of the first chunk
		"script.quote.seller.a.txt_chunk_0": "the seller is ölwerk nord ag",     // of another, in other case
		"script.quote.court.a.txt_chunk_0":  "Disputes go to the court of Bonn", // of the other document
		"script.quote.buyer.b.txt_chunk_1":  "The buyer is Brunnen Vertrieb SE", // of the first chunk alone
		"script.quote.court.b.txt_chunk_1":  "Disputes go to the court of Rome", // of none
	}
	var first *enginetest.Collected
	for _, failures := range []int{0, 1, 2} {
		t.Run(fmt.Sprintf("%d lost attempts", failures), func(t *testing.T) {
			c := enginetest.NewCluster(t)
			n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
			a := flaky{checked.New(&scripted.Quoter{Agent: enginetest.ByRules()}), failures}
			for range 1 + failures {
				c.WorkerFor("rules", a, worker.Config{Slots: 2, Prefetch: 1}, n)
			}
			id, got := n.Run(quoted(t, vars), enginetest.Texts(docs, order...))
			got.Cited(t, docs)
			enginetest.CheckQuotes(t, docs, got)
			if units := n.Units(id); units["a.txt_chunk_2"] == nil || units["b.txt_chunk_2"] == nil {
				t.Fatalf("units are %v: the documents have fewer chunks than the script speaks of", slices.Sorted(maps.Keys(units)))
			}
			want := map[string]string{
				"a.txt buyer":  "Ankerhaus GmbH & Co, exact of a.txt_chunk_0, outside false",
				"a.txt seller": "Ölwerk Nord AG, normalised of a.txt_chunk_0, outside true",
				"b.txt buyer":  "Brunnen Vertrieb SE, exact of b.txt_chunk_1, outside true",
			}
			if diff := cmp.Diff(want, where(got)); diff != "" {
				t.Errorf("citations (-want +got):\n%s", diff)
			}
			for i, field := range []string{"court", "court"} {
				if v := got.Records[i]["_unverified"].(map[string]any)[field]; v == nil || got.Records[i][field] != nil {
					t.Errorf("record %d: %s is %v, unverified %v; want it unverified", i, field, got.Records[i][field], v)
				}
			}
			read := got.Records[0]["_confidence"].(map[string]any)["buyer"].(float64)
			if unread := got.Records[1]["_confidence"].(map[string]any)["buyer"].(float64); unread >= read {
				t.Errorf("confidence of a quote that nobody read is %v, of one that was read %v", unread, read)
			}
			if first == nil {
				first = got
			}
			if diff := cmp.Diff(first.Records, got.Records); diff != "" {
				t.Errorf("records differ from those without a failure (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(first.Citations, got.Citations); diff != "" {
				t.Errorf("citations differ from those without a failure (-want +got):\n%s", diff)
			}
			n.Sound()
		})
	}
}

// where says of each field of each document how its one citation was found.
func where(c *enginetest.Collected) map[string]string {
	all := make(map[string]string)
	for _, rec := range c.Records {
		for field, ids := range rec["_citations"].(map[string]any) {
			for _, id := range ids.([]any) {
				cite := c.Citations[id.(string)]
				_, quote, _ := strings.Cut(cite.Quote, " is ")
				all[string(cite.Document)+" "+field] += fmt.Sprintf("%s, %s of %s, outside %v", quote, cite.Grade, cite.Unit, cite.Outside)
			}
		}
	}
	return all
}

// TestBlobsAreForHolders: a worker gets the text of a document only while it holds a
// unit of it, and only what there is.
func TestBlobsAreForHolders(t *testing.T) {
	testenv.Raced(t)

	docs, order := contracts()
	n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	s, _ := enginetest.Hello(t, n, protocol.Hello{Session: "w", Slots: 1})
	spec := quoted(t, nil)
	spec.Provider = "scripted"
	job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order[0]))
	if err != nil {
		t.Fatal(err)
	}
	held := s.Assigned()
	if held.Job != job.ID {
		t.Fatalf("assigned %+v of another job than %s", held, job.ID)
	}
	stale, other, nobody := held, held, held
	stale.Attempt++
	other.Unit = "a.txt_chunk_2"
	nobody.Job = "mr_20260101_abcdef"
	all, whole := docs["a.txt"], protocol.Blob{Kind: protocol.BlobText}
	span := func(start, end int) protocol.Blob {
		return protocol.Blob{Kind: protocol.BlobText, Start: int64(start), End: int64(end)}
	}
	for _, tt := range []struct {
		name    string
		session mapreduce.SessionID
		held    protocol.Held
		blob    protocol.Blob
		want    string
		refused errs.Kind // if not 0
	}{
		{"all", "w", held, whole, all, 0},
		{"the rest", "w", held, span(20, 0), all[20:], 0},
		{"a range", "w", held, span(20, 90), all[20:90], 0},
		{"nothing", "w", held, span(len(all), 0), "", 0},
		{"behind the end", "w", held, span(0, len(all)+1), "", errs.Invalid},
		{"of another hash", "w", held, protocol.Blob{Kind: protocol.BlobText, SHA256: make([]byte, 32)}, "", errs.Invalid},
		{"inputs of a map unit", "w", held, protocol.Blob{Kind: protocol.BlobReferred}, "", errs.Invalid},
		{"no journal", "w", held, protocol.Blob{Kind: protocol.BlobJournal}, "", errs.NotFound},
		{"what can only be put", "w", held, protocol.Blob{Kind: protocol.BlobOutput}, "", errs.Invalid},
		{"an answer without a key", "w", held, protocol.Blob{Kind: protocol.BlobAnswer}, "", errs.Invalid},
		{"an answer of a job that shares none", "w", held, protocol.Blob{Kind: protocol.BlobAnswer, Key: make([]byte, 32)}, "", errs.NotFound},
		{"another attempt", "w", stale, whole, "", errs.Precondition},
		{"another unit", "w", other, whole, "", errs.Precondition},
		{"another job", "w", nobody, whole, "", errs.Precondition},
		{"another session", "x", held, whole, "", errs.Aborted},
	} {
		var got []byte
		err := s.Stream.GetBlob(t.Context(), &protocol.BlobRequest{Session: tt.session, Held: tt.held, Blob: tt.blob}, func(part []byte) error {
			got = append(got, part...)
			return nil
		})
		if string(got) != tt.want || err != nil && errs.KindOf(err) != tt.refused || err == nil && tt.refused != 0 {
			t.Errorf("%s: %d bytes and %v, want %d bytes and an error of kind %v", tt.name, len(got), err, len(tt.want), tt.refused)
		}
	}
}
