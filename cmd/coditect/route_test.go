package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

const (
	firstModel  = "anthropic/claude-haiku-4-5"
	secondModel = "openai/gpt-5-mini"
)

// A route is a studio whose model has another that stands for it, at a server of its own.
type route struct {
	*studio
	second    *fakellm.Server
	secondURL string
}

func newRoute(t *testing.T, first, second fakellm.Config, documents int) *route {
	t.Helper()
	r := &route{studio: newStudio(t, first), second: fakellm.New(second)}
	server := httptest.NewServer(r.second)
	t.Cleanup(server.Close)
	r.secondURL = server.URL
	for i := range documents {
		r.write(fmt.Sprintf("docs/%d.txt", i), fmt.Sprintf("SHOP NUMBER %d SDN BHD\nTOTAL RM %d.50\n", i, i))
	}
	return r
}

// ask runs a job that asks both models.
func (r *route) ask(output string, more ...string) outcome {
	r.t.Helper()
	args := []string{
		"run", "--input", r.docs, "--schema", r.path("schema.yaml"), "--output", r.path(output), "--merge", "typed",
		"--model", firstModel + "," + secondModel, "--endpoint", "anthropic=" + r.url, "--endpoint", "openai=" + r.secondURL, "--parallelism", "4",
	}
	return r.try([]string{"ANTHROPIC_API_KEY=" + modelKey, "OPENAI_API_KEY=sk-" + modelKey[7:], "CODITECT_LLM_TRACE=1"}, append(args, more...)...)
}

// answered returns by which model each document was answered.
func (r *route) answered(output string) map[string]string {
	r.t.Helper()
	f, err := os.Open(r.path(output + "/units.jsonl"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	by := make(map[string]string)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var u struct {
			Kind     string   `json:"kind"`
			Document string   `json:"document_id"`
			State    string   `json:"state"`
			Models   []string `json:"models"`
			Attempts int      `json:"attempts"`
		}
		if err := json.Unmarshal(lines.Bytes(), &u); err != nil {
			r.t.Fatal(err)
		}
		if u.Kind == "map" {
			by[u.Document] = strings.Join(u.Models, "+")
		}
	}
	return by
}

// answers counts the whole answers of a server.
func answers(s *fakellm.Server) (n int) {
	for _, e := range s.Entries() {
		if e.Status == 200 && e.Fault == fakellm.None {
			n++
		}
	}
	return n
}

// Whatever keeps one of two models away fails no unit: the other answers each document once, the unit
// says which it was, and the run says in one line that it fell over.
func TestAModelStandsForAnother(t *testing.T) {
	testenv.Raced(t)

	const documents = 8
	for name, c := range map[string]struct {
		fault fakellm.Fault
		calls int // that the first model gets at most
	}{
		"nobody there":  {fakellm.Hangup, 16},
		"limited":       {fakellm.RateLimit, 24},
		"overloaded":    {fakellm.Overloaded, 16},
		"broken":        {fakellm.ServerError, 16},
		"no money":      {fakellm.NoMoney, 4},
		"a wrong key":   {fakellm.Unauthorized, 4},
		"no such model": {fakellm.UnknownModel, 4},
		"a proxy":       {fakellm.WebPage, 4},
		"cut off":       {fakellm.Cut, 16},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoute(t, fakellm.Config{Model: obedient, Fault: func(fakellm.Call) fakellm.Fault { return c.fault }}, fakellm.Config{Model: obedient}, documents)
			o := r.ask("out")
			if o.code != 0 || !strings.Contains(o.stdout, "complete: 8 of 8 documents mapped") {
				t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
			}
			by := r.answered("out")
			for document, model := range by {
				if model != secondModel {
					t.Errorf("%s was answered by %q, want %s", document, model, secondModel)
				}
			}
			if n := answers(r.second); len(by) != documents || n != documents {
				t.Errorf("%d documents, and %d answers of the second model", len(by), n)
			}
			if n := len(r.fake.Entries()); n > c.calls {
				t.Errorf("the first model was asked %d times, want at most %d", n, c.calls)
			}
			if n := strings.Count(o.stderr, firstModel+" does not answer ("); n != 1 || !strings.Contains(o.stderr, "): "+secondModel+" is asked in its place") {
				t.Errorf("the run says %d times that it fell over:\n%s", n, o.stderr)
			}
		})
	}
}

