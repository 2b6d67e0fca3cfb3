package ingest_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/orchestrator/ingest"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

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

// B12: what is planned as exact is what runs, unit by unit, and nothing is
// stored for it. The same documents give the same plan.
func TestPlansAreWhatRuns(t *testing.T) {
	testenv.Raced(t)

	c, n := enginetest.One(t, &scripted.Agent{})
	for _, tt := range []struct {
		name string
		docs func() iter.Seq2[*mapreduce.Document, error]
		ask  enginetest.Ask
	}{
		{"B13 seven by three", func() iter.Seq2[*mapreduce.Document, error] { return enginetest.Documents(7) }, enginetest.Ask{enginetest.Static(3)}},
		{"B13 ten by three", func() iter.Seq2[*mapreduce.Document, error] { return enginetest.Documents(10) }, enginetest.Ask{enginetest.Static(3)}},
		{"B13 one by three", func() iter.Seq2[*mapreduce.Document, error] { return enginetest.Documents(1) }, enginetest.Ask{enginetest.Static(3)}},
		{"B13 a hundred by five", func() iter.Seq2[*mapreduce.Document, error] { return enginetest.Documents(100) }, enginetest.Ask{enginetest.Static(5)}},
		{"one reduce", func() iter.Seq2[*mapreduce.Document, error] { return enginetest.Documents(9) }, nil},
		{"cut and skipped", func() iter.Seq2[*mapreduce.Document, error] { return enginetest.These(mixed()...) }, enginetest.Ask{enginetest.Static(3), enginetest.Units(50, 10)}},
		{"cut without overlap", func() iter.Seq2[*mapreduce.Document, error] { return enginetest.These(mixed()...) }, enginetest.Ask{enginetest.Static(2), enginetest.Units(30, -1)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := mapreduce.PlanQuery{Spec: enginetest.Asking(tt.ask...), Exact: true}
			before := enginetest.Pairs(t, c.Store)
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
			if diff := gocmp.Diff(before, enginetest.Pairs(t, c.Store)); diff != "" {
				t.Errorf("planning stored something (-before +after):\n%s", diff)
			}
			job, err := n.SubmitJob(t.Context(), q.Spec, tt.docs())
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(planOf(p), job.Plan); diff != "" {
				t.Errorf("planned (-), kept with the job (+):\n%s", diff)
			}
			n.WantEnd(job.ID, mapreduce.JobComplete)
			if diff := gocmp.Diff(enginetest.TasksOf(p), n.Tasks(job.ID), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("planned (-), ran (+):\n%s", diff)
			}
		})
	}
}

// The plan of a submission with much text reckons what was not counted by what was, to some hundredths
// of the tokens also where the texts differ; one that may have too many units keeps none, and is taken
// all the same.
func TestPlansOfLargeSubmissions(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true, Rates: func(*mapreduce.JobSpec) plan.Rates {
		return plan.Rates{Model: true, InPrice: 1_000_000, Prompt: 100, Answer: 1000}
	}}))

	spec := enginetest.Asking(enginetest.Static(3))
	for _, tt := range []struct {
		name string
		docs []*mapreduce.Document
		off  float64 // hundredths
	}{
		{"of one kind", many(4, 400_000, english), 1},
		{"one language after the other", append(many(150, 9_000, english), many(150, 9_000, chinese)...), 8},
		{"numbers after words", append(many(150, 9_000, english), many(150, 9_000, numbers)...), 8},
		{"languages in turn", many(300, 5_000, english, chinese, numbers), 8},
		{"a large text between small ones", append(many(100, 2_000, numbers), append(many(1, 500_000, english), many(100, 2_000, chinese)...)...), 8},
	} {
		for i, d := range tt.docs {
			d.ID = mapreduce.DocumentID(fmt.Sprint("large", i))
		}
		want, err := n.PlanJob(t.Context(), mapreduce.PlanQuery{Spec: spec}, enginetest.These(tt.docs...))
		if err != nil {
			t.Fatal(err)
		}
		job, err := n.SubmitJob(t.Context(), spec, enginetest.These(tt.docs...))
		if err != nil || job.Plan == nil {
			t.Fatalf("%s: submitted %+v, %v, want a plan", tt.name, job, err)
		}

		off, ok := mapreduce.Deviation(want.Estimate.Expected.Tokens.In, job.Plan.Tokens.In)
		e := want.Estimate.Expected
		if !ok || off < -tt.off || off > tt.off || job.Plan.Calls != e.Calls || job.Plan.Units != int64(len(want.Tasks)) || job.Plan.CostMicros == 0 {
			t.Errorf("%s: the job keeps %+v, %.2f %% off; planned are %d tasks with %+v", tt.name, *job.Plan, off, len(want.Tasks), e)
		}
	}

	cut := &mapreduce.Document{ID: "many", MediaType: "text/html", Content: []byte(strings.Repeat("a ", 350_000))}
	job, err := n.SubmitJob(t.Context(), enginetest.Asking(enginetest.Static(3), enginetest.Units(16, -1)), enginetest.These(cut))
	if err != nil || job.Plan != nil {
		t.Errorf("a document that may have very many units gave %+v, %v, want a job without a plan", job, err)
	}
}

