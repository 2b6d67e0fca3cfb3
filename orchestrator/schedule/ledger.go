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
func (l *Grants) IsNewHere(id mapreduce.JobID) bool {
	var ask grants.Request
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	r := l.sched.runs[id]
	return l.fillGrantRequest(r, &ask) && ask.Slots > 0 && r.slots == 0
}

// TakeMissing fills in what to ask for of a job, and reports whether to. What is to be
// given back is off the scheduler from then on.
func (l *Grants) TakeMissing(id mapreduce.JobID, ask *grants.Request) bool {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	r := l.sched.runs[id]
	wanted := l.fillGrantRequest(r, ask)
	if ask.Give > 0 {
		r.slots -= ask.Give
	}
	return wanted
}

// fillGrantRequest fills in what to ask for of a job, which may be nil, and reports whether to.
// The caller holds the scheduler's mu.
func (l *Grants) fillGrantRequest(r *Job, ask *grants.Request) bool {
	if r == nil || !r.running {
		return false
	}

	ask.Parallelism = int64(r.spec.Parallelism)
	want, held := min(ask.Parallelism, l.sched.Sessions.slotCapacity(r), l.sched.Models.mayHold(r)), int64(r.held)

	if r.slots < want && held >= r.slots {
		ask.Slots = want
	}

	// Slots that this node cannot use go back, if there are others who may use them.
	if surplus := r.slots - max(want, held); surplus > 0 && !ask.Alone {
		ask.Give, ask.Taken = surplus, r.revocations
	}

	if r.spec.Budget > 0 && want > 0 && (r.neededTokens > r.tokens || !r.granted) && !r.claiming {
		ask.Tokens = max(1, r.neededTokens-r.tokens)
	}

	return r.grantUnsure || ask.Slots > 0 || ask.Give > 0 || ask.Tokens > 0
}

// MarkUnsure notes that what is granted of a job may be more than the scheduler thinks:
// what it was to give back it may have still, and nobody else.
func (l *Grants) MarkUnsure(id mapreduce.JobID) {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	if r := l.sched.runs[id]; r != nil {
		r.grantUnsure = true
	}
}

// Apply enters a grant, and returns how many tokens are still lacking. What is
// stored is right, and what the scheduler has reckoned meanwhile is not always: of
// units that others settled it knows nothing. Should a turn be under way that
// the store has counted already, the scheduler has too many for a while, and the
// next claim or reservation finds that out.
func (l *Grants) Apply(id mapreduce.JobID, g *grants.Reply) (short int64) {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()

	r := l.sched.runs[id]
	if r == nil {
		return 0
	}

	r.slots, r.revocations, r.grantUnsure = g.Slots, g.Taken, false
	if r.claiming {
		r.granted = false // the claim has all tokens: ask again when it has ended
		return 0
	}

	r.tokens, r.granted = max(0, g.Tokens-g.Used), true
	if r.neededTokens > r.tokens {
		if r.blockedSince.IsZero() {
			r.blockedSince = l.sched.now()
		}
		return r.neededTokens
	}

	r.blockedSince = time.Time{}
	l.sched.activateJob(r)
	return 0
}

// SetInitialSlots enters the slots that a job's submission has granted this node. Of a job
// that stands on the scheduler already, what was granted is asked for.
func (l *Grants) SetInitialSlots(id mapreduce.JobID, slots int64) {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	if r := l.sched.runs[id]; r != nil {
		r.grantUnsure = true
		return
	}
	l.sched.getOrAddJob(id).slots = slots
}

// TakeReleasable takes a job's grants off the scheduler if nothing of it is under way here
// and no worker of this node can run it, or others may need the tokens, as this node
// has no more to run, or may not ask its model. Slots alone are kept for the next
// level: all nodes would ask for them at once. What was granted in all is asked anew
// with the next grant.
func (l *Grants) TakeReleasable(id mapreduce.JobID) bool {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()

	r := l.sched.runs[id]
	if r == nil || r.spec == nil || r.held > 0 || r.turns > 0 || len(r.reports) > 0 || (r.slots == 0 && r.tokens == 0) {
		return false
	}

	needed := r.spec.Budget == 0 || !(r.drained && len(r.queue) == 0) && r.neededTokens <= r.tokens && l.sched.Models.mayHold(r) > 0
	if needed && l.sched.Sessions.countUsableSessions(r) > 0 {
		return false
	}

	r.slots, r.tokens, r.granted = 0, 0, false
	return true
}

