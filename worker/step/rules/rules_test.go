package rules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/schema/pattern"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/step/rules"
)

const orders = `{"title":"order","type":"object","properties":{
	"order":{"type":"string","x-coditect":{"labels":["ORDER"]}},
	"total":{"type":"number","x-coditect":{"labels":["TOTAL"]}}}}`

func run(t *testing.T, schema string, a protocol.Assignment) (*agent.Result, error) {
	t.Helper()
	task := &agent.Task{Assignment: a, Spec: &mapreduce.JobSpec{Provider: "rules", Schema: []byte(schema)}}
	return rules.New().Run(context.Background(), task, nil)
}

// chunk is the second of two chunks of a document, of which before bytes are
// context.
func chunk(content string, before int) protocol.Assignment {
	return protocol.Assignment{
		Unit: "d_chunk_1", Kind: mapreduce.KindMap, Index: 1,
		Text: &protocol.Text{
			Document: "d", SHA256: make([]byte, 32), Content: []byte(content), CoreStart: before, CoreEnd: len(content),
			ByteOffset: 1000, CharOffset: 900, ChunkIndex: 1, Chunks: 2,
		},
	}
}

func TestCitationsAreOfTheDocument(t *testing.T) {
	context := "ORDER: A-1 für Köln\n"
	res, err := run(t, orders, chunk(context+"TOTAL: 12.50\n", len(context)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := output.Decode(res.Output)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Citations) != 1 {
		t.Fatalf("%d citations, want that of the total: the order is in another chunk's core", len(out.Citations))
	}
	for _, c := range out.Citations {
		at := int64(strings.Index(context+"TOTAL: 12.50\n", "12.50"))
		if c.Quote != "12.50" || c.ByteStart != 1000+at || c.Start != 900+at-2 || c.Document != "d" || c.Unit != "d_chunk_1" || c.Grade != "exact" {
			t.Errorf("citation %+v, want byte %d and character %d", c, 1000+at, 900+at-2)
		}
	}
}

// TestOverWhenItsTimeIs: the largest pattern that a schema may have, on a text on
// which it would run for hours, ends when the attempt does, be the text a chunk or
// a whole document.
func TestOverWhenItsTimeIs(t *testing.T) {
	slow := `{"properties":{"a":{"type":"string","x-coditect":{"pattern":"` + strings.Repeat("a?", 4999) + `$"}}}}`
	text := strings.Repeat("a", 8<<20)
	whole := func(_ context.Context, use func(*ground.Text)) error {
		use(ground.New(text))
		return nil
	}
	for name, task := range map[string]*agent.Task{
		"chunk": {Assignment: chunk(text, 0)},
		"whole": {Assignment: chunk(text[:100], 0), Whole: whole},
	} {
		t.Run(name, func(t *testing.T) {
			task.Spec = &mapreduce.JobSpec{Provider: "rules", Schema: []byte(slow)}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := rules.New().Run(ctx, task, nil)
			if d := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || d > 30*time.Second {
				t.Errorf("Run = %v after %v; want the deadline's error at once", err, d)
			}
		})
	}
}

// TestTextTooLongForItsPattern: that it would take too long is known before.
func TestTextTooLongForItsPattern(t *testing.T) {
	large := `{"properties":{"a":{"type":"string","x-coditect":{"pattern":"` + strings.Repeat("a?", 4999) + `$"}}}}`
	_, err := run(t, large, chunk(strings.Repeat("b", pattern.MaxWork/9998+1), 0))
	if class, _ := agent.Classify(err); class != protocol.PermanentUnit || !strings.Contains(fmt.Sprint(err), "too large for") {
		t.Errorf("Run = %v of class %v; want a permanent failure of the unit", err, class)
	}
}

func TestEqualUnitsHaveEqualOutputs(t *testing.T) {
	a, err := run(t, orders, chunk("TOTAL: 1 ORDER: X\n", 0))
	if err != nil {
		t.Fatal(err)
	}
	b, err := run(t, orders, chunk("TOTAL: 1 ORDER: X\n", 0))
	if err != nil || string(a.Output) != string(b.Output) || a.Size != b.Size {
		t.Errorf("two runs differ: %v", err)
	}
}

func TestFailuresAreClassified(t *testing.T) {
	for _, tt := range []struct {
		name   string
		schema string
		a      protocol.Assignment
		want   protocol.FailureClass
	}{
		{"a schema that is none", `{"type":"nonsense"}`, chunk("x", 0), protocol.PermanentJob},
		{"an input that is no output", orders, protocol.Assignment{Kind: mapreduce.KindFinal, Inputs: []protocol.Input{{
			Unit: "d", Data: []byte("\xff\xff"),
		}}}, protocol.PermanentUnit},
		{"a kind it does not know", orders, protocol.Assignment{Kind: mapreduce.KindDirect + 1}, protocol.PermanentJob},
		{"a direct unit without documents", orders, protocol.Assignment{Kind: mapreduce.KindDirect}, protocol.PermanentUnit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := run(t, tt.schema, tt.a)
			if err == nil {
				t.Fatal("no error")
			}
			if got, _ := agent.Classify(err); got != tt.want {
				t.Errorf("%v is of class %v, want %v", err, got, tt.want)
			}
		})
	}
}

