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
	"time"

	"github.com/coditect/mapreduce/internal/placement"
)

func main() {
	jobs := flag.Int("jobs", 1000, "jobs that are drawn")
	seed := flag.Uint64("seed", 1, "of the draws")
	flag.Parse()
	for _, offer := range []placement.Offer{{Batch: true}, {Batch: true, Flex: true, Priority: true}} {
		printFigures(os.Stdout, simulate(*jobs, *seed, offer))
	}
}

// A tally sums up jobs. Costs are in prices of a call in the standard tier, each job's divided by what it
// costs in real time, so that each counts alike.
type tally struct {
	jobs, late, unlucky               int
	policy, hindsight, best, realTime float64
}

func (t *tally) add(o outcome) {
	t.jobs++
	if o.late {
		t.late++
	}
	if o.unlucky {
		t.unlucky++
	}
	t.policy, t.hindsight, t.best, t.realTime = t.policy+o.policy, t.hindsight+o.hindsight, t.best+o.best, t.realTime+o.realTime
}

// An outcome is what became of one job. It is late if it could have been in time with all calls bought at once, and
// unlucky if its calls were too slow for that and batches happened to be quicker.
type outcome struct {
	late, unlucky                     bool
	policy, hindsight, best, realTime float64
}

// Figures are what a simulation found.
type figures struct {
	offer                       placement.Offer
	refused, refusedButPossible int // of the latter hindsight had done some in time
	all, roomy, tight           tally
	byDraw                      []tally
}

// roomy is how many times as long as the rest takes in real time a job has, with the ending of batches, for it
// to count as one with room.
const roomy = 10

// simulate draws jobs and runs each.
func simulate(jobs int, seed uint64, offer placement.Offer) *figures {
	random := rand.New(rand.NewPCG(seed, 45)) //nolint:gosec // the same jobs each time
	f := &figures{offer: offer, byDraw: make([]tally, len(turnarounds))}
	for range jobs {
		j := draw(random, offer)
		known, possible := hindsight(j)
		if j.isRefused() {
			if f.refused++; possible {
				f.refusedButPossible++
			}
			continue
		}

		cost, ended := follow(j)
		whole := atOnce(j)
		missed, sure := ended > j.deadline, j.realTime() <= j.deadline
		o := outcome{late: missed && sure, unlucky: missed && !sure && possible, policy: cost / whole, hindsight: known / whole, best: uninformed(j) / whole, realTime: 1}
		f.all.add(o)
		for i := range turnarounds {
			if turnarounds[i].name == j.batches.name {
				f.byDraw[i].add(o)
			}
		}
		if j.deadline >= roomy*placement.Until(j.work, offer, j.work.Calls) {
			f.roomy.add(o)
		} else {
			f.tight.add(o)
		}
	}
	return f
}

// printFigures prints them.
func printFigures(w io.Writer, f *figures) {
	fmt.Fprintf(w, "offer %+v; deadlines from 30 minutes to 48 hours; %d more jobs were refused (%d of them possible in hindsight)\n", f.offer, f.refused, f.refusedButPossible)
	line := func(name string, t tally) {
		if t.jobs == 0 {
			return
		}
		fmt.Fprintf(w, "  %-70s %4d jobs, %d late, %d unlucky; cost beside hindsight %+.1f %%, beside the best that does not know %+.1f %%; of real time %.1f %%\n",
			name, t.jobs, t.late, t.unlucky, percent(t.policy, t.hindsight), percent(t.policy, t.best), 100*t.policy/t.realTime)
	}
	line("all", f.all)
	line(fmt.Sprintf("with %d times the time that buying all of it needs", roomy), f.roomy)
	line("with less", f.tight)
	for i, t := range f.byDraw {
		line(turnarounds[i].name, t)
	}
	fmt.Fprintf(w, "  (ending a batch: %v, looked at every %v)\n", placement.EndBatch, look.Round(time.Second))
}

func percent(a, b float64) float64 { return 100 * (a/b - 1) }
