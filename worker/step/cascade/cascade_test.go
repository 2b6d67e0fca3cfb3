package cascade_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline/cascading"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/ascent"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/step/cascade"
)

// A member answers with no records, and says who it is; or with an error.
type member struct {
	name  string
	err   error
	asked []string // models
}

// Run implements step.Runner.
func (m *member) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	m.asked = append(m.asked, task.Spec.Provider+"/"+task.Spec.Model)
	if task.StageSpec.Cascade.IsSet() || task.WakeCall != nil {
		return nil, errors.New("a member sees the cascade")
	}
	if m.err != nil {
		return nil, m.err
	}

	_, err := calls.Do(ctx, "ask", func(context.Context) ([]byte, error) {
		calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 3, Out: 4}, CostMicros: 50})
		return []byte(m.name), nil
	})
	if err != nil {
		return nil, err
	}
	data, err := (&output.Output{Reason: "by " + m.name}).Encode()
	return &agent.Result{Output: data}, err
}

// notes is a journal and a purse.
type notes struct {
	agent.Calls
	kept  map[string][]byte
	spent int64
}

func (n *notes) Do(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	if had, ok := n.kept[key]; ok {
		return had, nil
	}
	got, err := fn(ctx)
	if err == nil {
		n.kept[key] = got
	}
	return got, err
}

func (n *notes) Spent(c mapreduce.Charge) { n.spent += c.CostMicros }

