package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/plan/plantest"
	"github.com/coditect/mapreduce/internal/text/pack"
	"github.com/coditect/mapreduce/internal/text/token"
)

func items(n int, tokens int64) []plan.Item {
	out := make([]plan.Item, n)
	for i := range out {
		out[i] = plan.Item{Unit: mapreduce.UnitID(fmt.Sprintf("m%d", i)), Tokens: tokens}
	}
	return out
}

func build(t interface {
	Helper()
	Fatal(args ...any)
}, c plan.Config, all []plan.Item, r plan.Rates,
) *plan.DAG {
	t.Helper()
	d, err := buildDAG(t, c, all, r)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	return d
}

// extract is a pipeline that maps documents and reduces groups; direct has a stage
// beside these that takes all documents if they fit one call.
const (
	extract = "name: mine\nstages: [{name: map, each: chunk}, {name: reduce, each: group}]"
	direct  = "name: mine\nstages: [{name: direct, each: all, when: tokens <= budget}, " +
		"{name: map, from: documents, each: chunk}, {name: reduce, each: group}]"
)

// graphOf returns the graph of a job that asks for a tree.
func graphOf(t interface {
	Helper()
	Fatal(args ...any)
}, c plan.Config,
) *plan.Graph {
	t.Helper()
	text := extract
	if c.Direct {
		text = direct
	}
	p, err := pipeline.Parse("pipeline.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	g, err := plan.NewGraph(p, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func buildDAG(t interface {
	Helper()
	Fatal(args ...any)
}, c plan.Config, all []plan.Item, r plan.Rates,
) (*plan.DAG, error) {
	t.Helper()
	g := graphOf(t, c)
	total := int64(0)
	for _, it := range all {
		total = pack.Sum(total, it.Tokens)
	}
	stage, err := g.DocumentStage(int64(len(all)), total)
	if err != nil {
		return nil, err
	}
	return g.Build(stage, all, r)
}

// shape returns the number of nodes of each level.
func shape(d *plan.DAG) (out []int) {
	for _, l := range d.Levels {
		out = append(out, l.Count())
	}
	return out
}

// wiring returns what each node above the map takes.
func wiring(d *plan.DAG) map[mapreduce.UnitID][]mapreduce.UnitID {
	out := make(map[mapreduce.UnitID][]mapreduce.UnitID)
	for _, n := range d.Nodes {
		for _, in := range n.Inputs {
			out[n.ID] = append(out[n.ID], d.Nodes[in].ID)
		}
	}
	return out
}

// B13: the eleven shapes, node by node.
func TestStaticShapes(t *testing.T) {
	for _, test := range []struct {
		n      int
		k      int64
		levels []int
		nodes  int
	}{
		{1, 3, []int{1, 1}, 2},
		{2, 2, []int{2, 1}, 3},
		{3, 3, []int{3, 1}, 4},
		{4, 3, []int{4, 2, 1}, 7},
		{6, 3, []int{6, 2, 1}, 9},
		{7, 3, []int{7, 3, 1}, 11},
		{9, 3, []int{9, 3, 1}, 13},
		{10, 3, []int{10, 4, 2, 1}, 17},
		{25, 5, []int{25, 5, 1}, 31},
		{26, 5, []int{26, 6, 2, 1}, 35},
		{100, 5, []int{100, 20, 4, 1}, 125},
	} {
		t.Run(fmt.Sprintf("%d by %d", test.n, test.k), func(t *testing.T) {
			c := plan.Config{ChunkSize: &test.k}
			d := build(t, c, items(test.n, 1000), plan.Rates{})
			if diff := cmp.Diff(test.levels, shape(d)); diff != "" {
				t.Errorf("levels (-want +got):\n%s", diff)
			}
			if len(d.Nodes) != test.nodes || d.Estimate.Tasks != test.nodes || !d.Exact || d.Mode != plan.ModeStatic || d.RequireExact() != nil {
				t.Errorf("%d nodes, exact %v, mode %s; want %d", len(d.Nodes), d.Exact, d.Mode, test.nodes)
			}
			checkNodes(t, d, int(test.k))
			if diff := cmp.Diff(d, build(t, c, items(test.n, 1000), plan.Rates{})); diff != "" {
				t.Errorf("the same items gave another DAG:\n%s", diff)
			}
		})
	}
}

