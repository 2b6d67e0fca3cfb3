package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// TestParameters: parameters of answers go to the model, are shown, and keep the answers that they
// brought apart from others.
func TestParameters(t *testing.T) {
	s := newStudio(t, fakellm.Config{Model: obedient, Key: modelKey})
	s.shops(3)
	seen := 0
	run := func(name string, fresh int, more ...string) outcome {
		t.Helper()
		o := s.ask(name, append([]string{"--model", "claude-opus-5", "--merge", "typed", "--cache"}, more...)...)
		if n := len(s.fake.Entries()) - seen; o.code != 0 || n != fresh {
			t.Fatalf("%s: exit code %d after %d calls, want %d\n%s%s", name, o.code, n, fresh, o.stdout, o.stderr)
		}
		seen = len(s.fake.Entries())
		return o
	}
	run("plain", 3)
	run("low", 3, "--effort", "low", "--stop", "###", "--stop", "---")
	body := s.fake.Entries()[seen-1].Body
	for _, part := range []string{`"effort":"low"`, `"thinking":{"type":"adaptive"}`, `"stop_sequences":["###","---"]`, `"max_tokens":12288`} {
		if !bytes.Contains(body, []byte(part)) {
			t.Errorf("%s is missing in %s", part, body)
		}
	}
	run("high", 3, "--effort", "high")
	run("low again", 0, "--effort", "low", "--stop", "###", "--stop", "---")
	run("plain again", 0)

	var metrics struct {
		Job struct {
			ID         string `json:"job_id"`
			Parameters map[string]any
		}
	}
	raw, err := os.ReadFile(s.path("high/metrics.json"))
	if err != nil || json.Unmarshal(raw, &metrics) != nil || metrics.Job.Parameters["effort"] != "high" {
		t.Errorf("%v; metrics.json has %v", err, metrics.Job.Parameters)
	}
	if raw, err := os.ReadFile(s.path("high/trace.json")); err != nil || !bytes.Contains(raw, []byte(`"parameters":`)) {
		t.Errorf("trace.json does not have the parameters: %v", err)
	}
	if raw, err := os.ReadFile(s.path("high/report.html")); err != nil || !bytes.Contains(raw, []byte("effort high")) {
		t.Errorf("report.html does not say the parameters: %v", err)
	}
	if o := s.try(nil, "status", "--job-id", metrics.Job.ID); !strings.Contains(o.stdout, "parameters  effort high\n") {
		t.Errorf("status does not say the parameters:\n%s", o.stdout)
	}
	if raw, err := os.ReadFile(s.path("plain/metrics.json")); err != nil || bytes.Contains(raw, []byte("parameters")) {
		t.Errorf("metrics.json of a job without parameters: %v, %s", err, raw)
	}
}

// TestMendedAnswersAreCounted: what was mended in answers of models is counted by kind, and stands with
// each unit.
func TestMendedAnswersAreCounted(t *testing.T) {
	s := newStudio(t, fakellm.Config{Key: modelKey, Model: func(c fakellm.Call) fakellm.Reply {
		r := obedient(c)
		if documentOf(c) != "0.txt" {
			r.Text = "Here it is:\n```json\n" + r.Text + "\n```"
		}
		if documentOf(c) == "2.txt" {
			r.Text = strings.Replace(r.Text, "}\n```", ",}\n```", 1)
		}
		return r
	}})
	s.shops(3)
	if o := s.ask("out", "--merge", "typed"); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	var metrics struct {
		Mended map[string]int `json:"mended_answers"`
	}
	read := func(name string, to any) {
		t.Helper()
		raw, err := os.ReadFile(s.path("out/" + name))
		if err != nil || json.Unmarshal(raw, to) != nil {
			t.Fatalf("%s: %v\n%s", name, err, raw)
		}
	}
	read("metrics.json", &metrics)
	if diff := cmp.Diff(map[string]int{"fence": 2, "prose": 2, "comma": 1}, metrics.Mended); diff != "" {
		t.Errorf("mended answers (-want +got):\n%s", diff)
	}

	var trace struct {
		Tasks []struct {
			ID     string
			Mended []string
		}
	}
	read("trace.json", &trace)
	got := make(map[string][]string)
	for _, task := range trace.Tasks {
		if task.Mended != nil {
			got[task.ID] = task.Mended
		}
	}
	if diff := cmp.Diff(map[string][]string{"1.txt": {"fence", "prose"}, "2.txt": {"comma", "fence", "prose"}}, got); diff != "" {
		t.Errorf("what was mended in units (-want +got):\n%s", diff)
	}
}

// TestParametersThatNoModelTakes are refused before anything is asked, with the names of models that
// take them.
func TestParametersThatNoModelTakes(t *testing.T) {
	s := newStudio(t, fakellm.Config{Model: obedient, Key: modelKey})
	s.shops(1)
	s.write("staged.yaml", "name: staged\nstages:\n- {name: map, each: document, parameters: {effort: xhigh}}\n- {name: reduce, each: group, merge: typed}\n")
	for _, c := range []struct {
		flags []string
		says  string
	}{
		{[]string{"--effort", "hard"}, `--effort: "hard" is not one of none, minimal, low, medium, high, xhigh, max`},
		{[]string{"--temperature", "2.5"}, `--temperature: "2.5" is not a number from 0 to 2`},
		{[]string{"--seed", "-1"}, `--seed: "-1" is not a whole number from 0 to 2147483647`},
		{[]string{"--effort", "low"}, "--effort: the model claude-haiku-4-5 of anthropic: is not taken; of the models with known prices, these take it: anthropic/claude-fable-5, "},
		{[]string{"--temperature", "0"}, "--temperature: the model claude-haiku-4-5 of anthropic: is not taken; of the models with known prices, these take it: "},
		{[]string{"--thinking-budget", "500"}, "--thinking-budget: the model claude-haiku-4-5 of anthropic: 500 is not taken; it takes 1024 or more"},
		{[]string{"--var", "seed=1"}, "--seed: the model claude-haiku-4-5 of anthropic: is not taken"},
		{[]string{"--seed", "1", "--var", "seed=2"}, "--seed: is also set by --var seed"},
		{[]string{"--pipeline", s.path("staged.yaml"), "--model", "claude-sonnet-4-6"}, "stages[0].parameters.effort: the model claude-sonnet-4-6 of anthropic: xhigh is not taken; it takes none, low, medium, high, max"},
	} {
		for _, command := range []string{"run", "plan"} {
			args := []string{command, "--input", s.docs, "--schema", s.path("schema.yaml"), "--provider", "anthropic", "--model", "claude-haiku-4-5", "--base-url", s.url, "--output", s.path("out")}
			o := s.try([]string{"ANTHROPIC_API_KEY=" + modelKey}, append(args, c.flags...)...)
			if o.code != 2 || !strings.Contains(o.stderr, c.says) {
				t.Errorf("%s %v: exit code %d, want 2 and %q\n%s", command, c.flags, o.code, c.says, o.stderr)
			}
		}
	}
	if n := len(s.fake.Entries()); n != 0 {
		t.Errorf("%d calls were made for jobs that are refused", n)
	}
}