// HasWaitedForTokens reports whether a job has lacked tokens for d.
func (l *Grants) HasWaitedForTokens(id mapreduce.JobID, d time.Duration) bool {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	r := l.sched.runs[id]
	return r != nil && !r.blockedSince.IsZero() && l.sched.now().Sub(r.blockedSince) >= d
}

// SpendTokens takes n tokens of a job's grant, once no claim is under way that may give
// some back. It returns false if there are fewer.
func (l *Grants) SpendTokens(ctx context.Context, r *Job, n int64) bool {
	// The wait below does not end with the context: the broadcast ends it.
	stop := context.AfterFunc(ctx, func() {
		l.sched.mu.Lock()
		defer l.sched.mu.Unlock()
		l.claimEnded.Broadcast()
	})
	defer stop()

	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()

	for r.claiming && !l.sched.closed && ctx.Err() == nil {
		l.claimEnded.Wait() // the claim holds all tokens there are, and most go back
	}

	if r.tokens < n {
		return false
	}
	r.tokens -= n
	return true
}

// NoteMissingTokens notes that a unit comes back which cannot go on without n tokens:
// until they are there, none of the job is claimed.
func (l *Grants) NoteMissingTokens(r *Job, n int64) {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	r.neededTokens = max(r.neededTokens, n)
}

// IsUnknown reports whether the scheduler does not know what r was granted.
func (l *Grants) IsUnknown(r *Job) bool {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	return r.running && r.spec.Budget > 0 && !r.granted
}

// MarkOverdrawn notes that the grant has less left than the scheduler thinks.
func (l *Grants) MarkOverdrawn(r *Job) {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	r.tokens, r.granted = 0, false
}

// OverdrawTokens takes n tokens that the store may have, and reports whether the scheduler thinks
// that there are fewer: then it is to be asked anew, and none are claimed until that is
// done.
func (l *Grants) OverdrawTokens(r *Job, n int64) bool {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	r.tokens -= n
	r.granted = r.granted && r.tokens >= 0
	return !r.granted
}

// RefundTokens gives back tokens that were taken and not reserved.
func (l *Grants) RefundTokens(r *Job, n int64) {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	r.tokens += n
}

// AddReservation notes that a unit has n tokens reserved.
func (l *Grants) AddReservation(h *HeldUnit, n int64) {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	h.Reserved = n
}

// endClaim gives back the tokens that a claim did not reserve.
func (l *Grants) endClaim(r *Job, left int64) {
	r.tokens += left
	r.claiming = false
	l.claimEnded.Broadcast()
}

// CallsWanted returns how many calls this node has use for, and whether it has to
// ask for them.
func (l *Grants) CallsWanted() (ask grants.CallsRequest, wanted bool) {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()

	for _, s := range l.sched.Sessions.bound {
		ask.Most += int64(s.Slots)
		if slices.ContainsFunc(s.offer.Providers, func(p string) bool { return l.sched.asking[p] > 0 }) {
			ask.Need += int64(s.Slots)
		}
	}

	wanted = l.callsDue || ask.Need != l.callsAsked.Need || ask.Most != l.callsAsked.Most
	l.callsDue = false // unless something happens meanwhile
	return ask, wanted
}

// ApplyCalls enters how many calls this node may have under way, and returns how many
// may be now, and the jobs that make some if these are more than before.
func (l *Grants) ApplyCalls(ask grants.CallsRequest, g *grants.CallsReply) (keep int64, more []mapreduce.JobID) {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()

	if g.Slots > l.callSlots {
		l.sched.activateAll()
		for id, r := range l.sched.runs {
			if r.running && r.usesFleetCalls() {
				more = append(more, id)
			}
		}
	}

	l.callSlots, l.callsTaken = g.Slots, g.Taken
	l.callsAsked = ask
	return max(l.callSlots, l.calling), more
}

// MarkCallsDue has the node ask anew for the calls that it may make: others may
// need some, or have given some back.
func (l *Grants) MarkCallsDue() {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	l.callsDue = true
}

// PollCalls has the node ask anew if it has fewer calls than it can make, or may have some
// that others need.
func (l *Grants) PollCalls(alone bool) {
	l.sched.mu.Lock()
	defer l.sched.mu.Unlock()
	short := l.callSlots < min(l.callsAsked.Most, l.callsAsked.Limit)
	l.callsDue = l.callsDue || short || !alone && (l.calling > 0 || l.callsAsked.Need > 0)
}