// checkNodes compares each node of a static tree with what its place says.
func checkNodes(t *testing.T, d *plan.DAG, k int) {
	t.Helper()
	for li, l := range d.Levels {
		for i := range l.Count() {
			n := d.Nodes[l.First+i]
			want := plan.Node{ID: mapreduce.UnitID(fmt.Sprintf("m%d", i)), Kind: mapreduce.KindMap, Stage: "map", Items: 1}
			if li > 0 {
				below := d.Levels[li-1]
				want = plan.Node{ID: mapreduce.ReduceUnit(li, i), Kind: mapreduce.KindReduce, Stage: "reduce", Level: li}
				for at := i * k; at < min((i+1)*k, below.Count()); at++ {
					want.Inputs = append(want.Inputs, int32(below.First+at))
				}
			}
			if li == len(d.Levels)-1 {
				want.ID, want.Kind = mapreduce.FinalUnit, mapreduce.KindFinal
			}
			want.Load, want.Most = n.Load, n.Most
			if diff := cmp.Diff(want, n); diff != "" {
				t.Errorf("node %d of level %d (-want +got):\n%s", i, li, diff)
			}
		}
	}
}

// Documents that are to be parsed have units of their own, which their maps, and
// all that begins with these, wait for; nothing is exact then.
func TestParsedItems(t *testing.T) {
	all := []plan.Item{
		{Unit: "a", Tokens: 10},
		{Unit: "b_chunk_0", Tokens: 10, Expected: true, Parse: "parse_b", Raw: 50},
		{Unit: "b_chunk_1", Tokens: 10, Expected: true, Parse: "parse_b", Raw: 50},
		{Unit: "c", Tokens: 10, Expected: true, Parse: "parse_c", Raw: 30},
	}
	rates := plan.Rates{UnitTime: time.Second, Parallelism: 2}
	d := build(t, plan.Config{ChunkSize: new(int64(2))}, all, rates)
	if diff := cmp.Diff([]int{2, 4, 2, 1}, shape(d)); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
	want := map[mapreduce.UnitID][]mapreduce.UnitID{
		"b_chunk_0": {"parse_b"}, "b_chunk_1": {"parse_b"}, "c": {"parse_c"},
		"reduce_L1_0": {"a", "b_chunk_0"}, "reduce_L1_1": {"b_chunk_1", "c"}, "final": {"reduce_L1_0", "reduce_L1_1"},
	}
	if diff := cmp.Diff(want, wiring(d)); diff != "" {
		t.Errorf("wiring (-want +got):\n%s", diff)
	}
	if d.Exact || d.RequireExact() == nil || d.Estimate.Parses != 2 || d.Estimate.Tasks != 9 || d.Nodes[0].Load.Read != 50 {
		t.Errorf("exact %v, estimate %+v", d.Exact, d.Estimate)
	}
	if want := 5 * time.Second; d.Estimate.Makespan != want { // parse, two rounds of maps, reduces, final
		t.Errorf("it takes %v, want %v", d.Estimate.Makespan, want)
	}
	adaptive := build(t, plan.Config{TargetTokenBudget: new(int64(1000)), Direct: true}, all, rates)
	if diff := cmp.Diff([]int{2, 1}, shape(adaptive)); diff != "" || adaptive.Exact || adaptive.Nodes[2].ID != mapreduce.DirectUnit {
		t.Errorf("direct after parsing: exact %v, levels (-want +got):\n%s", adaptive.Exact, diff)
	}
}

