package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker"
)

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
			enginetest.Virtually(t, func(t *testing.T) {
				f := enginetest.NewFleet(t, 1, tt.nodes, nil, enginetest.Steady())
				for i := range tt.workers {
					f.Join(worker.Config{Slots: tt.slots, Prefetch: i % 2})
				}
				spec := enginetest.Script(map[string]string{"script.latency": "lognormal:200ms,0.5"})
				spec.Parallelism, spec.ReduceContextLimit = tt.parallelism, 1<<30
				start := time.Now()
				id := f.Any().Submit(spec, 400)
				f.Any().Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits >= 400 })
				took := time.Since(start)
				most, sum := f.Counter.Peak(id)
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
	testenv.Raced(t)

	enginetest.Virtually(t, func(t *testing.T) {
		f := enginetest.NewFleet(t, 1, 2, nil, enginetest.Steady())
		leaves := f.Join(worker.Config{Slots: 4})
		spec := enginetest.Script(map[string]string{"script.latency": "100ms"})
		spec.Parallelism, spec.ReduceContextLimit = 4, 1<<30
		id := f.Any().Submit(spec, 200)
		f.Any().Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits >= 50 })
		f.Join(worker.Config{Slots: 4})
		leaves.Stop()
		start, left := time.Now(), 200-f.Counter.Made()
		f.Any().WantEnd(id, mapreduce.JobComplete)
		ideal := time.Duration(left/4) * 100 * time.Millisecond
		if took := time.Since(start); took > ideal+5*time.Second {
			t.Errorf("%d units took %v, want about %v", left, took, ideal)
		}
		if most, _ := f.Counter.Peak(id); most > 4 {
			t.Errorf("%d units ran at once, want at most 4", most)
		}
		if f.HasPassed(failpoint.Return.After()) == 0 {
			t.Error("nothing was given back: the test shows nothing")
		}
	})
}
