package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// The tests of this file cover B10, B11 and B17 of docs/requirements.md on the
// engine: one unit that takes all documents.

const kitchen = `
name: kitchen
inputs: {guests: "4", occasion: }
stages:
- name: map
  from: documents
  each: chunk
  agent: {role: "Chef of {{item.id}}"}
  task: "Cook for {{input.guests}}"
- name: reduce
  each: group
  agent: {role: Sub-Chef}
  task: "Bring it together for {{input.occasion}}"
`

// withHeadChef adds a stage that reads all documents at once if they fit the budget.
func withHeadChef(file string) string {
	return strings.Replace(file, "stages:\n", `stages:
- name: direct
  each: all
  when: tokens <= budget
  agent: {role: Head Chef}
  task: "Plan {{items.count}} dishes"
`, 1)
}

// defined makes a job's pipeline one that its client did not check.
func defined(name, definition string) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.Pipeline, s.Definition = name, []byte(definition) }
}

// checkedRules runs units by rules and believes nothing of what they make.
func checkedRules(t *testing.T) *enginetest.Node {
	t.Helper()
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true, Count: func(s string) int { return len(s) }}))
	c.WorkerFor("rules", checked.New(enginetest.ByRules()), worker.Config{Slots: 4, Prefetch: 4}, n)
	return n
}

// ordersOf are documents of which some name the same orders, and two are web
// pages.
func ordersOf(n int, pages bool) (map[string]string, []string) {
	docs, order := enginetest.Keyed(n)
	if !pages {
		return docs, order
	}
	for _, i := range []int{1, n - 1} {
		name := order[i] + ".html"
		docs[name] = "<html><body><p>" + strings.ReplaceAll(docs[order[i]], "\n", "</p><p>") + "</p></body></html>"
		delete(docs, order[i])
		order[i] = name
	}
	return docs, order
}

func size(docs map[string]string) (n int64) {
	for _, text := range docs {
		n += int64(len(text))
	}
	return n
}

// bare is a result but for ids of citations.
func bare(c *enginetest.Collected) []map[string]any {
	for _, r := range c.Records {
		delete(r, "_citations")
	}
	return c.Records
}

func TestB17OneUnitTakesAllThatFits(t *testing.T) {
	n := checkedRules(t)
	docs, order := ordersOf(9, false)
	all := size(docs)
	for _, tt := range []struct {
		name   string
		ask    enginetest.Ask
		docs   []string
		direct bool
	}{
		{"fits exactly", enginetest.Ask{enginetest.Piped(withHeadChef(kitchen)), enginetest.Budget(all)}, order, true},
		{"one too many", enginetest.Ask{enginetest.Piped(withHeadChef(kitchen)), enginetest.Budget(all - 1)}, order, false},
		{"no direct step", enginetest.Ask{enginetest.Piped(kitchen), enginetest.Budget(all)}, order, false},
		{"part of a window", enginetest.Ask{enginetest.Piped(withHeadChef(kitchen)), enginetest.Window(2 * all)}, order, true},
		{"one document", enginetest.Ask{enginetest.Piped(withHeadChef(kitchen)), enginetest.Budget(all)}, order[:1], true},
		{"documents that would be cut", enginetest.Ask{enginetest.Piped(withHeadChef(kitchen)), enginetest.Budget(all), enginetest.Units(200, 20)}, order, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order]}\n")
			for _, a := range tt.ask {
				a(&spec)
			}
			planned, err := n.PlanJob(t.Context(), mapreduce.PlanQuery{Spec: spec}, enginetest.Texts(docs, tt.docs...))
			if err != nil {
				t.Fatal(err)
			}
			id, got := n.Run(spec, enginetest.Texts(docs, tt.docs...))
			got.Cited(t, docs)
			tasks := n.Tasks(id)
			if direct := len(tasks) == 1 && equal(tasks[0], enginetest.Task{Unit: "direct", Kind: mapreduce.KindDirect}); direct != tt.direct {
				t.Errorf("units are %+v; direct: want %t", tasks, tt.direct)
			}
			if tt.direct {
				if diff := cmp.Diff(tasks, enginetest.TasksOf(planned), cmp.Transformer("empty", func(ids []mapreduce.UnitID) int { return len(ids) })); diff != "" || !planned.Exact {
					t.Errorf("exact: %t; ran (-), planned (+):\n%s", planned.Exact, diff)
				}
				if len(got.Sources) != 1 || got.Sources["direct"] != nil {
					t.Errorf("sources are %v, want the direct unit alone", got.Sources)
				}
			}
			spec.Pipeline, spec.Definition, spec.TargetTokenBudget, spec.ContextWindow = "", nil, nil, nil
			spec.MaxTokensPerUnit, spec.ChunkOverlap = 0, 0
			_, want := n.Run(spec, enginetest.Texts(docs, tt.docs...))
			if diff := cmp.Diff(bare(want), bare(got)); diff != "" && tt.direct {
				t.Errorf("records (-mapped and reduced, +direct):\n%s", diff)
			}
			job, err := n.GetJob(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if l := job.Coverage.Documents; l.Mapped != int64(len(tt.docs)) || l.Total != l.Mapped {
				t.Errorf("ledger of documents: %+v, want %d", l, len(tt.docs))
			}
		})
	}
	n.Sound()
}