// What rules read takes time, and spends nothing.
func TestReadRate(t *testing.T) {
	d := build(t, plan.Config{}, items(4, 1000), plan.Rates{ReadRate: 1000, Parallelism: 2})
	// Two rounds of maps of a second, and 400 tokens of outputs.
	if want := 2*time.Second + 400*time.Millisecond; d.Estimate.Makespan != want || d.Estimate.High.Calls != 0 {
		t.Errorf("it takes %v and %d calls, want %v and none", d.Estimate.Makespan, d.Estimate.High.Calls, want)
	}
}

// Answers of maps that are looked over take a call more each, or two a round at
// most, which read the answer too.
func TestRounds(t *testing.T) {
	r := plan.Rates{Model: true, Merge: plan.MergeTyped, MapYield: 0.1, Prompt: 10, Answer: 50}
	plain := build(t, plan.Config{}, items(2, 100), r).Estimate
	r.Rounds = 3
	got := build(t, plan.Config{}, items(2, 100), r).Estimate
	want := plan.Spend{Calls: 2 * 2, In: plain.Expected.In + 2*(110+10), Out: plain.Expected.Out}
	if diff := cmp.Diff(want, got.Expected); diff != "" {
		t.Errorf("expected (-want +got):\n%s", diff)
	}
	want = plan.Spend{Calls: 2 * 7, In: 2 * (110 + 6*(110+50)), Out: 2 * 7 * 50}
	if diff := cmp.Diff(want, got.High); diff != "" {
		t.Errorf("at most (-want +got):\n%s", diff)
	}
}

// What a model writes is more than a reduce reads of it, and no more than an answer may have. It
// takes time and money, and leaves the tree as it is.
func TestWritten(t *testing.T) {
	r := plan.Rates{Model: true, Merge: plan.MergeTyped, MapYield: 0.1, Prompt: 10, Answer: 15, OutPrice: 1_000_000, WriteRate: 1}
	plain := build(t, plan.Config{}, items(2, 100), r)
	r.Written = 1.45
	got := build(t, plan.Config{}, items(2, 100), r)
	if e := got.Estimate; e.Expected.Out != 2*15 || e.High.Out != 2*15 || e.Expected.CostMicros != 30 || e.Makespan != 15*time.Second {
		t.Errorf("it writes %+v, at most %+v, in %s", e.Expected, e.High, e.Makespan)
	}
	if diff := cmp.Diff(wiring(plain), wiring(got)); diff != "" || got.Nodes[0].Load.Size != plain.Nodes[0].Load.Size {
		t.Errorf("outputs have %d tokens; inputs (-want +got):\n%s", got.Nodes[0].Load.Size, diff)
	}
}

// Texts that are not too long are answered with values alone, and so many of a hundred, evenly, are
// asked about once more. At most all are asked about, as long as answers may be.
func TestShort(t *testing.T) {
	r := plan.Rates{
		Model: true, Merge: plan.MergeTyped, MapYield: 0.2, Written: 2, Prompt: 30, Answer: 50, Rounds: 1,
		Short: &plan.Short{Most: 100, Prompt: 20, Written: 0.5, Share: 50, Again: 7, Asked: 0.1, Places: 0.25},
	}
	all := items(5, 100)
	all[2].Tokens = 101
	d := build(t, plan.Config{}, all, r)

	once := plan.Load{Read: 100, Size: 20, Calls: 1, In: 120, Out: 10}
	again := plan.Load{Read: 100, Size: 20, Calls: 2, In: 120 + 100 + 7 + 10 + 2, Out: 10 + 5}
	long := plan.Load{Read: 101, Size: 21, Calls: 1, In: 131, Out: 42}
	want := []plan.Load{once, again, long, once, again}
	for i := range want {
		if diff := cmp.Diff(want[i], d.Nodes[i].Load); diff != "" {
			t.Errorf("map %d (-want +got):\n%s", i, diff)
		}
		if m := d.Nodes[i].Most; m.Calls != 3 || m.Out != 150 || m.In != 3*(all[i].Tokens+30)+2*50 {
			t.Errorf("map %d takes at most %+v", i, m)
		}
	}
}

