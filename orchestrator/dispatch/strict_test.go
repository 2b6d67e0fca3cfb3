package dispatch_test

import (
	"context"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// lenient runs units of strict jobs as if their jobs were not.
type lenient struct{ agent.Agent }

func (l lenient) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	spec := *task.Spec
	spec.StrictSchema = false
	one := *task
	one.Spec = &spec
	return l.Agent.Run(ctx, &one, calls)
}

// TestStrictSchema: a unit of a strict job fails whose record breaks the schema, whether
// its worker says so, at once, or only the orchestrator, at each attempt.
func TestStrictSchema(t *testing.T) {
	const bill = "type: object\nrequired: [total]\nproperties:\n  total: {type: number, minimum: 0, x-coditect: {labels: [TOTAL]}}\n"
	docs := map[string]string{"good.txt": "TOTAL: 5\n", "lacks.txt": "none\n", "wrong.txt": "TOTAL: -5\n"}
	for name, tt := range map[string]struct {
		agent    agent.Agent
		attempts int
		refused  bool
	}{
		"checked by the worker":       {enginetest.ByRules(), 1, false},
		"checked by the orchestrator": {lenient{enginetest.ByRules()}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := enginetest.NewCluster(t)
			n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
			c.WorkerFor("rules", tt.agent, worker.Config{Slots: 2}, n)
			spec := enginetest.Extracting(t, bill)
			spec.StrictSchema, spec.MaxAttempts = true, 2
			id, got := n.Run(spec, enginetest.Texts(docs, "good.txt", "lacks.txt", "wrong.txt"))
			if len(got.Records) != 1 {
				t.Errorf("%d records, want that of good.txt", len(got.Records))
			}
			units := n.Units(id)
			for unit, want := range map[mapreduce.UnitID]string{"lacks.txt": "total is required", "wrong.txt": "total: -5 breaks minimum"} {
				u := units[unit]
				if u == nil {
					t.Fatalf("there is no unit %s among %v", unit, units)
				}
				text := strings.Join(u.Errors, "\n")
				if u.State != mapreduce.UnitFailed || u.Attempts != tt.attempts || !strings.Contains(text, want) || strings.Contains(text, "refused") != tt.refused {
					t.Errorf("%s is %v after %d attempts: %s", unit, u.State, u.Attempts, text)
				}
			}
		})
	}
}
