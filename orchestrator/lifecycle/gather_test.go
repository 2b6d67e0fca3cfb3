package lifecycle_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
)

// batched is a pipeline whose units take some documents each.
func batched(keys string) string {
	return fmt.Sprintf("name: batched\nstages:\n- {name: pile, each: batch, %s}\n- {name: reduce, each: group}\n", keys)
}

// council is a pipeline in which each of two agents reads all documents.
const council = `
name: council
agents: {lawyer: {role: Lawyer}, doctor: {role: Doctor}}
stages:
- {name: view, each: agent, agents: [lawyer, doctor], task: Find orders}
- {name: reduce, each: group}
`

// ranked yields documents with a rank each, which falls in their order.
func ranked(docs map[string]string, order []string) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		i := 0
		for d, err := range enginetest.Texts(docs, order...) {
			d.Metadata = map[string]string{"rank": fmt.Sprint(len(order) - i)}
			i++
			if !yield(d, err) {
				return
			}
		}
	}
}

// TestDocumentsAreGathered: units over several documents find what units over each would,
// cite each document by its name, and take every document once, whether it was text
// or had to be parsed.
func TestDocumentsAreGathered(t *testing.T) {
	n := checkedRules(t)
	for _, tt := range []struct {
		name  string
		file  string
		pages bool
		units []mapreduce.UnitID
	}{
		{"batches", batched("size: 4"), false, []mapreduce.UnitID{"pile_0", "pile_1", "pile_2"}},
		{"batches of pages too", batched("size: 4"), true, []mapreduce.UnitID{"pile_0", "pile_1", "pile_2"}},
		{"one batch", batched("size: 40"), true, []mapreduce.UnitID{"pile_0"}},
		{"sorted", batched("size: 5, order: rank"), false, []mapreduce.UnitID{"pile_0", "pile_1"}},
		{"sorted with pages", batched("size: 5, order: rank desc"), true, []mapreduce.UnitID{"pile_0", "pile_1"}},
		{"agents", council, false, []mapreduce.UnitID{"view_0", "view_1"}},
		{"agents with pages", council, true, []mapreduce.UnitID{"view_0", "view_1"}},
		{
			"batches of what does not fit one unit", strings.Replace(batched("from: documents, size: 4"), "stages:\n", "stages:\n- {name: direct, each: all, when: count < 9}\n", 1), true,
			[]mapreduce.UnitID{"pile_0", "pile_1", "pile_2"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs, order := ordersOf(9, tt.pages)
			spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order]}\n")
			enginetest.Piped(tt.file)(&spec)
			spec.Vars = nil
			planned, err := n.PlanJob(t.Context(), mapreduce.PlanQuery{Spec: spec}, ranked(docs, order))
			if err != nil {
				t.Fatal(err)
			}
			id, got := n.Run(spec, ranked(docs, order))
			plain := maps.Clone(docs)
			for name := range plain {
				if strings.HasSuffix(name, ".html") {
					delete(plain, name)
				}
			}
			got.Cited(t, plain)
			var ran, expected []mapreduce.UnitID
			for _, task := range n.Tasks(id) {
				if task.Level == 0 {
					ran = append(ran, task.Unit)
				}
			}
			for _, task := range enginetest.TasksOf(planned) {
				if task.Level == 0 {
					expected = append(expected, task.Unit)
				}
			}
			if diff := cmp.Diff(tt.units, ran); diff != "" {
				t.Errorf("units of level 0 (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(ran, expected); diff != "" {
				t.Errorf("units of level 0 (-ran +planned):\n%s", diff)
			}
			spec.Pipeline, spec.Definition = "", nil
			_, want := n.Run(spec, enginetest.Texts(docs, order...))
			if diff := cmp.Diff(sortedRecords(want), sortedRecords(got)); diff != "" {
				t.Errorf("records (-a unit each, +gathered):\n%s", diff)
			}
			job, err := n.GetJob(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for name, l := range map[string]mapreduce.Ledger{"documents": job.Coverage.Documents, "characters": job.Coverage.Characters} {
				if l.Mapped != l.Total || l.Total < int64(len(order)) {
					t.Errorf("ledger of %s: %+v", name, l)
				}
			}
		})
	}
	n.Sound()
}

