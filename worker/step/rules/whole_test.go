package rules_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/step/rules"
)

const oneOrder = `{"type":"object","properties":{
	"order":{"type":"string","x-coditect":{"labels":["ORDER"]}},
	"last":{"type":"string","x-coditect":{"lines":[-2,-1],"pattern":"[a-zö]+"}},
	"total":{"type":"number","x-coditect":{"labels":["TOTAL"],"pick":"max"}},
	"tags":{"type":"array","items":{"type":"string"},"x-coditect":{"labels":["TAG"]}}}}`

// pieces are the tasks of a document cut at offsets, each with up to around bytes
// of context.
func pieces(source, document string, cuts []int, around int, whole func(context.Context, func(*ground.Text)) error) []*agent.Task {
	sum := sha256.Sum256([]byte(document))
	var tasks []*agent.Task
	for i := range len(cuts) - 1 {
		from, to := max(0, cuts[i]-around), min(len(document), cuts[i+1]+around)
		for ; !utf8.RuneStart(document[from]); from-- {
		}
		for ; to < len(document) && !utf8.RuneStart(document[to]); to++ {
		}
		tasks = append(tasks, &agent.Task{
			Assignment: protocol.Assignment{Unit: mapreduce.ChunkUnit("d", i), Kind: mapreduce.KindMap, Index: int64(i), Text: &protocol.Text{
				Document: "d", SHA256: sum[:], Content: []byte(document[from:to]), CoreStart: cuts[i] - from, CoreEnd: cuts[i+1] - from,
				ByteOffset: int64(from), CharOffset: int64(utf8.RuneCountInString(document[:from])),
				ChunkIndex: i, Chunks: len(cuts) - 1, Length: int64(len(document)),
			}},
			Spec: &mapreduce.JobSpec{Provider: "rules", Schema: []byte(source)}, Whole: whole,
		})
	}
	return tasks
}

// found returns the records that tasks come to, as a result would hold them.
func found(t *rapid.T, s *schema.Schema, a agent.Agent, tasks []*agent.Task) []merge.Result {
	var outs []*output.Output
	for _, task := range tasks {
		res, err := a.Run(context.Background(), task, nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := output.Decode(res.Output)
		if err != nil {
			t.Fatal(err)
		}
		outs = append(outs, out)
	}
	last := output.Reduce(s, outs, nil, true)
	merged := make(map[output.Member]*output.Entry)
	for i := range last.Entries {
		for _, m := range last.Entries[i].Members {
			merged[m] = &last.Entries[i]
		}
	}
	var results []merge.Result
	for _, out := range outs {
		for i := range out.Entries {
			e := &out.Entries[i]
			if m := merged[e.Members[0]]; m != nil {
				if m.Members[0] != e.Members[0] {
					continue
				}
				e = m
			}
			results = append(results, merge.Resolve(s, e.Accumulator))
		}
	}
	return results
}

// TestAnyCutGivesTheSame: however a document is cut, with as little context as one
// likes, what is found in it is the same: values, citations, confidence, and what
// is missing.
func TestAnyCutGivesTheSame(t *testing.T) {
	many := fmt.Sprintf(`{"type":"array","items":%s}`, strings.Replace(oneOrder, `{"type":"object"`, `{"type":"object","required":["order"]`, 1))
	for name, source := range map[string]string{"one record": oneOrder, "many records": many} {
		t.Run(name, func(t *testing.T) {
			s, err := schema.Parse("s", []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(t *rapid.T) {
				lines := rapid.SliceOfN(rapid.SampledFrom([]string{
					"ORDER: A-1", "ORDER: B-2", "TOTAL: 12.50", "TOTAL:\n7.25", "TAG: föhn", "TAG: mild", "", "and öther words", "ORDER:",
				}), 1, 12).Draw(t, "lines")
				document := strings.Join(lines, "\n") + "\n"
				whole := func(_ context.Context, use func(*ground.Text)) error {
					use(ground.New(document))
					return nil
				}
				cuts := []int{0}
				for i := range document {
					if i > 0 && rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
						cuts = append(cuts, i)
					}
				}
				cuts = append(cuts, len(document))
				a := checked.New(rules.New())
				want := found(t, s, a, pieces(source, document, []int{0, len(document)}, 0, nil))
				got := found(t, s, a, pieces(source, document, cuts, rapid.IntRange(0, 9).Draw(t, "context"), whole))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("cut at %v (-whole +cut):\n%s", cuts, diff)
				}
			})
		})
	}
}

// TestTooLongToBeReadWhole: of a document that is too long each chunk is read by
// itself.
func TestTooLongToBeReadWhole(t *testing.T) {
	const document = "ORDER: A-1\nTOTAL: 12.50\n"
	for _, task := range pieces(oneOrder, document, []int{0, len("ORDER: A-1\n"), len(document)}, 0, nil) {
		want, err := rules.New().Run(t.Context(), task, nil)
		if err != nil {
			t.Fatal(err)
		}
		task.Whole = func(context.Context, func(*ground.Text)) error { return fmt.Errorf("d: %w", agent.ErrTooLong) }
		got, err := rules.New().Run(t.Context(), task, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-without +too long):\n%s", task.Unit, diff)
		}
	}
}
