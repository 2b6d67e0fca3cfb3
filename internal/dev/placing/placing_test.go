package main

import (
	"math/rand/v2"
	"testing"

	"github.com/coditect/mapreduce/internal/placement"
)

// No job is late that could have been in time, whatever is drawn. No policy that is never late and does not know
// what will be drawn is more than a few hundredths cheaper; and what hindsight would have saved is as far as the last minutes
// before a deadline go, in which a batch might still have returned.
func TestJobsAreInTime(t *testing.T) {
	for _, offer := range []placement.Offer{{Batch: true}, {Batch: true, Flex: true, Priority: true}} {
		f := simulate(1000, 1, offer)
		if f.all.jobs < 900 {
			t.Errorf("%+v: %d of 1,000 jobs were refused", offer, f.refused)
		}
		if f.all.late > 0 {
			t.Errorf("%+v: %d of %d jobs are late", offer, f.all.late, f.all.jobs)
		}
		if f.all.unlucky > 5 {
			t.Errorf("%+v: %d of %d jobs are late that batches would have saved", offer, f.all.unlucky, f.all.jobs)
		}
		if above := percent(f.all.policy, f.all.best); above > 3 {
			t.Errorf("%+v: jobs cost %.1f %% more than by the best that does not know what is drawn", offer, above)
		}
		if above := percent(f.roomy.policy, f.roomy.hindsight); above > 3 {
			t.Errorf("%+v: jobs with room cost %.1f %% more than in hindsight", offer, above)
		}
		if f.all.policy >= f.all.realTime {
			t.Errorf("%+v: batches have saved nothing", offer)
		}
	}
}

// The bounds hold: hindsight costs no more than any policy, and the program that is best without it no more, on
// average, than this one, but for what it simplifies.
func TestBoundsAreBelow(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	var policy, best float64
	for range 300 {
		j := draw(random, placement.Offer{Batch: true})
		if j.isRefused() {
			continue
		}
		cost, _ := follow(j)
		known, _ := hindsight(j)
		if cost < known-1e-6 {
			t.Errorf("a job costs %v, and in hindsight %v", cost, known)
		}
		whole := atOnce(j)
		policy, best = policy+cost/whole, best+uninformed(j)/whole
	}
	if best > policy*1.02 {
		t.Errorf("the best policy costs %v, and this one %v", best, policy)
	}
}
