package certify_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/outcome/certify"
)

// A curve says which of some items are right, the one with the highest score first.
type curve struct {
	name  string
	fill  func(all []bool, target float64, r *rand.Rand)
	fixed bool // whatever the target is
}

// byChance are items that are right with a probability by their rank, from 0 to 1.
func byChance(name string, p func(rank float64) float64) curve {
	return curve{name: name, fixed: true, fill: func(all []bool, _ float64, r *rand.Rand) {
		for i := range all {
			all[i] = r.Float64() < p(float64(i)/float64(len(all)))
		}
	}}
}

// curves are good, bad and adversarial.
var curves = []curve{
	byChance("always right", func(float64) float64 { return 1 }),
	byChance("99 of 100 right", func(float64) float64 { return 0.99 }),
	byChance("worse from 1 to 0.6", func(x float64) float64 { return 1 - 0.4*x }),
	byChance("good half", func(x float64) float64 { return []float64{0.99, 0.5}[int(2*x)] }),
	byChance("scores say nothing", func(float64) float64 { return 0.9 }),
	byChance("scores are upside down", func(x float64) float64 { return 0.5 + 0.5*x }),
	byChance("never right", func(float64) float64 { return 0 }),
	{name: "one short of the target, spread", fill: func(all []bool, target float64, r *rand.Rand) {
		fillFirst(all, oneShort(len(all), target))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}},
	{name: "one short of the target, the wrong ones last", fill: func(all []bool, target float64, _ *rand.Rand) {
		fillFirst(all, oneShort(len(all), target))
	}},
	{name: "one short of the target, the wrong ones first", fill: func(all []bool, target float64, _ *rand.Rand) {
		fillFirst(all, oneShort(len(all), target))
		slices.Reverse(all)
	}},
	{name: "one short of the target, half of the wrong ones in the first step", fill: func(all []bool, target float64, r *rand.Rand) {
		// The first step has as many wrong ones as it may have without being one too many by far.
		n := len(all)
		fillFirst(all, n)
		wrong := n - oneShort(n, target)
		first := n / 20
		for i := range wrong {
			if i < wrong/2 && i < first {
				all[i] = false
				continue
			}
			all[n-1-i] = false
		}
		r.Shuffle(first, func(i, j int) { all[i], all[j] = all[j], all[i] })
	}},
	{name: "a wrong block in the middle", fill: func(all []bool, target float64, _ *rand.Rand) {
		fillFirst(all, len(all))
		for i := range int((1-target)*float64(len(all))) + 1 {
			all[len(all)/2+i] = false
		}
	}},
}

// oneShort is one less than the target needs of n.
func oneShort(n int, target float64) int { return int(math.Ceil(target*float64(n)-1e-9)) - 1 }

// fillFirst has the first items be right.
func fillFirst(all []bool, right int) {
	for i := range all {
		all[i] = i < right
	}
}

// A tally is what came of some runs.
type tally struct {
	runs, short, false, labels, accepted, labelsAsPaper, acceptedAsPaper int
}

// add adds what came of a run. The items stand by their scores.
func (c *tally) add(rules certify.Rules, right []bool, run, asPaper certify.Run) {
	n := len(right)
	inFirst := 0
	for _, is := range right[:run.First] {
		if is {
			inFirst++
		}
	}

	// What was drawn is the oracle's, right or wrong.
	wrong := run.First - inFirst
	for _, item := range run.Drawn {
		if item < run.First && !right[item] {
			wrong--
		}
	}

	c.runs++
	need := int(math.Ceil(rules.Target*float64(n) - 1e-9))
	if n-wrong < need {
		c.short++
	}
	if inFirst < need-(n-run.First) {
		c.false++
	}
	c.labels, c.accepted = c.labels+len(run.Drawn), c.accepted+acceptedBy(run)
	c.labelsAsPaper, c.acceptedAsPaper = c.labelsAsPaper+len(asPaper.Drawn), c.acceptedAsPaper+acceptedBy(asPaper)
}

// acceptedBy is how many items a run accepts.
func acceptedBy(run certify.Run) int {
	n := run.First
	for _, item := range run.Drawn {
		if item < run.First {
			n--
		}
	}
	return n
}

// plus adds up what came of other runs.
func (c *tally) plus(o tally) {
	c.runs, c.short, c.false = c.runs+o.runs, c.short+o.short, c.false+o.false
	c.labels, c.accepted = c.labels+o.labels, c.accepted+o.accepted
	c.labelsAsPaper, c.acceptedAsPaper = c.labelsAsPaper+o.labelsAsPaper, c.acceptedAsPaper+o.acceptedAsPaper
}

// confidence is that of the trials below.
const confidence = 0.95

// targets are those of the trials below.
var targets = []float64{0.8, 0.9, 0.95, 0.99}

