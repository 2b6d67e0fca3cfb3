package main

import (
	"math/rand/v2"
	"testing"

	"github.com/coditect/mapreduce/internal/placement"
)

// No job is late that could have been in time, whatever is drawn: of fleets, limits of tokens, second calls and other jobs
// at the same time. All of them cost within three hundredths of what they would in hindsight, and those with room
// almost the same. No policy that is never late and does not know what will be drawn is more than a few hundredths
// cheaper.
func TestJobsAreInTime(t *testing.T) {
	for _, offer := range offers() {
		f := simulate(1000, 1, offer)
		if f.all.jobs < 850 || f.together.jobs < 500 || f.single < 20 {
			t.Errorf("%+v: %d of 1,000 jobs were refused, %d of the others ran beside others, and %d alone", offer, f.refused, f.together.jobs, f.single)
		}
		if f.all.late > 0 {
			t.Errorf("%+v: %d of %d jobs are late", offer, f.all.late, f.all.jobs)
		}
		if f.all.overtaken > f.all.jobs/200 {
			t.Errorf("%+v: %d of %d jobs are late for others that came after them", offer, f.all.overtaken, f.all.jobs)
		}
		if f.all.unlucky > f.all.jobs/100 {
			t.Errorf("%+v: %d of %d jobs are late that batches would have saved", offer, f.all.unlucky, f.all.jobs)
		}
		if above := percent(f.all.policy, f.all.hindsight); above > 3 {
			t.Errorf("%+v: jobs cost %.1f %% more than in hindsight", offer, above)
		}
		if above := percent(f.policy, f.informed); above > 3 {
			t.Errorf("%+v: jobs that are alone cost %.1f %% more than by the best that does not know what is drawn", offer, above)
		}
		if above := percent(f.roomy.policy, f.roomy.hindsight); above > 1 {
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
	for n := range 4000 {
		g := draw(random, placement.Offer{Batch: true})
		single := len(g.jobs) == 1 && g.jobs[0].again == 0 && !g.jobs[0].isRefused()
		if n >= 200 && !single {
			continue
		}
		for i, r := range follow(g, false) {
			known, _ := hindsight(g, g.jobs[i])
			if r.cost < known-1e-3 {
				t.Errorf("a job costs %v, and in hindsight %v", r.cost, known)
			}
			if single {
				whole := atOnce(r.job)
				policy, best = policy+r.cost/whole, best+uninformed(g)/whole
			}
		}
	}
	if best > policy*1.02 {
		t.Errorf("the best policy costs %v, and this one %v", best, policy)
	}
}

// A policy that forgets one of the things that are drawn is late, or dearer than need be: the draws are such that each of
// them matters.
func TestDrawsMatter(t *testing.T) {
	for name, forget := range map[string]func(j *job){
		"second calls":       func(j *job) { j.work.Each = 1 },
		"limits of tokens":   func(j *job) { j.work.Minute = 0 },
		"how long calls are": func(j *job) { j.work.Call /= 2 },
	} {
		random := rand.New(rand.NewPCG(3, 45))
		late := 0
		for range 300 {
			g := draw(random, placement.Offer{Batch: true})
			byMoney := follow(g, true)
			for _, j := range g.jobs {
				forget(j)
			}
			for i, r := range follow(g, false) {
				if r.ended > r.due() && byMoney[i].ended <= r.due() {
					late++
				}
			}
		}
		if late == 0 {
			t.Errorf("without regard to %s no job is late", name)
		}
	}
}
