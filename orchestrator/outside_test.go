package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
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
	spec := extracting(t, notes)
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
	var first *collected
	for _, failures := range []int{0, 1, 2} {
		t.Run(fmt.Sprintf("%d lost attempts", failures), func(t *testing.T) {
			c := newCluster(t)
			n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
			a := flaky{checked.New(&scripted.Quoter{Agent: byRules()}), failures}
			for range 1 + failures {
				c.workerFor("rules", a, worker.Config{Slots: 2, Prefetch: 1}, n)
			}
			id, got := n.run(quoted(t, vars), texts(docs, order...))
			got.cited(t, docs)
			checkQuotes(t, docs, got)
			if units := n.units(id); units["a.txt_chunk_2"] == nil || units["b.txt_chunk_2"] == nil {
				t.Fatalf("units are %v: the documents have fewer chunks than the script speaks of", slices.Sorted(maps.Keys(units)))
			}
			want := map[string]string{
				"a.txt buyer":  "Ankerhaus GmbH & Co, exact of a.txt_chunk_0, outside false",
				"a.txt seller": "Ölwerk Nord AG, normalised of a.txt_chunk_0, outside true",
				"b.txt buyer":  "Brunnen Vertrieb SE, exact of b.txt_chunk_1, outside true",
			}
			if diff := cmp.Diff(want, got.where()); diff != "" {
				t.Errorf("citations (-want +got):\n%s", diff)
			}
			for i, field := range []string{"court", "court"} {
				if v := got.records[i]["_unverified"].(map[string]any)[field]; v == nil || got.records[i][field] != nil {
					t.Errorf("record %d: %s is %v, unverified %v; want it unverified", i, field, got.records[i][field], v)
				}
			}
			read := got.records[0]["_confidence"].(map[string]any)["buyer"].(float64)
			if unread := got.records[1]["_confidence"].(map[string]any)["buyer"].(float64); unread >= read {
				t.Errorf("confidence of a quote that nobody read is %v, of one that was read %v", unread, read)
			}
			if first == nil {
				first = got
			}
			if diff := cmp.Diff(first.records, got.records); diff != "" {
				t.Errorf("records differ from those without a failure (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(first.citations, got.citations); diff != "" {
				t.Errorf("citations differ from those without a failure (-want +got):\n%s", diff)
			}
			n.sound()
		})
	}
}

// where says of each field of each document how its one citation was found.
func (c *collected) where() map[string]string {
	all := make(map[string]string)
	for _, rec := range c.records {
		for field, ids := range rec["_citations"].(map[string]any) {
			for _, id := range ids.([]any) {
				cite := c.citations[id.(string)]
				_, quote, _ := strings.Cut(cite.Quote, " is ")
				all[string(cite.Document)+" "+field] += fmt.Sprintf("%s, %s of %s, outside %v", quote, cite.Grade, cite.Unit, cite.Outside)
			}
		}
	}
	return all
}

// TestTextsAreHandedOutToHolders: a worker gets the text of a document only while
// it holds a unit of it, and only what there is.
func TestTextsAreHandedOutToHolders(t *testing.T) {
	docs, order := contracts()
	n := newCluster(t).orchestrator(quick(orchestrator.Config{Adopt: true}))
	s, _ := hello(t, n, mapreduce.Hello{Session: "w", Slots: 1})
	spec := quoted(t, nil)
	spec.Provider = "scripted"
	job, err := n.SubmitJob(t.Context(), spec, texts(docs, order[0]))
	if err != nil {
		t.Fatal(err)
	}
	held := s.assigned()
	if held.Job != job.ID {
		t.Fatalf("assigned %+v of another job than %s", held, job.ID)
	}
	stale, other, nobody := held, held, held
	stale.Attempt++
	other.Unit = "a.txt_chunk_2"
	nobody.Job = "mr_20260101_abcdef"
	for _, tt := range []struct {
		name string
		held mapreduce.Held
		at   int64
		want string // the error
	}{
		{"all", held, 0, ""},
		{"the rest", held, 20, ""},
		{"behind the end", held, int64(len(docs["a.txt"])), "none at"},
		{"another attempt", stale, 0, "does not hold"},
		{"another unit", other, 0, "does not hold"},
		{"another job", nobody, 0, "does not hold"},
	} {
		p := s.ask(mapreduce.TextRequest{Held: tt.held, Start: tt.at})
		switch {
		case tt.want == "" && (p.Error != "" || string(p.Data) != docs["a.txt"][tt.at:]):
			t.Errorf("%s: %q, error %q", tt.name, p.Data, p.Error)
		case tt.want != "" && (len(p.Data) > 0 || !strings.Contains(p.Error, tt.want)):
			t.Errorf("%s: %d bytes, error %q; want none, as it %q", tt.name, len(p.Data), p.Error, tt.want)
		}
	}
}

// ask asks for a text, and returns the answer.
func (r *raw) ask(q mapreduce.TextRequest) mapreduce.TextPiece {
	r.t.Helper()
	r.send(&mapreduce.FromWorker{Texts: []mapreduce.TextRequest{q}})
	for {
		if m := r.recv(); len(m.Texts) > 0 {
			return m.Texts[0]
		}
	}
}
