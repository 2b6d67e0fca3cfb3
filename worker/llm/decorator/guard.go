package decorator

import (
	"context"

	"github.com/coditect/mapreduce/worker/llm"
)

// A Caller runs calls under a circuit breaker. agent.Calls is one: see there.
type Caller interface {
	Call(ctx context.Context, name string, call func(ctx context.Context) error) error
	TryCall(ctx context.Context, name string, call func(ctx context.Context) error) error
}

// Guard makes every call under the breaker of its provider and model. Errors
// come back as agents report them, as the breaker judges by their class.
type Guard struct {
	llm.Provider
	Caller Caller

	// Elsewhere says that the call can be made to another model: then it waits for no other call to
	// show whether the breaker can be closed.
	Elsewhere bool
}

// Complete implements Provider.
func (g *Guard) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	run := g.Caller.Call
	if g.Elsewhere {
		run = g.Caller.TryCall
	}

	var res *llm.Response
	err := run(ctx, BreakerName(g.Name(), req.Model), func(ctx context.Context) (err error) {
		res, err = g.Provider.Complete(ctx, req)
		return llm.ForAgent(err)
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// BreakerName is under which name breakers and limits know a model.
func BreakerName(provider string, model llm.Model) string { return provider + "/" + string(model) }
