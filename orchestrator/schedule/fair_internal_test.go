package schedule

import (
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A quietPeer is a worker that reads all that it is told.
type quietPeer struct{}

func (quietPeer) Send(*protocol.ToWorker) {}
func (quietPeer) Lags() bool              { return false }
func (quietPeer) Stop(error)              {}

// A tenant of which no worker can run anything has the fewest units of all. Its jobs must
// not be the only ones that are looked at when a slot is free.
func TestJobsThatNobodyCanRunKeepNoOthersWaiting(t *testing.T) {
	s := New(Config{Now: time.Now})
	s.workers.Bind(workers.NewSession(&protocol.Hello{Session: "w", Slots: 4}, "working", 1, false, quietPeer{}), nil, s.node, s.now())
	starve := func(tenant mapreduce.TenantID, id string) *Job {
		j := &Job{
			ID: mapreduce.JobID(id), tenant: tenant, spec: new(mapreduce.JobSpec), running: true,
		}
		j.setWants()
		j.grant.Begin(4)
		j.queue.Open(1, 1, make([]records.Candidate, 1))
		s.jobs.byID[j.ID] = j
		s.fairQueue.AddStarved(j)
		return j
	}
	for i := range 20 {
		starve("stuck", fmt.Sprint("stuck", i))
	}
	working := starve("working", "working0")
	s.jobs.addHeld(working, 1) // more than the other tenant has
	s.requeueStarved(s.now())
	if next, _ := s.fairQueue.Next(); next != working {
		t.Errorf("a slot is free, and next is %v; want the job that can have it", next)
	}
}

// A job that has candidates, though fewer than there are free slots, claims these before it
// reads on while another job waits for slots: it would have none when it has read, each time
// that its turn comes.
func TestAJobClaimsBeforeItReadsWhileOthersWait(t *testing.T) {
	for _, contended := range []bool{false, true} {
		s := New(Config{Now: time.Now, NewID: func() string { return "claim" }})
		s.workers.Bind(workers.NewSession(&protocol.Hello{Session: "w", Slots: 4}, "t", 1, false, quietPeer{}), nil, s.node, s.now())
		add := func(id string) *Job {
			j := &Job{
				ID: mapreduce.JobID(id), tenant: "t", spec: new(mapreduce.JobSpec), running: true,
			}
			j.setWants()
			j.grant.Begin(4)
			j.queue.PutBack(make([]records.Candidate, 1))
			s.jobs.byID[j.ID] = j
			return j
		}
		j := add("few")
		if contended {
			s.fairQueue.AddStarved(add("waits"))
		}
		task := s.taskFor(j)
		if task == nil || task.Scan == contended || contended && task.Turn.Claim == nil {
			t.Errorf("another job waits: %v; the task is %+v", contended, task)
		}
	}
}