// A final reduce asks nothing of records that stay apart, unless parts of one are in several units.
func TestApart(t *testing.T) {
	for _, tt := range []struct {
		name   string
		apart  bool
		record int64
		part   bool
		calls  int64
	}{
		{"with a key", false, 0, false, 4},
		{"without one", true, 0, false, 3},
		{"lists of records of parts", true, 0, true, 3},
		{"a record each", true, 10, false, 3},
		{"a record of parts", true, 10, true, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := items(3, 100)
			all[0].Part, all[1].Part = tt.part, tt.part
			e := build(t, plan.Config{}, all, plan.Rates{Model: true, Apart: tt.apart, Record: tt.record, Prompt: 5, Answer: 40}).Estimate
			if e.Expected.Calls != tt.calls || e.High.Calls != 4 || e.Low.Calls != 3 {
				t.Errorf("%d calls, %d to %d, want %d, 3 to 4", e.Expected.Calls, e.Low.Calls, e.High.Calls, tt.calls)
			}
			if quiet := e.Expected == e.Low; quiet != (tt.calls == 3) {
				t.Errorf("expected %+v, at least %+v", e.Expected, e.Low)
			}
		})
	}
}

// Pictures of pages go with each call of a map that reads a document, and with no other unit.
func TestShownPages(t *testing.T) {
	r := plan.Rates{Model: true, Merge: plan.MergeModel, MapYield: 0.1, Prompt: 10, Answer: 50, Rounds: 1}
	plain := build(t, plan.Config{}, items(2, 100), r)
	shown := items(2, 100)
	shown[1].Shown = 700
	got := build(t, plan.Config{}, shown, r)
	for i, n := range got.Nodes {
		was := plain.Nodes[i]
		more := map[bool][2]int64{true: {2 * 700, 3 * 700}}[n.ID == "m1"] // a call and another that looks it over, or two to mend it
		if in, most := n.Load.In-was.Load.In, n.Most.In-was.Most.In; in != more[0] || most != more[1] || n.Load.Size != was.Load.Size {
			t.Errorf("%s has %d and at most %d tokens more, want %v", n.ID, in, most, more)
		}
	}
}

// B13: seven in groups of three; the last group of one stays.
func TestStaticWiring(t *testing.T) {
	want := map[mapreduce.UnitID][]mapreduce.UnitID{
		"reduce_L1_0": {"m0", "m1", "m2"}, "reduce_L1_1": {"m3", "m4", "m5"}, "reduce_L1_2": {"m6"},
		"final": {"reduce_L1_0", "reduce_L1_1", "reduce_L1_2"},
	}
	if diff := cmp.Diff(want, wiring(build(t, plan.Config{ChunkSize: new(int64(3))}, items(7, 10), plan.Rates{}))); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

// B12 and B16: expected trees.
func TestExpectedTrees(t *testing.T) {
	for _, test := range []struct {
		name   string
		config plan.Config
		n      int
		tokens int64
		levels []int
		exact  bool
	}{
		{"six small outputs", plan.Config{TargetTokenBudget: new(int64(1000))}, 6, 100, []int{6, 1}, false},
		{"six large outputs", plan.Config{TargetTokenBudget: new(int64(100))}, 6, 400, []int{6, 3, 2, 1}, false},
		{"one item", plan.Config{TargetTokenBudget: new(int64(100))}, 1, 10_000, []int{1, 1}, false},
		{"outputs that do not pair", plan.Config{TargetTokenBudget: new(int64(10_000))}, 100, 51_000, []int{100, 1}, false},
		{"batches that fit", plan.Config{Fallback: plan.Batches}, 100, 100, []int{100, 1}, false},
		{"batches that do not", plan.Config{Fallback: plan.Batches}, 101, 50_000, []int{101, 11, 2, 1}, false},
		{"no more than a batch", plan.Config{Fallback: plan.Batches}, 10, 50_000, []int{10, 1}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := build(t, test.config, items(test.n, test.tokens), plan.Rates{})
			if diff := cmp.Diff(test.levels, shape(d)); diff != "" {
				t.Errorf("levels (-want +got):\n%s", diff)
			}
			for _, l := range d.Levels {
				if l.Expected != (!test.exact && l.Level > 0) {
					t.Errorf("level %d: expected is %v", l.Level, l.Expected)
				}
			}
			if err := d.RequireExact(); d.Exact != test.exact || test.exact != (err == nil) || err != nil && !errors.Is(err, errs.Precondition) {
				t.Errorf("exact is %v, and asking for it gave %v", d.Exact, err)
			}
		})
	}
}