// equal reports whether two tasks are of one unit, whatever they take.
func equal(t enginetest.Task, o enginetest.Task) bool {
	return t.Unit == o.Unit && t.Kind == o.Kind && t.Level == o.Level
}

// TestDirectWaitsForPages: what a page comes to is known when it was parsed, so
// that only then a unit takes all, or those that were held for it get their own.
func TestDirectWaitsForPages(t *testing.T) {
	n := checkedRules(t)
	docs, order := ordersOf(9, true)
	plain := make(map[string]string)
	for id, text := range docs {
		if !strings.HasSuffix(id, ".html") {
			plain[id] = text
		}
	}
	pages := []string{order[1], order[8]}
	for _, tt := range []struct {
		name   string
		budget int64
		docs   []string
		direct bool
		maps   int
	}{
		{"all fit", size(docs), order, true, 0},
		{"the rest fits, the pages do not", size(plain) + 10, order, false, 9},
		{"the rest does not fit", size(plain) - 10, order, false, 9},
		{"pages alone", size(docs), pages, true, 0},
		{"pages alone do not fit", 100, pages, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order]}\n")
			enginetest.Piped(withHeadChef(kitchen))(&spec)
			enginetest.Budget(tt.budget)(&spec)
			id, got := n.Run(spec, enginetest.Texts(docs, tt.docs...))
			got.Cited(t, plain)
			byKind := make(map[mapreduce.UnitKind]int)
			for _, u := range n.Units(id) {
				byKind[u.Kind]++
			}
			if byKind[mapreduce.KindParse] != 2 || (byKind[mapreduce.KindDirect] == 1) != tt.direct || byKind[mapreduce.KindMap] != tt.maps {
				t.Errorf("units by kind are %v, want direct: %t, and %d maps", byKind, tt.direct, tt.maps)
			}
			spec.Pipeline, spec.Definition, spec.TargetTokenBudget = "", nil, nil
			_, want := n.Run(spec, enginetest.Texts(docs, tt.docs...))
			if diff := cmp.Diff(bare(want), bare(got)); diff != "" {
				t.Errorf("records (-mapped and reduced, +got):\n%s", diff)
			}
			job, err := n.GetJob(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for name, l := range map[string]mapreduce.Ledger{"documents": job.Coverage.Documents, "characters": job.Coverage.Characters} {
				if l.Mapped != l.Total || l.Total < int64(len(tt.docs)) {
					t.Errorf("ledger of %s: %+v", name, l)
				}
			}
		})
	}
	n.Sound()
}

// A fussy agent fails units of a kind, or the parsing of one document, until it
// is told not to.
type fussy struct {
	agent.Agent
	kind mapreduce.UnitKind
	unit mapreduce.UnitID
	well atomic.Bool
	runs atomic.Int64 // of units of kind direct
}

func (f *fussy) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if task.Kind == mapreduce.KindDirect {
		f.runs.Add(1)
	}
	if !f.well.Load() && (task.Kind == f.kind || task.Unit == f.unit) {
		return nil, agent.Permanent(errors.New("not today"))
	}
	return f.Agent.Run(ctx, task, calls)
}

func fuss(c *enginetest.Cluster, f *fussy) *enginetest.Node {
	f.Agent = checked.New(enginetest.ByRules())
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true, Count: func(s string) int { return len(s) }}))
	c.WorkerFor("rules", f, worker.Config{Slots: 4, Prefetch: 4}, n)
	return n
}

