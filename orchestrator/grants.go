package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/store/jobs/grants"
)

func randomJitter() float64 { return rand.Float64() }

// adjustGrants gives back what a job has no use for here, or asks for the slots and
// tokens that it lacks. A job for which no tokens are left, and of which nothing
// runs that might return some, is paused.
func (o *Orchestrator) adjustGrants(ctx context.Context, id mapreduce.JobID) error {
	if err := o.fleetSlots(ctx); err != nil {
		return err
	}
	if err := o.returnGrants(ctx, id); err != nil {
		return err
	}
	if o.scheduler.newHere(id) {
		if err := o.members.YieldTurn(ctx, id); err != nil {
			return err
		}
	}
	g, short, err := o.requestGrant(ctx, id, func() (grants.Request, bool) { return o.missingGrants(id) })
	if err != nil || short == 0 || g.Budget == 0 || g.Running > 0 {
		return err
	}
	return o.outOfBudget(ctx, id, g, short)
}

// lockGrantRequests waits until no other request for grants is under way: what the scheduler is
// told last must be what is stored. The caller calls done.
func (o *Orchestrator) lockGrantRequests(ctx context.Context) (done func(), err error) {
	select {
	case o.grantRequestSlot <- struct{}{}:
		return func() { <-o.grantRequestSlot }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// requestGrant asks for a grant, if what says to, and enters it. It returns how many
// tokens are still lacking.
func (o *Orchestrator) requestGrant(ctx context.Context, id mapreduce.JobID, what func() (grants.Request, bool)) (g *grants.Reply, short int64, err error) {
	done, err := o.lockGrantRequests(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	ask, wanted := what()
	if !wanted {
		return nil, 0, nil
	}
	if g, err = o.jobs.Grants.Grant(ctx, id, ask); err != nil {
		o.scheduler.markGrantUnsure(id)
		return nil, 0, err
	}
	return g, o.scheduler.applyGrant(id, g), nil
}

// fleetSlots asks for as many model calls at once as the workers of this node
// can make, of those that the whole fleet may. What others need of those it has
// is given back: first no more are begun than will be left, and then what is not
// under way goes.
func (o *Orchestrator) fleetSlots(ctx context.Context) error {
	done, err := o.lockGrantRequests(ctx)
	if err != nil {
		return err
	}
	defer done()
	ask, wanted := o.scheduler.wantsCalls()
	if !wanted {
		return nil
	}
	ask.Limit, ask.Doubts = int64(o.config.MaxCalls), o.members.SuspectNodes()
	ask.Keep = ask.Limit
	g, err := o.jobs.Grants.FleetSlots(ctx, ask)
	if err != nil {
		o.scheduler.callsChange()
		return err
	}
	keep, more := o.scheduler.mayCall(ask, g)
	for _, id := range more[:min(len(more), polled)] {
		o.signals.MarkDue(id) // which may have slots of them now
	}
	if ask.Keep = keep; ask.Keep < g.Kept {
		if _, err = o.jobs.Grants.FleetSlots(ctx, ask); err != nil {
			o.scheduler.callsChange()
		}
	}
	return err
}

// wantsCalls returns how many calls this node has use for, and whether it has to
// ask for them.
func (b *scheduler) wantsCalls() (ask grants.CallsRequest, wanted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	providers := make(map[string]bool)
	for _, r := range b.runs {
		if r.running && r.usesFleetCalls() {
			providers[r.spec.Provider] = true
		}
	}
	for _, s := range b.sessions {
		ask.Most += int64(s.slots)
		for p := range providers {
			if slices.Contains(s.offer.Providers, p) {
				ask.Need += int64(s.slots)
				break
			}
		}
	}
	wanted = b.callsDue || ask.Need != b.callsAsked.Need || ask.Most != b.callsAsked.Most
	b.callsDue = false // unless something happens meanwhile
	return ask, wanted
}

// mayCall enters how many calls this node may have under way, and returns how many
// may be now, and the jobs that make some if these are more than before.
func (b *scheduler) mayCall(ask grants.CallsRequest, g *grants.CallsReply) (keep int64, more []mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g.Slots > b.callSlots {
		b.activateAll()
		for id, r := range b.runs {
			if r.running && r.usesFleetCalls() {
				more = append(more, id)
			}
		}
	}
	b.callSlots, b.callsTaken = g.Slots, g.Taken
	b.callsAsked = ask
	return max(b.callSlots, b.calling), more
}

// callsChange has the node ask anew for the calls that it may make: others may
// need some, or have given some back.
func (b *scheduler) callsChange() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.callsDue = true
}

// callsPoll does so if the node has fewer than it can make, or may have some that
// others need.
func (b *scheduler) callsPoll(alone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	short := b.callSlots < min(b.callsAsked.Most, b.callsAsked.Limit)
	b.callsDue = b.callsDue || short || !alone && (b.calling > 0 || b.callsAsked.Need > 0)
}

func (o *Orchestrator) outOfBudget(ctx context.Context, id mapreduce.JobID, g *grants.Reply, short int64) error {
	if !o.scheduler.hasWaitedForTokens(id, 3*o.config.Poll) {
		beats, err := o.jobs.Nodes.Beats(ctx)
		if err != nil || len(beats) > 1 || !o.members.IsOnlyNode() {
			return err // others may yet return what they do not need
		}
	}
	why := fmt.Sprintf("budget of %d tokens: the next unit may need %d, and no more are left to reserve; "+
		"go on with `coditect mapreduce resume --job-id %s --budget N`", g.Budget, short, id)
	if err := o.jobs.Lifecycle.Pause(ctx, id, g.Epoch, why); err != nil {
		return err
	}
	o.signals.MarkDue(id)
	return nil
}

// newHere reports whether this node lacks slots of a job and has none: so do all
// that have just seen it.
func (b *scheduler) newHere(id mapreduce.JobID) bool {
	var ask grants.Request
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	return b.fillGrantRequest(r, &ask) && ask.Slots > 0 && r.slots == 0
}

// missingGrants says what to ask for, and whether to. What is to be given back is off the
// board from then on.
func (o *Orchestrator) missingGrants(id mapreduce.JobID) (grants.Request, bool) {
	ask := grants.Request{ID: newID(), Alone: o.members.IsOnlyNode(), Doubts: o.members.SuspectNodes()}
	b := o.scheduler
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	wanted := b.fillGrantRequest(r, &ask)
	if ask.Give > 0 {
		r.slots -= ask.Give
	}
	return ask, wanted
}

// fillGrantRequest fills in what to ask for of a job, which may be nil, and reports whether to.
// The caller holds mu.
func (b *scheduler) fillGrantRequest(r *scheduledJob, ask *grants.Request) bool {
	if r == nil || !r.running {
		return false
	}
	ask.Parallelism = int64(r.spec.Parallelism)
	want, held := min(ask.Parallelism, b.slotCapacity(r), b.mayHold(r)), int64(r.held)
	if r.slots < want && held >= r.slots {
		ask.Slots = want
	}
	if surplus := r.slots - max(want, held); surplus > 0 && !ask.Alone {
		ask.Give = surplus
	}
	if r.spec.Budget > 0 && want > 0 && (r.neededTokens > r.tokens || !r.granted) && !r.claiming {
		ask.Tokens = max(1, r.neededTokens-r.tokens)
	}
	return r.grantUnsure || ask.Slots > 0 || ask.Give > 0 || ask.Tokens > 0
}

// markGrantUnsure notes that what is granted of a job may be more than the scheduler thinks:
// what it was to give back it may have still, and nobody else.
func (b *scheduler) markGrantUnsure(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil {
		r.grantUnsure = true
	}
}

// applyGrant enters a grant, and returns how many tokens are still lacking. What is
// stored is right, and what the scheduler has reckoned meanwhile is not always: of
// units that others settled it knows nothing. Should a turn be under way that
// the store has counted already, the scheduler has too many for a while, and the
// next claim or reservation finds that out.
func (b *scheduler) applyGrant(id mapreduce.JobID, g *grants.Reply) (short int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
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
			r.blockedSince = time.Now()
		}
		return r.neededTokens
	}
	r.blockedSince = time.Time{}
	b.activateJob(r)
	return 0
}

