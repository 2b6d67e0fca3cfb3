package step_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

// named is a runner that says its name.
type named string

func (n named) Run(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
	return &agent.Result{Output: []byte(n)}, nil
}

func TestLookup(t *testing.T) {
	r := step.NewRegistry()
	r.Register(step.Step{Kind: step.Parse}, named("anybody's"))
	r.Provide(mapreduce.Provider{Name: "plain"}, step.Table{step.Extract: named("plain")})
	r.Register(step.Step{Kind: step.Write, Provider: "asker"}, named("first"))
	r.Register(step.Step{Kind: step.Write, Provider: "asker"}, named("second"))
	r.Register(step.Step{Kind: step.Parse, Provider: "asker"}, named("its own"))
	for _, tt := range []struct {
		kind     step.Kind
		provider string
		want     string // "" for nobody
	}{
		{step.Parse, "plain", "anybody's"},
		{step.Parse, "nobody", "anybody's"},
		{step.Parse, "asker", "its own"},
		{step.Extract, "plain", "plain"},
		{step.Extract, "asker", ""},
		{step.Write, "asker", "second"},
		{step.Write, "plain", ""},
	} {
		got, ok := r.Lookup(tt.kind, tt.provider)
		if ok != (tt.want != "") || ok && got != named(tt.want) {
			t.Errorf("%s of %s is run by %v, want %q", tt.kind, tt.provider, got, tt.want)
		}
	}
	want := []mapreduce.Provider{
		{Name: "asker", Models: true, Steps: []string{"parse", "write"}},
		{Name: "plain", Steps: []string{"extract", "parse"}},
	}
	if diff := cmp.Diff(want, r.Providers()); diff != "" {
		t.Errorf("providers (-want +got):\n%s", diff)
	}
	if got := r.Kinds("nobody"); got != nil {
		t.Errorf("a provider that is not registered has steps %v", got)
	}
	if p := r.Provider("nobody"); !p.Models || p.Has("parse") {
		t.Errorf("a provider that is not registered is %+v, want one that may ask models and has no steps", p)
	}
	only := r.Only("plain", "nobody")
	if diff := cmp.Diff([]string{"plain"}, only.Names()); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	if _, ok := only.Lookup(step.Parse, "plain"); !ok {
		t.Error("what needs no provider is gone with the others")
	}
}

const stages = `
name: planned
agents: {planner: {role: Planner}}
stages:
  - {name: read, each: chunk, output: records}
  - {name: join, from: read, each: group, output: records}
  - name: plan
    from: join
    each: all
    agent: planner
    task: Plan
    output: {kind: items, schema: {type: object, properties: {sources: {type: array, items: {type: string}}}}}
  - {name: look, each: plan.sources, agent: planner, task: Look, output: {kind: items, schema: {type: object, properties: {found: {type: array, items: {type: string}}}}}}
  - {name: unite, from: look, each: group, merge: typed}
  - {name: table, from: unite, each: all, agent: planner, task: Tabulate, output: table}
  - {name: report, from: table, each: all, agent: planner, task: Report, output: report}
`

func specOf(t *testing.T, file string) *mapreduce.JobSpec {
	t.Helper()
	p, err := pipeline.Parse("p.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return &mapreduce.JobSpec{Pipeline: p.Name, Definition: p.Canonical(), Schema: []byte(`{"type":"object"}`)}
}

func TestStagesNeedSteps(t *testing.T) {
	spec, r := specOf(t, stages), step.NewRegistry()
	for stage, want := range map[string]step.Kind{
		"read": step.Extract, "join": step.Merge, "plan": step.Write, "look": step.Write,
		"unite": step.Merge, "table": step.Write, "report": step.Write,
	} {
		if got, err := r.Needs(spec, stage); got != want || err != nil {
			t.Errorf("stage %s needs %q and error %v, want %q", stage, got, err, want)
		}
	}
	if _, err := r.Needs(spec, "nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("of a stage that there is not: %v", err)
	}
	plan, err := step.Specify(spec, "plan")
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Reads) != 1 || string(plan.Reads[0]) != string(spec.Schema) {
		t.Errorf("what reads records of the job's schema reads %q", plan.Reads)
	}
	for kind, want := range map[mapreduce.UnitKind]step.Kind{
		mapreduce.KindParse: step.Parse, mapreduce.KindMap: step.Extract, mapreduce.KindDirect: step.Extract,
		mapreduce.KindReduce: step.Merge, mapreduce.KindFinal: step.Merge,
	} {
		if got, err := step.KindOf(kind, nil); got != want || err != nil {
			t.Errorf("without stages %v needs %q and error %v, want %q", kind, got, err, want)
		}
	}
	if got, err := step.KindOf(mapreduce.KindParse, plan); got != step.Parse || err != nil {
		t.Errorf("a parse unit needs %q in a stage, error %v", got, err)
	}
	if _, err := step.KindOf(mapreduce.KindMap, &agent.StageSpec{Name: "x", Output: agent.Records}); err == nil {
		t.Error("a stage makes records of values")
	}
}

func TestTable(t *testing.T) {
	table := step.Table{step.Extract: named("e")}.With(func(r step.Runner) step.Runner { return r.(named) + "!" })
	res, err := table.Run(t.Context(), &agent.Task{Assignment: protocol.Assignment{Kind: mapreduce.KindMap}}, nil)
	if err != nil || string(res.Output) != "e!" {
		t.Errorf("got %+v and error %v", res, err)
	}
	for _, kind := range []mapreduce.UnitKind{mapreduce.KindFinal, mapreduce.KindUnknown} {
		_, err = table.Run(t.Context(), &agent.Task{Assignment: protocol.Assignment{Kind: kind}}, nil)
		if class, _ := agent.Classify(err); err == nil || class != protocol.PermanentJob || errors.Is(err, context.Canceled) {
			t.Errorf("%v: error %v of class %v, want one for the job", kind, err, class)
		}
	}
}