// Lines with different numbers of tokens for their bytes.
const (
	english = "A line of a large document, like all others in it.\n"
	chinese = "大文件中的一行，与其他各行相同。\n"
	numbers = "17.25; 4,318; 0x9f3c; 2026-11-30; 99.5 %\n"
)

// many returns so many documents of about so many bytes, of the lines in turn.
func many(n, bytes int, lines ...string) (docs []*mapreduce.Document) {
	for i := range n {
		line := lines[i%len(lines)]
		docs = append(docs, &mapreduce.Document{Content: []byte(strings.Repeat(line, bytes/len(line)+i%7))})
	}
	return docs
}

// planOf is what is kept of a plan with its job.
func planOf(p *mapreduce.Plan) *mapreduce.JobPlan {
	asking := int64(0)
	for _, task := range p.Tasks {
		if task.Calls > 0 {
			asking++
		}
	}
	return &mapreduce.JobPlan{Units: int64(len(p.Tasks)), Asking: asking, PlanSpend: p.Estimate.Expected}
}

// B12: the exact plan of an adaptive tree does not exist before its outputs do;
// its estimate has the map level as it will be.
func TestEstimatedPlans(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	for _, tt := range []struct {
		name string
		ask  enginetest.Ask
		docs []*mapreduce.Document
	}{
		{"adaptive", enginetest.Ask{enginetest.Budget(4)}, mixed()},
		{"batches", enginetest.Ask{enginetest.Batches(10, 2)}, mixed()},
		{"to be parsed", enginetest.Ask{enginetest.Static(2)}, []*mapreduce.Document{
			{ID: "a", Content: []byte("a")}, {ID: "page.html", MediaType: "text/html", Content: []byte("<p>text</p>")},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := mapreduce.PlanQuery{Spec: enginetest.Asking(tt.ask...)}
			p, err := n.PlanJob(t.Context(), q, enginetest.These(tt.docs...))
			if err != nil {
				t.Fatal(err)
			}
			last := p.Levels[len(p.Levels)-1]
			if p.Exact || !last.Expected || p.Tasks[len(p.Tasks)-1].Unit != mapreduce.FinalUnit {
				t.Errorf("exact is %v, the last level %+v", p.Exact, last)
			}
			job, err := n.SubmitJob(t.Context(), q.Spec, enginetest.These(tt.docs...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(planOf(p), job.Plan); diff != "" {
				t.Errorf("planned (-), kept with the job (+):\n%s", diff)
			}
			q.Exact = true
			if _, err = n.PlanJob(t.Context(), q, enginetest.These(tt.docs...)); !errors.Is(err, errs.Precondition) || !strings.Contains(err.Error(), "estimate") {
				t.Errorf("its exact plan gave %v", err)
			}
		})
	}
}

// Documents that need parsing have units of their own, before their maps.
func TestPlansParse(t *testing.T) {
	p, err := orchestrator.Plan(t.Context(), orchestrator.Config{}, mapreduce.PlanQuery{Spec: enginetest.Asking(enginetest.Static(2))}, enginetest.These(
		&mapreduce.Document{ID: "a", Content: []byte("a")},
		&mapreduce.Document{ID: "page.html", MediaType: "text/html", Content: []byte("<p>text of a page</p>")},
	))
	if err != nil {
		t.Fatal(err)
	}
	want := []enginetest.Task{
		{Unit: "parse_page.html", Kind: mapreduce.KindParse, Level: -1, DependsOn: nil},
		{Unit: "a", Kind: mapreduce.KindMap, Level: 0, DependsOn: nil},
		{Unit: "page.html", Kind: mapreduce.KindMap, Level: 0, DependsOn: []mapreduce.UnitID{"parse_page.html"}},
		{Unit: "final", Kind: mapreduce.KindFinal, Level: 1, DependsOn: []mapreduce.UnitID{"a", "page.html"}},
	}
	if diff := gocmp.Diff(want, enginetest.TasksOf(p)); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if p.Tasks[0].Read == 0 || p.Tasks[0].Calls != 0 || p.Tasks[1].Calls != 1 || p.Estimate.Parses != 1 {
		t.Errorf("tasks %+v, estimate %+v", p.Tasks, p.Estimate)
	}
}

// What a submission would refuse a plan refuses, in the same words.
func TestPlansRefuseWhatSubmissionsDo(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	text := func(id mapreduce.DocumentID) *mapreduce.Document {
		return &mapreduce.Document{ID: id, Content: []byte("some text")}
	}
	poor := func(s *mapreduce.JobSpec) { s.Budget = 1 }
	for _, tt := range []struct {
		name string
		ask  enginetest.Ask
		docs []*mapreduce.Document
	}{
		{"no documents", nil, nil},
		{"nothing but skipped ones", nil, []*mapreduce.Document{{ID: "a", Skip: "not text"}, {ID: "b"}}},
		{"two of one name", nil, []*mapreduce.Document{text("a"), text("b"), text("a")}},
		{"a name that is none", nil, []*mapreduce.Document{text("a\x00b")}},
		{"a tree that is none", enginetest.Ask{enginetest.Static(1)}, []*mapreduce.Document{text("a")}},
		{"a budget that is too small", enginetest.Ask{poor}, []*mapreduce.Document{text("a"), text("b")}},
		{"metadata that is too large", nil, []*mapreduce.Document{{ID: "a", Content: []byte("x"), Metadata: map[string]string{"k": strings.Repeat("v", 5000)}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := enginetest.Asking(tt.ask...)
			_, submitted := n.SubmitJob(t.Context(), spec, enginetest.These(tt.docs...))
			_, planned := n.PlanJob(t.Context(), mapreduce.PlanQuery{Spec: spec}, enginetest.These(tt.docs...))
			if submitted == nil || fmt.Sprint(planned) != fmt.Sprint(submitted) {
				t.Errorf("a submission gave %v, a plan %v", submitted, planned)
			}
		})
	}
	broken := errors.New("the disk is on fire")
	_, err := n.PlanJob(t.Context(), mapreduce.PlanQuery{Spec: enginetest.Asking()}, func(yield func(*mapreduce.Document, error) bool) { yield(nil, broken) })
	if !errors.Is(err, broken) {
		t.Errorf("documents that cannot be read gave %v", err)
	}
}

// What calls cost and how long they take is what the configuration says, and no
// more run at once than the fleet makes. Of records that stay apart nothing is open.
func TestPlansCost(t *testing.T) {
	c := orchestrator.Config{MaxCalls: 2, Rates: func(*mapreduce.JobSpec) plan.Rates {
		return plan.Rates{Model: true, Merge: plan.MergeModel, InPrice: 1_000_000, OutPrice: 2_000_000, UnitTime: 1e9, Prompt: 100, Answer: 1000}
	}}
	p, err := orchestrator.Plan(t.Context(), c, mapreduce.PlanQuery{Spec: enginetest.Asking(enginetest.Static(5))}, enginetest.Documents(4))
	if err != nil {
		t.Fatal(err)
	}
	e := p.Estimate
	if e.Parallelism != 2 || e.Makespan != 3e9 {
		t.Errorf("it takes %v, %d at a time", e.Makespan, e.Parallelism)
	}
	if e.Expected.Calls != 4 || e.Expected.Tokens.In < 400 || e.High.Tokens.Out != 5000 || e.High.CostMicros != e.High.Tokens.In+10_000 {
		t.Errorf("expected %+v, at most %+v", e.Expected, e.High)
	}
	if e.Low.CostMicros > e.Expected.CostMicros || e.Expected.CostMicros > e.High.CostMicros {
		t.Errorf("from %+v over %+v to %+v", e.Low, e.Expected, e.High)
	}
}

// How long lists are only documents tell: a plan for a model says so of a record that has some.
func TestPlansTellOfLists(t *testing.T) {
	lists := func(form string, models bool) (told []string) {
		spec := enginetest.Asking()
		spec.Schema = []byte(form)
		c := orchestrator.Config{Rates: func(*mapreduce.JobSpec) plan.Rates { return plan.Rates{Model: models, Prompt: 100, Answer: 1000} }}
		p, err := orchestrator.Plan(t.Context(), c, mapreduce.PlanQuery{Spec: spec}, enginetest.Documents(2))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range p.Warnings {
			if w.Kind == string(plan.Lists) {
				told = append(told, w.Message)
			}
		}
		return told
	}

	const many = `{"type":"object","properties":{"title":{"type":"string"},"a":{"type":"array","items":{"type":"string"}},"b":{"type":"array","items":{"type":"string"}},"c":{"type":"array","items":{"type":"string"}},"d":{"type":"array","items":{"type":"string"}}}}`
	if told := lists(many, true); len(told) != 1 || !strings.Contains(told[0], "(a, b, c and 1 more)") {
		t.Errorf("of four lists: %q", told)
	}
	if told := lists(many, false); len(told) > 0 {
		t.Errorf("of lists that no model writes: %q", told)
	}
	if told := lists(`{"type":"object","properties":{"title":{"type":"string"}}}`, true); len(told) > 0 {
		t.Errorf("of no lists: %q", told)
	}
}

// What the plan of a submission costs it: texts of 256 bytes are sized.
func BenchmarkSketchedSizes(b *testing.B) {
	text := strings.Repeat("Receipt 4711 of a shop, in all 17.25. ", 8)[:256]
	count := token.New().Count
	count("load the vocabulary")

	b.SetBytes(50_000 * int64(len(text)))
	for b.Loop() {
		size := ingest.SketchedSizes(count)
		for range 50_000 {
			size(text)
		}
	}
}