// A model that comes back is asked again, and what the other has answered is not asked once more.
func TestAModelComesBack(t *testing.T) {
	testenv.Raced(t)

	const documents = 12
	spent := func(c fakellm.Call) fakellm.Fault { // so that the first has to come back, however quick the second is
		if c.N > documents/2 {
			return fakellm.NoMoney
		}
		return fakellm.None
	}
	r := newRoute(t, fakellm.Config{Model: obedient, Fault: fakellm.First(4, fakellm.ServerError)}, fakellm.Config{Model: obedient, Fault: spent}, documents)
	o := r.ask("out", "--parallelism", "1", "--circuit-breaker-timeout", "50ms")
	if o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	by := make(map[string]int)
	for _, model := range r.answered("out") {
		by[model]++
	}
	if first, second := answers(r.fake), answers(r.second); first+second != documents || by[firstModel] != first || by[secondModel] != second || first == 0 || second == 0 {
		t.Errorf("%d and %d answers, units by model: %v", first, second, by)
	}
	if !strings.Contains(o.stderr, firstModel+" answers again") {
		t.Errorf("the run does not say that it fell back:\n%s", o.stderr)
	}
	r.result("out")
	metrics, err := os.ReadFile(r.path("out/metrics.json"))
	if err != nil || !strings.Contains(string(metrics), `"fallback_models"`) || !strings.Contains(string(metrics), `"`+secondModel+`"`) {
		t.Errorf("metrics.json says nothing of both models: %v\n%s", err, metrics)
	}
}

// An answer that is kept for other jobs is kept under the model that gave it.
func TestSharedAnswersAreOfTheModelThatAnswers(t *testing.T) {
	var up atomic.Bool
	r := newRoute(t, fakellm.Config{Model: obedient, Fault: func(fakellm.Call) fakellm.Fault {
		if up.Load() {
			return fakellm.None
		}
		return fakellm.NoMoney
	}}, fakellm.Config{Model: obedient}, 3)
	if o := r.ask("one", "--cache"); o.code != 0 {
		t.Fatalf("exit code %d\n%s", o.code, o.stderr)
	}
	if o := r.ask("two", "--cache"); o.code != 0 { // the first refuses again, and the second has answered before
		t.Fatalf("exit code %d\n%s", o.code, o.stderr)
	}
	if n := answers(r.second); n != 3 {
		t.Errorf("the second model answered %d times, want 3", n)
	}
	up.Store(true)
	if o := r.ask("three", "--cache"); o.code != 0 {
		t.Fatalf("exit code %d\n%s", o.code, o.stderr)
	}
	if n := answers(r.fake); n != 3 {
		t.Errorf("the first model answered %d times, want 3: what the second said is not its answer", n)
	}
}

// If both models are away, nothing is lost: units wait, as they do for one.
func TestBothModelsAreAway(t *testing.T) {
	limited := fakellm.Config{Model: obedient, Fault: fakellm.First(3, fakellm.RateLimit)}
	r := newRoute(t, limited, limited, 4)
	o := r.ask("out")
	if o.code != 0 || !strings.Contains(o.stdout, "complete: 4 of 4 documents mapped") {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	if n := answers(r.fake) + answers(r.second); n != 4 {
		t.Errorf("%d answers, want 4", n)
	}
}

// A stage of a pipeline names several models as a run does, by an alias too; what is wrong with a list is
// refused before anything is spent.
func TestModelsOfAStage(t *testing.T) {
	r := newRoute(t, fakellm.Config{Model: obedient, Fault: func(fakellm.Call) fakellm.Fault { return fakellm.NoMoney }}, fakellm.Config{Model: obedient}, 2)
	r.write("own.yaml", `name: own
stages:
  - {name: read, from: documents, each: document, model: cheap, output: records}
  - {name: merge, from: read, each: group, merge: typed, output: records}
`)
	env := []string{"ANTHROPIC_API_KEY=" + modelKey, "OPENAI_API_KEY=sk-" + modelKey[7:]}
	common := []string{"run", "--input", r.docs, "--schema", r.path("schema.yaml"), "--output", r.path("out"), "--endpoint", "anthropic=" + r.url, "--endpoint", "openai=" + r.secondURL}
	o := r.try(env, append(slices.Clone(common), "--pipeline", r.path("own.yaml"), "--alias", "cheap="+firstModel+","+secondModel)...)
	if o.code != 0 || answers(r.second) != 2 {
		t.Errorf("exit code %d, %d answers\n%s%s", o.code, answers(r.second), o.stdout, o.stderr)
	}

	before := len(r.fake.Entries()) + len(r.second.Entries())
	for _, c := range []struct{ args, want string }{
		{"--model " + firstModel + ",", "has an empty name"},
		{"--model " + firstModel + "," + firstModel, "twice"},
		{"--model claude-haiku-4-5,gpt-5-mini", "is not provider/model"},
		{"--provider anthropic --model claude-haiku-4-5," + secondModel, "leave that out"},
		{"--model " + firstModel + ",openai/text-embedding-3-small", "turns texts into vectors"},
		{"--model " + firstModel + ",groq/llama", "GROQ_API_KEY"},
		{"--model " + firstModel + ",nobody/m", "nobody"},
	} {
		o := r.try(append(env, "GROQ_API_KEY="), append(slices.Clone(common), strings.Fields(c.args)...)...)
		if o.code != 2 || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%s: exit code %d, want %q\n%s", c.args, o.code, c.want, o.stderr)
		}
	}
	if after := len(r.fake.Entries()) + len(r.second.Entries()); after != before {
		t.Errorf("%d calls were made for jobs that are refused", after-before)
	}
}

