package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
)

// The only server there is stops, in order or as in a crash, and comes back after ten
// seconds. By then workers try to reach it every few seconds, the one sooner than the other. They go
// on with what they had: no unit runs twice.
func TestUnitsOutliveTheRestartOfTheirOnlyServer(t *testing.T) {
	for i := range 8 {
		crash := i%2 == 1
		t.Run(fmt.Sprintf("%d crash %t", i, crash), func(t *testing.T) {
			testenv.Variant(t, i < 2)

			enginetest.Virtually(t, func(t *testing.T) {
				f := enginetest.NewFleet(t, uint64(i), 1, nil, orchestrator.Config{Adopt: true, Exclusive: true})
				for range 4 { // with slots for what others have
					f.Join(worker.Config{Slots: 8})
				}
				id := f.Any().Submit(enginetest.Script(map[string]string{"script.latency": "40s"}), 16)
				for f.Counter.Attempts() < 16 {
					<-time.After(100 * time.Millisecond)
				}
				f.Stop(0, crash)
				<-time.After(10 * time.Second)
				f.Start(0)
				job := f.Any().WantEnd(id, mapreduce.JobComplete)
				if got := f.Counter.Attempts(); int64(got) != job.TotalUnits {
					t.Errorf("%d attempts were begun for %d units", got, job.TotalUnits)
				}
			})
		})
	}
}
