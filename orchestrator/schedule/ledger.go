package schedule

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/grants"
)

// Grants are what this node may use of what the fleet shares: slots and tokens of jobs,
// and calls of models. The scheduler's mu guards them.
type Grants struct {
	sched *Scheduler

	claimEnded *sync.Cond // a claim of a job with a budget has ended
	// callSlots is how many units that call models this node may hold, and
	// calling how many it holds.
	callSlots, calling int64
	callsTaken         int64               // how often others took some of callSlots
	callsAsked         grants.CallsRequest // of which callSlots are what came
	callsDue           bool                // it is to be asked for them again
}

// IsNewHere reports whether this node lacks slots of a job and has none: so do all
// that have just seen it.
func (g *Grants) IsNewHere(id mapreduce.JobID) bool {
	var ask grants.Request
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j := g.sched.runs[id]
	return g.fillGrantRequest(j, &ask) && ask.Slots > 0 && j.slots == 0
}

// TakeMissing fills in what to ask for of a job, and reports whether to. What is to be
// given back is off the scheduler from then on.
func (g *Grants) TakeMissing(id mapreduce.JobID, ask *grants.Request) bool {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j := g.sched.runs[id]
	wanted := g.fillGrantRequest(j, ask)
	if ask.Give > 0 {
		j.slots -= ask.Give
	}
	return wanted
}

// fillGrantRequest fills in what to ask for of a job, which may be nil, and reports whether to.
// The caller holds the scheduler's mu.
func (g *Grants) fillGrantRequest(j *Job, ask *grants.Request) bool {
	if j == nil || !j.running {
		return false
	}

	ask.Parallelism = int64(j.spec.Parallelism)
	want, held := min(ask.Parallelism, g.sched.Sessions.slotCapacity(j), g.sched.Models.mayHold(j)), int64(j.held)

	if j.slots < want && held >= j.slots {
		ask.Slots = want
	}

	// Slots that this node cannot use go back, if there are others who may use them.
	if surplus := j.slots - max(want, held); surplus > 0 && !ask.Alone {
		ask.Give, ask.Taken = surplus, j.revocations
	}

	if j.spec.Budget > 0 && want > 0 && (j.neededTokens > j.tokens || !j.granted) && !j.claiming {
		ask.Tokens = max(1, j.neededTokens-j.tokens)
	}

	return j.grantUnsure || ask.Slots > 0 || ask.Give > 0 || ask.Tokens > 0
}

// MarkUnsure notes that what is granted of a job may be more than the scheduler thinks:
// what it was to give back it may have still, and nobody else.
func (g *Grants) MarkUnsure(id mapreduce.JobID) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	if j := g.sched.runs[id]; j != nil {
		j.grantUnsure = true
	}
}

// Apply enters a grant, and returns how many tokens are still lacking. What is
// stored is right, and what the scheduler has reckoned meanwhile is not always: of
// units that others settled it knows nothing. Should a turn be under way that
// the store has counted already, the scheduler has too many for a while, and the
// next claim or reservation finds that out.
func (g *Grants) Apply(id mapreduce.JobID, reply *grants.Reply) (short int64) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()

	j := g.sched.runs[id]
	if j == nil {
		return 0
	}

	j.slots, j.revocations, j.grantUnsure = reply.Slots, reply.Taken, false
	if j.claiming {
		j.granted = false // the claim has all tokens: ask again when it has ended
		return 0
	}

	j.tokens, j.granted = max(0, reply.Tokens-reply.Used), true
	if j.neededTokens > j.tokens {
		if j.blockedSince.IsZero() {
			j.blockedSince = g.sched.now()
		}
		return j.neededTokens
	}

	j.blockedSince = time.Time{}
	g.sched.activateJob(j)
	return 0
}

// SetInitialSlots enters the slots that a job's submission has granted this node. Of a job
// that stands on the scheduler already, what was granted is asked for.
func (g *Grants) SetInitialSlots(id mapreduce.JobID, slots int64) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	if j := g.sched.runs[id]; j != nil {
		j.grantUnsure = true
		return
	}
	g.sched.getOrAddJob(id).slots = slots
}

