package certify_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/outcome/certify"
)

// A world is what documents are drawn from: each has a score from 0 to 999, and its answer is right with a probability
// that depends on the score.
type world struct {
	name  string
	right func(score, target float64) float64 // of a score from 0 to 1
}

var worlds = []world{
	{"99 of 100 right", func(float64, float64) float64 { return 0.99 }},
	{"just short of the target", func(_, target float64) float64 { return target - 0.001 }},
	{"worse from 1 to 0.6", func(s, _ float64) float64 { return 0.6 + 0.4*s }},
	{"scores are upside down", func(s, _ float64) float64 { return 1 - 0.3*s }},
	{"a wrong block just too large", func(s, target float64) float64 {
		if s > 0.5 && s <= 0.5+1.02*(1-target) {
			return 0
		}
		return 1
	}},
}

const scores = 1000

// risk is the share of documents that are wrong and above a floor.
func (w *world) risk(floor certify.Score, target float64) (risk, held float64) {
	for s := int(floor); s < scores; s++ {
		risk += (1 - w.right(float64(s)/scores, target)) / scores
		held += 1.0 / scores
	}
	return risk, held
}

// draw returns documents.
func (w *world) draw(n int, target float64, r *rand.Rand) (of []certify.Score, right []bool) {
	of, right = make([]certify.Score, n), make([]bool, n)
	for i := range n {
		s := r.IntN(scores)
		of[i], right[i] = certify.Score(s), r.Float64() < w.right(float64(s)/scores, target)
	}
	return of, right
}

// certified runs a trial to its end, and that of a certificate that lasts. It returns how many labels the latter added.
func certified(t testing.TB, rules certify.Rules, of []certify.Score, right []bool) (floors []certify.Score, labels, more int) {
	t.Helper()
	trial, err := certify.New(rules, of)
	if err != nil {
		t.Fatal(err)
	}

	drawn := make(map[int]bool)
	known := func(item, _ int) certify.Label {
		if !drawn[item] {
			return certify.Unknown
		}
		return labelOf(right[item])
	}
	add := func(items []int) {
		for _, item := range items {
			if drawn[item] {
				t.Fatalf("item %d is drawn twice", item)
			}
			drawn[item] = true
		}
	}

	s := trial.Next(known)
	for ; !s.Done(); s = trial.Next(known) {
		add(s.Draw)
	}
	labels = len(drawn)
	for {
		draw, floors := trial.Lasting(s.Verdicts, known)
		if len(draw) == 0 {
			if again := trial.Next(known); !again.Done() || again.Verdicts[0] != s.Verdicts[0] {
				t.Fatalf("with more labels the trial comes to %+v, and before to %+v", again.Verdicts, s.Verdicts)
			}
			return floors, labels, len(drawn) - labels
		}
		add(draw)
	}
}

// TestLasting holds certificates that last to what they say of other documents: of a world, and not of those at hand.
func TestLasting(t *testing.T) { coverLasting(t, 40, 200) }

// TestLastingAtLength has more runs: a tenth of those of TestCoverageAtLength, as documents are drawn in each of them.
func TestLastingAtLength(t *testing.T) {
	testenv.Lengthy(t)
	coverLasting(t, max(1, *coverageRuns/10), 200, 1000)
}

