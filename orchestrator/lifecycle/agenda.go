package lifecycle

import (
	"iter"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/fair"
)

// maxAdvancing is how many jobs are looked after at once. Most of that waits for the store,
// one behind the other, and what else waits there comes behind them all: with thousands of
// jobs, for minutes.
const maxAdvancing = 128

// An agenda is the jobs that are to be looked after, and those that are being looked after:
// a job is never both begun twice at once and never lost. The zero value is empty. Its methods
// are safe for concurrent use.
type agenda struct {
	mu    sync.Mutex // guards the variables below
	queue fair.Queue[mapreduce.JobID]
	due   map[mapreduce.JobID]look
	busy  map[mapreduce.JobID]bool
}

// A look is how a job is to be looked at: whole, or only at what was told of it.
type look struct {
	tenant mapreduce.TenantID
	whole  bool
}

// add has a job looked at, once it is not being looked at.
func (a *agenda) add(tenant mapreduce.TenantID, id mapreduce.JobID, whole bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.due == nil {
		a.due, a.busy = make(map[mapreduce.JobID]look), make(map[mapreduce.JobID]bool)
	}
	before, waits := a.due[id]
	if a.due[id] = (look{tenant, whole || before.whole}); !waits && !a.busy[id] {
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

// next begins the job whose turn it is, and returns false if there is none, or no room.
func (a *agenda) next() (id mapreduce.JobID, whole, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.busy) >= maxAdvancing {
		return "", false, false
	}
	if id, ok = a.queue.Next(); !ok {
		return "", false, false
	}
	whole = a.due[id].whole
	delete(a.due, id)
	a.busy[id] = true
	return id, whole, true
}

// end notes that a job is not being looked at any more.
func (a *agenda) end(id mapreduce.JobID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.busy, id)
	if again, waits := a.due[id]; waits {
		a.queue.Add(again.tenant, id)
	}
}