// setInitialSlots enters the slots that a job's submission has granted this node. Of a job
// that stands on the scheduler already, what was granted is asked for.
func (b *scheduler) setInitialSlots(id mapreduce.JobID, slots int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil {
		r.grantUnsure = true
		return
	}
	b.getOrAddJob(id).slots = slots
}

// slotsFor counts the slots of the sessions that can run units of a job that is
// new.
func (b *scheduler) slotsFor(spec *mapreduce.JobSpec) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.slotCapacity(&scheduledJob{spec: spec, needs: jobspec.Requirements(spec, nil)})
}

// returnGrants gives back what this node was granted of a job and has no use
// for, so that others find it.
func (o *Orchestrator) returnGrants(ctx context.Context, id mapreduce.JobID) error {
	if o.members.IsOnlyNode() {
		return nil
	}
	done, err := o.lockGrantRequests(ctx)
	if err != nil {
		return err
	}
	defer done()
	if o.scheduler.takeReleasableGrants(id) {
		if _, err = o.jobs.Grants.Return(ctx, id); err != nil {
			o.scheduler.markGrantUnsure(id)
		}
	}
	return err
}

// takeReleasableGrants takes a job's grants off the scheduler if nothing of it is under way here
// and no worker of this node can run it, or others may need the tokens, as this node
// has no more to run, or may not ask its model. Slots alone are kept for the next
// level: all nodes would ask for them at once. What was granted in all is asked anew
// with the next grant.
func (b *scheduler) takeReleasableGrants(id mapreduce.JobID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	if r == nil || r.spec == nil || r.held > 0 || r.turns > 0 || len(r.reports) > 0 || (r.slots == 0 && r.tokens == 0) {
		return false
	}
	needed := r.spec.Budget == 0 || !(r.drained && len(r.queue) == 0) && r.neededTokens <= r.tokens && b.mayHold(r) > 0
	if needed && b.countUsableSessions(r) > 0 {
		return false
	}
	r.slots, r.tokens, r.granted = 0, 0, false
	return true
}