// taskOf returns a task of a cascade, woken by an answer if there is one.
func taskOf(t *testing.T, handle, answer string) *agent.Task {
	t.Helper()
	task := &agent.Task{
		Assignment: protocol.Assignment{Unit: "u", Kind: mapreduce.KindMap},
		Spec: &mapreduce.JobSpec{
			Provider: "last", Model: "m", Schema: []byte(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`),
			Vars: map[string]string{"base_url": "http://last"},
		},
		StageSpec: &agent.StageSpec{
			Name: "map", Documents: true, Output: agent.Records,
			Cascade: cascading.Cascade{Members: []string{"rules", "cheap/c", "last/m"}, Per: cascading.PerField},
		},
	}
	if handle != "" {
		task.WakeCall = &protocol.WakeCall{Handle: handle, Answer: []byte(answer)}
	}
	return task
}

func TestDecisions(t *testing.T) {
	broken, away := agent.Permanent(errors.New("broken")), errors.New("away")
	for _, tt := range []struct {
		name, handle, answer string
		err                  error // of rules
		last                 bool  // the attempt is
		parks                string
		ascent               *output.Ascent
		fails                error
	}{
		{name: "at first", parks: "cascade/0"},
		{name: "accepted", handle: "cascade/0", answer: "accept", ascent: &output.Ascent{Member: "rules"}},
		{name: "compared", handle: "cascade/0", answer: "compare", ascent: &output.Ascent{Member: "last/m", Alike: []bool{true, true}, Tokens: 7, CostMicros: 50}},
		{name: "on to the next", handle: "cascade/0", answer: "ascend", parks: "cascade/1"},
		{name: "the next is accepted", handle: "cascade/1", answer: "accept", ascent: &output.Ascent{Member: "cheap/c"}},
		{name: "on to the last", handle: "cascade/1", answer: "ascend", ascent: &output.Ascent{Member: "last/m", Tokens: 7, CostMicros: 50}},
		{name: "what a person says", handle: "cascade/0", answer: "yes, please", parks: "cascade/0"},
		{name: "another handle", handle: "person", answer: "accept", parks: "cascade/0"},
		{name: "a member that is the last", handle: "cascade/2", answer: "accept", parks: "cascade/0"},
		{name: "rules are broken", err: broken, parks: "cascade/0"},
		{name: "rules are away", err: away, fails: away},
		{name: "rules are away at the last attempt", err: away, last: true, parks: "cascade/0"},
		{name: "accepted, and broken since", err: broken, handle: "cascade/0", answer: "accept", ascent: &output.Ascent{Member: "last/m", Tokens: 7, CostMicros: 50}},
		{name: "compared, and broken", err: broken, handle: "cascade/0", answer: "compare", ascent: &output.Ascent{Member: "last/m", Alike: []bool{false, false}, Tokens: 7, CostMicros: 50}},
		{name: "the budget is spent", err: agent.ErrBudget, last: true, fails: agent.ErrBudget},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := step.NewRegistry()
			rules, cheap, last := &member{name: "rules", err: tt.err}, &member{name: "cheap"}, &member{name: "last"}
			for _, m := range []*member{rules, cheap, last} {
				all.Provide(mapreduce.Provider{Name: m.name}, step.Table{step.Extract: m})
			}
			cascade.Add(all)
			run, _ := all.Lookup(step.Extract, "last")

			task := taskOf(t, tt.handle, tt.answer)
			task.Last = tt.last
			res, err := run.Run(t.Context(), task, &notes{kept: make(map[string][]byte)})

			parked, _ := errors.AsType[*agent.ParkedError](err)
			switch {
			case tt.fails != nil:
				if !errors.Is(err, tt.fails) {
					t.Errorf("error %v, want %v", err, tt.fails)
				}
				return
			case tt.parks != "":
				if parked == nil || parked.Handle != tt.parks || len(parked.Scores) != 2 {
					t.Errorf("parked %+v, %v, want under %s with two scores", parked, err, tt.parks)
				}
				return
			case err != nil:
				t.Fatal(err)
			}

			out, err := output.Decode(res.Output)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.ascent, out.Ascent); diff != "" {
				t.Errorf("ascent (-want +got):\n%s", diff)
			}
			if by := map[string]string{"rules": "by rules", "cheap/c": "by cheap", "last/m": "by last"}[out.Ascent.Member]; out.Reason != by {
				t.Errorf("the output is %q, want that %q", out.Reason, by)
			}
			for _, m := range []struct {
				*member
				model string
			}{{rules, "rules/"}, {cheap, "cheap/c"}, {last, "last/m"}} {
				for _, asked := range m.asked {
					if asked != m.model {
						t.Errorf("%s was asked as %s", m.model, asked)
					}
				}
			}
		})
	}
}

// What a member has answered is paid once, however many attempts there are; and no two members
// are taken for each other.
func TestNothingIsPaidTwice(t *testing.T) {
	all := step.NewRegistry()
	for _, name := range []string{"rules", "cheap", "last"} {
		all.Provide(mapreduce.Provider{Name: name}, step.Table{step.Extract: &member{name: name}})
	}
	cascade.Add(all)
	run, _ := all.Lookup(step.Extract, "last")

	purse := &notes{kept: make(map[string][]byte)}
	for range 2 { // each attempt is made twice
		for _, wake := range [][2]string{{"", ""}, {ascent.Handle(0), "ascend"}, {ascent.Handle(1), "compare"}} {
			_, err := run.Run(t.Context(), taskOf(t, wake[0], wake[1]), purse)
			if _, parked := errors.AsType[*agent.ParkedError](err); err != nil && !parked {
				t.Fatal(err)
			}
		}
	}
	if purse.spent != 3*50 {
		t.Errorf("%d was spent, want three calls of 50", purse.spent)
	}
}

// A unit of a stage without a cascade, or of another kind, is run as if there were none.
func TestOthersAreLeftAlone(t *testing.T) {
	all, last := step.NewRegistry(), &member{name: "last"}
	all.Provide(mapreduce.Provider{Name: "last"}, step.Table{step.Extract: last})
	cascade.Add(all)
	run, _ := all.Lookup(step.Extract, "last")

	task := taskOf(t, "", "")
	task.StageSpec.Cascade = cascading.Cascade{}
	res, err := run.Run(t.Context(), task, &notes{kept: make(map[string][]byte)})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := output.Decode(res.Output); err != nil || out.Ascent != nil {
		t.Errorf("%+v, %v", out, err)
	}
}
