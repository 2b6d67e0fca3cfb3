package parameters_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/parameters"
)

func TestRead(t *testing.T) {
	got, err := parameters.Read(map[string]string{
		"effort": "low", "thinking_budget": "0", "verbosity": "high", "temperature": "0.5", "top_p": "1", "seed": "2147483647", "stop": `["END", "["]`, "glean": "1",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := parameters.Set{
		Effort: "low", Thinking: new(int64(0)), Verbosity: "high", Temperature: new(0.5), TopP: new(1.0), Seed: new(int64(2147483647)), Stop: []string{"END", "["},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	const text = `effort low, thinking_budget 0, verbosity high, temperature 0.5, top_p 1, seed 2147483647, stop "[\"END\",\"[\"]"`
	if got.String() != text {
		t.Errorf("it is shown as %s, want %s", got, text)
	}
}

func TestValuesThatNoneCanHave(t *testing.T) {
	for _, c := range []struct{ name, value, rule string }{
		{"effort", "hard", `"hard" is not one of none, minimal, low, medium, high, xhigh, max`},
		{"effort", "", `"" is not one of none`},
		{"effort", "High", `"High" is not one of`},
		{"verbosity", "max", `"max" is not one of low, medium, high`},
		{"thinking_budget", "-1", `"-1" is not a whole number from 0 to 1048576`},
		{"thinking_budget", "1e3", "is not a whole number"},
		{"thinking_budget", "99999999999999999999", "is not a whole number"},
		{"temperature", "2.1", `"2.1" is not a number from 0 to 2`},
		{"temperature", "NaN", "is not a number"},
		{"temperature", "warm", `"warm" is not a number`},
		{"temperature", "+Inf", "is not a number"},
		{"top_p", "0", `"0" is not a number above 0 and up to 1`},
		{"top_p", "1.01", "is not a number above 0 and up to 1"},
		{"seed", "1.5", "is not a whole number from 0 to 2147483647"},
		{"seed", "4294967296", "is not a whole number"},
		{"stop", "", "has a text of 0 bytes"},
		{"stop", "[END", "begins like a list of texts in JSON, and is none"},
		{"stop", "[]", "has 0 texts; 1 to 16 can end an answer"},
		{"stop", `[1]`, "begins like a list"},
		{"stop", strings.Repeat("x", 257), "has a text of 257 bytes"},
		{"warmth", "1", "is no parameter; there are effort, thinking_budget, verbosity, temperature, top_p, seed, stop"},
	} {
		var s parameters.Set
		err := s.Put(parameters.Name(c.name), c.value)
		if e, ok := errors.AsType[*parameters.ValueError](err); !ok || e.Name != parameters.Name(c.name) || !strings.Contains(e.Rule, c.rule) {
			t.Errorf("%s %q: got %v, want %q", c.name, c.value, err, c.rule)
		}
	}
}

func draw(t *rapid.T) (s parameters.Set) {
	for name, values := range map[parameters.Name][]string{
		parameters.Effort: parameters.Efforts(), parameters.Thinking: {"0", "1024"}, parameters.Verbosity: {"low", "high"}, parameters.Temperature: {"0", "0.3", "2"},
		parameters.TopP: {"0.001", "1"}, parameters.Seed: {"0", "7"}, parameters.Stop: {"END", `["[", "\n"]`, `"`},
	} {
		if rapid.Bool().Draw(t, string(name)) {
			if err := s.Put(name, rapid.SampledFrom(values).Draw(t, "value")); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// What is written is read again, as variables and as JSON; what one set leaves out is the other's.
func TestSetsAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, other := draw(t), draw(t)
		vars := make(map[string]string)
		for _, n := range one.Given() {
			vars[string(n)] = one.Value(n)
		}
		again, err := parameters.Read(vars)
		if diff := cmp.Diff(one, again); err != nil || diff != "" {
			t.Fatalf("variables %q: %v\n%s", vars, err, diff)
		}
		var decoded parameters.Set
		raw, err := json.Marshal(one)
		if err != nil || json.Unmarshal(raw, &decoded) != nil || !cmp.Equal(one, decoded) {
			t.Fatalf("%s is not %v: %v", raw, one, err)
		}

		both := one.Over(other)
		for _, n := range parameters.Names() {
			want := one.Value(n)
			if want == "" {
				want = other.Value(n)
			}
			if both.Value(n) != want || one.Without(n).Value(n) != "" {
				t.Fatalf("%s of %v over %v is %s, want %s", n, one, other, both.Value(n), want)
			}
		}
		if one.IsZero() != (one.String() == "") {
			t.Fatalf("%v is zero: %v", one, one.IsZero())
		}
	})
}

// More effort never has less room, and a budget is the room.
func TestRoom(t *testing.T) {
	last := int64(-1)
	for _, effort := range parameters.Efforts() {
		room := parameters.Set{Effort: effort}.Room()
		if room <= last {
			t.Errorf("%s has room for %d tokens, and the level below for %d", effort, room, last)
		}
		last = room
	}
	if got := (parameters.Set{Effort: "max", Thinking: new(int64(5))}).Room(); got != 5 {
		t.Errorf("a budget of 5 tokens has room for %d", got)
	}
	if got := (parameters.Set{Temperature: new(0.0)}).Room(); got != 0 {
		t.Errorf("without thinking there is room for %d", got)
	}
}

// What is kept of a set is refused by nothing.
func TestWhatIsKeptIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := parameters.Limits{
			Not:     rapid.SliceOfN(rapid.SampledFrom(parameters.Names()), 0, 3).Draw(t, "not"),
			Efforts: rapid.SliceOfN(rapid.SampledFrom(parameters.Efforts()), 0, 3).Draw(t, "efforts"),
			Thinks:  rapid.Bool().Draw(t, "thinks"), Either: rapid.Bool().Draw(t, "either"), MaxTemperature: rapid.SampledFrom([]float64{0, 1}).Draw(t, "warmest"),
			LeastThinking: rapid.SampledFrom([]int64{0, 2000}).Draw(t, "least"), MaxStops: rapid.IntRange(0, 1).Draw(t, "stops"),
		}
		s := draw(t)
		kept := l.Keep(s)
		if name, rule := l.Refusal(kept); rule != "" {
			t.Fatalf("%v is kept of %v, and %s %s", kept, s, name, rule)
		}
		for _, n := range kept.Given() {
			if kept.Value(n) != s.Value(n) && (n != parameters.Effort || !slices.Contains(l.Efforts, kept.Effort)) {
				t.Fatalf("%s became %s", n, kept.Value(n))
			}
		}
	})
}

// A level that is not taken becomes the next lower one that is, or the next higher.
func TestNearestEffortIsKept(t *testing.T) {
	for _, c := range []struct{ effort, taken, want string }{
		{"max", "low medium", "medium"}, {"none", "low medium", "low"}, {"medium", "none low high", "low"}, {"low", "low", "low"}, {"minimal", "max", "max"}, {"high", "", "high"},
	} {
		l := parameters.Limits{Efforts: strings.Fields(c.taken)}
		if got := l.Keep(parameters.Set{Effort: c.effort}).Effort; got != c.want {
			t.Errorf("of %q, %s becomes %q, want %q", c.taken, c.effort, got, c.want)
		}
	}
	without := parameters.Limits{Not: []parameters.Name{parameters.Effort}, Efforts: []string{"low"}}
	if got := without.Keep(parameters.Set{Effort: "high"}); !got.IsZero() {
		t.Errorf("%v is kept of an effort that is not taken", got)
	}
}