// sortedRecords are the orders and totals of a result, in no order of the input.
func sortedRecords(c *enginetest.Collected) []string {
	var all []string
	for _, r := range c.Records {
		sources := fmt.Sprint(r["_sources"])
		names := strings.Fields(strings.Trim(sources, "[]"))
		slices.Sort(names)
		all = append(all, fmt.Sprint(r["order"], r["total"], names))
	}
	slices.Sort(all)
	return all
}

// TestPagesThatComeLateAreGatheredApart: a page that is tried again gets a unit behind
// those that ran, which do not run again.
func TestPagesThatComeLateAreGatheredApart(t *testing.T) {
	for _, file := range []string{batched("size: 4"), council} {
		docs, order := ordersOf(9, true)
		f := &fussy{unit: mapreduce.ParseUnit(mapreduce.DocumentID(order[1]))}
		n := fuss(enginetest.NewCluster(t), f)
		spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order]}\n")
		enginetest.Piped(file)(&spec)
		spec.Vars = nil
		id, _ := n.Run(spec, enginetest.Texts(docs, order...))
		before := n.Units(id)
		f.well.Store(true)
		if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
			t.Fatal(err)
		}
		job := n.WantEnd(id, mapreduce.JobComplete)
		after := n.Units(id)
		added := 0
		for name, u := range after {
			if u.Level != 0 {
				continue
			}
			if old := before[name]; old == nil {
				added++
			} else if u.Attempts != old.Attempts {
				t.Errorf("%s ran again", name)
			}
		}
		if want := len(before) - countLevel(before, 0); added == 0 || want == 0 {
			t.Errorf("%d units were added", added)
		}
		if l := job.Coverage.Documents; l.Mapped != 9 || l.Total != 9 {
			t.Errorf("ledger %+v", l)
		}
		if got := n.Result(id); len(got.Records) != 7 {
			t.Errorf("%d records, want those of 7 orders", len(got.Records))
		}
		n.Sound()
	}
}

func countLevel(units map[mapreduce.UnitID]*mapreduce.Unit, level int) (n int) {
	for _, u := range units {
		if u.Level == level {
			n++
		}
	}
	return n
}