// B1.
func TestBuildOfNothing(t *testing.T) {
	for _, none := range [][]plan.Item{nil, {}} {
		if _, err := buildDAG(t, plan.Config{}, none, plan.Rates{}); fieldOf(err) != "items" {
			t.Errorf("no items gave %v", err)
		}
	}
	if _, err := buildDAG(t, plan.Config{}, items(1, 1), plan.Rates{Parallelism: -1}); fieldOf(err) != "parallelism" {
		t.Errorf("nothing at a time gave %v", err)
	}
}

// B17.
func TestDirect(t *testing.T) {
	for _, test := range []struct {
		name   string
		config plan.Config
		items  []plan.Item
		direct bool
	}{
		{"less than the budget", plan.Config{TargetTokenBudget: new(int64(100)), Direct: true}, items(3, 10), true},
		{"the budget", plan.Config{TargetTokenBudget: new(int64(100)), Direct: true}, items(4, 25), true},
		{"one more", plan.Config{TargetTokenBudget: new(int64(99)), Direct: true}, items(4, 25), false},
		{"no direct step", plan.Config{TargetTokenBudget: new(int64(100))}, items(3, 10), false},
		{"one item", plan.Config{TargetTokenBudget: new(int64(100)), Direct: true}, items(1, 10), true},
		{"no tokens", plan.Config{TargetTokenBudget: new(int64(100)), Direct: true}, items(3, 0), true},
		{"the prompt counts", plan.Config{TargetTokenBudget: new(int64(100)), Direct: true, PromptOverhead: 1}, items(4, 25), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := build(t, test.config, test.items, plan.Rates{Model: true})
			if !test.direct {
				if d.Nodes[0].Kind != mapreduce.KindMap || d.Exact {
					t.Errorf("the first node is %+v", d.Nodes[0])
				}
				return
			}
			n := d.Nodes[0]
			if len(d.Nodes) != 1 || n.ID != mapreduce.DirectUnit || n.Kind != mapreduce.KindDirect || n.Items != len(test.items) || n.Load.Calls != 1 {
				t.Errorf("nodes are %+v", d.Nodes)
			}
			if d.Mode.Workflow() != "MAP_REDUCE_ADAPTIVE" || !d.Exact {
				t.Errorf("workflow %s, exact %v", d.Mode.Workflow(), d.Exact)
			}
		})
	}
}

// B17: the estimator of inputs decides, and B15: a guess warns.
func TestDirectByTheEstimator(t *testing.T) {
	c := plan.Config{TargetTokenBudget: new(int64(1)), Direct: true}
	text := "eight by"
	for _, test := range []struct {
		estimate token.Estimator
		direct   bool
		warnings []plan.WarningKind
	}{
		{nil, false, []plan.WarningKind{plan.GuessedSize}},
		{func(string) int64 { return 1 }, true, nil},
	} {
		n, from := token.Size(text, token.Unknown, test.estimate)
		d, err := buildDAG(t, c, []plan.Item{{Unit: "a", Tokens: n, Guessed: from == token.Guessed}}, plan.Rates{})
		if err != nil {
			t.Fatal(err)
		}
		var guesses []plan.WarningKind
		for _, k := range kinds(d.Warnings) {
			if k == plan.GuessedSize {
				guesses = append(guesses, k)
			}
		}
		if diff := cmp.Diff(test.warnings, guesses); (d.Nodes[0].Kind == mapreduce.KindDirect) != test.direct || diff != "" {
			t.Errorf("direct is %v; warnings (-want +got):\n%s", !test.direct, diff)
		}
	}
}

