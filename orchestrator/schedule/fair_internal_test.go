package schedule

import (
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A quietPeer is a worker that reads all that it is told.
type quietPeer struct{}

func (quietPeer) Send(*mapreduce.ToWorker) {}
func (quietPeer) Lags() bool               { return false }
func (quietPeer) Stop(error)               {}

// A tenant of which no worker can run anything has the fewest units of all. Its jobs must
// not be the only ones that are looked at when a slot is free.
func TestJobsThatNobodyCanRunKeepNoOthersWaiting(t *testing.T) {
	b := New(Config{Now: time.Now})
	b.Sessions.bound["w"] = NewSession(&mapreduce.Hello{Session: "w", Slots: 4}, "working", 1, false, quietPeer{})
	starve := func(tenant mapreduce.TenantID, id string) *Job {
		r := &Job{
			ID: mapreduce.JobID(id), tenant: tenant, spec: new(mapreduce.JobSpec), running: true, drained: true, slots: 4,
			queue: make([]records.Candidate, 1),
		}
		b.runs[r.ID] = r
		b.fairQueue.addStarved(r)
		return r
	}
	for i := range 20 {
		starve("stuck", fmt.Sprint("stuck", i))
	}
	working := starve("working", "working0")
	b.addHeldUnits(working, 1) // more than the other tenant has
	b.requeueStarved(b.now())
	if next := b.fairQueue.nextJob(); next != working {
		t.Errorf("a slot is free, and next is %v; want the job that can have it", next)
	}
}