// pauseStuck pauses a job of which nothing could run for long: its breaker is
// open, its model refuses all calls, or no worker has its provider. Workers of
// other nodes may fare better: a job that runs anywhere else is not stuck.
func (o *Orchestrator) pauseStuck(ctx context.Context, id mapreduce.JobID) error {
	epoch, begins, why := o.scheduler.stuckReason(id, o.config.Stuck, time.Now())
	if why == "" && !begins {
		return nil
	}
	job, err := o.jobs.View.Job(ctx, id)
	if err != nil || o.scheduler.isProgressing(id, job, time.Now()) {
		return err
	}
	if asleep, err := o.allUnitsParked(ctx, job); err != nil || asleep || begins {
		return err
	}
	if err := o.jobs.Lifecycle.Pause(ctx, id, epoch, why); err != nil {
		return err
	}
	o.signals.MarkDue(id)
	return nil
}

// allUnitsParked reports whether nothing of a job could run even if it might: all units that
// are pending are parked. Then how long it has been stuck is counted anew.
func (o *Orchestrator) allUnitsParked(ctx context.Context, job *mapreduce.Job) (bool, error) {
	if job.ParkedUnits == 0 {
		return false, nil
	}
	queued, err := o.jobs.Queue.Queued(ctx, job.ID)
	if err != nil || queued {
		return false, err
	}
	o.scheduler.mu.Lock()
	defer o.scheduler.mu.Unlock()
	if r := o.scheduler.runs[job.ID]; r != nil {
		r.stuckSince = time.Time{}
	}
	return true, nil
}

// isProgressing reports whether a job is not stuck after all: units of it run, or have
// ended since it was last looked at. None run for a moment between two levels.
// Those that run here do not count while its model answers nobody: they probe, or
// wait.
func (b *scheduler) isProgressing(id mapreduce.JobID, job *mapreduce.Job, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, running := b.runs[id], job.RunningUnits
	if r == nil {
		return true
	}
	unanswered := b.modelUnanswered(r, now)
	if unanswered {
		running -= int64(r.held)
	}
	before := r.lastProgress
	r.lastProgress = progressMark{job.Epoch, job.CompletedUnits + job.FailedUnits}
	moves := running > 0 || r.lastProgress != before
	if moves && !unanswered {
		r.stuckSince = now
	}
	return moves
}

