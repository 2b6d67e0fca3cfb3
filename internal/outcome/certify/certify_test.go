package certify_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/outcome/certify"
)

// TestLabels compares how many labels certify a thousand items that are all right with what
// the formulas of the papers give, computed apart from this package.
func TestLabels(t *testing.T) {
	for _, c := range []struct {
		target      float64
		ninety, all int // labels with a confidence of 0.9 and of 0.95
	}{
		{0.8, 14, 18}, {0.9, 29, 37}, {0.95, 58, 75}, {0.98, 141, 179}, {0.99, 263, 328},
	} {
		need := int(math.Round(c.target * 1000))
		if n := certify.Labels(1000, need, 0.1); n != c.ninety {
			t.Errorf("target %v, confidence 0.9: %d labels, want %d", c.target, n, c.ninety)
		}
		if n := certify.Labels(1000, need, 0.05); n != c.all {
			t.Errorf("target %v, confidence 0.95: %d labels, want %d", c.target, n, c.all)
		}
	}
}

func labelOf(right bool) certify.Label {
	if right {
		return certify.Right
	}
	return certify.Wrong
}

// byRank returns a trial of items that stand by their scores.
func byRank(t testing.TB, rules certify.Rules, n int) *certify.Trial {
	t.Helper()
	scores := make([]certify.Score, n)
	for i := range scores {
		scores[i] = certify.Score(n - i)
	}
	trial, err := certify.New(rules, scores)
	if err != nil {
		t.Fatal(err)
	}
	return trial
}

// TestWhole holds trials whose labels are all at hand to those that draw some at a time: coverage is
// measured by the former, and the latter is what a job does.
func TestWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "items")
		rules := certify.Rules{
			Target: rapid.SampledFrom(targets).Draw(t, "target"), Confidence: confidence, Seed: rapid.Uint64().Draw(t, "seed"),
			Alone: rapid.Bool().Draw(t, "alone"),
		}
		right := make([]bool, n)
		of := rapid.SampledFrom(curves).Draw(t, "curve")
		of.fill(right, rules.Target, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "items' seed"), 1)))
		scores := make([]certify.Score, n)
		for i := range scores {
			scores[i] = certify.Score(n - i)
		}
		trial, err := certify.New(rules, scores)
		if err != nil {
			t.Fatal(err)
		}

		drawn := make(map[int]bool)
		s := certify.Step{Draw: []int{-1}}
		for !s.Done() {
			s = trial.Next(func(item, _ int) certify.Label {
				if !drawn[item] {
					return certify.Unknown
				}
				return labelOf(right[item])
			})
			for _, item := range s.Draw {
				if drawn[item] {
					t.Fatalf("item %d is drawn twice", item)
				}
				drawn[item] = true
			}
		}

		trial.Redraw(rules.Seed)
		whole := new(certify.Whole).Run(trial, right)
		if whole.Verdict != s.Verdicts[0] || len(whole.Drawn) != len(drawn) {
			t.Fatalf("%s: in parts %+v after %d draws, and in one pass %+v after %d", of.name, s.Verdicts[0], len(drawn), whole.Verdict, len(whole.Drawn))
		}
		for _, item := range whole.Drawn {
			if !drawn[item] {
				t.Fatalf("%s: item %d is drawn in one pass alone", of.name, item)
			}
		}
	})
}

// TestManyMeasures holds each measure to the target by itself.
func TestManyMeasures(t *testing.T) {
	const n, runs = 400, 300
	rules := certify.Rules{Target: 0.9, Confidence: 0.9}
	short := 0
	for run := range runs {
		r := rand.New(rand.NewPCG(uint64(run), 7))
		rules.Seed = r.Uint64()
		scores, right := make([][]certify.Score, 3), make([][]bool, 3)
		for m := range scores {
			scores[m], right[m] = make([]certify.Score, n), make([]bool, n)
			for i := range n {
				scores[m][i] = certify.Score(r.IntN(5)) // many are equal
				right[m][i] = r.Float64() < 0.8+0.05*float64(scores[m][i])
			}
		}

		trial, err := certify.New(rules, scores...)
		if err != nil {
			t.Fatal(err)
		}
		drawn := make(map[int]bool)
		var s certify.Step
		for {
			s = trial.Next(func(item, m int) certify.Label {
				if !drawn[item] {
					return certify.Unknown
				}
				return labelOf(right[m][item])
			})
			if s.Done() {
				break
			}
			for _, item := range s.Draw {
				drawn[item] = true
			}
		}

		for m := range right {
			asOracle := 0
			for i := range n {
				if right[m][i] || drawn[i] || !trial.Accepts(s.Verdicts, i) {
					asOracle++
				}
			}
			if float64(asOracle) < rules.Target*n {
				short++
			}
		}
	}
	if short > 3*runs/10 {
		t.Errorf("%d of %d measures are short of the target, at most a tenth may be", short, 3*runs)
	}
}

