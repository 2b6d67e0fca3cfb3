package schedule

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// Units of a job begin their prompts alike, and vendors keep beginnings that are
// long enough: the first prompt pays for writing one, the next read it for a tenth.
// Were all units asked at once, each would pay for writing. So of such a job one
// unit of the whole fleet runs first, alone, and the others when it has ended,
// however it did, or when it takes too long.

// Priming has one unit of a job run before the others. The scheduler's mu guards what
// jobs have of it.
type Priming struct {
	sched *Scheduler
	// onPrimed is called when a job is cold no more, and others have to know. It must
	// not wait.
	onPrimed func(mapreduce.JobID)
}

// A prefixPriming is how far a job is with that.
type prefixPriming struct {
	cold      bool // no unit has ended yet
	mayPrime  bool // this node may run one meanwhile
	done      bool // it never is cold again
	announced bool // the others know that it is not, or need not
	// Since is when a unit was begun, or another node was seen to be the first.
	since time.Time
}

// Start makes a job a cold one, unless it was before.
func (p *Priming) Start(id mapreduce.JobID) {
	p.sched.mu.Lock()
	defer p.sched.mu.Unlock()
	if r := p.sched.getOrAddJob(id); !r.priming.done {
		r.priming.cold = true
	}
}

// capSlots bounds how many units of a job may begin by its being cold. The caller holds
// the scheduler's mu, as for those that follow.
func (w *prefixPriming) capSlots(free, held int) int {
	switch {
	case !w.cold:
		return free
	case !w.mayPrime:
		return 0
	}
	return min(free, 1-held)
}

// endPriming lets all units of a job run, and reports whether they could not.
func (p *Priming) endPriming(r *Job) bool {
	if !r.priming.cold {
		return false
	}
	r.priming.cold, r.priming.done = false, true
	p.sched.activateJob(r)
	return true
}

// notePrimingEnd takes the end of an attempt at a unit of a job that may be cold. One that
// was handed back before it asked anything has warmed nothing.
func (p *Priming) notePrimingEnd(r *Job, rep *mapreduce.Report) {
	if (rep.Outcome != mapreduce.Returned || rep.Calls > 0) && p.endPriming(r) {
		p.onPrimed(r.ID)
	}
}

// Due says what there is to do. Who has no slot of the job cannot run its first
// unit. Of one that takes longer than most, nobody waits for the end.
func (p *Priming) Due(id mapreduce.JobID, most time.Duration, now time.Time) (ask, tell bool) {
	p.sched.mu.Lock()
	defer p.sched.mu.Unlock()
	r := p.sched.runs[id]
	if r == nil {
		return false, false
	}
	w := &r.priming
	if w.cold && w.mayPrime && r.held > 0 && w.since.IsZero() {
		w.since = now
	}
	if !w.since.IsZero() && now.Sub(w.since) >= most {
		p.endPriming(r)
	}
	return w.cold && !w.mayPrime && r.slots > 0 && p.sched.Sessions.countUsableSessions(r) > 0, w.done && w.mayPrime && !w.announced
}

// NoteAnnounced notes that the other nodes know that a job is cold no more.
func (p *Priming) NoteAnnounced(id mapreduce.JobID) {
	p.sched.mu.Lock()
	defer p.sched.mu.Unlock()
	if r := p.sched.runs[id]; r != nil {
		r.priming.announced = true
	}
}

// ApplyState enters what the store says of a cold job: that this node is the first
// to run a unit of it, or that all nodes may run all units.
func (p *Priming) ApplyState(id mapreduce.JobID, first, open bool, now time.Time) {
	p.sched.mu.Lock()
	defer p.sched.mu.Unlock()
	r := p.sched.runs[id]
	switch {
	case r == nil || !r.priming.cold:
	case open:
		r.priming.announced = true
		p.endPriming(r)
	case first:
		r.priming.mayPrime, r.priming.since = true, time.Time{}
		p.sched.activateJob(r)
	case r.priming.since.IsZero():
		r.priming.since = now
	}
}

// Waiting are those that wait for another node's first unit.
func (p *Priming) Waiting() (ids []mapreduce.JobID) {
	p.sched.mu.Lock()
	defer p.sched.mu.Unlock()
	for id, r := range p.sched.runs {
		if r.priming.cold && !r.priming.mayPrime {
			ids = append(ids, id)
		}
	}
	return ids
}