func coverLasting(t *testing.T, runs int, sizes ...int) {
	t.Helper()
	var table strings.Builder
	fmt.Fprintf(&table, "%-32s %6s %6s %8s %7s %7s %8s %8s\n", "world", "items", "target", "certify", "false", "held", "labels", "and more")
	for _, w := range worlds {
		for _, n := range sizes {
			for _, target := range targets {
				rules := certify.Rules{Target: target, Confidence: confidence}
				made, failed, labels, more, held := 0, 0, 0, 0, 0.0
				for i := range runs {
					r := rand.New(rand.NewPCG(uint64(i), uint64(n)))
					rules.Seed = r.Uint64()
					of, right := w.draw(n, target, r)
					floors, some, further := certified(t, rules, of, right)
					if labels, more = labels+some, more+further; len(floors) == 0 {
						continue
					}
					risk, share := w.risk(floors[0], target)
					if made, held = made+1, held+share; risk > 1-target+1e-9 {
						failed++
					}
				}

				all := float64(runs)
				fmt.Fprintf(&table, "%-32s %6d %6v %7.1f%% %7.4f %6.1f%% %8.1f %8.1f\n", w.name, n, target, 100*float64(made)/all, float64(failed)/all,
					100*held/max(1, float64(made)), float64(labels)/all, float64(more)/all)
				if most := (1 - confidence) + 4*math.Sqrt(confidence*(1-confidence)/all); float64(failed)/all > most {
					t.Errorf("%s, %d items, target %v: %d of %d certificates say what is not so", w.name, n, target, failed, runs)
				}
			}
		}
	}
	t.Logf("%d runs each; certify: runs with a certificate that lasts; false: it says what is not so; held: share of documents that it accepts; and more: labels for it beside those for the job\n%s", runs, table.String())
}

// TestDrift has jobs use a certificate whose answers become worse, and counts how long that takes to be noticed and how
// many wrong answers are accepted meanwhile.
func TestDrift(t *testing.T) { drift(t, 100) }

// TestDriftAtLength has more runs.
func TestDriftAtLength(t *testing.T) {
	testenv.Lengthy(t)
	drift(t, *coverageRuns)
}

func drift(t *testing.T, runs int) {
	t.Helper()
	const most = 20_000 // labels
	var table strings.Builder
	fmt.Fprintf(&table, "%-9s %6s %8s %9s %9s %9s %9s %9s\n", "documents", "target", "wrong", "labels", "jobs", "nineteen", "accepted", "wrong")
	for _, n := range []int{200, 1000, 10_000} {
		for _, target := range targets {
			rules := certify.Rules{Target: target, Confidence: confidence}
			limit := rules.Most(n, n)
			for _, wrong := range []float64{limit / 4, limit, 2 * limit, 4 * limit, 0.9} {
				if wrong > 0.9 {
					continue
				}
				o := dropped(t, rules, n, wrong, runs, most)
				fmt.Fprintf(&table, "%-9d %6v %8.4f %9.0f %9.1f %9d %9.1f %9.2f\n", n, target, wrong, o.labels, o.jobs, o.late, o.accepted, o.wrong)
				switch {
				case wrong <= limit && o.labels < certify.RunLength:
					t.Errorf("%d documents, target %v, %.3f wrong: a certificate falls after %.0f labels on average, at least %d are needed", n, target, wrong, o.labels, certify.RunLength)
				case wrong == 0.9 && o.jobs > 1.5:
					t.Errorf("%d documents, target %v: it takes %.1f jobs on average until somebody notices that nearly all is wrong", n, target, o.jobs)
				}
			}
		}
	}
	t.Logf("%d runs each, no more than %d labels; labels, jobs: until the certificate falls, on average, and nineteen of twenty within so many jobs; accepted, wrong: answers that were accepted before, and wrong ones of these, on average\n%s", runs, most, table.String())
}

// An outcome is what came of certificates until they fell, on average.
type outcome struct {
	labels, jobs, accepted, wrong float64
	late                          int
}

// dropped has jobs of n documents, all of which a certificate accepts, use it until it falls.
func dropped(t *testing.T, rules certify.Rules, n int, wrong float64, runs, most int) (o outcome) {
	t.Helper()
	trial, err := certify.New(rules, make([]certify.Score, n))
	if err != nil {
		t.Fatal(err)
	}

	// All jobs are alike but for the labels.
	held, sample := trial.Audit([]certify.Score{0}, 0)
	labels, took := make([]certify.Label, len(sample)), make([]int, most)
	for run := range runs {
		r := rand.New(rand.NewPCG(uint64(run), uint64(n)))
		var d certify.Drift
		for jobs := 1; ; jobs++ {
			for i := range labels {
				labels[i] = labelOf(r.Float64() >= wrong)
			}

			falls := d.Rejects(labels, rules.Most(len(held), n), 1)
			if falls || d.Labels >= int64(most) {
				o.labels, o.jobs = o.labels+float64(d.Labels), o.jobs+float64(jobs)
				took[min(jobs, most-1)]++
				break
			}
			accepted := float64(len(held) - len(sample))
			o.accepted, o.wrong = o.accepted+accepted, o.wrong+accepted*wrong
		}
	}

	of := float64(runs)
	o.labels, o.jobs, o.accepted, o.wrong = o.labels/of, o.jobs/of, o.accepted/of, o.wrong/of
	for within := 0; within < 19*runs/20; o.late++ {
		within += took[o.late]
	}
	o.late--
	return o
}

