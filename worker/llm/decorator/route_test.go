package decorator_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

// A scripted model answers with its errors, one after the other, and then always.
type scriptedModel struct {
	name  string
	errs  []error
	asked int
}

func (m *scriptedModel) Name() string          { return m.name }
func (m *scriptedModel) Can() llm.Capabilities { return llm.Capabilities{} }
func (m *scriptedModel) asChoice() decorator.Choice {
	return decorator.Choice{Provider: m, Asked: m.name + "/m", Adapt: asIs}
}
func asIs(req *llm.Request) *llm.Request { return req }
func (m *scriptedModel) next() (err error) {
	m.asked++
	if len(m.errs) > 0 {
		err, m.errs = m.errs[0], m.errs[1:]
	}
	return err
}

func (m *scriptedModel) Complete(context.Context, *llm.Request) (*llm.Response, error) {
	if err := m.next(); err != nil {
		return nil, err
	}
	return &llm.Response{Model: llm.Model(m.name), Stop: llm.StopEnd, Parts: []llm.Part{{Text: "yes"}, {Opaque: json.RawMessage(`{}`)}}, Usage: llm.Usage{Input: 1, Reported: true}}, nil
}

// A rigged route asks two models, and keeps what is said of them.
type riggedRoute struct {
	a, b    *scriptedModel
	now     time.Time
	lines   []string
	failing []string
	*decorator.Route
}

func newRiggedRoute(ofA, ofB []error) *riggedRoute {
	r := &riggedRoute{a: &scriptedModel{name: "a", errs: ofA}, b: &scriptedModel{name: "b", errs: ofB}, now: time.Unix(0, 0)}
	r.Route = &decorator.Route{
		Choices: []decorator.Choice{r.a.asChoice(), r.b.asChoice()},
		Health:  decorator.NewHealth(func() time.Time { return r.now }, func(line string) { r.lines = append(r.lines, line) }),
		Failing: func(name string) { r.failing = append(r.failing, name) },
	}
	return r
}

func open(d time.Duration) error { return &agent.BreakerError{Name: "x/m", OpenFor: d} }

// The second model is asked for a failure of the first, and not for what is wrong with the request.
func TestWhatIsAskedElsewhere(t *testing.T) {
	for kind, elsewhere := range map[llm.Kind]bool{
		llm.Auth: true, llm.Permission: true, llm.Billing: true, llm.NotFound: true, llm.NotAPI: true, llm.NotThere: true,
		llm.RateLimited: true, llm.Overloaded: true, llm.Server: true, llm.Timeout: true, llm.Network: true, llm.CutOff: true, llm.Garbled: true, llm.Empty: true,
		llm.BadSchema: false, llm.Invalid: false, llm.TooLarge: false, llm.Refused: false, llm.Filtered: false, llm.Mismatch: false,
	} {
		r := newRiggedRoute([]error{llm.NewError(kind, "no")}, nil)
		res, err := r.Complete(t.Context(), ask(nil))
		if got := err == nil; got != elsewhere {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if elsewhere && (res.By != "b/m" || res.Parts[0].Of != "" || res.Parts[1].Of != "b" || !cmp.Equal(r.failing, []string{"a/m"})) {
			t.Errorf("%s: answered by %q, of %+v, failing %v", kind, res.By, res.Parts, r.failing)
		}
	}
	r := newRiggedRoute([]error{agent.ErrBudget}, nil)
	if _, err := r.Complete(t.Context(), ask(nil)); !errors.Is(err, agent.ErrBudget) || r.b.asked > 0 {
		t.Errorf("without tokens: %v, and the other was asked %d times", err, r.b.asked)
	}
}

// If no model answers, the unit waits if it can, for the shortest time; otherwise it fails with what is
// worth another attempt.
func TestWhatBothFailWith(t *testing.T) {
	for name, c := range map[string]struct {
		a, b error
		want string
	}{
		"both are open":          {open(9 * time.Second), open(2 * time.Second), "open for 2s"},
		"the first is open":      {open(9 * time.Second), llm.NewError(llm.Server, "broken"), "open for 9s"},
		"the second is open":     {llm.NewError(llm.Auth, "no key"), open(2 * time.Second), "open for 2s"},
		"one may work again":     {llm.NewError(llm.Auth, "no key"), llm.NewError(llm.Server, "broken"), "b/m: server error: broken"},
		"none works":             {llm.NewError(llm.Billing, "no money"), llm.NewError(llm.Auth, "no key"), "a/m: billing: no money"},
		"both are worth another": {llm.NewError(llm.Network, "gone"), llm.NewError(llm.Server, "broken"), "a/m: network: gone"},
	} {
		r := newRiggedRoute([]error{c.a}, []error{c.b})
		if _, err := r.Complete(t.Context(), ask(nil)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if r.a.asked != 1 || r.b.asked != 1 {
			t.Errorf("%s: asked %d and %d times", name, r.a.asked, r.b.asked)
		}
	}
}

// A failure that somebody has to mend is looked at again after minutes, one of a moment by the next
// request; what changes is told once.
func TestHealthOfModels(t *testing.T) {
	r := newRiggedRoute([]error{llm.NewError(llm.Billing, "no money\nat all"), llm.NewError(llm.Server, "broken"), llm.NewError(llm.Server, "broken")}, nil)
	var by []string
	step := func() {
		res, err := r.Complete(t.Context(), ask(nil))
		if err != nil {
			t.Fatal(err)
		}
		by = append(by, res.By)
	}
	step() // no money
	step() // not asked
	r.now = r.now.Add(10 * time.Minute)
	step() // broken
	step() // broken
	step() // answers
	step()
	if want := []string{"b/m", "b/m", "b/m", "b/m", "a/m", "a/m"}; !cmp.Equal(by, want) || r.a.asked != 5 {
		t.Errorf("answered by %v, the first asked %d times", by, r.a.asked)
	}
	want := []string{"a/m does not answer (billing: no money at all): b/m is asked in its place", "a/m answers again"}
	if diff := cmp.Diff(want, r.lines); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}

	away := newRiggedRoute([]error{llm.NewError(llm.Auth, "no key"), nil}, []error{nil, llm.NewError(llm.Auth, "no key")})
	for range 2 { // the second time the other fails, and is away as well
		_, _ = away.Complete(t.Context(), ask(nil)) // its outcome is looked at below
	}
	if res, err := away.Complete(t.Context(), ask(nil)); err != nil || res.By != "a/m" {
		t.Errorf("with both away nobody is asked: %v", err)
	}
}
