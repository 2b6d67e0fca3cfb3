package steps_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/step"
)

const tuned = `name: tuned
stages:
- {name: map, each: document, parameters: {effort: low, stop: ["###"]}}
- {name: reduce, each: group}
`

// A stage's parameters are sent in place of the run's, of which the others stay; what the model is
// known not to take is not sent.
func TestParametersOfAStageAndOfTheRun(t *testing.T) {
	r := newRig(t, "anthropic", fakellm.Config{Model: always(goodAnswer())})
	r.spec.Model, r.spec.Pipeline, r.spec.Definition = "claude-opus-5", "tuned", []byte(tuned)
	r.spec.Vars["effort"], r.spec.Vars["temperature"], r.spec.Vars["max_answer"] = "max", "0", "1000"
	task := r.task(document)
	stage, err := step.Specify(&r.spec, "map")
	if err != nil {
		t.Fatal(err)
	}
	task.StageSpec = stage
	if _, err := r.agent.Run(t.Context(), task, r.purse); err != nil {
		t.Fatal(err)
	}
	body := r.fake.Entries()[0].Body
	for _, part := range []string{`"effort":"low"`, `"stop_sequences":["###"]`, fmt.Sprintf(`"max_tokens":%d`, 1000+4096)} {
		if !bytes.Contains(body, []byte(part)) {
			t.Errorf("%s is missing in %s", part, body)
		}
	}
	if bytes.Contains(body, []byte("temperature")) {
		t.Errorf("a temperature is sent: %s", body)
	}
}

// What a model may think counts in what a call reserves, in the window, and in what a reduce leaves
// free.
func TestThinkingTakesRoom(t *testing.T) {
	r := newRig(t, "openai", fakellm.Config{Model: always(goodAnswer())})
	r.spec.Vars["max_answer"], r.spec.Vars["effort"] = "1000", "medium"
	if _, answer := r.overhead(t); answer != 1000+8192 {
		t.Errorf("a reduce keeps %d tokens free, want %d", answer, 1000+8192)
	}
	r.purse.limit = 8000
	if _, _, err := r.run(t, document); !errors.Is(err, agent.ErrBudget) {
		t.Errorf("error %v, want that of the budget", err)
	}
	r.spec.Vars["window"] = "8000"
	if err := r.bare.Check(&r.spec); err == nil {
		t.Error("a window of 8,000 tokens has room for an answer of 9,192")
	}
	delete(r.spec.Vars, "effort")
	if err := r.bare.Check(&r.spec); err != nil {
		t.Error(err)
	}
	if n := len(r.fake.Entries()); n != 0 {
		t.Errorf("%d calls were made without tokens", n)
	}
}

