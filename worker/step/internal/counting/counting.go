// Package counting is an example, for tests, of a kind of step: all that it takes to add
// one is a package like this and a call of Add where the process is wired.
package counting

import (
	"context"
	"strconv"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

// Kind is the name of the kind.
const Kind step.Kind = "count"

// Add adds the kind to a registry, for units of a provider. The units of stages with
// its name need it.
func Add(r *step.Registry, provider string) {
	r.AddKind(Kind, func(_ mapreduce.UnitKind, s *agent.StageSpec) bool { return s != nil && s.Name == string(Kind) })
	r.Register(step.Step{Kind: Kind, Provider: provider}, runner{})
}

// A runner counts the bytes of what its units read.
type runner struct{}

// Run implements step.Runner.
func (runner) Run(_ context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	return &agent.Result{Output: strconv.AppendInt(nil, int64(len(task.Text.Content)), 10), Size: 1}, nil
}