// What a model that stands for another does not take is not sent to that one, and the run says so in one
// line; what the first of a list does not take is refused before anything is spent.
func TestEachOfSeveralModelsGetsWhatItTakes(t *testing.T) {
	r := newRoute(t, fakellm.Config{Model: obedient}, fakellm.Config{Model: obedient, Fault: func(fakellm.Call) fakellm.Fault { return fakellm.NoMoney }}, 3)
	o := r.ask("out", "--model", secondModel+","+firstModel, "--effort", "high", "--seed", "7", "--stop", "###")
	if o.code != 0 || answers(r.fake) != 3 {
		t.Fatalf("exit code %d, %d answers\n%s%s", o.code, answers(r.fake), o.stdout, o.stderr)
	}
	const warning = "warning: " + firstModel + " is asked without effort and without seed, since it takes no other"
	if n := strings.Count(o.stdout, warning); n != 1 {
		t.Errorf("the run says %d times, want once: %s\n%s", n, warning, o.stdout)
	}
	for _, e := range r.second.Entries() {
		if body := string(e.Body); !strings.Contains(body, `"reasoning_effort":"high"`) || !strings.Contains(body, `"seed":7`) {
			t.Errorf("the first model is asked %s", body)
		}
	}
	for _, e := range r.fake.Entries() {
		if body := string(e.Body); strings.Contains(body, "effort") || strings.Contains(body, `"seed"`) || !strings.Contains(body, `"stop_sequences":["###"]`) {
			t.Errorf("the second model is asked %s", body)
		}
	}

	before := len(r.fake.Entries()) + len(r.second.Entries())
	o = r.ask("no", "--effort", "high")
	if o.code != 2 || !strings.Contains(o.stderr, "--effort: the model claude-haiku-4-5 of anthropic: is not taken") {
		t.Errorf("exit code %d\n%s", o.code, o.stderr)
	}
	if n := len(r.fake.Entries()) + len(r.second.Entries()) - before; n != 0 {
		t.Errorf("%d calls were made for a job that is refused", n)
	}
}

// A job whose model has no price costs nobody knows what, wherever that is shown.
func TestCostWithoutAPrice(t *testing.T) {
	r := newRoute(t, fakellm.Config{Model: obedient}, fakellm.Config{Model: obedient}, 1)
	o := r.ask("out", "--model", "openai/my-own")
	if o.code != 0 || !strings.Contains(o.stdout, "cost unknown: openai/my-own has no price here; run with --prices FILE") || strings.Contains(o.stdout, "$0") {
		t.Errorf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	var metrics struct {
		Job struct {
			ID       string   `json:"job_id"`
			Cost     *float64 `json:"cost"`
			Unpriced []string `json:"unpriced_models"`
		}
	}
	raw, err := os.ReadFile(r.path("out/metrics.json"))
	if err != nil || json.Unmarshal(raw, &metrics) != nil || metrics.Job.Cost != nil || !slices.Equal(metrics.Job.Unpriced, []string{"openai/my-own"}) {
		t.Errorf("%v; metrics.json has %+v", err, metrics.Job)
	}
	if o := r.try(nil, "status", "--job-id", metrics.Job.ID); !strings.Contains(o.stdout, "unknown: openai/my-own has no price here") {
		t.Errorf("status:\n%s", o.stdout)
	}
	page, err := os.ReadFile(r.path("out/report.html"))
	if err != nil || !strings.Contains(string(page), "not known: openai/my-own has no price here") {
		t.Errorf("report.html does not say it: %v", err)
	}
}
