package steps_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// overhead returns what calls take beside what they read.
func (r *rig) overhead(t *testing.T) (prompt, answer int64) {
	t.Helper()
	prompt, answer, err := r.bare.Overhead(&r.spec)
	if err != nil {
		t.Fatal(err)
	}
	return prompt, answer
}

// TestOverhead: a job's reduces take a prompt and an answer of the budget if they
// ask a model, whichever of their prompts is the longest.
func TestOverhead(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai", "ollama"} {
		t.Run(provider, func(t *testing.T) {
			r := newRig(t, provider, fakellm.Config{})
			r.spec.Vars["max_answer"] = "3000"
			merging, answer := r.overhead(t)
			if merging < 200 || answer != 3000 {
				t.Errorf("reduces take %d and %d", merging, answer)
			}
			r.spec.Vars["merge"] = "typed"
			if prompt, answer := r.overhead(t); prompt != 0 || answer != 0 {
				t.Errorf("reduces that ask nothing take %d and %d", prompt, answer)
			}
			r.audited(t, cashiers)
			r.spec.TargetTokenBudget = new(int64(10_000))
			r.spec.Vars = map[string]string{"office": "Ipoh", "merge": "typed"}
			direct, _ := r.overhead(t)
			r.spec.Vars["merge"] = "model"
			if both, _ := r.overhead(t); direct <= merging || both != direct {
				t.Errorf("a direct unit takes %d, with reduces it is %d, and these alone take %d", direct, both, merging)
			}
			r.spec.Schema = nil
			if _, _, err := r.bare.Overhead(&r.spec); err == nil {
				t.Error("a job without a schema takes something")
			}
		})
	}
}

// TestCallsOfReducesKeepToTheBudget: a call's whole prompt and what is kept free
// for its answer are no more than the budget that the job asked for; with a fold,
// also what it carries.
func TestCallsOfReducesKeepToTheBudget(t *testing.T) {
	for _, fold := range []bool{true, false} {
		t.Run(fmt.Sprintf("fold %t", fold), func(t *testing.T) {
			counter := token.New()
			var whole []int64
			c := &chronicler{}
			r := newRig(t, "anthropic", fakellm.Config{Model: func(call fakellm.Call) fakellm.Reply {
				reduces := strings.Contains(call.Turns[0].Text, "QUESTION 1")
				if reduces {
					whole = append(whole, int64(counter.Count(call.System)+counter.Count(string(call.Schema))+counter.Count(call.Prompt())))
				}
				if reduces && !fold {
					return fakellm.Reply{Text: `{"answers":[{"question":1,"option":1,"text":"","same":false,"refs":[],"confidence":0.5,"reason":""}]}`}
				}
				return c.reply(call)
			}})
			task := r.folding(t, 40)
			if !fold {
				r.audited(t, strings.Replace(chronicle, ", fold: true", "", 1))
			}
			budget := int64(2400)
			r.keepTo(t, budget)
			if _, err := r.agent.Run(t.Context(), task, r.purse); err != nil {
				t.Fatal(err)
			}
			reserved := *r.spec.ReservedOutput
			if len(whole) < 3 || slices.Max(whole)+reserved > budget {
				t.Errorf("prompts have %v tokens, and %d are kept free; want several within %d", whole, reserved, budget)
			}
		})
	}
}

// keepTo gives a job a budget, and takes off it what an orchestrator would.
func (r *rig) keepTo(t *testing.T, budget int64) {
	t.Helper()
	r.spec.TargetTokenBudget, r.spec.Strategy = &budget, mapreduce.StrategyAdaptive
	prompt, answer := r.overhead(t)
	r.spec.PromptOverhead, r.spec.ReservedOutput = &prompt, new(plan.Reserve(budget, answer))
}
