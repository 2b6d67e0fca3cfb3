package schedule_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// topics is a pipeline with a fan-out in the middle, whose keys are given.
func topics(keys string) string {
	return `
name: topics
stages:
  - name: plan
    each: all
    agent: {role: Planner}
    task: Plan
    output: {kind: items, schema: {type: object, required: [list], properties: {list: {type: array, minItems: 12, maxItems: 12, items: {type: string, minLength: 1}}}}}
  - {name: item, each: plan.list, agent: {role: Expert}, task: Look, output: items` + keys + `}
  - {name: report, each: all, agent: {role: Editor}, task: Write, output: report}
`
}

// A stageGauge counts how many units of each stage run at the same time.
type stageGauge struct {
	agent.Agent
	mu        sync.Mutex
	now, most map[string]int
}

// Run implements agent.Agent.
func (g *stageGauge) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	g.mu.Lock()
	g.now[task.Stage]++
	g.most[task.Stage] = max(g.most[task.Stage], g.now[task.Stage])
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.now[task.Stage]--
	}()
	return g.Agent.Run(ctx, task, calls)
}

// TestAStageRunsNoMoreUnitsThanItSays, on one node and on several that were granted more
// before.
func TestAStageRunsNoMoreUnitsThanItSays(t *testing.T) {
	testenv.Raced(t)

	for _, nodes := range []int{1, 3} {
		enginetest.Virtually(t, func(t *testing.T) {
			c := enginetest.NewCluster(t)
			g := &stageGauge{Agent: &scripted.Agent{}, now: make(map[string]int), most: make(map[string]int)}
			var n *enginetest.Node
			for range nodes {
				n = c.Orchestrator(enginetest.FleetConfig())
				c.Worker(g, worker.Config{Slots: 8}, n)
			}
			enginetest.Pass(t, 10*time.Second)
			spec := enginetest.Script(map[string]string{"script.latency": "100ms"})
			enginetest.Piped(topics(", parallel: 3"))(&spec)
			spec.Schema, spec.Vars, spec.Parallelism = nil, map[string]string{"script.latency": "100ms"}, 24
			id := n.Submit(spec, 5)
			n.WantEnd(id, mapreduce.JobComplete)
			if got := g.most["item"]; got != 3 {
				t.Errorf("on %d nodes %d units of the stage ran at a time, want 3", nodes, got)
			}
		})
	}
}

// TestAStageSaysWhatAFailureMeans: its answer goes before the run's.
func TestAStageSaysWhatAFailureMeans(t *testing.T) {
	for _, tt := range []struct {
		keys string
		run  mapreduce.OnError
		end  mapreduce.JobState
	}{
		{"", mapreduce.Continue, mapreduce.JobComplete},
		{"", mapreduce.FailFast, mapreduce.JobFailed},
		{", on_error: fail-fast", mapreduce.Continue, mapreduce.JobFailed},
		{", on_error: continue", mapreduce.FailFast, mapreduce.JobComplete},
	} {
		c := enginetest.NewCluster(t)
		n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 4, Prefetch: 2}, n)
		spec := enginetest.Script(nil)
		enginetest.Piped(topics(tt.keys))(&spec)
		spec.Schema, spec.OnError, spec.Vars = nil, tt.run, map[string]string{"script.poison.item_3": "permanent"}
		id := n.Submit(spec, 2)
		job := n.WantEnd(id, tt.end)
		if tt.end == mapreduce.JobFailed && !strings.Contains(job.Error, "unit item_3 failed, and the job is to fail fast") {
			t.Errorf("%q with %v: error %q", tt.keys, tt.run, job.Error)
		}
		n.Healthy()
	}
}

// TestAUnitSpendsNoMoreThanItsStageGives: a call that might is not made, and the unit
// fails at once.
func TestAUnitSpendsNoMoreThanItsStageGives(t *testing.T) {
	for _, budget := range []int64{0, 1 << 30} {
		c := enginetest.NewCluster(t)
		n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 4, Prefetch: 2}, n)
		spec := enginetest.Script(nil)
		enginetest.Piped(topics(", limits: {tokens: 250}"))(&spec)
		spec.Schema, spec.Budget = nil, budget
		spec.Vars = map[string]string{"script.calls": "3", "script.tokens_in": "80", "script.tokens_out": "20"}
		id := n.Submit(spec, 2)
		job := n.WantEnd(id, mapreduce.JobFailed)
		if !strings.Contains(job.Error, "limits.tokens of the stage gives a unit 250, and 200 are spent") {
			t.Errorf("error %q", job.Error)
		}
		for _, u := range n.Units(id) {
			if u.Stage == "item" && (u.Attempts != 1 || u.Tokens.Total() != 200) {
				t.Errorf("%s spent %d tokens in %d attempts, want 200 in one", u.ID, u.Tokens.Total(), u.Attempts)
			}
		}
		n.Healthy()
	}
}
