package orchestrator_test

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

func these(docs ...*mapreduce.Document) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// mixed are documents of which some are cut, skipped, or have names of units.
func mixed() []*mapreduce.Document {
	long := strings.Repeat("Words of a long document, one after the other. ", 40)
	return []*mapreduce.Document{
		{ID: "a.txt", Content: []byte("short")},
		{ID: "long.txt", Content: []byte(long)},
		{ID: "empty.txt"},
		{ID: "picture.png", Skip: "not text"},
		{ID: "final", Content: []byte("a document with the name of a unit")},
		{ID: "b.md", MediaType: "text/markdown", Content: []byte(long + long)},
	}
}

// A task is a unit of a plan, or one that ran, by what both know.
type task struct {
	Unit      mapreduce.UnitID
	Kind      mapreduce.UnitKind
	Level     int
	DependsOn []mapreduce.UnitID
}

func tasksOf(p *mapreduce.Plan) (out []task) {
	for _, t := range p.Tasks {
		out = append(out, task{t.Unit, t.Kind, t.Level, t.DependsOn})
	}
	return out
}

func (n *node) tasks(id mapreduce.JobID) (out []task) {
	n.t.Helper()
	units := n.units(id)
	ordered := make([]*mapreduce.Unit, 0, len(units))
	for _, u := range units {
		ordered = append(ordered, u)
	}
	slices.SortFunc(ordered, func(a, b *mapreduce.Unit) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Index, b.Index))
	})
	for _, u := range ordered {
		out = append(out, task{u.ID, u.Kind, u.Level, u.DependsOn})
	}
	return out
}

// B12: what is planned as exact is what runs, unit by unit, and nothing is
// stored for it. The same documents give the same plan.
func TestPlansAreWhatRuns(t *testing.T) {
	c, n := one(t, &scripted.Agent{})
	for _, tt := range []struct {
		name string
		docs func() iter.Seq2[*mapreduce.Document, error]
		ask  ask
	}{
		{"B13 seven by three", func() iter.Seq2[*mapreduce.Document, error] { return documents(7) }, ask{static(3)}},
		{"B13 ten by three", func() iter.Seq2[*mapreduce.Document, error] { return documents(10) }, ask{static(3)}},
		{"B13 one by three", func() iter.Seq2[*mapreduce.Document, error] { return documents(1) }, ask{static(3)}},
		{"B13 a hundred by five", func() iter.Seq2[*mapreduce.Document, error] { return documents(100) }, ask{static(5)}},
		{"one reduce", func() iter.Seq2[*mapreduce.Document, error] { return documents(9) }, nil},
		{"cut and skipped", func() iter.Seq2[*mapreduce.Document, error] { return these(mixed()...) }, ask{static(3), units(50, 10)}},
		{"cut without overlap", func() iter.Seq2[*mapreduce.Document, error] { return these(mixed()...) }, ask{static(2), units(30, -1)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := mapreduce.PlanQuery{Spec: asking(tt.ask...), Exact: true}
			before := pairs(t, c.store)
			p, err := n.PlanJob(t.Context(), q, tt.docs())
			if err != nil {
				t.Fatal(err)
			}
			again, err := orchestrator.Plan(t.Context(), orchestrator.Config{}, q, tt.docs())
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(p, again); diff != "" {
				t.Errorf("planned here (-), without a store (+):\n%s", diff)
			}
			if diff := gocmp.Diff(before, pairs(t, c.store)); diff != "" {
				t.Errorf("planning stored something (-before +after):\n%s", diff)
			}
			job, err := n.SubmitJob(t.Context(), q.Spec, tt.docs())
			if err != nil {
				t.Fatal(err)
			}
			n.wantEnd(job.ID, mapreduce.JobComplete)
			if diff := gocmp.Diff(tasksOf(p), n.tasks(job.ID), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("planned (-), ran (+):\n%s", diff)
			}
		})
	}
}

func units(tokens, overlap int) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.MaxTokensPerUnit, s.ChunkOverlap = tokens, overlap }
}

// B12: the exact plan of an adaptive tree does not exist before its outputs do;
// its estimate has the map level as it will be.
func TestEstimatedPlans(t *testing.T) {
	_, n := one(t, &scripted.Agent{})
	for _, tt := range []struct {
		name string
		ask  ask
		docs []*mapreduce.Document
	}{
		{"adaptive", ask{budget(4)}, mixed()},
		{"batches", ask{batches(10, 2)}, mixed()},
		{"to be parsed", ask{static(2)}, []*mapreduce.Document{
			{ID: "a", Content: []byte("a")}, {ID: "page.html", MediaType: "text/html", Content: []byte("<p>text</p>")},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := mapreduce.PlanQuery{Spec: asking(tt.ask...)}
			p, err := n.PlanJob(t.Context(), q, these(tt.docs...))
			if err != nil {
				t.Fatal(err)
			}
			last := p.Levels[len(p.Levels)-1]
			if p.Exact || !last.Expected || p.Tasks[len(p.Tasks)-1].Unit != mapreduce.FinalUnit {
				t.Errorf("exact is %v, the last level %+v", p.Exact, last)
			}
			q.Exact = true
			if _, err = n.PlanJob(t.Context(), q, these(tt.docs...)); !errors.Is(err, errs.Precondition) || !strings.Contains(err.Error(), "estimate") {
				t.Errorf("its exact plan gave %v", err)
			}
		})
	}
}

