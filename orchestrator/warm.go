package orchestrator

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// Units of a job begin their prompts alike, and vendors keep beginnings that are
// long enough: the first prompt pays for writing one, the next read it for a tenth.
// Were all units asked at once, each would pay for writing. So of such a job one
// unit of the whole fleet runs first, alone, and the others when it has ended,
// however it did, or when it takes too long.

// A warmth is how far a job is with that.
type warmth struct {
	cold  bool // no unit has ended yet
	first bool // this node may run one meanwhile
	done  bool // it never is cold again
	told  bool // the others know that it is not, or need not
	// Since is when a unit was begun, or another node was seen to be the first.
	since time.Time
}

// warms reports whether a job in its state has a unit that is to run alone.
func (o *Orchestrator) warms(ctl *storagev1.Ctl, spec *mapreduce.JobSpec) bool {
	return o.config.Warms != nil && mapreduce.JobState(ctl.State) == mapreduce.Mapping && o.config.Provider(spec.Provider).Models &&
		spec.Replay == "" && o.config.Warms(spec)
}

// chill makes a job a cold one, unless it was before.
func (b *board) chill(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.run(id); !r.warm.done {
		r.warm.cold = true
	}
}

// cap bounds how many units of a job may begin by its being cold. The caller holds
// b.mu, as for those that follow.
func (w *warmth) cap(free, held int) int {
	switch {
	case !w.cold:
		return free
	case !w.first:
		return 0
	}
	return min(free, 1-held)
}

// thaw lets all units of a job run, and reports whether they could not.
func (b *board) thaw(r *run) bool {
	if !r.warm.cold {
		return false
	}
	r.warm.cold, r.warm.done = false, true
	b.activate(r)
	return true
}

// ended takes the end of an attempt at a unit of a job that may be cold. One that
// was handed back before it asked anything has warmed nothing.
func (b *board) ended(r *run, rep *mapreduce.Report) {
	if (rep.Outcome != mapreduce.Returned || rep.Calls > 0) && b.thaw(r) {
		b.thawed(r.id)
	}
}

// warmUp asks for the first unit of a cold job, or tells the others that it is
// cold no more.
func (o *Orchestrator) warmUp(ctx context.Context, id mapreduce.JobID) error {
	ask, tell := o.board.warmDue(id, o.config.WarmFor, time.Now())
	switch {
	case tell:
		if err := o.jobs.Warmed(ctx, id); err != nil {
			return err
		}
		o.board.warmTold(id)
	case ask:
		first, open, err := o.jobs.Warm(ctx, id, o.deadNodes())
		if err != nil {
			return err
		}
		o.board.warmKnown(id, first, open, time.Now())
	}
	return nil
}

// warmDue says what there is to do. Who has no slot of the job cannot run its first
// unit. Of one that takes longer than most, nobody waits for the end.
func (b *board) warmDue(id mapreduce.JobID, most time.Duration, now time.Time) (ask, tell bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	if r == nil {
		return false, false
	}
	w := &r.warm
	if w.cold && w.first && r.held > 0 && w.since.IsZero() {
		w.since = now
	}
	if !w.since.IsZero() && now.Sub(w.since) >= most {
		b.thaw(r)
	}
	return w.cold && !w.first && r.slots > 0 && b.seats(r) > 0, w.done && w.first && !w.told
}

func (b *board) warmTold(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil {
		r.warm.told = true
	}
}

func (b *board) warmKnown(id mapreduce.JobID, first, open bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	switch {
	case r == nil || !r.warm.cold:
	case open:
		r.warm.told = true
		b.thaw(r)
	case first:
		r.warm.first, r.warm.since = true, time.Time{}
		b.activate(r)
	case r.warm.since.IsZero():
		r.warm.since = now
	}
}

// coldJobs are those that wait for another node's first unit.
func (b *board) coldJobs() (ids []mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, r := range b.runs {
		if r.warm.cold && !r.warm.first {
			ids = append(ids, id)
		}
	}
	return ids
}
