package simulation

import "slices"

// Shrink returns a scenario that fails like s, and is smaller as far as can be found: with fewer
// faults first, and then with fewer documents, jobs, workers and orchestrators. Each candidate is
// tried by fails, at most tries times in all.
func Shrink(s *Scenario, tries int, fails func(*Scenario) bool) *Scenario {
	k := &shrinker{best: s, left: tries, fails: fails}
	for changed := true; changed; {
		changed = k.dropFaults()
		changed = k.lower(func(s *Scenario) *int { return &s.Jobs }) || changed
		changed = k.lower(func(s *Scenario) *int { return &s.Documents }) || changed
		changed = k.lower(func(s *Scenario) *int { return &s.Workers }) || changed
		changed = k.lower(func(s *Scenario) *int { return &s.Nodes }) || changed
		changed = k.best.Rate > 0 && k.try(func(s *Scenario) { s.Rate = 0 }) || changed
	}
	return k.best
}

// A shrinker holds the smallest scenario that has failed.
type shrinker struct {
	best  *Scenario
	left  int // candidates that may be tried
	fails func(*Scenario) bool
}

// try tries the best with a change, and keeps it if it fails.
func (k *shrinker) try(change func(*Scenario)) bool {
	if k.left == 0 {
		return false
	}
	k.left--
	candidate := *k.best
	candidate.Faults = slices.Clone(candidate.Faults)
	change(&candidate)
	if !k.fails(&candidate) {
		return false
	}
	k.best = &candidate
	return true
}

// dropFaults drops as many faults as it can: halves first, and single ones in the end.
func (k *shrinker) dropFaults() (changed bool) {
	for size := len(k.best.Faults); size > 0; size /= 2 {
		for from := 0; from < len(k.best.Faults); {
			to := min(from+size, len(k.best.Faults))
			if k.try(func(s *Scenario) { s.Faults = slices.Delete(s.Faults, from, to) }) {
				changed = true
			} else {
				from = to
			}
		}
	}
	return changed
}

// lower makes a number of the scenario as small as it can be, from 1 on.
func (k *shrinker) lower(number func(*Scenario) *int) (changed bool) {
	for low := 1; low < *number(k.best); {
		middle := (low + *number(k.best)) / 2
		if k.try(func(s *Scenario) { *number(s) = middle }) {
			changed = true
		} else {
			low = middle + 1
		}
	}
	return changed
}
