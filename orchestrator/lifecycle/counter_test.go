package lifecycle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/checked"
)

func counted(by string) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.Estimator = by }
}

// B15 and B17: a job's estimator decides how its documents are cut, how its outputs
// are packed and whether one unit takes all; one that guesses is warned of, once.
func TestB15JobsAreCountedAsTheyAsk(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.WorkerFor("rules", checked.New(enginetest.ByRules()), worker.Config{Slots: 4, Prefetch: 4}, n)
	docs, order := ordersOf(9, false)
	all := size(docs)
	guess := []string{"tokens are guessed: "}
	for _, tt := range []struct {
		name     string
		ask      enginetest.Ask
		direct   bool
		warnings []string
	}{
		{"one a character fits exactly", enginetest.Ask{enginetest.Piped(withHeadChef(kitchen)), enginetest.Budget(all), counted("characters/1")}, true, nil},
		{"one a character is one too many", enginetest.Ask{enginetest.Piped(withHeadChef(kitchen)), enginetest.Budget(all - 1), counted("characters/1")}, false, nil},
		{"a quarter fits", enginetest.Ask{enginetest.Piped(withHeadChef(kitchen)), enginetest.Budget(all/4 + 1), counted("characters")}, true, guess},
		{"a quarter does not fit", enginetest.Ask{enginetest.Piped(withHeadChef(kitchen)), enginetest.Budget(all/4 - 9), counted("characters")}, false, guess},
		{"levels of guesses are warned of once", enginetest.Ask{enginetest.Batches(20, 2), counted("characters")}, false, guess},
		{"tokens are not characters", enginetest.Ask{enginetest.Piped(withHeadChef(kitchen)), enginetest.Budget(all - 1)}, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order]}\n")
			for _, a := range tt.ask {
				a(&spec)
			}
			planned, err := n.PlanJob(t.Context(), mapreduce.PlanQuery{Spec: spec}, enginetest.Texts(docs, order...))
			if err != nil {
				t.Fatal(err)
			}
			id, got := n.Run(spec, enginetest.Texts(docs, order...))
			got.Cited(t, docs)
			job := n.End(id)
			if direct := len(n.Tasks(id)) == 1; direct != tt.direct {
				t.Errorf("one unit takes all: %t, want %t", direct, tt.direct)
			}
			var guesses []string
			for _, w := range job.Warnings {
				if strings.HasPrefix(w, guess[0]) {
					guesses = append(guesses, guess[0])
				}
			}
			if diff := cmp.Diff(tt.warnings, guesses); diff != "" {
				t.Errorf("warnings of guesses (-want +got):\n%s", diff)
			}
			told := false
			for _, w := range planned.Warnings {
				told = told || strings.HasPrefix(w.Message, guess[0])
			}
			if told != (tt.warnings != nil) {
				t.Errorf("the plan warns: %t", told)
			}
		})
	}
}

// B15: a document is cut by what the job counts.
func TestB15CutsFollowTheEstimator(t *testing.T) {
	n := checkedRules(t)
	text := strings.Repeat("Order A-1 was sent.\n", 40) // 800 characters
	for by, want := range map[string]int64{"characters/1": 3, "characters/2": 2, "characters": 1, "characters/16": 1} {
		spec := enginetest.Extracting(t, enginetest.Orders)
		spec.Estimator, spec.MaxTokensPerUnit, spec.ChunkOverlap = by, 300, -1
		planned, err := n.PlanJob(t.Context(), mapreduce.PlanQuery{Spec: spec}, enginetest.Texts(map[string]string{"a.txt": text}, "a.txt"))
		if err != nil {
			t.Fatal(err)
		}
		units := int64(0)
		for _, l := range planned.Levels {
			if l.Level == 0 {
				units = int64(l.Tasks)
			}
		}
		if units != want {
			t.Errorf("counted by %s the document is %d units, want %d", by, units, want)
		}
	}
}

func TestUnknownEstimatorsAreRefused(t *testing.T) {
	n := checkedRules(t)
	for _, by := range []string{"cl100k_base", "characters/0", "characters/1e9", "words"} {
		spec := enginetest.Extracting(t, enginetest.Orders)
		spec.Estimator = by
		_, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(map[string]string{"a.txt": "Order A-1"}, "a.txt"))
		if e, ok := errors.AsType[*errs.Error](err); !ok || e.Field != "estimator" || !strings.Contains(e.Message, "o200k_base") {
			t.Errorf("%s: error = %v; want one of the estimator that says what there is", by, err)
		}
	}
}
