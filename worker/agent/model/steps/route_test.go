package steps_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/steps"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// newRouteRig returns an agent of Anthropic's models, for whose model one of OpenAI's stands.
func newRouteRig(t *testing.T, first, second fakellm.Config, patience time.Duration) (*rig, *fakellm.Server) {
	t.Helper()
	agents, fakes := make(map[string]*model.Agent), map[string]*fakellm.Server{"anthropic": fakellm.New(first), "openai": fakellm.New(second)}
	for name, fake := range fakes {
		var err error
		agents[name], err = model.New(model.Config{
			Provider: name, Random: func() float64 { return 0 }, FirstElsewhere: patience,
			LLM:    llm.Config{Key: llm.NewKey(testKey), BaseURL: "http://vendor.test", Transport: fake.Transport()},
			Others: func(name string) *model.Agent { return agents[name] },
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	r := rigOn(t, "anthropic", fakes["anthropic"], "http://vendor.test", fakes["anthropic"].Transport())
	r.bare, r.agent = agents["anthropic"], journaled{checked.New(steps.Of(agents["anthropic"]))}
	r.spec.Fallbacks = []string{"openai/m"}
	return r, fakes["openai"]
}

// TestASlowModelIsNotWaitedFor has the first of two models begin late, or fall silent within its answer.
// The other is asked as soon as the first has had its time, and the first only once. Time is virtual.
func TestASlowModelIsNotWaitedFor(t *testing.T) {
	testenv.Raced(t)

	after := func(d time.Duration) func(fakellm.Call) time.Duration {
		return func(fakellm.Call) time.Duration { return d }
	}
	for name, c := range map[string]struct {
		latency  time.Duration // of the first model
		fault    fakellm.Fault // likewise
		patience time.Duration // of the agent; 0 is its default
		want     time.Duration // until the unit has its answer
		answers  int           // of the second model
	}{
		"in time":             {latency: 119 * time.Second, want: 119 * time.Second},
		"late":                {latency: time.Hour, want: 2 * time.Minute, answers: 1},
		"late, as it is set":  {latency: time.Hour, patience: 10 * time.Second, want: 10 * time.Second, answers: 1},
		"silent in an answer": {fault: fakellm.Stall, want: llm.DefaultIdle, answers: 1},
		"late, then silent":   {latency: time.Minute, fault: fakellm.Stall, want: time.Minute + llm.DefaultIdle, answers: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				script := fakellm.Config{Model: always(goodAnswer()), Latency: after(c.latency), Fault: func(fakellm.Call) fakellm.Fault { return c.fault }}
				r, second := newRouteRig(t, script, fakellm.Config{Model: always(goodAnswer())}, c.patience)
				start := time.Now()
				out, _, err := r.run(t, document)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took < c.want || took > c.want+time.Second {
					t.Errorf("the unit took %v, want %v", took, c.want)
				}
				if got := r.resolved(t, out).Values["company"]; got != "INDAH GIFT & HOME DECO" {
					t.Errorf("the company is %v", got)
				}
				if n, others := len(r.fake.Entries()), len(second.Entries()); n != 1 || others != c.answers {
					t.Errorf("the models were asked %d and %d times, want 1 and %d", n, others, c.answers)
				}
			})
		})
	}
}

// TestTheLastModelIsWaitedFor has a model begin late that no other stands for: where both are slow, the
// second has the time of one that is alone.
func TestTheLastModelIsWaitedFor(t *testing.T) {
	testenv.Raced(t)

	synctest.Test(t, func(t *testing.T) {
		slow := fakellm.Config{Model: always(goodAnswer()), Latency: func(fakellm.Call) time.Duration { return 9 * time.Minute }}
		r, second := newRouteRig(t, slow, slow, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := r.agent.Run(ctx, r.task(document), r.purse); err != nil {
			t.Fatal(err)
		}
		if n, others := len(r.fake.Entries()), len(second.Entries()); n != 1 || others != 1 {
			t.Errorf("the models were asked %d and %d times, want 1 each", n, others)
		}
	})
}