// TakeReleasable takes a job's grants off the scheduler if nothing of it is under way here
// and no worker of this node can run it, or others may need the tokens, as this node
// has no more to run, or may not ask its model. Slots alone are kept for the next
// level: all nodes would ask for them at once. What was granted in all is asked anew
// with the next grant.
func (g *Grants) TakeReleasable(id mapreduce.JobID) bool {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()

	j := g.sched.runs[id]
	if j == nil || j.spec == nil || j.held > 0 || j.turns > 0 || len(j.reports) > 0 || (j.slots == 0 && j.tokens == 0) {
		return false
	}

	needed := j.spec.Budget == 0 || !(j.drained && len(j.queue) == 0) && j.neededTokens <= j.tokens && g.sched.Models.mayHold(j) > 0
	if needed && g.sched.Sessions.countUsableSessions(j) > 0 {
		return false
	}

	j.slots, j.tokens, j.granted = 0, 0, false
	return true
}

// HasWaitedForTokens reports whether a job has lacked tokens for d.
func (g *Grants) HasWaitedForTokens(id mapreduce.JobID, d time.Duration) bool {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j := g.sched.runs[id]
	return j != nil && !j.blockedSince.IsZero() && g.sched.now().Sub(j.blockedSince) >= d
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

	for j.claiming && !g.sched.closed && ctx.Err() == nil {
		g.claimEnded.Wait() // the claim holds all tokens there are, and most go back
	}

	if j.tokens < n {
		return false
	}
	j.tokens -= n
	return true
}

// NoteMissingTokens notes that a unit comes back which cannot go on without n tokens:
// until they are there, none of the job is claimed.
func (g *Grants) NoteMissingTokens(j *Job, n int64) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j.neededTokens = max(j.neededTokens, n)
}

// IsUnknown reports whether the scheduler does not know what j was granted.
func (g *Grants) IsUnknown(j *Job) bool {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	return j.running && j.spec.Budget > 0 && !j.granted
}

// MarkOverdrawn notes that the grant has less left than the scheduler thinks.
func (g *Grants) MarkOverdrawn(j *Job) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j.tokens, j.granted = 0, false
}

// OverdrawTokens takes n tokens that the store may have, and reports whether the scheduler thinks
// that there are fewer: then it is to be asked anew, and none are claimed until that is
// done.
func (g *Grants) OverdrawTokens(j *Job, n int64) bool {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j.tokens -= n
	j.granted = j.granted && j.tokens >= 0
	return !j.granted
}

// RefundTokens gives back tokens that were taken and not reserved.
func (g *Grants) RefundTokens(j *Job, n int64) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	j.tokens += n
}

// AddReservation notes that a unit has n tokens reserved.
func (g *Grants) AddReservation(h *HeldUnit, n int64) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	h.Reserved = n
}

// endClaim gives back the tokens that a claim did not reserve.
func (g *Grants) endClaim(j *Job, left int64) {
	j.tokens += left
	j.claiming = false
	g.claimEnded.Broadcast()
}

// CallsWanted returns how many calls this node has use for, and whether it has to
// ask for them.
func (g *Grants) CallsWanted() (ask grants.CallsRequest, wanted bool) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()

	for _, session := range g.sched.Sessions.bound {
		ask.Most += int64(session.Slots)
		if slices.ContainsFunc(session.offer.Providers, func(p string) bool { return g.sched.asking[p] > 0 }) {
			ask.Need += int64(session.Slots)
		}
	}

	wanted = g.callsDue || ask.Need != g.callsAsked.Need || ask.Most != g.callsAsked.Most
	g.callsDue = false // unless something happens meanwhile
	return ask, wanted
}

// ApplyCalls enters how many calls this node may have under way, and returns how many
// may be now, and the jobs that make some if these are more than before.
func (g *Grants) ApplyCalls(ask grants.CallsRequest, reply *grants.CallsReply) (keep int64, more []mapreduce.JobID) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()

	if reply.Slots > g.callSlots {
		g.sched.activateAll()
		for id, j := range g.sched.runs {
			if j.running && j.usesFleetCalls() {
				more = append(more, id)
			}
		}
	}

	g.callSlots, g.callsTaken = reply.Slots, reply.Taken
	g.callsAsked = ask
	return max(g.callSlots, g.calling), more
}

// MarkCallsDue has the node ask anew for the calls that it may make: others may
// need some, or have given some back.
func (g *Grants) MarkCallsDue() {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	g.callsDue = true
}

// PollCalls has the node ask anew if it has fewer calls than it can make, or may have some
// that others need.
func (g *Grants) PollCalls(alone bool) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	short := g.callSlots < min(g.callsAsked.Most, g.callsAsked.Limit)
	g.callsDue = g.callsDue || short || !alone && (g.calling > 0 || g.callsAsked.Need > 0)
}