func TestAudit(t *testing.T) {
	two := [][]certify.Score{make([]certify.Score, 1000), make([]certify.Score, 1000)}
	for i := range 1000 {
		two[0][i], two[1][i] = certify.Score(i), certify.Score(999-i)
	}
	trial, err := certify.New(certify.Rules{Target: 0.9, Confidence: 0.9, Seed: 3}, two...)
	if err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		floors       []certify.Score
		held, sample int
	}{
		{[]certify.Score{0, 0}, 1000, 40},
		{[]certify.Score{100, 100}, 800, 40},
		{[]certify.Score{450, 450}, 100, 10},
		{[]certify.Score{497, 497}, 6, 6},
		{[]certify.Score{600, 600}, 0, 0},
		{[]certify.Score{0}, 0, 0}, // no floor of the other measure
	} {
		held, sample := trial.Audit(tt.floors, 0)
		if len(held) != tt.held || len(sample) != tt.sample {
			t.Errorf("floors %v: %d are held and %d drawn, want %d and %d", tt.floors, len(held), len(sample), tt.held, tt.sample)
		}
		for _, item := range held {
			if two[0][item] < tt.floors[0] || two[1][item] < tt.floors[1] {
				t.Errorf("floors %v: item %d has the scores %d and %d", tt.floors, item, two[0][item], two[1][item])
			}
		}
	}
}

// Jobs of one seed that use a certificate one after the other look at other places, and one that is asked again at the same.
func TestAuditsLookElsewhere(t *testing.T) {
	trial, err := certify.New(certify.Rules{Target: 0.9, Confidence: 0.9, Seed: 3}, make([]certify.Score, 1000))
	if err != nil {
		t.Fatal(err)
	}

	seen := make(map[int]int)
	for uses := range int64(50) {
		held, sample := trial.Audit([]certify.Score{0}, uses)
		_, again := trial.Audit([]certify.Score{0}, uses)
		if len(held) != 1000 || len(sample) != 40 || !slices.Equal(sample, again) {
			t.Fatalf("use %d: %d are held, %d drawn, and then %d", uses, len(held), len(sample), len(again))
		}
		for _, item := range sample {
			seen[item]++
		}
	}

	// Of 1,000 places 2,000 draws hit 870 in the mean, and none of them 13 times but once in 10,000 trials.
	most := slices.Max(slices.Collect(maps.Values(seen)))
	if len(seen) < 800 || most > 13 {
		t.Errorf("50 audits of 40 items have looked at %d of 1,000, at one of them %d times", len(seen), most)
	}
}

// A drift is the same whether its labels come at once or job by job.
func TestDriftGoesOn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	labels := make([]certify.Label, 90)
	for i := range labels {
		labels[i] = labelOf(r.Float64() < 0.9)
	}
	var whole, parts certify.Drift
	whole.Rejects(labels, 0.1, 1)
	for i := 0; i < len(labels); i += 30 {
		before := parts.Clone()
		parts.Rejects(labels[i:i+30], 0.1, 1)
		if len(before.Sums) > 0 && before.Sums[0] == parts.Sums[0] {
			t.Error("a copy changed with what it was made of")
		}
	}
	if fmt.Sprint(whole) != fmt.Sprint(parts) || whole.Labels != 90 || whole.Right == 0 {
		t.Errorf("at once %+v, and in parts %+v", whole, parts)
	}

	var all certify.Drift
	if all.Rejects(make([]certify.Label, 100), 1, 1); all.Sums[0] != 0 {
		t.Errorf("answers all of which may be wrong have shown %v", all.Sums)
	}
}
