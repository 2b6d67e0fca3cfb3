package lifecycle

import (
	"iter"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/fair"
)

// AtOnce is how many jobs are looked after at once.
type AtOnce struct {
	All      int // of all tenants
	OfTenant int // of each tenant
}

// An agenda is the jobs that are to be looked after, and those that are being looked after.
// A job is never begun twice at once, and never lost. Without jobs it is empty. Its methods
// are safe for concurrent use.
type agenda struct {
	most AtOnce

	mu    sync.Mutex // guards the variables below
	queue fair.Queue[mapreduce.JobID]
	due   map[mapreduce.JobID]look
	busy  map[mapreduce.JobID]mapreduce.TenantID
	load  map[mapreduce.TenantID]int // of busy
}

// A look is how a job is to be looked at: whole, or only for reduces whose inputs have
// ended.
type look struct {
	tenant mapreduce.TenantID
	whole  bool
}

// add puts a job on the agenda, to be looked at once it is not being looked at.
func (a *agenda) add(tenant mapreduce.TenantID, id mapreduce.JobID, whole bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.due == nil {
		a.due, a.busy, a.load = make(map[mapreduce.JobID]look), make(map[mapreduce.JobID]mapreduce.TenantID), make(map[mapreduce.TenantID]int)
	}

	// A job that waits keeps the tenant that it was added for.
	before, waits := a.due[id]
	if waits {
		tenant = before.tenant
	}

	_, busy := a.busy[id]
	if a.due[id] = (look{tenant, whole || before.whole}); !waits && !busy {
		a.queue.Add(tenant, id)
	}
}

// begin returns the jobs that are to be looked at now, and whether whole. Each must end.
func (a *agenda) begin() iter.Seq2[mapreduce.JobID, bool] {
	return func(yield func(mapreduce.JobID, bool) bool) {
		for id, whole, ok := a.next(); ok && yield(id, whole); id, whole, ok = a.next() {
		}
	}
}

// next begins the job whose turn it is: of the tenant that has the fewest looked after. It
// returns false if there is none, or no room.
func (a *agenda) next() (id mapreduce.JobID, whole, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if len(a.busy) >= a.most.All {
		return "", false, false
	}
	id, ok = a.queue.NextBelow(a.most.OfTenant, func(tenant mapreduce.TenantID) int { return a.load[tenant] })
	if !ok {
		return "", false, false
	}

	begun := a.due[id]
	delete(a.due, id)
	a.busy[id] = begun.tenant
	a.load[begun.tenant]++
	return id, begun.whole, true
}

// end notes that a job is not being looked at any more.
func (a *agenda) end(id mapreduce.JobID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	tenant := a.busy[id]
	delete(a.busy, id)
	if a.load[tenant]--; a.load[tenant] == 0 {
		delete(a.load, tenant)
	}
	if again, waits := a.due[id]; waits {
		a.queue.Add(again.tenant, id)
	}
}
