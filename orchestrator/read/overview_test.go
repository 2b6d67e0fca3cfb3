package read_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/worker"
)

// Each server says which servers and workers there are, also of others, what waits, and that the
// store answers.
func TestFleetStatus(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f := enginetest.NewFleet(t, 1, 2, fault.Rates{}, enginetest.Steady())
		f.JoinTo(worker.Config{Slots: 3, Version: "v3"}, 0)
		f.JoinTo(worker.Config{Slots: 5, Version: "v5"}, 1)
		id := f.Node(0).Submit(enginetest.Script(map[string]string{"script.latency": "1h"}), 20)
		enginetest.Pass(t, 10*time.Second)

		for i := range 2 {
			got := fleetOf(t, f, i)
			if len(got.Servers) != 2 || got.Node != f.Node(i).Jobs.Node() || !got.Store.Answers || got.Store.Commits == 0 {
				t.Errorf("server %d sees %+v", i, got)
			}
			known := slices.IndexFunc(got.Workers, func(w mapreduce.WorkerStatus) bool { return w.Known })
			if len(got.Workers) != 2 || known != 0 || got.Workers[0].Version != fmt.Sprintf("v%d", 3+2*i) || got.Workers[0].Slots != 3+2*i || got.Workers[1].Known {
				t.Errorf("server %d sees workers %+v", i, got.Workers)
			}
			if got.Workers[0].Node != got.Node || got.Workers[1].Node != f.Node(1-i).Jobs.Node() {
				t.Errorf("server %d sees workers at %s and %s", i, got.Workers[0].Node, got.Workers[1].Node)
			}
			if len(got.Tenants) != 1 || got.Tenants[0].Jobs != 1 || got.Tenants[0].Running == 0 {
				t.Errorf("server %d sees queues %+v of job %s", i, got.Tenants, id)
			}
		}
	})
}

func fleetOf(t *testing.T, f *enginetest.Fleet, i int) *mapreduce.FleetStatus {
	t.Helper()
	got, err := f.Node(i).FleetStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}
