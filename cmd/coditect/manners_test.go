package main_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// refusesUsage is a server that takes no stream_options.
func refusesUsage(c fakellm.Call) *fakellm.Rebuff {
	if !bytes.Contains(c.Body, []byte("stream_options")) {
		return nil
	}
	return &fakellm.Rebuff{Status: 400, Body: `{"error":{"message":"Unknown parameter: stream_options"}}`}
}

// refusals counts the calls that a server would not take.
func refusals(s *fakellm.Server) (n int) {
	for _, e := range s.Entries() {
		if e.Status == 400 {
			n++
		}
	}
	return n
}

// What a server refuses is found out once for the fleet: workers tell each other by their orchestrator,
// a worker that comes later is told, and the store keeps it for the next orchestrator. Only units that
// are under way at the same time may be refused each, as none can wait for what it does not know of.
func TestTheFleetLearnsWhatAServerRefuses(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	s := newStudio(t, fakellm.Config{Model: obedient, Lax: true, Rebuff: refusesUsage})
	s.shops(6)
	serve := func() (*daemon, string) {
		d := s.start(nil, "serve", "--listen", "127.0.0.1:0", "--workers", "0")
		return d, d.said.await(t, `msg=serving address=(\S+)`)
	}
	key := "OPENAI_API_KEY=sk-" + modelKey[7:]
	worker := func(address, slots string) *daemon {
		w := s.start([]string{key}, "worker", "--server", address, "--providers", "openai", "--endpoint", "openai="+s.url, "--slots", slots)
		w.said.await(t, `msg="connected to orchestrator" (\S+)`)
		return w
	}
	ask := func(address, output, model, parallel string) {
		t.Helper()
		before := answers(s.fake)
		o := s.try([]string{"OPENAI_API_KEY="}, "run", "--server", address, "--input", s.docs, "--schema", s.path("schema.yaml"), "--output", s.path(output),
			"--merge", "typed", "--provider", "openai", "--model", model, "--parallelism", parallel)
		if n := answers(s.fake) - before; o.code != 0 || n != 6 {
			t.Fatalf("%s: exit code %d, %d answers\n%s%s", output, o.code, n, o.stdout, o.stderr)
		}
	}

	serving, address := serve()
	one, two := worker(address, "1"), worker(address, "1")
	ask(address, "both", "m", "1")
	if n := refusals(s.fake); n != 1 {
		t.Errorf("two workers: %d refusals, want 1", n)
	}
	const passed = "m: its server refuses, as was learned before: stream_options"
	said := one.said.String() + two.said.String()
	if strings.Count(said, passed) != 1 || strings.Count(said, "it takes no stream_options") != 1 {
		t.Errorf("one worker is to learn it, and the other to be told:\n%s", said)
	}
	if strings.Contains(said, s.url[len("http://"):]+"\" refuses") || strings.Contains(serving.said.String(), modelKey[7:]) {
		t.Errorf("the address or the key is told of:\n%s", said)
	}

	one.stop()
	two.stop()
	later := worker(address, "1")
	ask(address, "later", "m", "2")
	later.stop()
	serving.stop()
	serving, address = serve()
	last := worker(address, "1")
	ask(address, "last", "m", "2")
	if n := refusals(s.fake); n != 1 {
		t.Errorf("with a worker that came later, and an orchestrator: %d refusals, want 1\n%s%s", n, later.said, last.said)
	}

	worker(address, "2")
	ask(address, "other", "n", "3")
	if n := refusals(s.fake) - 1; n < 1 || n > 3 {
		t.Errorf("another model, three units at a time: %d refusals, want 1 to 3", n)
	}
	last.stop()
	serving.stop()
}
