package main_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// Separate workers ask the next of several models as one process does: whichever of them meets the first
// away, no unit fails, and each is answered and paid once.
func TestWorkersAskAnotherModel(t *testing.T) {
	testenv.Raced(t)

	r := newRoute(t, fakellm.Config{Model: obedient, Fault: func(fakellm.Call) fakellm.Fault { return fakellm.NoMoney }}, fakellm.Config{Model: obedient}, 8)
	serve := r.start(nil, "serve", "--listen", "127.0.0.1:0", "--workers", "0")
	address := serve.said.await(t, `msg=serving address=(\S+)`)
	var said []*output
	for range 2 {
		w := r.start([]string{"ANTHROPIC_API_KEY=" + modelKey, "OPENAI_API_KEY=sk-" + modelKey[7:]}, "worker", "--server", address, "--slots", "1",
			"--endpoint", "anthropic="+r.url, "--endpoint", "openai="+r.secondURL)
		w.said.await(t, `msg="connected to orchestrator" (\S+)`)
		said = append(said, w.said)
	}
	o := r.try([]string{"ANTHROPIC_API_KEY=", "OPENAI_API_KEY="}, "run", "--server", address, "--input", r.docs, "--schema", r.path("schema.yaml"), "--output", r.path("out"),
		"--merge", "typed", "--model", firstModel+","+secondModel)
	if o.code != 0 || answers(r.second) != 8 {
		t.Fatalf("exit code %d, %d answers\n%s%s", o.code, answers(r.second), o.stdout, o.stderr)
	}
	by := r.answered("out")
	for document, model := range by {
		if model != secondModel {
			t.Errorf("%s was answered by %q, want %s", document, model, secondModel)
		}
	}
	if n := len(r.fake.Entries()); n > 2 || len(by) != 8 {
		t.Errorf("%d units; two workers asked a model without money %d times, want once each at most", len(by), n)
	}
	for _, s := range said {
		if n := strings.Count(s.String(), firstModel+" does not answer ("); n > 1 {
			t.Errorf("a worker says %d times that the first does not answer:\n%s", n, s)
		}
	}
}
