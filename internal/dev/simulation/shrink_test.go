package simulation_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/dev/simulation"
)

// withFaults returns a scenario that has at least so many faults.
func withFaults(t *testing.T, n int) *simulation.Scenario {
	t.Helper()
	for seed := uint64(1); seed < 1000; seed++ {
		if s := simulation.Of(seed); len(s.Faults) >= n && s.Nodes > 1 && s.Workers > 1 && s.Jobs > 1 && s.Documents > 4 {
			return s
		}
	}
	t.Fatal("no seed of a thousand has so many")
	return nil
}

// What fails for two faults that need three documents and two workers is made just that.
func TestShrinkFindsTheCause(t *testing.T) {
	s := withFaults(t, 6)
	first, second := s.Faults[1].Number, s.Faults[4].Number
	fails := func(s *simulation.Scenario) bool {
		has := func(number int) bool {
			return slices.ContainsFunc(s.Faults, func(f simulation.Fault) bool { return f.Number == number })
		}
		return has(first) && has(second) && s.Documents >= 3 && s.Workers >= 2
	}

	small := simulation.Shrink(s, 1000, fails)
	want := &simulation.Scenario{Seed: s.Seed, Nodes: 1, Workers: 2, Jobs: 1, Documents: 3, Faults: []simulation.Fault{s.Faults[1], s.Faults[4]}}
	if diff := cmp.Diff(want, small); diff != "" {
		t.Errorf("the smallest scenario (-want +got):\n%s", diff)
	}

	// Its arguments make it of its seed.
	again := simulation.Of(s.Seed)
	again.Nodes, again.Workers, again.Jobs, again.Documents, again.Rate = small.Nodes, small.Workers, small.Jobs, small.Documents, small.Rate
	again.Keep([]int{first, second})
	if again.Arguments() != small.Arguments() {
		t.Errorf("arguments %q, want %q", again.Arguments(), small.Arguments())
	}
}

// A scenario that fails whatever is left out of it comes to the smallest there is, and one that may not
// be tried stays as it is.
func TestShrinkEnds(t *testing.T) {
	s := withFaults(t, 3)
	small := simulation.Shrink(s, 1000, func(*simulation.Scenario) bool { return true })
	if diff := cmp.Diff(&simulation.Scenario{Seed: s.Seed, Nodes: 1, Workers: 1, Jobs: 1, Documents: 1, Faults: []simulation.Fault{}}, small); diff != "" {
		t.Errorf("the smallest scenario (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(s, simulation.Shrink(s, 0, func(*simulation.Scenario) bool { return true })); diff != "" {
		t.Errorf("untried (-want +got):\n%s", diff)
	}
}
