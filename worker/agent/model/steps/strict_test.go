package steps_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// TestStrictAsksAgain: in a strict job the attempt fails whose answer lacks a required
// field, and the next one asks again instead of recalling that answer. One that comes
// after that is answered from the journal.
func TestStrictAsksAgain(t *testing.T) {
	replies := []string{
		answer(map[string]any{"company": say("INDAH GIFT & HOME DECO", "INDAH GIFT & HOME DECO"), "date": []any{}, "total": []any{}}, "date", "total"),
		goodAnswer(),
	}
	asked := 0
	r := newRig(t, "anthropic", fakellm.Config{Model: func(fakellm.Call) fakellm.Reply {
		asked++
		return fakellm.Reply{Text: replies[min(asked, len(replies))-1]}
	}})
	r.spec.StrictSchema = true
	task := r.task(document)
	_, err := r.agent.Run(t.Context(), task, r.purse)
	if class, _ := agent.Classify(err); !errors.Is(err, check.ErrSchema) || class != protocol.Retryable {
		t.Fatalf("the record lacks its total: %v, want an error that may be tried again", err)
	}
	for range 2 {
		r.purse.retry(task)
		res, err := r.agent.Run(t.Context(), task, r.purse)
		if err != nil {
			t.Fatal(err)
		}
		out, err := output.Decode(res.Output)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.resolved(t, out).Values["total"]; got != json.Number("60.3") || asked != 2 {
			t.Errorf("total %v after %d questions, want 60.3 after 2", got, asked)
		}
	}
}
