package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
)

// A Snapshot is what a scheduler sees at a moment.
type Snapshot struct {
	Workers, Draining int // sessions whose streams are here; of these, those that are given nothing more
	Away              int // whose streams have ended a moment ago
	Slots, Busy       int // units that the workers can run at once, and those that they have, at most as many

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
	all := Snapshot{Workers: len(s.workers.bound), Away: len(s.workers.away), CallsGranted: s.calls.slots, CallsHeld: s.jobs.calling}

	for _, w := range s.workers.bound {
		if w.draining {
			all.Draining++
		}
		all.Slots += w.Slots
		// Units that wait there for a slot do not count.
		all.Busy += min(w.busy, w.Slots)
	}

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
		if !j.queue.waitingSince.IsZero() {
			t.Age = max(t.Age, now.Sub(j.queue.waitingSince))
		}
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
