package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/dev/simulation"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// The same scenario has the same history each time, whatever else the machine does, and others have
// others.
func TestSameSeedSameHistory(t *testing.T) {
	testenv.Lengthy(t)

	m, err := newMachine(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.close(t.Context()) })

	seen := make(map[string]uint64)
	for seed := uint64(1); seed <= 5; seed++ {
		first, err := m.play(t.Context(), simulation.Of(seed), false)
		if err != nil {
			t.Fatal(err)
		}
		second, err := m.play(t.Context(), simulation.Of(seed), false)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("seed %d (-first +second):\n%s", seed, diff)
		}
		if len(first.Broken) > 0 || first.Events == 0 {
			t.Errorf("seed %d has %d events, and breaks %v", seed, first.Events, first.Broken)
		}
		if other, found := seen[first.Hash]; found {
			t.Errorf("seeds %d and %d have the same history", other, seed)
		}
		seen[first.Hash] = seed
	}

	// In another order the scenario has another history.
	other := simulation.Of(1)
	other.Order = 1
	report, err := m.play(t.Context(), other, false)
	if err != nil {
		t.Fatal(err)
	}
	if seed, found := seen[report.Hash]; found || len(report.Broken) > 0 {
		t.Errorf("seed 1 in order 1 has the history of seed %d: %t; it breaks %v", seed, found, report.Broken)
	}
}

// What a command line says of a scenario makes it as it says.
func TestArgumentsMakeTheScenario(t *testing.T) {
	whole := simulation.Of(4)
	for name, test := range map[string]struct {
		args   []string
		change func(*simulation.Scenario)
	}{
		"the seed alone": {nil, func(*simulation.Scenario) {}},
		"fewer of all": {[]string{"-nodes", "1", "-workers", "1", "-jobs", "1", "-documents", "2", "-rate", "0", "-faults="}, func(s *simulation.Scenario) {
			s.Nodes, s.Workers, s.Jobs, s.Documents, s.Rate, s.Faults = 1, 1, 1, 2, 0, s.Faults[:0]
		}},
		"one fault": {[]string{"-faults=0"}, func(s *simulation.Scenario) { s.Faults = s.Faults[:1] }},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parse(append([]string{"-seed", "4"}, test.args...))
			if err != nil {
				t.Fatal(err)
			}
			want, got := *whole, simulation.Of(c.first)
			test.change(&want)
			c.change(got)
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("scenario (-want +got):\n%s", diff)
			}
		})
	}

	if _, err := parse([]string{"-faults", "1,x"}); err == nil {
		t.Error("a fault called x is taken")
	}
}
