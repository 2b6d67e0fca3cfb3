package lifecycle_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// fiveStages is a pipeline that has no preset's shape.
const fiveStages = `
name: survey
stages:
  - name: plan
    each: all
    agent: {role: Planner}
    task: Say which topics the documents have.
    output:
      kind: items
      schema:
        type: object
        required: [topics]
        properties:
          topics: {type: array, minItems: 7, maxItems: 7, items: {type: object, required: [name], properties: {name: {type: string, minLength: 1}}}}
  - name: item
    each: plan.topics
    agent: {role: "Expert of {{item.name}}"}
    task: Say what the topic is about.
    output:
      kind: items
      schema:
        type: object
        required: [themes]
        properties:
          themes: {type: array, minItems: 1, maxItems: 2, items: {type: string, minLength: 1}}
  - name: group
    each: group
    merge: typed
    chunk_size: 3
    strategy: static
  - name: theme
    each: group.themes
    agent: {role: Writer}
    task: Write a paragraph on the theme.
    output: {kind: items, schema: {type: object, required: [text], properties: {text: {type: string, minLength: 1}}}}
  - name: report
    each: all
    agent: {role: Editor}
    task: Write the report.
    output: report
`

// surveyed returns a spec with the pipeline of five stages.
func surveyed(t testing.TB, vars map[string]string) mapreduce.JobSpec {
	t.Helper()
	p, err := pipeline.Parse("survey.yaml", []byte(fiveStages))
	if err != nil {
		t.Fatal(err)
	}
	spec := enginetest.Script(vars)
	spec.Schema, spec.Pipeline, spec.Definition = nil, p.Name, p.Canonical()
	return spec
}

// recordsOf returns the records of a job's result.
func recordsOf(n *enginetest.Node, id mapreduce.JobID) (records []string) {
	n.T.Helper()
	err := n.GetResult(n.T.Context(), id, false, func(p *mapreduce.ResultPart) error {
		if p.Record != nil {
			records = append(records, string(p.Record))
		}
		return nil
	})
	if err != nil {
		n.T.Fatal(err)
	}
	return records
}

// A pipeline that nobody foresaw runs stage by stage: from the plan a unit for each
// topic, of these a tree, from its list a unit for each theme, of these a report.
func TestStagesOfAnyPipeline(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 4, Prefetch: 2}, n)
	id := n.Submit(surveyed(t, nil), 5)
	n.WantEnd(id, mapreduce.JobComplete)

	stages := make(map[string]int)
	units := n.Units(id)
	for _, u := range units {
		stages[u.Stage]++
	}
	themes := stages["theme"]
	if diff := cmp.Diff(map[string]int{"plan": 1, "item": 7, "group": 3 + 1, "theme": themes, "report": 1}, stages); diff != "" || themes == 0 {
		t.Errorf("units by stage (-want +got):\n%s", diff)
	}
	for _, name := range []mapreduce.UnitID{"plan", "item_0", "item_6", "group_L1_0", "group_L1_2", "group", "theme_0", "report"} {
		if units[name] == nil {
			t.Errorf("there is no unit %s; there are %v", name, slices.Sorted(maps.Keys(units)))
		}
	}
	records := recordsOf(n, id)
	var text string
	if len(records) != 1 || json.Unmarshal([]byte(records[0]), &text) != nil || text == "" {
		t.Errorf("the result is %q, want one text", records)
	}
	n.Healthy()

	again := n.Submit(surveyed(t, nil), 5)
	n.WantEnd(again, mapreduce.JobComplete)
	if diff := cmp.Diff(records, recordsOf(n, again)); diff != "" {
		t.Errorf("the same job came to another result:\n%s", diff)
	}
}