// modelUnanswered reports whether a job's model answers nobody: its breaker is open,
// which it is until a probe succeeds however many are made, or the vendor refuses
// every call for want of room. Units that skip open breakers wait for room as others do.
// The caller holds mu.
func (b *scheduler) modelUnanswered(r *scheduledJob, now time.Time) bool {
	if r.spec == nil || !r.asks {
		return false
	}
	m := b.models[breakerOf(r.spec)]
	return m != nil && (m.holdsBack(r.spec) || m.isRefusing(now))
}

// holdsBack reports whether a job waits until the model's breaker is closed again.
func (m *modelState) holdsBack(spec *mapreduce.JobSpec) bool {
	return m.scope.Breaker.Open && spec.OnBreaker != mapreduce.BreakerSkip
}

// isRefusing reports whether the vendor has refused the latest calls from here, and the
// rest that it asked for is not over, or has not been for long.
func (m *modelState) isRefusing(now time.Time) bool {
	return !m.refused.IsZero() && (now.Before(m.frozen) || now.Before(m.refused.Add(refusalLasts)))
}

// refusalLasts is for how long after the rest that it asked for a vendor is taken to
// refuse all calls. One that does refuses the next until then; if there is none, it has
// taken one and not answered yet, or was not asked.
const refusalLasts = 2 * time.Minute

// stuckReason says why nothing of a job has been able to run here for d, or "", and as of
// which epoch, or that this begins.
func (b *scheduler) stuckReason(id mapreduce.JobID, d time.Duration, now time.Time) (epoch int64, begins bool, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	if r == nil || !r.running {
		return 0, false, ""
	}
	if len(b.sessions) == 0 || !b.modelUnanswered(r, now) && (r.held > 0 || b.countUsableSessions(r) > 0) {
		r.stuckSince = time.Time{}
		return r.epoch, false, ""
	}
	if begins = r.stuckSince.IsZero(); begins {
		r.stuckSince = now
	}
	if now.Sub(r.stuckSince) < d {
		return r.epoch, begins, ""
	}
	for _, s := range b.sessions {
		m := b.models[breakerOf(r.spec)]
		if r.needs.MetBy(s.offer) == "" && m != nil && !m.holdsBack(r.spec) && m.isRefusing(now) {
			return r.epoch, begins, fmt.Sprintf("%s has refused every call for %v, for want of room; resume when it takes some", m.name, d)
		}
		if r.needs.MetBy(s.offer) == "" {
			return r.epoch, begins, fmt.Sprintf("the breaker of %s has been open for %v; resume when the provider is well again", breakerOf(r.spec), d)
		}
	}
	missing := ""
	for _, s := range b.sessions {
		missing = cmp.Or(missing, r.needs.MetBy(s.offer))
	}
	return r.epoch, begins, fmt.Sprintf("no worker has had the %s for %v; start one that has it, and resume", missing, d)
}

// hasWaitedForTokens reports whether a job has lacked tokens for d.
func (b *scheduler) hasWaitedForTokens(id mapreduce.JobID, d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	return r != nil && !r.blockedSince.IsZero() && time.Since(r.blockedSince) >= d
}

// raiseReservations raises reservations that workers ask for before a call. What is
// refused must not be spent.
func (o *Orchestrator) raiseReservations(ctx context.Context, s *session, asked []mapreduce.ReserveRequest) error {
	for _, q := range asked {
		var ok bool
		err := o.supervisor.RetryStoreCall(ctx, "reserving tokens", func() (err error) {
			ok, err = o.reserveOne(ctx, s, q)
			return err
		})
		if err != nil {
			return err
		}
		s.out.put(&mapreduce.ToWorker{Reserved: []mapreduce.ReserveReply{{Held: q.Held, Granted: ok}}})
	}
	return nil
}

