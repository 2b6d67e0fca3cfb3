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
func (b *Scheduler) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()

	now := b.now()
	s := Snapshot{Workers: len(b.Sessions.bound), Away: len(b.Sessions.away), CallsGranted: b.Grants.callSlots, CallsHeld: b.Grants.calling}

	for _, w := range b.Sessions.bound {
		if w.draining {
			s.Draining++
		}
		s.Slots += w.Slots
		// Units that wait there for a slot do not count.
		s.Busy += min(w.busy, w.Slots)
	}

	tenants := make(map[mapreduce.TenantID]*TenantQueue)
	for _, r := range b.runs {
		if !r.running {
			continue
		}

		t := tenants[r.tenant]
		if t == nil {
			t = &TenantQueue{Tenant: r.tenant}
			tenants[r.tenant] = t
		}
		t.Jobs++
		if !r.waitingSince.IsZero() {
			t.Age = max(t.Age, now.Sub(r.waitingSince))
		}
	}

	for _, t := range tenants {
		s.Tenants = append(s.Tenants, *t)
	}

	for _, m := range b.Models.states {
		s.Models = append(s.Models, m.View(now))
	}
	slices.SortFunc(s.Models, func(a, b model.View) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// ConnectedWorkers returns how many workers have a stream here.
func (b *Scheduler) ConnectedWorkers() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.Sessions.bound)
}

// noteWaiting notes since when units of r wait of which none was claimed. The caller holds
// the scheduler's mu.
func (r *Job) noteWaiting(now time.Time) {
	switch {
	case len(r.queue) == 0:
		r.waitingSince = time.Time{}
	case r.waitingSince.IsZero():
		r.waitingSince = now
	}
}
