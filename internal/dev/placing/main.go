// Command placing simulates jobs with a deadline, whose batches return after times that are drawn, and prints
// what package placement makes of them: how many are late, and what they cost beside the best choice in
// hindsight, beside the best policy that does not know what will be drawn, and beside real time alone. It
// decides nothing, and says what it drew from.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/coditect/mapreduce/internal/placement"
)

func main() {
	jobs := flag.Int("jobs", 1000, "jobs that are drawn")
	seed := flag.Uint64("seed", 1, "of the draws")
	flag.Parse()
	for _, offer := range offers() {
		printFigures(os.Stdout, simulate(*jobs, *seed, offer))
	}
}

// offers are what models have beside the standard tier. Calls in flex take half of the usual time of a unit at most.
func offers() []placement.Offer {
	return []placement.Offer{{Batch: true}, {Batch: true, Flex: true, Priority: true, FlexTakes: 5 * time.Minute}}
}

// A tally sums up jobs. Costs are in prices of a call in the standard tier, each job's divided by what it
// costs in real time, so that each counts alike.
type tally struct {
	jobs, late                  int
	overtaken, unlucky          int
	policy, hindsight, realTime float64
}

func (t *tally) add(o outcome) {
	t.jobs++
	if o.late {
		t.late++
	}
	if o.overtaken {
		t.overtaken++
	}
	if o.unlucky {
		t.unlucky++
	}
	t.policy, t.hindsight, t.realTime = t.policy+o.policy, t.hindsight+o.hindsight, t.realTime+1
}

// An outcome is what became of one job. It is late if it was in time with all calls of its group made at once, unless it
// is overtaken: it would have been in time but for jobs that were submitted after it. It is unlucky if it was not,
// and batches might have saved it.
type outcome struct {
	late, overtaken, unlucky bool
	policy, hindsight        float64
}

// Figures are what a simulation found.
type figures struct {
	offer                       placement.Offer
	refused, refusedButPossible int // of the latter hindsight had done some in time
	all, roomy, tight           tally
	alone, together             tally
	byDraw                      []tally

	single           int // jobs that are alone, and whose units ask once
	policy, informed float64
}

// roomy is how many times as long as the rest takes in real time a job has, with the ending of batches, for it
// to count as one with room.
const roomy = 10

// simulate draws jobs and runs each group.
func simulate(jobs int, seed uint64, offer placement.Offer) *figures {
	random := rand.New(rand.NewPCG(seed, 45)) //nolint:gosec // the same jobs each time
	f := &figures{offer: offer, byDraw: make([]tally, len(turnarounds))}
	for f.all.jobs+f.refused < jobs {
		g := draw(random, offer)
		g.jobs = slices.DeleteFunc(g.jobs, func(j *job) bool {
			refused := j.isRefused()
			if refused {
				f.refused++
				if _, possible := hindsight(g, j); possible {
					f.refusedButPossible++
				}
			}
			return refused
		})
		f.addGroup(g)
	}
	return f
}

// addGroup runs the jobs of a group, by the policy and all at once.
func (f *figures) addGroup(g *group) {
	byPolicy, byMoney := follow(g, false), follow(g, true)
	for i, j := range g.jobs {
		known, possible := hindsight(g, j)
		whole := atOnce(j)
		missed, sure := byPolicy[i].ended > j.due(), byMoney[i].ended <= j.due()
		o := outcome{late: missed && sure, unlucky: missed && !sure && possible, policy: byPolicy[i].cost / whole, hindsight: known / whole}
		if o.late && isOvertaken(g, j) {
			o.late, o.overtaken = false, true
		}

		f.all.add(o)
		for n := range turnarounds {
			if turnarounds[n].name == j.batches.name {
				f.byDraw[n].add(o)
			}
		}
		if w := byPolicy[i].alone(); j.deadline >= roomy*placement.Until(w, f.offer, w.Units) {
			f.roomy.add(o)
		} else {
			f.tight.add(o)
		}
		if len(g.jobs) > 1 {
			f.together.add(o)
		} else {
			f.alone.add(o)
		}
		if len(g.jobs) == 1 && j.again == 0 {
			f.single++
			f.policy, f.informed = f.policy+o.policy, f.informed+uninformed(g)/whole
		}
	}
}

// isOvertaken reports whether a job is in time without those that begin after it.
func isOvertaken(g *group, j *job) bool {
	before := *g
	before.jobs = slices.DeleteFunc(slices.Clone(g.jobs), func(other *job) bool { return other.begins > j.begins })
	for _, r := range follow(&before, false) {
		if r.job == j {
			return r.ended <= j.due()
		}
	}
	return false
}

// printFigures prints them.
func printFigures(w io.Writer, f *figures) {
	fmt.Fprintf(w, "offer %+v; deadlines from 30 minutes to 48 hours; %d more jobs were refused (%d of them possible in hindsight)\n", f.offer, f.refused, f.refusedButPossible)
	line := func(name string, t tally) {
		if t.jobs == 0 {
			return
		}
		fmt.Fprintf(w, "  %-86s %4d jobs, %d late, %d overtaken, %d unlucky; cost beside hindsight %+.1f %%; of real time %.1f %%\n",
			name, t.jobs, t.late, t.overtaken, t.unlucky, percent(t.policy, t.hindsight), 100*t.policy/t.realTime)
	}

	line("all", f.all)
	line("alone", f.alone)
	line("several at once", f.together)
	line(fmt.Sprintf("with %d times the time that buying all of it needs", roomy), f.roomy)
	line("with less", f.tight)
	for i, t := range f.byDraw {
		line(turnarounds[i].name, t)
	}

	fmt.Fprintf(w, "  cost of %d that are alone and ask once beside the best that does not know what is drawn: %+.1f %%\n", f.single, percent(f.policy, f.informed))
	fmt.Fprintf(w, "  (ending a batch: %v, looked at every %v)\n", placement.EndBatch, look.Round(time.Second))
}

func percent(a, b float64) float64 { return 100 * (a/b - 1) }