// What is above a failed unit is planned again when the job is resumed, and no
// more: finished stages below it are kept.
func TestResumeInTheMiddleOfStages(t *testing.T) {
	for _, unit := range []string{"item_3", "group_L1_1", "theme_0", "report"} {
		t.Run(unit, func(t *testing.T) {
			c := enginetest.NewCluster(t)
			n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
			a := &scripted.Agent{}
			healed := c.Worker(a, worker.Config{Slots: 4, Prefetch: 2}, n)
			whole := n.Submit(surveyed(t, nil), 5)
			n.WantEnd(whole, mapreduce.JobComplete)
			healed()

			stop := c.Worker(&scripted.Agent{}, worker.Config{Slots: 4, Prefetch: 2}, n)
			spec := surveyed(t, map[string]string{"script.poison." + unit: "permanent"})
			spec.OnError = mapreduce.FailFast
			id := n.Submit(spec, 5)
			n.WantEnd(id, mapreduce.JobFailed)
			before := n.Units(id)
			stop()
			c.Worker(enginetest.Heal{Agent: &scripted.Agent{}}, worker.Config{Slots: 4, Prefetch: 2}, n)
			if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
				t.Fatal(err)
			}
			n.WantEnd(id, mapreduce.JobComplete)
			if diff := cmp.Diff(recordsOf(n, whole), recordsOf(n, id)); diff != "" {
				t.Errorf("resumed, the result is another (-want +got):\n%s", diff)
			}
			for name, u := range n.Units(id) {
				if was := before[name]; was != nil && was.State == mapreduce.UnitComplete && u.Attempts != was.Attempts {
					t.Errorf("unit %s had ended after %d attempts, and has had %d", name, was.Attempts, u.Attempts)
				}
			}
			n.Healthy()
		})
	}
}

// A stage whose inputs turn out not to be there ends the job with the reason, and a
// condition skips it.
func TestStagesWithNothingToWorkOn(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 4, Prefetch: 2}, n)
	run := func(text string) *mapreduce.Job {
		t.Helper()
		p, err := pipeline.Parse("survey.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		spec := surveyed(t, nil)
		spec.Definition = p.Canonical()
		return n.End(n.Submit(spec, 2))
	}
	none := strings.NewReplacer("minItems: 7, maxItems: 7", "minItems: 0, maxItems: 0").Replace(fiveStages)
	if job := run(none); job.State != mapreduce.JobFailed || !strings.Contains(job.Error, "stage item has nothing to work on") {
		t.Errorf("the job is %s: %s", job.State, job.Error)
	}
	skipped := strings.Replace(none, "    each: plan.topics\n", "    each: plan.topics\n    when: count > 0\n", 1)
	job := run(skipped)
	if job.State != mapreduce.JobComplete || job.TotalUnits != 1 {
		t.Errorf("the job is %s with %d units: %s; want it to end with its plan", job.State, job.TotalUnits, job.Error)
	}
	if records := recordsOf(n, job.ID); len(records) != 1 || records[0] != `{"topics":[]}` {
		t.Errorf("the result is %q, want the plan", records)
	}
}

// A document whose id is that of a unit of a stage is given another, so that the
// stage does not write over the document's unit.
func TestDocumentsNamedLikeUnitsOfStages(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 4, Prefetch: 2}, n)
	p, err := pipeline.Parse("items.yaml", []byte(`
name: items
stages:
  - name: map
    each: document
    agent: {role: Reader}
    task: Say what the document is about.
    output: {kind: items, schema: {type: object, required: [topics], properties: {topics: {type: array, minItems: 2, maxItems: 2, items: {type: string, minLength: 1}}}}}
  - name: item
    each: map.topics
    agent: {role: Writer}
    task: Write about the topic.
    output: {kind: items, schema: {type: object, required: [text], properties: {text: {type: string, minLength: 1}}}}
  - {name: report, each: all, agent: {role: Editor}, task: Write the report., output: report}
`))
	if err != nil {
		t.Fatal(err)
	}
	spec := surveyed(t, nil)
	spec.Pipeline, spec.Definition = p.Name, p.Canonical()
	docs := enginetest.These(
		&mapreduce.Document{ID: "item_0", Content: []byte("one")}, &mapreduce.Document{ID: "report", Content: []byte("two")},
		&mapreduce.Document{ID: "item", Content: []byte("three")}, &mapreduce.Document{ID: "map_1", Content: []byte("four")},
	)
	job, err := n.SubmitJob(t.Context(), spec, docs)
	if err != nil {
		t.Fatal(err)
	}
	n.WantEnd(job.ID, mapreduce.JobComplete)
	stages := make(map[mapreduce.UnitID]string)
	for id, u := range n.Units(job.ID) {
		stages[id] = u.Stage
	}
	want := map[mapreduce.UnitID]string{"%69tem_0": "map", "%72eport": "map", "%69tem": "map", "map_1": "map", "item_0": "item", "item_7": "item", "report": "report"}
	for id, stage := range want {
		if stages[id] != stage {
			t.Errorf("unit %s is of stage %q, want %q; there are %v", id, stages[id], stage, slices.Sorted(maps.Keys(stages)))
		}
	}
	if len(stages) != 4+8+1 {
		t.Errorf("there are %d units, want 4 documents, 8 topics and a report", len(stages))
	}
	n.Healthy()
}