// B12: a reduce that leaves out one of its inputs is named, and so is all else
// that is wrong.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(d *plan.DAG)
		want string
	}{
		{"an input left out", func(d *plan.DAG) { d.Nodes[9].Inputs = d.Nodes[9].Inputs[:1] }, `unit "final" leaves out one of its inputs: no unit takes the output of "reduce_L1_1"`},
		{"a name twice", func(d *plan.DAG) { d.Nodes[1].ID = "m0" }, `there are two units "m0"`},
		{"an output taken twice", func(d *plan.DAG) { d.Nodes[8].Inputs[0] = 0 }, `unit "reduce_L1_1" takes the output of "m0", which another one takes`},
		{"itself", func(d *plan.DAG) { d.Nodes[8].Inputs[0] = 8 }, `unit "reduce_L1_1" takes an output of a unit that does not come before it`},
		{"nothing", func(d *plan.DAG) { d.Nodes[8].Inputs = nil }, `unit "reduce_L1_1" takes nothing`},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := build(t, plan.Config{ChunkSize: new(int64(4))}, items(7, 10), plan.Rates{})
			for i := range d.Nodes { // inputs share an array
				d.Nodes[i].Inputs = slices.Clone(d.Nodes[i].Inputs)
			}
			err := d.Check()
			if err != nil {
				t.Fatal(err)
			}
			test.edit(d)
			if err := d.Check(); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// B18: what depends on what failed.
func TestSkipped(t *testing.T) {
	d := build(t, plan.Config{ChunkSize: new(int64(3))}, items(10, 10), plan.Rates{}) // 10, 4, 2, F
	for _, test := range []struct {
		name    string
		failed  []mapreduce.UnitID
		skipped []mapreduce.UnitID
		none    bool
	}{
		{"nothing", nil, nil, false},
		{"a survivor is left", []mapreduce.UnitID{"m0", "m1"}, nil, false},
		{"a group of one", []mapreduce.UnitID{"m9"}, []mapreduce.UnitID{"reduce_L1_3", "reduce_L2_1"}, false},
		{"a reduce", []mapreduce.UnitID{"reduce_L1_3"}, []mapreduce.UnitID{"reduce_L2_1"}, false},
		{"all of a level", []mapreduce.UnitID{"reduce_L2_0", "reduce_L2_1"}, []mapreduce.UnitID{"final"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := d.Skipped(func(i int) bool { return slices.Contains(test.failed, d.Nodes[i].ID) })
			var ids []mapreduce.UnitID
			for _, i := range got {
				ids = append(ids, d.Nodes[i].ID)
			}
			if diff := cmp.Diff(test.skipped, ids); diff != "" || errors.Is(err, errs.Precondition) != test.none {
				t.Errorf("error %v; skipped (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Each item reaches the last unit by one way, whatever the tree (A11: the source
// units of the result are exactly those that were mapped).
func TestEveryItemReachesTheEndOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]plan.Config{
			{ChunkSize: new(rapid.Int64Range(2, 9).Draw(t, "k"))},
			{TargetTokenBudget: new(rapid.Int64Range(1, 300).Draw(t, "budget"))},
			{TargetTokenBudget: new(rapid.Int64Range(1, 300).Draw(t, "budget")), Ordered: true, Direct: true},
			{ReduceContextLimit: new(rapid.Int64Range(1, 300).Draw(t, "limit")), ReduceBatchSize: new(rapid.Int64Range(2, 9).Draw(t, "batch"))},
		}).Draw(t, "config")
		all := items(rapid.IntRange(1, 120).Draw(t, "n"), 0)
		for i := range all {
			all[i].Tokens = rapid.Int64Range(0, 900).Draw(t, "tokens")
		}
		r := plan.Rates{
			Model: true, MapYield: rapid.Float64Range(0.01, 2).Draw(t, "map"), ReduceYield: rapid.Float64Range(0.01, 2).Draw(t, "reduce"),
			Written: rapid.Float64Range(0.5, 3).Draw(t, "written"), Apart: rapid.Bool().Draw(t, "apart"),
		}
		d := build(t, c, all, r)
		ways := make([]int, len(d.Nodes))
		ways[len(ways)-1] = 1
		for i, n := range slices.Backward(d.Nodes) {
			for _, in := range n.Inputs {
				ways[in] += ways[i]
			}
		}
		for i, n := range ways {
			if n != 1 {
				t.Fatalf("%q reaches the end by %d ways", d.Nodes[i].ID, n)
			}
		}
		e := d.Estimate
		if c.TargetTokenBudget != nil && e.Levels > plan.DefaultMaxReduceLevels+1 {
			t.Fatalf("%d levels", e.Levels)
		}
		if e.Low.In > e.Expected.In || e.Expected.In > e.High.In || e.Low.Calls > e.Expected.Calls || e.Expected.Out > e.High.Out {
			t.Fatalf("the estimate is %+v", e)
		}
	})
}

func TestEstimate(t *testing.T) {
	r := plan.Rates{
		Model: true, MapYield: 0.1, ReduceYield: 0.5, InPrice: 3_000_000, OutPrice: 15_000_000,
		CallTime: time.Second, WriteRate: 100, Parallelism: 2,
	}
	c := plan.Config{ChunkSize: new(int64(2)), PromptOverhead: 50, ReservedOutput: 400}
	// Four maps of 1,000 write 100 each; two reduces of 200 come to 100 each, and
	// ask nothing; the final one of 200 writes 100. At most all write 400.
	got := build(t, c, items(4, 1000), r).Estimate
	want := plan.Estimate{
		Maps: 4, Reduces: 3, Levels: 2, Tasks: 7, Parallelism: 2,
		Low:      plan.Spend{Calls: 4, In: 4200, Out: 400, CostMicros: 4200*3 + 400*15},
		Expected: plan.Spend{Calls: 5, In: 4200 + 250, Out: 500, CostMicros: 4450*3 + 500*15},
		High:     plan.Spend{Calls: 5, In: 4200 + 850, Out: 2000, CostMicros: 5050*3 + 2000*15},
		Makespan: 6 * time.Second, // each takes 2 s: 2 + 2 maps, and the final one
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("estimate (-want +got):\n%s", diff)
	}
	r.Answer = 1000 // of which 400 are kept free
	if e := build(t, c, items(4, 1000), r).Estimate; e.High.Out != 5000 {
		t.Errorf("at most calls write %d tokens, want 5 times 1000", e.High.Out)
	}
	r.Answer = 0
	r.Merge = plan.MergeModel
	want.Expected = plan.Spend{Calls: 7, In: 4200 + 3*250, Out: 700, CostMicros: 4950*3 + 700*15}
	want.High = plan.Spend{Calls: 7, In: 4200 + 3*850, Out: 2800, CostMicros: 6750*3 + 2800*15}
	want.Low, want.Makespan = want.Expected, 8*time.Second // two reduces beside each other
	if diff := cmp.Diff(want, build(t, c, items(4, 1000), r).Estimate); diff != "" {
		t.Errorf("estimate of a model that merges all (-want +got):\n%s", diff)
	}
	r.UpperYield = 1 // of the final reduce, and of no other
	want.Expected = plan.Spend{Calls: 7, In: 4200 + 3*250, Out: 800, CostMicros: 4950*3 + 800*15}
	if diff := cmp.Diff(want.Expected, build(t, c, items(4, 1000), r).Estimate.Expected); diff != "" {
		t.Errorf("expected, if reduces of reduces merge nothing (-want +got):\n%s", diff)
	}
	r.Merge = plan.MergeTyped
	if e := build(t, c, items(4, 1000), r).Estimate; e.High.Calls != 4 || e.Makespan != 4*time.Second {
		t.Errorf("rules merge all, in %d calls and %s", e.High.Calls, e.Makespan)
	}
	if e := build(t, c, items(4, 1000), plan.Rates{}).Estimate; e.High != (plan.Spend{}) || e.Makespan != 0 {
		t.Errorf("without a model %+v is spent in %s", e.High, e.Makespan)
	}
}

// A static tree has no barrier: the reduce of what is done begins beside the
// maps that are left.
func TestMakespan(t *testing.T) {
	r := plan.Rates{UnitTime: time.Second, Parallelism: 3, MapYield: 1}
	for _, test := range []struct {
		name   string
		config plan.Config
		want   time.Duration
	}{
		// Maps 0–2, then 3 and the reduce of 0 and 1, then that of 2 and 3, the final.
		{"static", plan.Config{ChunkSize: new(int64(2))}, 4 * time.Second},
		// Maps 0–2, then 3, then both reduces, the final: as long, and with barriers.
		{"adaptive", plan.Config{TargetTokenBudget: new(int64(20))}, 4 * time.Second},
	} {
		if got := build(t, test.config, items(4, 10), r).Estimate.Makespan; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	// Of five maps, two at a time: a barrier idles a slot while the last runs.
	r.Parallelism = 2
	if got := build(t, plan.Config{ChunkSize: new(int64(4))}, items(5, 10), r).Estimate.Makespan; got != 5*time.Second {
		t.Errorf("static: %s", got) // 0 1, 2 3, 4 and a reduce, the other, the final
	}
	if got := build(t, plan.Config{TargetTokenBudget: new(int64(40))}, items(5, 10), r).Estimate.Makespan; got != 5*time.Second {
		t.Errorf("adaptive: %s", got) // 0 1, 2 3, 4, both reduces, the final
	}
}

func TestRecord(t *testing.T) {
	d := build(t, plan.Config{ChunkSize: new(int64(3))}, items(7, 10), plan.Rates{})
	var units []*mapreduce.Unit
	for i := range d.Nodes {
		n := &d.Nodes[i]
		u := &mapreduce.Unit{ID: n.ID, Kind: n.Kind, Level: n.Level, State: mapreduce.UnitComplete, Attempts: 1, CostMicros: 7}
		for _, in := range n.Inputs {
			u.DependsOn = append(u.DependsOn, d.Nodes[in].ID)
		}
		units = append(units, u)
	}
	got, err := plantest.Record(plan.ModeStatic, units)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wiring(d), wiring(got)); diff != "" || got.Check() != nil {
		t.Errorf("%v; inputs (-want +got):\n%s", got.Check(), diff)
	}
	if diff := cmp.Diff(d.Levels, got.Levels); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
	if o := got.Nodes[10].Outcome; o == nil || o.State != mapreduce.UnitComplete || o.CostMicros != 7 {
		t.Errorf("the outcome of the last is %+v", o)
	}
	units[7].DependsOn[0] = "final"
	if _, err := plantest.Record(plan.ModeStatic, units); !errors.Is(err, errs.Invalid) {
		t.Errorf("a unit that depends on a later one gave %v", err)
	}
}

// A plan over 100,000 units costs as much for each as one over 1,000.
func BenchmarkBuild(b *testing.B) {
	for _, c := range []plan.Config{{}, {TargetTokenBudget: new(int64(8000))}} {
		for _, n := range []int{1_000, 100_000} {
			g := graphOf(b, c)
			all := items(n, 20_000)
			b.Run(fmt.Sprintf("%s/%d", g.Tree().Strategy(), n), func(b *testing.B) {
				for b.Loop() {
					if _, err := g.Build(0, all, plan.Rates{Model: true, CallTime: time.Second}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/unit")
			})
		}
	}
}
