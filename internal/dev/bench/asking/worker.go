package asking

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/agent/loop"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/steps"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/tool/toolbox"
)

// An askerOrder makes a process a worker whose units ask a model.
type askerOrder struct {
	Server, Model string        // where they are
	Slots         int           // units at once
	Prefetch      int           // units held beside
	Idle          time.Duration // after which an answer is given up of which nothing comes
	Unlimited     bool          // it keeps to no limits of the model
	Look          time.Duration // that its tool takes; 0 if it has none
}

// A greeting is what a worker says when it is connected.
type greeting struct{ Connected bool }

// asked is the provider of units that ask a model: one whose answers state its limits.
const asked = "anthropic"

func (o *askerOrder) runAsker(ctx context.Context, out *json.Encoder) error {
	c, err := client.Dial(o.Server, client.Config{})
	if err != nil {
		return err
	}
	defer c.Close()

	config := worker.Config{Slots: o.Slots, Prefetch: o.Prefetch, DrainTimeout: time.Second}
	gates := decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{} })
	limited := func(p llm.Provider, count func(*llm.Request) int64) llm.Provider {
		return &decorator.Limit{Provider: p, Gates: gates, Count: count}
	}
	if o.Unlimited {
		limited = nil
	} else {
		config.Limits = gates
	}

	asker, err := model.New(model.Config{
		Provider: asked, Random: rand.Float64, Limited: limited,
		LLM: llm.Config{Key: llm.NewKey("of-a-figure"), BaseURL: o.Model, Idle: o.Idle, SendTrace: o.Look > 0},
	})
	if err != nil {
		return err
	}
	config.Steps = step.Serving(asked, checked.New(steps.Of(asker)))

	if o.Look > 0 {
		box, err := toolbox.New(nil, lookKit{o.Look})
		if err != nil {
			return err
		}
		agents := checked.New(loop.New(asker, func() *toolbox.Box { return box }))
		config.Steps, config.Tools = step.NewRegistry(), box.Offers()
		config.Steps.Provide(mapreduce.Provider{Name: asked, Models: true}, step.Table{step.Agent: agents, step.Write: checked.New(steps.Of(asker))})
	}

	greet := func() error { return out.Encode(greeting{Connected: true}) }
	config.Connect = []worker.Connect{func(ctx context.Context) (worker.Stream, error) {
		stream, err := c.Connect(ctx)
		if err != nil {
			return nil, err
		}
		// Only the first connection is news; rig.Greeted takes nil for no function.
		once := greet
		greet = nil
		return &rig.Greeted{WorkerStream: stream, Greet: once}, nil
	}}

	w, err := worker.New(config)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// An askerProcesses is some workers whose units ask a model.
type askerProcesses struct {
	order   askerOrder
	workers []*rig.Child // the oldest first
}

// startWorker starts a worker and waits until it is connected.
func (a *askerProcesses) startWorker(ctx context.Context, slots int) error {
	o := a.order
	o.Slots = slots
	c, err := rig.StartChild(ctx, Order{Asker: &o})
	if err != nil {
		return err
	}
	a.workers = append(a.workers, c)
	var g greeting
	return c.Out.Decode(&g)
}

// killOldest kills the oldest worker.
func (a *askerProcesses) killOldest() error {
	oldest := a.workers[0]
	a.workers = a.workers[1:]
	if err := oldest.Cmd.Process.Kill(); err != nil {
		return err
	}
	_ = oldest.Cmd.Wait() // that it was killed is no news
	return nil
}

// killAll kills those that are left.
func (a *askerProcesses) killAll() error {
	var errs []error
	for len(a.workers) > 0 {
		if err := a.killOldest(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