// A variable that the pipeline has as an input of its own is no parameter.
func TestInputsAreNoParameters(t *testing.T) {
	r := newRig(t, "openai", fakellm.Config{Model: always(goodAnswer())})
	r.spec.Pipeline, r.spec.Vars["seed"] = "sown", "wheat"
	r.spec.Definition = []byte("name: sown\ninputs: {seed: oats}\nstages:\n- {name: map, each: document, agent: {role: 'A farmer of {{input.seed}}.'}, task: Find.}\n- {name: reduce, each: group}\n")
	task := r.task(document)
	var err error
	if task.StageSpec, err = step.Specify(&r.spec, "map"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.agent.Run(t.Context(), task, r.purse); err != nil {
		t.Fatal(err)
	}
	body := r.fake.Entries()[0].Body
	if bytes.Contains(body, []byte(`"seed"`)) || !bytes.Contains(body, []byte("A farmer of wheat.")) {
		t.Errorf("sent %s", body)
	}
}

// Of models that stand for each other, each thinks as it may. Calls keep free what the one takes that
// thinks most, and units are cut for the one that has least room beside that.
func TestRoomOfSeveralModelsIsOfTheOneThatThinksMost(t *testing.T) {
	r := newRig(t, "anthropic", fakellm.Config{Model: always(goodAnswer())})
	r.spec.Model, r.spec.Vars["max_answer"], r.spec.Vars["window"], r.spec.Vars["effort"] = "claude-haiku-4-5", "1000", "100000", "max"
	alone, err := r.bare.Room(&r.spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, answer := r.overhead(t); answer != 1000 {
		t.Errorf("a model that takes no effort keeps %d tokens free, want 1000", answer)
	}

	r.spec.Fallbacks = []string{"anthropic/claude-opus-5"}
	both, err := r.bare.Room(&r.spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, answer := r.overhead(t); answer != 1000+65536 {
		t.Errorf("two models keep %d tokens free, want %d", answer, 1000+65536)
	}
	if want := alone - 65536*4/5; both < want-1 || both > want+1 {
		t.Errorf("a document has room for %d tokens with two models and %d with one, want %d", both, alone, want)
	}
	r.spec.Replay = "mr_20260101_aaaaaa"
	if again, err := r.bare.Room(&r.spec); err != nil || again != both {
		t.Errorf("in a repetition of the job a document has room for %d tokens, want %d as in the job: %v", again, both, err)
	}
	r.spec.Replay = ""
	r.spec.Vars["window"] = "60000"
	if err := r.bare.Check(&r.spec); err == nil {
		t.Error("a window of 60,000 tokens has room for an answer of 66,536")
	}
}

// A unit of a job with a deadline is asked in the tier that its orchestrator names, if its model has that; a
// stage's own tier stays.
func TestTierOfADeadline(t *testing.T) {
	const own = "name: own\nstages:\n- {name: map, each: document, parameters: {tier: flex}}\n- {name: reduce, each: group}\n"
	for _, tt := range []struct{ model, asked, pipeline, sent string }{
		{"gemini-2.5-pro", "flex,standard", "", `"serviceTier":"flex"`},
		{"gemini-2.5-pro", "priority", "", `"serviceTier":"priority"`},
		{"gemini-2.5-pro", "standard", "", ""},
		{"gemini-2.0-flash", "flex,standard", "", ""}, // which it does not have
		{"gemini-2.5-pro", "priority", own, `"serviceTier":"flex"`},
	} {
		t.Run(tt.model+" "+tt.asked+" "+tt.sent, func(t *testing.T) {
			r := newRig(t, "gemini", fakellm.Config{Model: always(goodAnswer())})
			r.spec.Model, r.spec.Deadline = tt.model, time.Now().Add(time.Hour)
			r.spec.Vars["prices"] = "gemini: {gemini-2.5-pro: {input: 0.75, output: 4.50, flex: 50%, priority: 200%}, gemini-2.0-flash: {input: 0.40, output: 1.60}}"
			task := r.task(document)
			task.Tier = tt.asked
			if tt.pipeline != "" {
				r.spec.Pipeline, r.spec.Definition = "own", []byte(tt.pipeline)
				var err error
				if task.StageSpec, err = step.Specify(&r.spec, "map"); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.agent.Run(t.Context(), task, r.purse); err != nil {
				t.Fatal(err)
			}

			body := r.fake.Entries()[0].Body
			if tt.sent == "" && bytes.Contains(body, []byte("serviceTier")) || !bytes.Contains(body, []byte(tt.sent)) {
				t.Errorf("%q is to be sent: %s", tt.sent, body)
			}
		})
	}
}

// A call of a job with a deadline that was to go by batch, and that no batch answers, is made in the tier that the
// orchestrator names for it.
func TestTierOfWhatNoBatchAnswers(t *testing.T) {
	r := newRig(t, "gemini", fakellm.Config{Model: always(goodAnswer())})
	r.spec.Model, r.spec.Deadline = "gemini-2.5-pro", time.Now().Add(time.Hour)
	r.spec.Vars["prices"] = "gemini: {gemini-2.5-pro: {input: 0.75, output: 4.50, flex: 50%}}"
	task := r.task(document)
	task.Tier, task.RealTime = "batch", "flex,standard"

	_, err := r.agent.Run(t.Context(), task, r.purse)
	if _, ok := errors.AsType[*agent.ParkedError](err); !ok {
		t.Fatalf("it does not wait for a batch: %v", err)
	}
	r.purse.reply = &protocol.LineReply{Outcome: protocol.LineErrored, Error: "there are too few calls for a batch"}
	task.Attempt = 2 // which no journal has to tell of the line
	if _, err := r.agent.Run(t.Context(), task, r.purse); err != nil {
		t.Fatal(err)
	}
	if body := r.fake.Entries()[0].Body; !bytes.Contains(body, []byte(`"serviceTier":"flex"`)) {
		t.Errorf("it was not asked in flex: %s", body)
	}
}