// TestLabelsMayComeInAnyOrder gives labels in parts, as they come when workers are killed: the
// decision is that of a run that is not disturbed, and no item is drawn that it did not draw. Where
// the first labels of a look decide already, the rest of them need not be drawn.
func TestLabelsMayComeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "items")
		rules := certify.Rules{
			Target: rapid.Float64Range(0.5, 0.99).Draw(t, "target"), Confidence: rapid.Float64Range(0.5, 0.99).Draw(t, "confidence"),
			Seed: rapid.Uint64().Draw(t, "seed"),
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "labels"), 1))
		scores, right := make([]certify.Score, n), make([]bool, n)
		for i := range n {
			scores[i], right[i] = certify.Score(r.IntN(50)), r.Float64() < 0.95
		}

		decide := func(inParts bool) (drawn map[int]bool, v certify.Verdict) {
			drawn = make(map[int]bool)
			for {
				trial, err := certify.New(rules, scores) // as another process would
				if err != nil {
					t.Fatal(err)
				}
				s := trial.Next(func(item, _ int) certify.Label {
					if !drawn[item] {
						return certify.Unknown
					}
					return labelOf(right[item])
				})
				if s.Done() {
					return drawn, s.Verdicts[0]
				}
				some := s.Draw
				if inParts {
					r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
					some = some[:1+r.IntN(len(some))]
				}
				for _, item := range some {
					drawn[item] = true
				}
			}
		}

		whole, first := decide(false)
		parts, second := decide(true)
		if first != second {
			t.Fatalf("%+v after %d draws, and in parts %+v after %d", first, len(whole), second, len(parts))
		}
		for item := range parts {
			if !whole[item] {
				t.Fatalf("item %d is drawn only if labels come in parts", item)
			}
		}
	})
}

func TestFewest(t *testing.T) {
	for _, c := range []struct {
		target           float64
		n, labels, saved int
	}{
		{0.95, 100, 59, 41},
		{0.95, 200, 69, 131},
		{0.95, 1_000, 85, 915},
		{0.99, 1_000, 341, 659},
		{0.99, 10_000, 391, 9_609},
		{0.8, 50, 16, 34},
		{0.95, 0, 0, 0},
		{0.95, 1, 1, 0},
	} {
		labels, saved, err := certify.Fewest(certify.Rules{Target: c.target, Confidence: 0.95, Seed: 1}, c.n)
		if err != nil || labels != c.labels || saved != c.saved {
			t.Errorf("target %v of %d items: %d labels save %d, %v; want %d and %d", c.target, c.n, labels, saved, err, c.labels, c.saved)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, bad := range []certify.Rules{
		{Target: 0, Confidence: 0.95},
		{Target: 1, Confidence: 0.95},
		{Target: 0.9, Confidence: 1},
		{Target: 0.9, Confidence: -1},
		{Target: math.NaN(), Confidence: 0.9},
		{Target: 0.9, Confidence: math.Inf(1)},
		{Target: 95, Confidence: 0.95},
	} {
		if _, err := certify.New(bad, make([]certify.Score, 3)); err == nil || !strings.Contains(err.Error(), "more than 0 and less than 1") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := certify.New(certify.Rules{Target: 0.9, Confidence: 0.9}); err == nil {
		t.Error("a trial without a measure was made")
	}
	if _, err := certify.New(certify.Rules{Target: 0.9, Confidence: 0.9}, make([]certify.Score, 3), make([]certify.Score, 2)); err == nil {
		t.Error("measures of different items were taken")
	}
}

func BenchmarkTrial(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := certify.Fewest(certify.Rules{Target: 0.95, Confidence: 0.95}, n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
