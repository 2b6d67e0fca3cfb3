package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// A Sluice lets some units pass, and holds all others until it is opened.
type Sluice struct {
	agent.Agent
	Pass func(*agent.Task) bool
	Open chan struct{}
}

// Run implements agent.Agent.
func (g *Sluice) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if g.Pass(task) {
		return g.Agent.Run(ctx, task, calls)
	}
	select {
	case <-g.Open:
		return g.Agent.Run(ctx, task, calls)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Collected is a result as a client sees it.
type Collected struct {
	Records   []map[string]any
	Citations map[string]*mapreduce.Citation
	Sources   map[mapreduce.UnitID][]string
	Summary   *mapreduce.Summary
	Conflicts []string
	Drops     []string // dropped_citations
	Removed   []string
}

// Result reads the result of a job that is complete.
func (n *Node) Result(id mapreduce.JobID) *Collected {
	n.T.Helper()
	return n.Collect(id, false)
}

// Collect reads a result, or what there is of it where partial.
func (n *Node) Collect(id mapreduce.JobID, partial bool) *Collected {
	n.T.Helper()
	c := &Collected{Citations: make(map[string]*mapreduce.Citation), Sources: make(map[mapreduce.UnitID][]string)}
	err := n.GetResult(n.T.Context(), id, partial, func(p *mapreduce.ResultPart) error {
		switch {
		case p.Record != nil:
			var rec map[string]any
			if err := json.Unmarshal(p.Record, &rec); err != nil {
				return err
			}
			c.Records = append(c.Records, rec)
		case p.Citation != nil:
			if c.Citations[p.Citation.Ref] != nil {
				return fmt.Errorf("citation %s comes twice", p.Citation.Ref)
			}
			c.Citations[p.Citation.Ref] = p.Citation
		case p.Source != nil:
			c.Sources[p.Source.Unit] = p.Source.Errors
		case p.Summary != nil:
			c.Summary = p.Summary
		case p.Conflict != nil:
			c.Conflicts = append(c.Conflicts, string(p.Conflict))
		case p.Dropped != nil:
			c.Drops = append(c.Drops, string(p.Dropped))
		case p.Removed != nil:
			c.Removed = append(c.Removed, string(p.Removed))
		}
		return nil
	})
	if err != nil {
		n.T.Fatal(err)
	}
	return c
}

// Extracting returns a job for a schema, given as YAML.
func Extracting(t *testing.T, source string) mapreduce.JobSpec {
	t.Helper()
	s, err := schema.Parse("schema.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return mapreduce.JobSpec{Schema: s.Canonical()}
}

// Texts yields documents in an order, each with the text that its id has.
func Texts(byID map[string]string, order ...string) iter.Seq2[*mapreduce.Document, error] {
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

// Cited checks that every value of every record rests on a quote that stands in
// its document where the citation says.
func (c *Collected) Cited(t *testing.T, docs map[string]string) {
	t.Helper()
	for _, rec := range c.Records {
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
				cite := c.Citations[id.(string)]
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

// Ruled returns an orchestrator with a worker that works by rules.
func Ruled(t *testing.T) *Node {
	t.Helper()
	c := NewCluster(t)
	n := c.Orchestrator(Quick(orchestrator.Config{Adopt: true}))
	c.WorkerFor("rules", ByRules(), worker.Config{Slots: 4, Prefetch: 4}, n)
	return n
}

// Run runs a job to its end and returns its result.
func (n *Node) Run(spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (mapreduce.JobID, *Collected) {
	n.T.Helper()
	job, err := n.SubmitJob(context.Background(), spec, docs)
	if err != nil {
		n.T.Fatal(err)
	}
	n.WantEnd(job.ID, mapreduce.JobComplete)
	return job.ID, n.Result(job.ID)
}

// Orders is a schema of orders, whose records are merged by their number.
const Orders = `
title: order
type: object
properties:
  order: {type: string, x-coditect: {labels: [ORDER]}}
  city: {type: string, x-coditect: {labels: [CITY]}}
  total: {type: number, x-coditect: {labels: [TOTAL], merge: max}}
`

// Sound fails the test if doctor finds anything wrong.
func (n *Node) Sound() {
	n.T.Helper()
	err := n.CheckStore(n.T.Context(), mapreduce.CheckQuery{}, func(found mapreduce.Finding) error {
		if found.Severity > mapreduce.Info {
			n.T.Errorf("doctor: %+v", found)
		}
		return nil
	})
	if err != nil {
		n.T.Error(err)
	}
}

// Keyed documents name the same orders again and again.
func Keyed(n int) (map[string]string, []string) {
	docs, order := make(map[string]string), make([]string, n)
	for i := range n {
		order[i] = fmt.Sprintf("doc%03d", i)
		docs[order[i]] = fmt.Sprintf("ORDER: K-%d\nCITY: City%d\nTOTAL: %d\n%s\n", i%7, i%3, i, strings.Repeat("padding words here. ", 40))
	}
	return docs, order
}

// CheckQuotes compares every citation of a result with the document.
func CheckQuotes(t *testing.T, docs map[string]string, c *Collected) {
	t.Helper()
	for _, ref := range slices.Sorted(maps.Keys(c.Citations)) {
		cite := c.Citations[ref]
		if got := docs[string(cite.Document)][cite.ByteStart:cite.ByteEnd]; got != cite.Quote || got == "" {
			t.Errorf("%s shows %q, the text is %q", ref, cite.Quote, got)
		}
	}
}
