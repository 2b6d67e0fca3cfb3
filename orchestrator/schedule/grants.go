package schedule

import (
	"context"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
)

// Grants are what this node may use of what the fleet shares: slots and tokens of jobs,
// and calls of models. The scheduler's mu guards them.
type Grants struct {
	sched      *Scheduler
	claimEnded *sync.Cond // a claim of a job with a budget has ended
}

// SpecOf returns the spec of a job; nil while that is not known.
func (g *Grants) SpecOf(j *Job) *mapreduce.JobSpec {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	return j.spec
}

// IsNewHere reports whether this node lacks slots of a job and has none: so do all
// that have just seen it.
func (g *Grants) IsNewHere(id mapreduce.JobID) bool {
	var ask nodes.GrantRequest
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j := g.sched.jobs.find(id)
	return g.fillGrantRequest(j, &ask) && ask.Slots > 0 && j.grant.Slots() == 0
}

// TakeMissing fills in what to ask for of a job, and reports whether to. What is to be
// given back is off the scheduler from then on.
func (g *Grants) TakeMissing(id mapreduce.JobID, ask *nodes.GrantRequest) bool {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j := g.sched.jobs.find(id)
	wanted := g.fillGrantRequest(j, ask)
	if ask.Give > 0 {
		j.grant.GiveSlots(ask.Give)
	}
	return wanted
}

// fillGrantRequest fills in what to ask for of a job, which may be nil, and reports whether to.
// The caller holds the scheduler's mu.
func (g *Grants) fillGrantRequest(j *Job, ask *nodes.GrantRequest) bool {
	if j == nil || !j.running {
		return false
	}

	ask.Parallelism = int64(j.spec.Parallelism)
	want := min(ask.Parallelism, g.sched.workers.Capacity(&j.wants, g.sched.now()), g.sched.Models.mayHold(j))
	return j.grant.Fill(ask, want, int64(j.held), j.spec.Budget > 0)
}

// MarkUnsure notes that what is granted of a job may be more than the scheduler thinks:
// what it was to give back it may have still, and nobody else.
func (g *Grants) MarkUnsure(id mapreduce.JobID) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	if j := g.sched.jobs.find(id); j != nil {
		j.grant.MarkUnsure()
	}
}

// Apply enters a grant, and returns how many tokens are still lacking. What is
// stored is right, and what the scheduler has reckoned meanwhile is not always: of
// units that others settled it knows nothing. Should a turn be under way that
// the store has counted already, the scheduler has too many for a while, and the
// next claim or reservation finds that out.
func (g *Grants) Apply(id mapreduce.JobID, reply *nodes.GrantReply) (short int64) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()

	j := g.sched.jobs.find(id)
	if j == nil {
		return 0
	}

	if short = j.grant.Apply(reply, g.sched.now()); short == 0 && j.grant.IsKnown() {
		g.sched.activateJob(j)
	}
	return short
}

// SetInitialSlots enters the slots that a job's submission has granted this node. Of a job
// that stands on the scheduler already, what was granted is asked for.
func (g *Grants) SetInitialSlots(id mapreduce.JobID, slots int64) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	if j := g.sched.jobs.find(id); j != nil {
		j.grant.MarkUnsure()
		return
	}
	g.sched.jobs.getOrAdd(id).grant.Begin(slots)
}

// TakeReleasable takes a job's grants off the scheduler, and returns what to give back, if nothing of it is under way here
// and no worker of this node can run it, or others may need the tokens, as this node
// has no more to run, or may not ask its model. Slots alone are kept for the next
// level: all nodes would ask for them at once. What was granted in all is asked anew
// with the next grant.
func (g *Grants) TakeReleasable(id mapreduce.JobID) (back nodes.GiveBack, found bool) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()

	j := g.sched.jobs.find(id)
	if j == nil || j.spec == nil || !j.isIdle() || j.grant.IsEmpty() {
		return nodes.GiveBack{}, false
	}

	needed := j.spec.Budget == 0 || !j.queue.IsEmpty() && j.grant.MayStart() && g.sched.Models.mayHold(j) > 0
	if needed && g.sched.workers.HasUsable(&j.wants, g.sched.now()) {
		return nodes.GiveBack{}, false
	}
	return j.grant.GiveUp(), true
}

