package orchestrator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/fault"
)

// Whatever dies, what was really spent, on calls whose workers are gone as well,
// stays within the budget that was set at the time.
func TestSoakBudgets(t *testing.T) {
	for name, s := range map[string]storm{
		"calm":       {},
		"faults":     {rates: fault.Retryable(0.02)},
		"everything": {rates: fault.Retryable(0.01), outages: true, nodes: true, drains: true, kills: true, freezes: true},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "everything" {
				testenv.Unraced(t, testenv.Alike)
			}

			for seed := range testenv.Storms(t, 2) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					enginetest.Virtually(t, func(t *testing.T) { frugal(t, uint64(seed), s) })
				})
			}
		})
	}
}

const (
	callTokens = 400 // of stormSpec
	moreTokens = 40_000
)

// frugal runs a job whose budget is never enough, and is raised each time.
func frugal(t *testing.T, seed uint64, s storm) {
	f := enginetest.NewFleet(t, seed, 2, s.rates, enginetest.Steady())
	var members [3]*enginetest.Member
	for i := range members {
		members[i] = f.Join(stormWorker(i))
	}
	spec := stormSpec(seed)
	spec.Budget = moreTokens
	id, budget, pauses := f.Any().Submit(spec, stormDocuments), int64(moreTokens), 0
	for end := time.Now().Add(2 * time.Hour); ; {
		job, err := f.Any().GetJob(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if spent := f.Counter.Made() * callTokens; spent > budget || job.TotalTokens.Total() > budget {
			t.Fatalf("%d tokens are spent, and %d are reported, of %d", spent, job.TotalTokens.Total(), budget)
		}
		if job.State == mapreduce.JobComplete && job.FailedUnits == 0 {
			break
		}
		if !job.State.Running() {
			budget += moreTokens
			if _, err := f.Any().ResumeJob(t.Context(), id, mapreduce.Resume{Budget: budget}); err != nil {
				t.Fatal(err)
			}
			pauses++
		}
		if time.Now().After(end) {
			t.Fatalf("job has not ended: %+v", job)
		}
		strike(f, s, &members)
	}
	if pauses == 0 {
		t.Error("the budget was enough: the test shows nothing")
	}
	f.Faults.Heal()
	f.Faults.Settle()
	verify(f, id, pauses)
}
