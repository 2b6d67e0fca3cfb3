package confidence_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/outcome/certify"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/text/rules"
)

// savingTargets are those at which savings are measured.
var savingTargets = []float64{0.8, 0.9, 0.95, 0.99}

// A cheap is what a cheaper member answers about some items, with scores and whether it is right, by measure and item.
type cheap struct {
	scores [][]certify.Score
	right  [][]bool
}

// add adds an item that has one measure.
func (c *cheap) add(score float64, right bool) {
	if c.scores == nil {
		c.scores, c.right = make([][]certify.Score, 1), make([][]bool, 1)
	}
	c.scores[0] = append(c.scores[0], certify.Score(math.Round(score*1e6)))
	c.right[0] = append(c.right[0], right)
}

// A saving is what came of some runs.
type saving struct {
	saved, labels float64 // shares of the oracle's answers that were not asked for, and of those that were compared
	right         float64 // least share over the measures of values that are right then
	short         int     // runs and measures that miss the target
}

// saves runs trials of each target and prints a row of the table of docs/cascades.md: what is saved of the oracle's answers, how
// many were compared, and which share is right then.
func (c *cheap) saves(t *testing.T, name string) {
	t.Helper()
	n := len(c.scores[0])
	runs := max(20, min(200, 400_000/n))
	row := fmt.Sprintf("| %s | %d |", name, n)
	for _, target := range savingTargets {
		var sum saving
		for seed := range runs {
			one := c.run(t, certify.Rules{Target: target, Confidence: 0.95, Seed: uint64(seed)})
			sum.saved, sum.labels, sum.right, sum.short = sum.saved+one.saved, sum.labels+one.labels, sum.right+one.right, sum.short+one.short
		}

		of := float64(runs)
		row += fmt.Sprintf(" %.0f %%, %.0f, %.3f |", 100*sum.saved/of, sum.labels/of, sum.right/of)
		all := of * float64(len(c.scores))
		if most := all*0.05 + 4*math.Sqrt(all*0.05*0.95); float64(sum.short) > most {
			t.Errorf("%s, target %v: %d of %.0f runs and measures miss it, at most %.0f may", name, target, sum.short, all, most)
		}
	}
	t.Log(row)
}

// run runs a trial.
func (c *cheap) run(t *testing.T, rules certify.Rules) saving {
	t.Helper()
	trial, err := certify.New(rules, c.scores...)
	if err != nil {
		t.Fatal(err)
	}
	drawn := make([]bool, trial.Items())
	labels := 0
	step := certify.Step{Draw: []int{-1}}
	for !step.Done() {
		step = trial.Next(func(item, m int) certify.Label {
			switch {
			case !drawn[item]:
				return certify.Unknown
			case c.right[m][item]:
				return certify.Right
			}
			return certify.Wrong
		})
		for _, item := range step.Draw {
			drawn[item] = true
			labels++
		}
	}

	accepted, wrong := 0, make([]int, len(c.right))
	for item := range drawn {
		if drawn[item] || !trial.Accepts(step.Verdicts, item) {
			continue
		}
		accepted++
		for m := range wrong {
			if !c.right[m][item] {
				wrong[m]++
			}
		}
	}
	n := float64(trial.Items())
	s := saving{saved: float64(accepted) / n, labels: float64(labels), right: 1 - float64(slices.Max(wrong))/n}
	for _, w := range wrong {
		if n-float64(w) < rules.Target*n-1e-6 {
			s.short++
		}
	}
	return s
}

// TestCascadeOnReceipts has rules answer for the truth about receipts, with the computed confidences as scores: by field, by all
// fields together, as a run with per: field has it, and by whole records.
func TestCascadeOnReceipts(t *testing.T) {
	testenv.Lengthy(t)
	dir := testdata(t, "receipts")
	truth := readTruth(t, dir)
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "receipts", "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Parse("schema.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	p, err := rules.Compile(s)
	if err != nil {
		t.Fatal(err)
	}

	fields := []string{"date", "total", "company", "address"}
	all, whole := cheap{make([][]certify.Score, len(fields)), make([][]bool, len(fields))}, new(cheap)
	for _, doc := range truth {
		text, err := os.ReadFile(filepath.Join(dir, "docs", doc.Document))
		if err != nil {
			t.Fatal(err)
		}

		found, sure, each := receipt(t, s, p, doc.Document, string(text)), 1.0, true
		for m, name := range fields {
			right := eval.KeyOf(s.Field(name), found.Values[name]) == eval.KeyOf(s.Field(name), doc.Values[name])
			all.scores[m] = append(all.scores[m], certify.Score(found.Confidence[name]*1e6))
			all.right[m] = append(all.right[m], right)
			sure, each = sure*found.Confidence[name], each && right
		}
		whole.add(sure, each)
	}

	for m, name := range fields {
		one := cheap{all.scores[m : m+1], all.right[m : m+1]}
		one.saves(t, "receipts, "+name)
	}
	both := cheap{all.scores[:2], all.right[:2]}
	both.saves(t, "receipts, date and total")
	all.saves(t, "receipts, all four fields")
	whole.saves(t, "receipts, whole records")
}

// TestCascadeOnRe3d has readers answer for the truth about names of re3d.
func TestCascadeOnRe3d(t *testing.T) {
	testenv.Lengthy(t)
	all := passages(t)
	for _, tt := range []struct {
		name string
		hard float64
	}{{"careful", 0.1}, {"careless", 0.3}} {
		var c cheap
		for _, half := range []bool{false, true} {
			for _, j := range judged(all, half, tt.hard) {
				c.add(j.Confidence, j.Right)
			}
		}
		c.saves(t, "re3d, a "+tt.name+" reader")
	}
}

// TestCascadeOnRecordedAnswers has answers stand for others that were recorded elsewhere: each file of the folder is a set, each line
// a score and whether the answer is right.
func TestCascadeOnRecordedAnswers(t *testing.T) {
	testenv.Lengthy(t)
	files, err := filepath.Glob(filepath.Join(testdata(t, "recorded"), "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the folder recorded has no answers")
	}

	for _, file := range files {
		var c cheap
		lines(t, file, func(a struct {
			Score float64 `json:"score"`
			Right bool    `json:"right"`
		},
		) {
			c.add(a.Score, a.Right)
		})
		c.saves(t, strings.TrimSuffix(filepath.Base(file), ".jsonl"))
	}
}