// HasWaitedForTokens reports whether a job has lacked tokens for d.
func (g *Grants) HasWaitedForTokens(id mapreduce.JobID, d time.Duration) bool {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j := g.sched.jobs.find(id)
	return j != nil && j.grant.LackedFor(d, g.sched.now())
}

// SpendTokens takes n tokens of a job's grant, once no claim is under way that may give
// some back. It returns false if there are fewer.
func (g *Grants) SpendTokens(ctx context.Context, j *Job, n int64) bool {
	// The wait below does not end with the context: the broadcast ends it.
	stop := context.AfterFunc(ctx, func() {
		g.sched.mu.Lock()
		defer g.sched.mu.Unlock()
		g.claimEnded.Broadcast()
	})
	defer stop()

	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()

	for j.grant.IsClaiming() && !g.sched.closed && ctx.Err() == nil {
		g.claimEnded.Wait() // the claim holds all tokens there are, and most go back
	}

	return j.grant.Spend(n)
}

// NoteMissingTokens notes that the grant has less left than the scheduler thinks, and that a
// unit comes back which cannot go on without n tokens: until they are there, none of the job
// is claimed.
func (g *Grants) NoteMissingTokens(j *Job, n int64) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j.grant.NoteNeed(n)
	j.grant.MarkOverdrawn()
}

// IsUnknown reports whether the scheduler does not know what j was granted.
func (g *Grants) IsUnknown(j *Job) bool {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	return j.running && j.spec.Budget > 0 && !j.grant.IsKnown()
}

// MarkOverdrawn notes that the grant has less left than the scheduler thinks.
func (g *Grants) MarkOverdrawn(j *Job) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j.grant.MarkOverdrawn()
}

// OverdrawTokens takes n tokens that the store may have, and reports whether the scheduler thinks
// that there are fewer: then it is to be asked anew, and none are claimed until that is
// done.
func (g *Grants) OverdrawTokens(j *Job, n int64) bool {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	return j.grant.Overdraw(n)
}

// RefundTokens gives back tokens that were taken and not reserved.
func (g *Grants) RefundTokens(j *Job, n int64) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j.grant.Refund(n)
}

// AddReservation notes that a unit has n tokens reserved.
func (g *Grants) AddReservation(h *workers.Attempt, n int64) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	h.Reserved = n
}

// endClaim gives back the tokens that a claim did not reserve. The caller holds the
// scheduler's mu.
func (g *Grants) endClaim(j *Job, left int64) {
	j.grant.EndClaim(left)
	g.claimEnded.Broadcast()
}

// CallsWanted returns how many calls this node has use for, and whether it has to
// ask for them.
func (g *Grants) CallsWanted() (ask nodes.CallsRequest, wanted bool) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()

	ask.Most, ask.Need = g.sched.workers.CallSlots(g.sched.jobs.asking)
	return ask, g.sched.calls.TakeDue(ask)
}

// ApplyCalls enters how many calls this node may have under way, and returns how many
// may be now, and the jobs that make some if these are more than before.
func (g *Grants) ApplyCalls(ask nodes.CallsRequest, reply *nodes.CallsReply) (keep int64, more []mapreduce.JobID) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()

	if g.sched.calls.Apply(ask, reply) {
		g.sched.activateAll()
		more = g.sched.jobs.runningCalls()
	}
	return max(g.sched.calls.Slots(), g.sched.callsAtOnce()), more
}

// callsAtOnce returns how many calls of models the units that this node holds may make at once: what workers
// hold beyond their slots waits there. The caller holds mu.
func (s *Scheduler) callsAtOnce() int64 {
	_, _, all := s.workers.Reachable(&workers.Wants{}, s.now())
	return min(s.jobs.calling, int64(all))
}

// idleCalls returns which calls of models this node was granted and does not use. The caller holds the
// scheduler's mu.
func (g *Grants) idleCalls(limit int64) *queue.Calls {
	slots := g.sched.calls.Slots()
	return &queue.Calls{Idle: max(0, slots-g.sched.callsAtOnce()), Of: g.sched.calls.Share(slots), Limit: limit}
}

// MarkCallsDue has the node ask anew for the calls that it may make: others may
// need some, or have given some back.
func (g *Grants) MarkCallsDue() {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	g.sched.calls.MarkDue()
}

// PollCalls has the node ask anew if it has fewer calls than it can make, or may have some
// that others need.
func (g *Grants) PollCalls(alone bool) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	g.sched.calls.Poll(alone, g.sched.jobs.calling)
}
