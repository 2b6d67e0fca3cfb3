package orchestrator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/worker"
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
					virtually(t, func(t *testing.T) { frugal(t, uint64(seed), s) })
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
	f := newFleet(t, seed, 2, s.rates, steady())
	var members [3]*member
	for i := range members {
		members[i] = f.join(stormWorker(i))
	}
	spec := stormSpec(seed)
	spec.Budget = moreTokens
	id, budget, pauses := f.any().submit(spec, stormDocuments), int64(moreTokens), 0
	for end := time.Now().Add(2 * time.Hour); ; {
		job, err := f.any().GetJob(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if spent := f.counter.made() * callTokens; spent > budget || job.TotalTokens.Total() > budget {
			t.Fatalf("%d tokens are spent, and %d are reported, of %d", spent, job.TotalTokens.Total(), budget)
		}
		if job.State == mapreduce.JobComplete && job.FailedUnits == 0 {
			break
		}
		if !job.State.Running() {
			budget += moreTokens
			if _, err := f.any().ResumeJob(t.Context(), id, mapreduce.Resume{Budget: budget}); err != nil {
				t.Fatal(err)
			}
			pauses++
		}
		if time.Now().After(end) {
			t.Fatalf("job has not ended: %+v", job)
		}
		f.strike(s, &members)
	}
	if pauses == 0 {
		t.Error("the budget was enough: the test shows nothing")
	}
	f.faults.Heal()
	f.faults.Settle()
	f.verify(id, pauses)
}

// A job keeps its slots busy, however the workers are spread over
// orchestrators, and never has more of them.
func TestSlotsAreBusyAndNeverMore(t *testing.T) {
	for _, tt := range []struct{ nodes, workers, slots, parallelism int }{
		{1, 1, 20, 20},
		{1, 4, 5, 20},
		{2, 4, 10, 20},
		{2, 3, 4, 9},
		{3, 6, 2, 12},
	} {
		name := fmt.Sprintf("%d units on %d workers of %d slots and %d orchestrators", tt.parallelism, tt.workers, tt.slots, tt.nodes)
		t.Run(name, func(t *testing.T) {
			testenv.Variant(t, tt.nodes == 3)

			virtually(t, func(t *testing.T) {
				f := newFleet(t, 1, tt.nodes, nil, steady())
				for i := range tt.workers {
					f.join(worker.Config{Slots: tt.slots, Prefetch: i % 2})
				}
				spec := script(map[string]string{"script.latency": "lognormal:200ms,0.5"})
				spec.Parallelism, spec.ReduceContextLimit = tt.parallelism, 1<<30
				start := time.Now()
				id := f.any().submit(spec, 400)
				f.any().until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits >= 400 })
				took := time.Since(start)
				most, sum := f.counter.peak(id)
				if most > tt.parallelism {
					t.Errorf("%d units ran at once, want at most %d", most, tt.parallelism)
				}
				if busy := sum.Seconds() / took.Seconds() / float64(tt.parallelism); busy < 0.8 {
					t.Errorf("slots were busy %.0f %% of the time, want more than 80 %%", 100*busy)
				}
			})
		})
	}
}

// The workers of one orchestrator leave. Its slots go to the other, at once and
// not when it is dead.
func TestSlotsAreGivenBack(t *testing.T) {
	virtually(t, func(t *testing.T) {
		f := newFleet(t, 1, 2, nil, steady())
		leaves := f.join(worker.Config{Slots: 4})
		spec := script(map[string]string{"script.latency": "100ms"})
		spec.Parallelism, spec.ReduceContextLimit = 4, 1<<30
		id := f.any().submit(spec, 200)
		f.any().until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits >= 50 })
		f.join(worker.Config{Slots: 4})
		leaves.stop()
		start, left := time.Now(), 200-f.counter.made()
		f.any().wantEnd(id, mapreduce.JobComplete)
		ideal := time.Duration(left/4) * 100 * time.Millisecond
		if took := time.Since(start); took > ideal+5*time.Second {
			t.Errorf("%d units took %v, want about %v", left, took, ideal)
		}
		if most, _ := f.counter.peak(id); most > 4 {
			t.Errorf("%d units ran at once, want at most 4", most)
		}
		if f.hasPassed(failpoint.Return.After()) == 0 {
			t.Error("nothing was given back: the test shows nothing")
		}
	})
}