// TestCoverage runs trials of items whose right answers are known. In at most the share of runs
// that the confidence leaves may more be accepted than is right, whatever the items are. The
// answers as they come out are better yet: what was labelled is the oracle's.
func TestCoverage(t *testing.T) {
	for _, n := range []int{100, 300} {
		report(t, n, cover(t, n, 0, 60, 1))
	}
}

// How TestCoverageAtLength runs. With 10,000 runs it sees a failure in a hundred too many.
var (
	coverageRuns  = flag.Int("certify.runs", 2_000, "how often TestCoverageAtLength runs each trial")
	coverageItems = flag.String("certify.items", "100,1000", "of how many items, with commas between")
	coverageFrom  = flag.Int("certify.from", 0, "the number of the first run: runs of other numbers draw otherwise")
	coverageCores = flag.Int("certify.cores", 1, "how many runs go at once")
)

// TestCoverageAtLength has more runs.
func TestCoverageAtLength(t *testing.T) {
	testenv.Lengthy(t)
	for text := range strings.SplitSeq(*coverageItems, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		report(t, n, cover(t, n, *coverageFrom, *coverageRuns, *coverageCores))
	}
}

// A sums is what came of runs, by curve and target.
type sums [][]tally

func newSums() sums {
	all := make(sums, len(curves))
	for i := range all {
		all[i] = make([]tally, len(targets))
	}
	return all
}

// cover runs trials of n items of each curve and target so often, some at once. What a run draws is the same
// for all of them, as that depends on its number alone; runs are independent of each other.
func cover(t testing.TB, n, from, runs, cores int) sums {
	t.Helper()
	all := newSums()
	var mu sync.Mutex // guards all
	var done atomic.Int64
	var wait sync.WaitGroup
	for range cores {
		trial := byRank(t, certify.Rules{Target: targets[0], Confidence: confidence}, n)
		wait.Go(func() {
			own, w, right := newSums(), new(certify.Whole), make([]bool, n)
			for i := done.Add(1) - 1; i < int64(runs); i = done.Add(1) - 1 {
				own.run(trial, w, right, uint64(from)+uint64(i))
			}

			mu.Lock()
			defer mu.Unlock()
			for c := range all {
				for k := range all[c] {
					all[c][k].plus(own[c][k])
				}
			}
		})
	}
	wait.Wait()
	return all
}

// run runs trials of each curve and target once.
func (s sums) run(trial *certify.Trial, w *certify.Whole, right []bool, number uint64) {
	n := len(right)
	trial.Redraw(rand.New(rand.NewPCG(number, uint64(n))).Uint64())
	for i, c := range curves {
		r := rand.New(rand.NewPCG(number, uint64(n)<<8|uint64(i)))
		for k, target := range targets {
			if k == 0 || !c.fixed {
				c.fill(right, target, r)
			}
			of := trial.For(target)
			s[i][k].add(certify.Rules{Target: target, Confidence: confidence}, right, w.Run(of, right), w.RunAsPaper(of, right))
		}
	}
}

// report prints what came of runs, and holds the guarantee to it.
func report(t *testing.T, n int, all sums) {
	t.Helper()
	var table strings.Builder
	fmt.Fprintf(&table, "%-64s %7s %6s %7s %7s %8s %8s %8s %8s\n", "curve", "items", "target", "short", "false", "labels", "paper's", "saved", "paper's")
	missed, worst, most := 0.0, 0.0, 0.0
	for i, c := range curves {
		for k, target := range targets {
			sum := all[i][k]
			runs, items := float64(sum.runs), float64(sum.runs)*float64(n)
			failed := float64(sum.false) / runs
			fmt.Fprintf(&table, "%-64s %7d %6v %7.4f %7.4f %8.1f %8.1f %7.1f%% %7.1f%%\n", c.name, n, target, float64(sum.short)/runs,
				failed, float64(sum.labels)/runs, float64(sum.labelsAsPaper)/runs, 100*float64(sum.accepted)/items, 100*float64(sum.acceptedAsPaper)/items)

			// Four deviations of a share of (1-confidence) in so many runs.
			missed, worst = max(missed, float64(sum.short)/runs), max(worst, failed)
			most = (1 - confidence) + 4*math.Sqrt(confidence*(1-confidence)/runs)
			if failed > most {
				t.Errorf("%s, %d items, target %v: %.4f of the runs certify what is not so, at most %.4f may", c.name, n, target, failed, most)
			}
		}
	}
	t.Logf("%d items, %d runs of each row: at most %.4f miss the target, and %.4f certify what is not so; %.4f may, with four deviations %.4f;\nshort: the result misses the target; false: a certificate does; saved: of the oracle's answers; paper's: where it gives up\n%s",
		n, all[0][0].runs, missed, worst, 1-confidence, most, table.String())
}