func TestDirectThatFailsIsResumed(t *testing.T) {
	f := &fussy{kind: mapreduce.KindDirect}
	n := fuss(enginetest.NewCluster(t), f)
	docs, order := ordersOf(5, false)
	spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order]}\n")
	enginetest.Piped(withHeadChef(kitchen))(&spec)
	enginetest.Budget(size(docs))(&spec)
	job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
	if err != nil {
		t.Fatal(err)
	}
	failed := n.WantEnd(job.ID, mapreduce.JobFailed)
	if l := failed.Coverage.Documents; l.Failed != 5 || !strings.Contains(failed.Error, "direct: not today") {
		t.Errorf("failed with %q, ledger %+v", failed.Error, l)
	}
	n.Sound()
	f.well.Store(true)
	if _, err := n.ResumeJob(t.Context(), job.ID, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	done := n.WantEnd(job.ID, mapreduce.JobComplete)
	if l := done.Coverage.Documents; l.Mapped != 5 || l.Failed != 0 {
		t.Errorf("ledger %+v", l)
	}
	if tasks := n.Tasks(job.ID); len(tasks) != 1 || !equal(tasks[0], enginetest.Task{Unit: "direct", Kind: mapreduce.KindDirect}) {
		t.Errorf("units are %+v, want the direct one alone", tasks)
	}
	n.Result(job.ID).Cited(t, docs)
	n.Sound()
}

// TestPagesThatComeLateAreReducedWithTheRest: a page that fails to be parsed does
// not hold the others up. Tried again, it is mapped, and reduced with what the
// direct unit found, which is not run again.
func TestPagesThatComeLateAreReducedWithTheRest(t *testing.T) {
	testenv.Raced(t)

	docs, order := ordersOf(9, true)
	f := &fussy{unit: mapreduce.ParseUnit(mapreduce.DocumentID(order[1]))}
	n := fuss(enginetest.NewCluster(t), f)
	spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order]}\n")
	enginetest.Piped(withHeadChef(kitchen))(&spec)
	enginetest.Budget(size(docs))(&spec)
	id, first := n.Run(spec, enginetest.Texts(docs, order...))
	if len(first.Records) != 7 || first.Sources[f.unit] == nil {
		t.Fatalf("%d records, and sources %v; want 7 and the failed page", len(first.Records), first.Sources)
	}
	f.well.Store(true)
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	n.WantEnd(id, mapreduce.JobComplete)
	got := n.Result(id)
	if runs := f.runs.Load(); runs != 1 {
		t.Errorf("the direct unit ran %d times", runs)
	}
	spec.Pipeline, spec.Definition, spec.TargetTokenBudget = "", nil, nil
	_, want := n.Run(spec, enginetest.Texts(docs, order...))
	sortRecords := func(all []map[string]any) []string {
		var out []string
		for _, r := range all {
			out = append(out, fmt.Sprint(r["order"], r["total"]))
		}
		slices.Sort(out)
		return out
	}
	if diff := cmp.Diff(sortRecords(want.Records), sortRecords(got.Records)); diff != "" {
		t.Errorf("records (-mapped and reduced, +got):\n%s", diff)
	}
	n.Sound()
}

func TestTwoDocumentsOfOneNameAreNotBundled(t *testing.T) {
	n := checkedRules(t)
	docs, order := ordersOf(3, false)
	spec := enginetest.Extracting(t, enginetest.Orders)
	enginetest.Piped(withHeadChef(kitchen))(&spec)
	enginetest.Budget(size(docs) * 2)(&spec)
	_, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order[0], order[1], order[0]))
	if e, ok := errors.AsType[*errs.Error](err); !ok || e.Field != "documents" || !strings.Contains(e.Message, "documents 1 and 3 have the same id") {
		t.Errorf("got %v", err)
	}
}

