package confidence_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/certify"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/text/rules"
)

// TestCascadeOnReceipts certifies what rules find in receipts, field by field, by the truth, with
// the computed confidences as scores. It prints how much is saved, and how right the results are.
func TestCascadeOnReceipts(t *testing.T) {
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

	fields := []string{"company", "date", "address", "total"}
	scores, right := make([][]certify.Score, len(fields)), make([][]bool, len(fields))
	for _, doc := range truth {
		text, err := os.ReadFile(filepath.Join(dir, "docs", doc.Document))
		if err != nil {
			t.Fatal(err)
		}
		found := receipt(t, s, p, doc.Document, string(text))
		for m, name := range fields {
			scores[m] = append(scores[m], certify.Score(found.Confidence[name]*1e6))
			right[m] = append(right[m], eval.KeyOf(s.Field(name), found.Values[name]) == eval.KeyOf(s.Field(name), doc.Values[name]))
		}
	}

	const runs = 200
	for m, name := range fields {
		for _, target := range []float64{0.8, 0.9, 0.95, 0.99} {
			var saved, labels, short int
			achieved := 0.0
			for seed := range uint64(runs) {
				trial, err := certify.New(certify.Rules{Target: target, Confidence: 0.95, Seed: seed}, scores[m])
				if err != nil {
					t.Fatal(err)
				}

				drawn := make(map[int]bool)
				step := certify.Step{Draw: []int{-1}}
				for !step.Done() {
					step = trial.Next(func(item, _ int) certify.Label {
						switch {
						case !drawn[item]:
							return certify.Unknown
						case right[m][item]:
							return certify.Right
						}
						return certify.Wrong
					})
					for _, item := range step.Draw {
						drawn[item] = true
					}
				}

				good := 0
				for i := range truth {
					accepted := !drawn[i] && trial.Accepts(step.Verdicts, i)
					if accepted {
						saved++
					}
					if !accepted || right[m][i] {
						good++
					}
				}
				labels += len(drawn)
				share := float64(good) / float64(len(truth))
				if achieved += share; share < target {
					short++
				}
			}

			t.Logf("%-8s target %.2f: saved %4.1f %%, labels %5.1f, achieved %.4f on average, short in %d of %d", name, target,
				100*float64(saved)/runs/float64(len(truth)), float64(labels)/runs, achieved/runs, short, runs)
			if short > runs/10 { // 0.05 may be, and four deviations of that are 0.062
				t.Errorf("%s: %d of %d runs miss the target %v", name, short, runs, target)
			}
		}
	}
}
