package orchestrator

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Units of a job begin their prompts alike, and vendors keep beginnings that are
// long enough: the first prompt pays for writing one, the next read it for a tenth.
// Were all units asked at once, each would pay for writing. So of such a job one
// unit of the whole fleet runs first, alone, and the others when it has ended,
// however it did, or when it takes too long.

// A prefixPriming is how far a job is with that.
type prefixPriming struct {
	cold      bool // no unit has ended yet
	mayPrime  bool // this node may run one meanwhile
	done      bool // it never is cold again
	announced bool // the others know that it is not, or need not
	// Since is when a unit was begun, or another node was seen to be the first.
	since time.Time
}

// usesPriming reports whether a job in its state has a unit that is to run alone.
func (o *Orchestrator) usesPriming(ctl *records.Control, spec *mapreduce.JobSpec) bool {
	return o.config.Warms != nil && ctl.State == mapreduce.Mapping && o.config.Provider(spec.Provider).Models &&
		spec.Replay == "" && o.config.Warms(spec)
}

// startPriming makes a job a cold one, unless it was before.
func (b *scheduler) startPriming(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.getOrAddJob(id); !r.priming.done {
		r.priming.cold = true
	}
}

// capSlots bounds how many units of a job may begin by its being cold. The caller holds
// b.mu, as for those that follow.
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
func (b *scheduler) endPriming(r *scheduledJob) bool {
	if !r.priming.cold {
		return false
	}
	r.priming.cold, r.priming.done = false, true
	b.activateJob(r)
	return true
}

// notePrimingEnd takes the end of an attempt at a unit of a job that may be cold. One that
// was handed back before it asked anything has warmed nothing.
func (b *scheduler) notePrimingEnd(r *scheduledJob, rep *mapreduce.Report) {
	if (rep.Outcome != mapreduce.Returned || rep.Calls > 0) && b.endPriming(r) {
		b.onPrimed(r.id)
	}
}

// primePrefix asks for the first unit of a cold job, or tells the others that it is
// cold no more.
func (o *Orchestrator) primePrefix(ctx context.Context, id mapreduce.JobID) error {
	ask, tell := o.scheduler.primingDue(id, o.config.WarmFor, time.Now())
	switch {
	case tell:
		if err := o.jobs.Grants.Warmed(ctx, id); err != nil {
			return err
		}
		o.scheduler.notePrimingAnnounced(id)
	case ask:
		first, open, err := o.jobs.Grants.Warm(ctx, id, o.members.DeadNodes())
		if err != nil {
			return err
		}
		o.scheduler.applyPrimingState(id, first, open, time.Now())
	}
	return nil
}

// primingDue says what there is to do. Who has no slot of the job cannot run its first
// unit. Of one that takes longer than most, nobody waits for the end.
func (b *scheduler) primingDue(id mapreduce.JobID, most time.Duration, now time.Time) (ask, tell bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	if r == nil {
		return false, false
	}
	w := &r.priming
	if w.cold && w.mayPrime && r.held > 0 && w.since.IsZero() {
		w.since = now
	}
	if !w.since.IsZero() && now.Sub(w.since) >= most {
		b.endPriming(r)
	}
	return w.cold && !w.mayPrime && r.slots > 0 && b.countUsableSessions(r) > 0, w.done && w.mayPrime && !w.announced
}

func (b *scheduler) notePrimingAnnounced(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil {
		r.priming.announced = true
	}
}

func (b *scheduler) applyPrimingState(id mapreduce.JobID, first, open bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	switch {
	case r == nil || !r.priming.cold:
	case open:
		r.priming.announced = true
		b.endPriming(r)
	case first:
		r.priming.mayPrime, r.priming.since = true, time.Time{}
		b.activateJob(r)
	case r.priming.since.IsZero():
		r.priming.since = now
	}
}

// primingJobs are those that wait for another node's first unit.
func (b *scheduler) primingJobs() (ids []mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, r := range b.runs {
		if r.priming.cold && !r.priming.mayPrime {
			ids = append(ids, id)
		}
	}
	return ids
}