func (o *Orchestrator) reserveOne(ctx context.Context, s *session, q mapreduce.ReserveRequest) (bool, error) {
	h, r := o.scheduler.findHeldUnit(s, q.Held)
	if h == nil || q.Tokens < 0 {
		return false, nil
	}
	spec, err := o.specOf(ctx, r)
	if err != nil {
		return false, err
	}
	if spec.Budget == 0 || q.Tokens <= h.reserved {
		return true, nil
	}
	select {
	case r.reserving <- struct{}{}:
		defer func() { <-r.reserving }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	more := q.Tokens - h.reserved
	if !o.scheduler.spendTokens(ctx, r, more) {
		ask := grants.Request{Tokens: more, Parallelism: int64(spec.Parallelism), Doubts: o.members.SuspectNodes()}
		if _, _, err := o.requestGrant(ctx, q.Job, func() (grants.Request, bool) { return ask, true }); err != nil {
			return false, err
		}
		// Whether that is enough the store decides: this reservation may be in what it
		// says is used, if an earlier try took effect unseen.
		if o.scheduler.overdrawTokens(r, more) {
			o.signals.MarkDue(q.Job)
		}
	}
	before, err := o.jobs.Grants.Reserve(ctx, []grants.Reservation{{Held: q.Held, Tokens: q.Tokens}})
	if err == nil && before[0] == grants.NoTokens {
		o.scheduler.noteMissingTokens(r, q.Tokens)
		o.scheduler.markOverdrawn(r)
		o.signals.MarkDue(q.Job)
		return false, nil
	}
	if err != nil { // it may have happened nevertheless
		o.scheduler.markOverdrawn(r)
		o.signals.MarkDue(q.Job)
		return false, err
	}
	if before[0] < 0 {
		o.scheduler.refundTokens(r, more)
		return false, nil
	}
	o.scheduler.addReservation(h, q.Tokens)
	return true, nil
}

// specOf returns the spec of a job, which the scheduler may not know yet: a worker
// can take up its session before the job is seen, or while it is paused.
func (o *Orchestrator) specOf(ctx context.Context, r *scheduledJob) (*mapreduce.JobSpec, error) {
	b := o.scheduler
	b.mu.Lock()
	spec := r.spec
	b.mu.Unlock()
	if spec != nil {
		return spec, nil
	}
	rec, err := o.jobs.View.Record(ctx, r.id)
	if err != nil {
		return nil, err
	}
	return &rec.Spec, nil
}

func (b *scheduler) findHeldUnit(s *session, h mapreduce.Held) (*heldUnit, *scheduledJob) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held, r := s.held[unitKey{h.Job, h.Unit}], b.runs[h.Job]
	if held == nil || held.attempt != h.Attempt || r == nil {
		return nil, nil
	}
	return held, r
}

func (b *scheduler) spendTokens(ctx context.Context, r *scheduledJob, n int64) bool {
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.claimEnded.Broadcast()
	})
	defer stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for r.claiming && !b.closed && ctx.Err() == nil {
		b.claimEnded.Wait() // the claim holds all tokens there are, and most go back
	}
	if r.tokens < n {
		return false
	}
	r.tokens -= n
	return true
}

// noteMissingTokens notes that a unit comes back which cannot go on without n tokens:
// until they are there, none of the job is claimed.
func (b *scheduler) noteMissingTokens(r *scheduledJob, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.neededTokens = max(r.neededTokens, n)
}

// isGrantUnknown reports whether the scheduler does not know what r was granted.
func (b *scheduler) isGrantUnknown(r *scheduledJob) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return r.running && r.spec.Budget > 0 && !r.granted
}

// markOverdrawn notes that the grant has less left than the scheduler thinks.
func (b *scheduler) markOverdrawn(r *scheduledJob) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.tokens, r.granted = 0, false
}

// overdrawTokens takes n tokens that the store may have, and reports whether the scheduler thinks
// that there are fewer: then it is to be asked anew, and none are claimed until that is
// done.
func (b *scheduler) overdrawTokens(r *scheduledJob, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.tokens -= n
	r.granted = r.granted && r.tokens >= 0
	return !r.granted
}

func (b *scheduler) refundTokens(r *scheduledJob, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.tokens += n
}

func (b *scheduler) addReservation(h *heldUnit, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h.reserved = n
}