// TestWrongPipelinesAreRefused covers B2, B10 and B11, and what a run does not
// give that its pipeline names: refused with the field and the rule, and nothing
// is stored.
func TestWrongPipelinesAreRefused(t *testing.T) {
	c, n := enginetest.One(t, &scripted.Agent{})
	before := enginetest.Pairs(t, c.Store)
	plain := func() iter.Seq2[*mapreduce.Document, error] { return enginetest.Documents(3) }
	with := func(meta map[string]string) iter.Seq2[*mapreduce.Document, error] {
		return enginetest.These(
			&mapreduce.Document{ID: "a", Content: []byte("x"), Metadata: map[string]string{"dish": "Pie"}},
			&mapreduce.Document{ID: "b", Content: []byte("x"), Metadata: meta},
		)
	}
	const work = `, agent: {role: x}, task: x`
	file := func(stages ...string) string { return "name: p\nstages:\n- {" + strings.Join(stages, "}\n- {") + "}\n" }
	const mapped, grouped, direct = "name: m, from: documents, each: document", "name: r, each: group", "name: d, each: all"
	named := file(mapped+", agent: {role: '{{item.dish}}'}, task: x", grouped)
	for _, tt := range []struct {
		name        string
		ask         enginetest.Ask
		docs        iter.Seq2[*mapreduce.Document, error]
		field, rule string
	}{
		{"unknown", enginetest.Ask{func(s *mapreduce.JobSpec) { s.Pipeline = "dream" }}, plain(), "pipeline", `is called "dream"; there is `},
		{"no definition", enginetest.Ask{enginetest.Piped(kitchen), func(s *mapreduce.JobSpec) { s.Definition = []byte("[") }}, plain(), "pipeline", "a value is missing"},
		{"another name", enginetest.Ask{enginetest.Piped(kitchen), func(s *mapreduce.JobSpec) { s.Pipeline = "diner" }}, plain(), "pipeline", `definition has the name "kitchen"`},
		{"B2 no map", enginetest.Ask{defined("p", `{"name":"p","stages":[{"name":"r","each":"group"}]}`)}, plain(), "stages[0].each", "group is for stages that read the outputs"},
		{"B2 no task of the map", enginetest.Ask{defined("p", `{"name":"p","stages":[{"name":"m","each":"chunk","agent":{"role":"x"}},{"name":"r","each":"group"}]}`)}, plain(), "stages[0].task", "is required"},
		{"B10 direct without an agent", enginetest.Ask{defined("p", `{"name":"p","stages":[{"name":"d","each":"all","task":"x"}]}`), enginetest.Budget(9)}, plain(), "stages[0].agent", "is required"},
		{"a model that nothing says", enginetest.Ask{enginetest.Piped(file(mapped+", model: strong", grouped))}, plain(), "stages[0].model", "neither provider/model nor an alias"},
		{"values by rules", enginetest.Ask{enginetest.Piped(file(mapped+", output: items"+work, grouped+work)), func(s *mapreduce.JobSpec) { s.Provider = "rules" }}, plain(), "stages[0].output", "writes only extracts"},
		{"a condition that does not hold", enginetest.Ask{enginetest.Piped(file(mapped+", when: count > 3", grouped))}, plain(), "documents", "m does when count > 3"},
		{"B11 direct and groups", enginetest.Ask{enginetest.Piped(withHeadChef(kitchen)), enginetest.Static(3)}, plain(), "direct", "for the adaptive strategy, and this one is static"},
		{"direct without a strategy", enginetest.Ask{enginetest.Piped(withHeadChef(kitchen))}, plain(), "direct", "for the adaptive strategy, and this one is batches"},
		{"an input that is not given", enginetest.Ask{enginetest.Piped(kitchen), func(s *mapreduce.JobSpec) { s.Vars = nil }}, plain(), "vars", "needs the input occasion"},
		{"an item without what is named", enginetest.Ask{enginetest.Piped(named)}, plain(), "stages[0].agent.role", `"dish"`},
		{"an item without it, later on", enginetest.Ask{enginetest.Piped(named)}, with(map[string]string{"dsh": "Pie"}), "stages[0].agent.role", `document "b" has no "dish"; it has dsh, id`},
		{"an example that is none", enginetest.Ask{enginetest.Piped(file(mapped+", examples: [{document: x, records: [{y: {value: z, quote: z}}]}]", grouped))}, plain(), "stages[0].examples[0].records[0].y", "no field of the schema"},
		{"a model among rules", enginetest.Ask{enginetest.Piped(file(mapped, grouped+", merge: model")), func(s *mapreduce.JobSpec) { s.Provider = "rules" }}, plain(), "stages[1].merge", "must be typed with the provider rules"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := enginetest.Asking(tt.ask...)
			spec.Schema = enginetest.Extracting(t, enginetest.Orders).Schema
			_, err := n.SubmitJob(t.Context(), spec, tt.docs)
			e, ok := errors.AsType[*errs.Error](err)
			if !ok || e.Kind != errs.Invalid || e.Field != tt.field || !strings.Contains(e.Message, tt.rule) {
				t.Errorf("got %v; want field %q and rule %q", err, tt.field, tt.rule)
			}
		})
	}
	if diff := cmp.Diff(before, enginetest.Pairs(t, c.Store)); diff != "" {
		t.Errorf("something was stored (-before +after):\n%s", diff)
	}
}
