package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
)

// A Snapshot is what a scheduler sees at a moment.
type Snapshot struct {
	Workers workers.Count

	CallsGranted, CallsHeld int64 // units that ask models: those that may run at workers of this node, and those that do

	Tenants []TenantQueue // in no order
	Models  []model.View  // by name
}

// A TenantQueue is what waits of a tenant.
type TenantQueue struct {
	Tenant mapreduce.TenantID
	Jobs   int // that may run
	// Age is for how long a job has had waiting units of which none was claimed here: the
	// longest of all jobs of the tenant. 0 if nothing waits.
	Age time.Duration
}

// Snapshot returns what the scheduler sees now.
func (s *Scheduler) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()

	now := s.now()
	all := Snapshot{Workers: s.workers.Count(), CallsGranted: s.calls.Slots(), CallsHeld: s.jobs.calling}

	tenants := make(map[mapreduce.TenantID]*TenantQueue)
	for _, j := range s.jobs.byID {
		if !j.running {
			continue
		}

		t := tenants[j.tenant]
		if t == nil {
			t = &TenantQueue{Tenant: j.tenant}
			tenants[j.tenant] = t
		}
		t.Jobs++
		t.Age = max(t.Age, j.queue.Age(now))
	}

	for _, t := range tenants {
		all.Tenants = append(all.Tenants, *t)
	}

	for _, m := range s.Models.states {
		all.Models = append(all.Models, m.View(now))
	}
	slices.SortFunc(all.Models, func(a, b model.View) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