// TestBatchesAreSortedAndCut: the documents of the first batch come first in the order of
// the field, and what is behind a passage is not read.
func TestBatchesAreSortedAndCut(t *testing.T) {
	n := checkedRules(t)
	docs, order := ordersOf(6, false)
	spec := enginetest.Extracting(t, enginetest.Orders)
	enginetest.Piped(batched("size: 2, order: rank, passage: 20"))(&spec)
	spec.Vars = nil
	id, got := n.Run(spec, ranked(docs, order))
	byUnit := make(map[mapreduce.UnitID][]string)
	for _, c := range got.Citations {
		if c.End > 20 {
			t.Errorf("%+v is behind the passage", c)
		}
		if !slices.Contains(byUnit[c.Unit], string(c.Document)) {
			byUnit[c.Unit] = append(byUnit[c.Unit], string(c.Document))
		}
	}
	for _, list := range byUnit {
		slices.Sort(list)
	}
	want := map[mapreduce.UnitID][]string{
		"pile_0": {"doc004", "doc005"}, "pile_1": {"doc002", "doc003"}, "pile_2": {"doc000", "doc001"}, // whose ranks fall
	}
	if diff := cmp.Diff(want, byUnit); diff != "" {
		t.Errorf("documents by unit (-want +got):\n%s", diff)
	}
	job, err := n.GetJob(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if l := job.Coverage.Characters; l.Mapped != 6*20 || l.Total != l.Mapped || len(job.Warnings) != 1 || !strings.Contains(job.Warnings[0], "characters of documents are in none") {
		t.Errorf("ledger %+v, warnings %q", l, job.Warnings)
	}
	n.Sound()
}

// TestWhatCannotBeGatheredIsRefused before there is a job.
func TestWhatCannotBeGatheredIsRefused(t *testing.T) {
	n := checkedRules(t)
	docs, order := ordersOf(3, false)
	large := map[string]string{"a": "ORDER: A\n" + strings.Repeat("x", 5<<20), "b": "ORDER: B\n" + strings.Repeat("x", 5<<20)}
	for _, tt := range []struct {
		name, file, field, rule string
		docs                    iter.Seq2[*mapreduce.Document, error]
	}{
		{"a field that is not there", batched("size: 2, order: rank"), "stages[0].order", `document "doc000" has no "rank"`, enginetest.Texts(docs, order...)},
		{"too much for an agent", council, "documents", "gives all documents to each agent", enginetest.Texts(large, "a", "b")},
		{"one id twice", batched("size: 2"), "documents", `have the same id "doc001"`, enginetest.Texts(docs, order[1], order[1])},
	} {
		spec := enginetest.Extracting(t, enginetest.Orders)
		enginetest.Piped(tt.file)(&spec)
		spec.Vars = nil
		_, err := n.SubmitJob(t.Context(), spec, tt.docs)
		if e, ok := errors.AsType[*errs.Error](err); !ok || !strings.Contains(e.Field, tt.field) || !strings.Contains(err.Error(), tt.rule) {
			t.Errorf("%s: error %v, want one of %s with %q", tt.name, err, tt.field, tt.rule)
		}
	}
	n.Sound()
}

// TestTextsOutlastTheUnitThatHeldThem: if the only page cannot be parsed, a batch has
// exactly the documents that were text already, whose text is stored once. It must not go
// with the unit that was staged for it.
func TestTextsOutlastTheUnitThatHeldThem(t *testing.T) {
	docs, order := ordersOf(4, false)
	docs["late.html"] = "<html><body><p>ORDER: 99</p></body></html>"
	order = append(order, "late.html")
	n := fuss(enginetest.NewCluster(t), &fussy{unit: mapreduce.ParseUnit("late.html")})
	spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order]}\n")
	enginetest.Piped(batched("size: 40"))(&spec)
	spec.Vars = nil
	id, got := n.Run(spec, enginetest.Texts(docs, order...))
	job, err := n.GetJob(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if l := job.Coverage.Documents; l.Mapped != 4 || l.Failed != 1 || len(got.Records) == 0 {
		t.Errorf("ledger of documents %+v, and %d records; want 4 mapped, and one that failed", l, len(got.Records))
	}
	n.Sound()
}

// TestGatheredUnitsAreInsertedOnce: the store goes away when some of the units have been
// inserted. What is inserted then goes on behind these: no document is read twice.
func TestGatheredUnitsAreInsertedOnce(t *testing.T) {
	testenv.Raced(t)

	for _, file := range []string{batched("size: 2"), council} {
		docs, order := ordersOf(9, true)
		c := enginetest.NewCluster(t)
		g := &enginetest.Gate{Store: c.Store}
		c.Store = g
		var inserted atomic.Int64
		back := make(chan struct{})
		c.Hook = func(p failpoint.Point) {
			if p == failpoint.Insert.After() && inserted.Add(1) == 2 { // the text of the first, and the first
				g.Dead.Store(true)
				time.AfterFunc(100*time.Millisecond, func() { g.Dead.Store(false); close(back) })
			}
		}
		n := fuss(c, new(fussy))
		spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order]}\n")
		enginetest.Piped(file)(&spec)
		spec.Vars = nil
		job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
		if err != nil {
			t.Fatal(err)
		}
		<-back
		job = n.WantEnd(job.ID, mapreduce.JobComplete)
		if l := job.Coverage.Documents; l.Mapped != 9 || l.Total != 9 {
			t.Errorf("ledger of documents %+v; want 9 of 9", l)
		}
		if got := n.Result(job.ID); len(got.Records) != 7 {
			t.Errorf("%d records; want those of 7 orders", len(got.Records))
		}
		n.Sound()
	}
}
