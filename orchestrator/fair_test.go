package orchestrator_test

import (
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// Every slot that a unit of the large job frees could go to its next one, in the
// same turn. It must not, while others wait.
func TestASmallTenantIsServedBesideALargeOne(t *testing.T) {
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	c.worker(&scripted.Agent{}, worker.Config{Slots: 4}, n)
	large := script(map[string]string{"script.latency": "10ms"})
	large.Tenant = "large"
	id := n.submit(large, 4000)
	n.until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 0 })
	for range 3 {
		small := script(nil)
		small.Tenant = "small"
		n.wantEnd(n.submit(small, 5), mapreduce.JobComplete)
	}
	job, err := n.GetJob(t.Context(), id)
	if err != nil || job.State != mapreduce.Mapping {
		t.Errorf("when the small jobs are done, the large one is %v (%v), want it to map yet", job.State, err)
	}
	if _, err := n.CancelJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// While tenants come and go, one that has nearly all slots leaves some free, so
// that the others need not wait until its units end.
func TestATenantThatComesAndGoesFindsASlot(t *testing.T) {
	virtually(t, func(t *testing.T) {
		f := newFleet(t, 1, 1, nil, steady())
		f.join(worker.Config{Slots: 64})
		n := f.any()
		large := script(map[string]string{"script.latency": "600ms"})
		large.Tenant, large.Parallelism = "large", 64
		id := n.submit(large, 4000)
		n.until(id, func(j *mapreduce.Job) bool { return j.RunningUnits > 0 })
		var waits []time.Duration
		for range 10 {
			small := script(nil)
			small.Tenant = "small"
			start := time.Now()
			n.wantEnd(n.submit(small, 1), mapreduce.JobComplete)
			waits = append(waits, time.Since(start))
		}
		for _, w := range waits[2:] {
			if w > 500*time.Millisecond {
				t.Errorf("jobs of one unit took %v beside units of 600 ms, want no wait but at first", waits)
				break
			}
		}
		if _, err := n.CancelJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	})
}

// While all slots are busy, jobs wait for the next that is free. Their tenants take turns
// then: the only job of one is not behind each of the hundred of another.
func TestTheOnlyJobOfATenantIsNotBehindAHundred(t *testing.T) {
	virtually(t, func(t *testing.T) {
		f := newFleet(t, 1, 1, nil, steady())
		f.join(worker.Config{Slots: 4})
		n := f.any()
		var all []mapreduce.JobID
		for range 100 {
			many := script(map[string]string{"script.latency": "1s"})
			many.Tenant = "many"
			all = append(all, n.submit(many, 10))
		}
		n.until(all[0], func(j *mapreduce.Job) bool { return j.CompletedUnits > 0 })
		one := script(nil)
		one.Tenant = "one"
		start := time.Now()
		n.wantEnd(n.submit(one, 20), mapreduce.JobComplete)
		// Each worker holds a unit for each slot beside those that run, so units of the one
		// wait a second there at first, and its reduce does.
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("a job of 20 units that take no time took %v beside jobs of another tenant, want 6 s at most", took)
		}
	})
}
