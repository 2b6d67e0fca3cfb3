package schedule

import (
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/fair"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// fairQueue decides whose turn it is, by round robin on two levels with a quantum of
// units: tenants first, then the jobs of one, those of higher priority before
// the others. Ten units so do not wait behind a million of another tenant. Only
// jobs that may have something to do are in it.
type fairQueue struct {
	tenants []*tenantShare   // in round-robin order
	starved fair.Queue[*Job] // that found no slot when they were visited
}

// A tenantShare is a tenant's part of the queue.
type tenantShare struct {
	tenant mapreduce.TenantID
	runs   []*Job // by priority, then in round-robin order
}

// A fairPlace is where a job is in the queue.
type fairPlace struct {
	queued  bool // it waits for its turn
	starved bool // it waits for slots
}

// quantum is the most units that a job may claim in one visit while other tenants
// wait.
const quantum = 32

// add puts j into the queue unless it is there.
func (f *fairQueue) add(j *Job) {
	if j.place.queued {
		return
	}
	j.place.queued = true

	s := f.tenantShareOf(j.tenant)
	if s == nil {
		s = &tenantShare{tenant: j.tenant}
		f.tenants = append(f.tenants, s)
	}

	// It goes behind the others of its priority.
	at := len(s.runs)
	for at > 0 && s.runs[at-1].priority < j.priority {
		at--
	}
	s.runs = slices.Insert(s.runs, at, j)
}

// addFirst puts j into the queue so that it comes next of its priority, and its
// tenant next of all.
func (f *fairQueue) addFirst(j *Job) {
	f.remove(j)
	j.place.queued = true

	s := f.tenantShareOf(j.tenant)
	if s == nil {
		s = &tenantShare{tenant: j.tenant}
	} else {
		f.tenants = slices.DeleteFunc(f.tenants, func(other *tenantShare) bool { return other == s })
	}
	f.tenants = slices.Insert(f.tenants, 0, s)

	at := 0
	for at < len(s.runs) && s.runs[at].priority > j.priority {
		at++
	}
	s.runs = slices.Insert(s.runs, at, j)
}

// addStarved has j wait for a slot, behind those of its tenant that wait already.
func (f *fairQueue) addStarved(j *Job) {
	if !j.place.starved {
		j.place.starved = true
		f.starved.Add(j.tenant, j)
	}
}

func (f *fairQueue) tenantShareOf(tenant mapreduce.TenantID) *tenantShare {
	for _, s := range f.tenants {
		if s.tenant == tenant {
			return s
		}
	}
	return nil
}

// nextJob takes the job whose turn it is out of the queue, or returns nil. Its tenant moves
// to the end.
func (f *fairQueue) nextJob() *Job {
	if len(f.tenants) == 0 {
		return nil
	}

	s := f.tenants[0]
	j := s.runs[0]
	j.place.queued = false
	s.runs[0], s.runs = nil, s.runs[1:] // there may be thousands

	f.tenants = slices.Delete(f.tenants, 0, 1)
	if len(s.runs) > 0 {
		f.tenants = append(f.tenants, s)
	}
	return j
}

// hasWaiting reports whether a job waits for its turn.
func (f *fairQueue) hasWaiting() bool { return len(f.tenants) > 0 }

// isContended reports whether a job waits for its turn or for a slot.
func (f *fairQueue) isContended() bool { return f.hasWaiting() || f.starved.HasItems() }

// remove takes j out of the queue.
func (f *fairQueue) remove(j *Job) {
	if !j.place.queued {
		return
	}
	j.place.queued = false

	for i, s := range f.tenants {
		if at := slices.Index(s.runs, j); at >= 0 {
			s.runs = slices.Delete(s.runs, at, at+1)
			if len(s.runs) == 0 {
				f.tenants = slices.Delete(f.tenants, i, i+1)
			}
			return
		}
	}
}

// visitAllowance is how many units j may claim in this visit, of the room there is: all
// it can while no other tenant waits, and otherwise its share.
func (f *fairQueue) visitAllowance(j *Job, room int) int {
	others := f.starved.Others(j.tenant)

	waiting := 0
	for _, s := range f.tenants {
		if s.tenant != j.tenant {
			waiting++
		}
	}

	if others = max(others, waiting); others == 0 {
		return records.MaxBatch
	}
	return min(quantum, 1+(room-1)/(1+others))
}