// Documents that need parsing have units of their own, before their maps.
func TestPlansParse(t *testing.T) {
	p, err := orchestrator.Plan(t.Context(), orchestrator.Config{}, mapreduce.PlanQuery{Spec: asking(static(2))}, these(
		&mapreduce.Document{ID: "a", Content: []byte("a")},
		&mapreduce.Document{ID: "page.html", MediaType: "text/html", Content: []byte("<p>text of a page</p>")},
	))
	if err != nil {
		t.Fatal(err)
	}
	want := []task{
		{"parse_page.html", mapreduce.KindParse, -1, nil},
		{"a", mapreduce.KindMap, 0, nil},
		{"page.html", mapreduce.KindMap, 0, []mapreduce.UnitID{"parse_page.html"}},
		{"final", mapreduce.KindFinal, 1, []mapreduce.UnitID{"a", "page.html"}},
	}
	if diff := gocmp.Diff(want, tasksOf(p)); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if p.Tasks[0].Read == 0 || p.Tasks[0].Calls != 0 || p.Tasks[1].Calls != 1 || p.Estimate.Parses != 1 {
		t.Errorf("tasks %+v, estimate %+v", p.Tasks, p.Estimate)
	}
}

// What a submission would refuse a plan refuses, in the same words.
func TestPlansRefuseWhatSubmissionsDo(t *testing.T) {
	_, n := one(t, &scripted.Agent{})
	text := func(id mapreduce.DocumentID) *mapreduce.Document {
		return &mapreduce.Document{ID: id, Content: []byte("some text")}
	}
	poor := func(s *mapreduce.JobSpec) { s.Budget = 1 }
	for _, tt := range []struct {
		name string
		ask  ask
		docs []*mapreduce.Document
	}{
		{"no documents", nil, nil},
		{"nothing but skipped ones", nil, []*mapreduce.Document{{ID: "a", Skip: "not text"}, {ID: "b"}}},
		{"two of one name", nil, []*mapreduce.Document{text("a"), text("b"), text("a")}},
		{"a name that is none", nil, []*mapreduce.Document{text("a\x00b")}},
		{"a tree that is none", ask{static(1)}, []*mapreduce.Document{text("a")}},
		{"a budget that is too small", ask{poor}, []*mapreduce.Document{text("a"), text("b")}},
		{"metadata that is too large", nil, []*mapreduce.Document{{ID: "a", Content: []byte("x"), Metadata: map[string]string{"k": strings.Repeat("v", 5000)}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := asking(tt.ask...)
			_, submitted := n.SubmitJob(t.Context(), spec, these(tt.docs...))
			_, planned := n.PlanJob(t.Context(), mapreduce.PlanQuery{Spec: spec}, these(tt.docs...))
			if submitted == nil || fmt.Sprint(planned) != fmt.Sprint(submitted) {
				t.Errorf("a submission gave %v, a plan %v", submitted, planned)
			}
		})
	}
	broken := errors.New("the disk is on fire")
	_, err := n.PlanJob(t.Context(), mapreduce.PlanQuery{Spec: asking()}, func(yield func(*mapreduce.Document, error) bool) { yield(nil, broken) })
	if !errors.Is(err, broken) {
		t.Errorf("documents that cannot be read gave %v", err)
	}
}

// What calls cost and how long they take is what the configuration says, and no
// more run at once than the fleet makes.
func TestPlansCost(t *testing.T) {
	c := orchestrator.Config{MaxCalls: 2, Rates: func(*mapreduce.JobSpec) plan.Rates {
		return plan.Rates{Model: true, Merge: plan.MergeModel, InPrice: 1_000_000, OutPrice: 2_000_000, UnitTime: 1e9, Prompt: 100, Answer: 1000}
	}}
	p, err := orchestrator.Plan(t.Context(), c, mapreduce.PlanQuery{Spec: asking(static(5))}, documents(4))
	if err != nil {
		t.Fatal(err)
	}
	e := p.Estimate
	if e.Parallelism != 2 || e.Makespan != 3e9 {
		t.Errorf("it takes %v, %d at a time", e.Makespan, e.Parallelism)
	}
	if e.Expected.Calls != 5 || e.Expected.Tokens.In < 500 || e.High.Tokens.Out != 5000 || e.High.CostMicros != e.High.Tokens.In+10_000 {
		t.Errorf("expected %+v, at most %+v", e.Expected, e.High)
	}
	if e.Low.CostMicros > e.Expected.CostMicros || e.Expected.CostMicros > e.High.CostMicros {
		t.Errorf("from %+v over %+v to %+v", e.Low, e.Expected, e.High)
	}
}
