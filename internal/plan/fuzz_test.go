package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/plan"
)

// FuzzGraph takes any bytes for the pipeline of a job of a few documents. What is taken is
// planned the same from its canonical form, every unit's output is taken once, and the
// levels are not many more than the documents and the stages can need.
func FuzzGraph(f *testing.F) {
	for i, text := range []string{
		extract, direct,
		strings.Replace(extract, "each: group", "each: group, strategy: adaptive, target_token_budget: 20", 1),
		strings.Replace(extract, "each: group", "each: group, strategy: static, chunk_size: 2", 1),
		strings.Replace(extract, "each: chunk", "each: document", 1),
		"name: mine\nstages: [{name: all, each: all, output: items}, {name: one, each: all.items, output: items}, {name: end, each: all, from: one}]",
	} {
		f.Add([]byte(text), uint8(i*5), uint16(100))
	}
	for _, info := range pipeline.Presets() {
		data, err := pipeline.PresetFile(info.Name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(strings.Replace(string(data), "name: "+info.Name, "name: mine", 1)), uint8(9), uint16(3000))
	}
	f.Fuzz(func(t *testing.T, data []byte, documents uint8, tokens uint16) {
		p, err := pipeline.Parse("f.yaml", data)
		if err != nil {
			return
		}
		all := items(1+int(documents)%40, int64(tokens))
		d, err := planOf(p, all)
		if err != nil {
			if _, ok := errors.AsType[*errs.Error](err); !ok {
				t.Fatalf("an error that names no field: %v", err)
			}
			return
		}
		if err := d.Check(); err != nil {
			t.Error(err)
		}
		if most := len(p.Stages) * (len(all) + 20); len(d.Levels) > most {
			t.Errorf("%d levels for %d documents and %d stages", len(d.Levels), len(all), len(p.Stages))
		}
		again, err := pipeline.Parse("f.yaml", p.Canonical())
		if err != nil {
			t.Fatalf("the canonical form is refused: %v", err)
		}
		same, err := planOf(again, all)
		if err != nil {
			t.Fatalf("the canonical form is not planned: %v", err)
		}
		if diff := cmp.Diff(d.Plan(), same.Plan()); diff != "" {
			t.Errorf("the canonical form is planned otherwise (-first +again):\n%s", diff)
		}
	})
}

// planOf plans a job of a pipeline, which asks for nothing besides.
func planOf(p *pipeline.Pipeline, all []plan.Item) (*plan.DAG, error) {
	g, err := plan.NewGraph(p, plan.Config{})
	if err != nil {
		return nil, err
	}
	stage, err := g.DocumentStage(int64(len(all)), int64(len(all))*all[0].Tokens)
	if err != nil {
		return nil, err
	}
	return g.Build(stage, all, plan.Rates{})
}