// TestMergesValues: what has a form and no records is merged by it, and refused if
// it does not fit then.
func TestMergesValues(t *testing.T) {
	group := func(schema string, values ...string) (*agent.Result, error) {
		task := &agent.Task{
			Spec:       &mapreduce.JobSpec{},
			StageSpec:  &agent.StageSpec{Name: "s", Output: agent.Items, Group: true, Schema: []byte(schema)},
			Assignment: protocol.Assignment{Unit: "s_L1_0", Kind: mapreduce.KindReduce, Stage: "s"},
		}
		for _, v := range values {
			data, err := (&output.Output{Value: []byte(v)}).Encode()
			if err != nil {
				t.Fatal(err)
			}
			task.Inputs = append(task.Inputs, protocol.Input{Unit: "in", Data: data})
		}
		task.Inputs = append(task.Inputs, protocol.Input{Unit: "gone", Failed: true})
		return checked.New(rules.New()).Run(t.Context(), task, nil)
	}
	res, err := group(`{"type":"object"}`, `{"l":[1,2]}`, `{"l":[2,3],"x":"y"}`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := output.Decode(res.Output)
	if want := `{"l":[1,2,3],"x":"y"}`; err != nil || string(out.Value) != want || res.Text != want+"\n" {
		t.Errorf("value %s of text %q and error %v, want %s", out.Value, res.Text, err, want)
	}
	_, err = group(`{"properties":{"l":{"maxItems":2}}}`, `{"l":[1,2]}`, `{"l":[2,3]}`)
	if class, _ := agent.Classify(err); !errors.Is(err, jsonvalue.ErrForm) || class != protocol.PermanentUnit {
		t.Errorf("a list that is too long: %v", err)
	}
}

func TestCancelledBeforeItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for kind, run := range rules.New() {
		if _, err := run.Run(ctx, &agent.Task{}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", kind, err)
		}
	}
}

// TestASummaryRepeatsNothing: what a report of one finding says stands in it once, though several parts have it.
func TestASummaryRepeatsNothing(t *testing.T) {
	const one, two = "Lines are found [REF_0badcafe].", "Cells are found [REF_0badcafe]."
	for _, tt := range []struct {
		parts []string
		want  string
	}{
		{[]string{one, "", one}, one},
		{[]string{"Nothing answers it; what is nearest to it:\n\n" + one, "", one}, "Nothing answers it; what is nearest to it:\n\n" + one},
		{[]string{one, "", two}, one + "\n\n" + two},
		{[]string{"", "", ""}, ""},
	} {
		if got := rules.JoinDistinct(tt.parts...); got != tt.want {
			t.Errorf("%q come to %q, want %q", tt.parts, got, tt.want)
		}
	}
}
