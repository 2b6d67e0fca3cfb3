package main

import (
	"math"
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestFit: a curve never falls, is a share at each point, and finds what values were drawn by.
func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(0.1, 0.9).Draw(t, "low")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		right := func(sure float64) float64 { return low + (1-low)*sure*sure }
		var all []found
		for range 4_000 {
			sure := random.Float64()
			all = append(all, found{sure: sure, base: 1, right: random.Float64() < right(sure)})
		}

		c, before := fit(all), 0.0
		for sure := 0.01; sure <= 1; sure += 0.01 {
			got := c.at(sure)
			if got < before || got <= 0 || got > 1 {
				t.Fatalf("at %.2f it is %v, and %v before", sure, got, before)
			}
			before = got
			if off := math.Abs(got - right(sure)); sure > 0.05 && sure < 0.95 && off > 0.15 {
				t.Fatalf("at %.2f it is %v, want %v", sure, got, right(sure))
			}
		}
	})
}

// TestFitOfFew: of nothing there is no curve, and of few values one for all.
func TestFitOfFew(t *testing.T) {
	if c := fit(nil); c.at(0.3) != 1 {
		t.Errorf("of nothing: %v", c)
	}
	few := []found{{sure: 0.2, base: 1}, {sure: 0.6, base: 1, right: true}, {sure: 0.95, base: 1, right: true}, {sure: 0.97, base: 1, right: true}}
	if c := fit(few); c.at(0.1) != 0.75 || c.at(1) != 0.75 {
		t.Errorf("of four values: %v", c)
	}
}

// TestMisread: a line is misread in one digit, or in one letter if it has none, and always in the same way.
func TestMisread(t *testing.T) {
	for _, line := range []string{"TOTAL 60.30", "Thank you", "Straße", "12"} {
		wrong := misreadLine(line)
		if wrong != misreadLine(line) || utf8.RuneCountInString(wrong) != utf8.RuneCountInString(line) {
			t.Errorf("%q is read as %q and %q", line, wrong, misreadLine(line))
		}
		differ := 0
		other := []rune(wrong)
		for i, c := range []rune(line) {
			if other[i] != c {
				differ++
			}
		}
		if differ != 1 {
			t.Errorf("%q is read as %q", line, wrong)
		}
	}
}
