// Package schedule decides what an orchestrator does next, from what this node sees of
// jobs, workers, slots and models: which units are claimed for which workers, and what
// the node has to ask of the fleet. It reads and writes nothing, and takes the time and
// its randomness as arguments; others carry out what it decides, and tell it what came
// of that.
package schedule

import (
	"math"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/turns"
)

// A Scheduler is what an orchestrator sees of its jobs and workers, and decides what its
// committers do next. Nothing in it is needed after a crash. It has one lock, as each
// decision looks at all of it.
type Scheduler struct {
	node   mapreduce.NodeID
	now    func() time.Time
	newID  func() string  // of claims
	jitter func() float64 // in [0, 1), of the pauses of units that back off

	noReservedSlots bool

	Sessions *Sessions // the workers
	Grants   *Grants   // what this node may use of what the fleet shares
	Models   *Models   // what may be asked of models
	Priming  *Priming  // of caches of prompts
	Turns    *Turns    // what becomes of turns

	mu         sync.Mutex // guards everything below, and in the parts above
	wake       *sync.Cond // a committer may find something to do
	closed     bool
	runs       map[mapreduce.JobID]*Job
	uses       map[string]*modelUse // by model
	asking     map[string]int       // running jobs that ask models, by provider
	fairQueue  fairQueue
	busy       map[mapreduce.TenantID]int // units that workers of this node have and have not reported
	lastTenant mapreduce.TenantID         // whose units were claimed last
	mixedAt    time.Time                  // when another tenant's were claimed before
}

// A Config is what a scheduler is given. All of it must be set but NoReservedSlots.
type Config struct {
	Node   mapreduce.NodeID
	Limits func(name string) model.Limits // of a model
	Lease  time.Duration                  // that shares of limits are good for
	Now    func() time.Time
	NewID  func() string  // draws names of claims
	Jitter func() float64 // in [0, 1), of the pauses of units that back off
	// NoReservedSlots leaves out that slots are reserved for jobs that have few, so that
	// a benchmark can tell what it is worth.
	NoReservedSlots bool
}

// New returns a scheduler that knows of no jobs and workers yet.
func New(c Config) *Scheduler {
	b := &Scheduler{
		node: c.Node, now: c.Now, newID: c.NewID, jitter: c.Jitter, noReservedSlots: c.NoReservedSlots,
		runs: make(map[mapreduce.JobID]*Job), uses: make(map[string]*modelUse), asking: make(map[string]int),
		busy: make(map[mapreduce.TenantID]int),
	}

	b.wake = sync.NewCond(&b.mu)
	b.Sessions = &Sessions{sched: b, bound: make(map[mapreduce.SessionID]*Session), away: make(map[mapreduce.SessionID]*Session)}
	b.Grants = &Grants{sched: b, claimEnded: sync.NewCond(&b.mu)}
	b.Models = &Models{sched: b, states: make(map[string]*model.State), limits: c.Limits, lease: c.Lease}
	b.Priming = &Priming{sched: b}
	b.Turns = &Turns{sched: b, full: make(map[mapreduce.TenantID]time.Time)}

	return b
}

// Close makes NextTask return nil once nothing is left to do.
func (b *Scheduler) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake.Broadcast()
	b.Grants.claimEnded.Broadcast()
}

// activateJob makes the fair queue visit a job. The caller holds b.mu.
func (b *Scheduler) activateJob(r *Job) {
	b.fairQueue.add(r)
	b.wake.Signal()
}

// A Task is what a committer does next: it reads a job's queue, or carries out a
// turn.
type Task struct {
	Job     *Job
	Spec    *mapreduce.JobSpec // of the job, as it was then, as is the next
	Stages  jobspec.Stages
	Scan    bool
	Turn    *turns.Turn
	Sent    []pendingReport // the reports of the turn
	seats   []*Session      // of the turn's claim
	last    []*claimOf      // claims that end with the turn's reports
	release []turns.HeldID  // claims that had ended before
	tokens  int64           // set aside for the claim
}

// NextTask waits for something to do. It returns nil when the scheduler is closed.
func (b *Scheduler) NextTask() *Task {
	b.mu.Lock()
	defer b.mu.Unlock()

	for {
		if t := b.findTask(b.now()); t != nil {
			// A signal wakes one committer, which wakes the next if more jobs wait.
			if b.fairQueue.hasWaiting() {
				b.wake.Signal()
			}
			return t
		}
		if b.closed {
			return nil
		}
		b.wake.Wait()
	}
}

// findTask visits active jobs in fair order until one has something to do. One that has not
// leaves the queue until it is activated again, or, if it is slots that it lacks, until
// there are some.
func (b *Scheduler) findTask(now time.Time) *Task {
	b.requeueStarved(now)

	for {
		r := b.fairQueue.nextJob()
		if r == nil {
			return nil
		}

		if now.Before(r.retryAt) {
			continue // its timer activates it
		}
		if t := b.taskFor(r); t != nil {
			b.fairQueue.add(r) // it may have more; its next visit finds out
			return t
		}

		if r.isStarved() {
			b.fairQueue.addStarved(r)
		}
	}
}

// starvedLooks is how many jobs that lack slots are looked at in one visit.
const starvedLooks = 8

// requeueStarved lets a job that found no slot go first once there is one for it. A job
// that frees slots would otherwise take them again and again, in the very turns that end
// its units. It is one job, of the tenant with the fewest units at workers: so tenants
// share the slots evenly, however many jobs each has, and however long its units take.
func (b *Scheduler) requeueStarved(now time.Time) {
	starved := &b.fairQueue.starved
	for look := range starvedLooks {
		var r *Job
		var ok bool
		// Every second look goes by turn: a tenant whose jobs no worker can run has the
		// fewest units for ever.
		if look%2 == 0 {
			r, ok = starved.NextBelow(math.MaxInt, b.busyUnits)
		} else {
			r, ok = starved.Next()
		}
		if !ok {
			return
		}

		switch {
		case !r.isStarved() || now.Before(r.retryAt): // its timer activates it
			r.starved = false
		case b.freeSlots(r) > 0:
			r.starved = false
			b.fairQueue.addFirst(r)
			return
		default:
			starved.Add(r.tenant, r)
		}
	}
}

// taskFor returns what a committer can do for r. It reads on in the queue before a
// turn that would leave slots empty for want of candidates: that costs less
// than another commit for them. While another job waits, r claims what it has: each time
// that its turn came and it read instead, the slots would be gone when it has read.
func (b *Scheduler) taskFor(r *Job) *Task {
	room := b.freeSlots(r)
	few := len(r.queue) < min(room, records.MaxBatch)
	if few && !r.drained && !r.reading && (len(r.queue) == 0 || !b.fairQueue.isContended()) {
		r.reading = true
		return &Task{Job: r, Scan: true}
	}

	t := &Task{Job: r, Spec: r.spec, Stages: r.stages, Turn: &turns.Turn{Job: r.ID}}
	b.takeReports(r, t)
	if room > 0 && len(r.queue) > 0 && (r.batch == 0 || len(t.Sent) == 0) { // what fails alone is all of its turn
		b.takeSeats(r, t, room)
	}

	// Claims that have ended are released along with other work. They are worth a turn of
	// their own only once nothing else is under way.
	idle := r.turns == 0 && r.held == 0 && len(r.release) > 0
	if len(t.Turn.Reports) == 0 && t.Turn.Claim == nil && !idle {
		return nil
	}

	t.Turn.Release = append(t.Turn.Release, r.release...)
	t.release, r.release = r.release, nil
	r.turns++
	return t
}

// freeSlots returns how many more units r may have claimed now.
func (b *Scheduler) freeSlots(r *Job) int {
	if !r.running || r.claiming || r.isFailing() || (r.spec.Budget > 0 && (r.neededTokens > r.tokens || !r.granted)) {
		return 0
	}
	if b.now().Before(b.Turns.full[r.tenant]) {
		return 0
	}

	free, slots, all := b.Sessions.reachableSlots(r)
	if slots == 0 {
		return 0
	}

	// Calls are the scarcer of the two if fewer are granted than workers have slots.
	if r.usesFleetCalls() && int64(all) > b.Grants.callSlots {
		free = min(free, int(b.Grants.callSlots-b.Grants.calling))
	}
	free = r.priming.capSlots(min(free, b.Models.modelRoom(r)), r.held)
	if int64(slots) > r.slots {
		// The workers could run more of it at once than it may: what they
		// hold waiting would run as well.
		free = min(free, int(r.slots)-r.held)
	}

	// A job that holds less than the reserve may use it.
	spare := b.reservedSlots(slots)
	return max(0, free-spare, min(free, spare-r.held))
}

const (
	spareOf  = 32          // one slot in so many is reserved
	spareFor = time.Second // after a unit of another tenant was begun, slots are reserved
)

// reservedSlots returns how many slots stay free for jobs that have few, while units of
// several tenants are begun. Units that begin together end together, so a unit of a small
// job that becomes ready in between would otherwise wait until then.
func (b *Scheduler) reservedSlots(slots int) int {
	if b.noReservedSlots || b.now().Sub(b.mixedAt) > spareFor {
		return 0
	}
	return slots / spareOf
}

// addHeldUnits notes that this node holds n units more of r, or fewer. The caller holds
// b.mu.
func (b *Scheduler) addHeldUnits(r *Job, n int) {
	r.held += n
	b.addHeldOf(r, n)
	b.addBusyUnits(r, n)
	if r.usesFleetCalls() {
		b.Grants.calling += int64(n)
	}
}

// addReportedUnits notes that n units more of those that this node holds of r, or fewer,
// have been reported, so that their slots are free. The caller holds b.mu.
func (b *Scheduler) addReportedUnits(r *Job, n int) {
	r.reported += n
	b.addBusyUnits(r, -n)
}

// forgetHeldUnit notes that this node does not hold a unit of r any more. The caller holds
// b.mu.
func (b *Scheduler) forgetHeldUnit(r *Job, h *HeldUnit) {
	b.addHeldUnits(r, -1)
	if h.reported {
		b.addReportedUnits(r, -1)
	}
}

func (b *Scheduler) addBusyUnits(r *Job, n int) {
	if b.busy[r.tenant] += n; b.busy[r.tenant] == 0 {
		delete(b.busy, r.tenant)
	}
}

// busyUnits returns how many units of a tenant are in slots of this node's workers, or
// wait there. The caller holds b.mu.
func (b *Scheduler) busyUnits(t mapreduce.TenantID) int { return b.busy[t] }

func (b *Scheduler) takeReports(r *Job, t *Task) {
	n := min(len(r.reports), r.turnSize())
	last := make(map[*claimOf]int)
	for _, p := range r.reports[:n] {
		t.Turn.Reports = append(t.Turn.Reports, turns.Report{Report: p.Report, Jitter: p.jitter, Session: p.Session.ID, Broke: p.broke, Overdue: p.overdue})

		h := p.Session.held[unitKey{p.Report.Job, p.Report.Unit}]
		if h == nil || h.attempt != p.Report.Attempt || h.taken {
			continue
		}
		h.taken = true

		// The turn that takes the last report of a claim releases the claim as well.
		if last[h.claim]++; last[h.claim] == h.claim.left {
			t.Turn.Release = append(t.Turn.Release, h.claim.id)
			t.last = append(t.last, h.claim)
			h.claim.released = true
		}
	}

	t.Sent = append(t.Sent, r.reports[:n]...)
	if r.reports = r.reports[n:]; len(r.reports) == 0 {
		r.reports = nil
	}
}

// takeSeats sets free slots and candidates aside for a claim. Sessions are
// offered units in turn; those first that would run them at once, for what another
// held waiting would take a place in a limit and use it for nothing.
func (b *Scheduler) takeSeats(r *Job, t *Task, room int) {
	want := min(room, r.turnSize(), len(r.queue), b.fairQueue.visitAllowance(r, room))
	claim := &turns.Claim{ID: b.newID(), Share: r.share}
	for want > 0 {
		given := b.seatAll(r, t, claim, want, (*Session).idleSlots)
		if given == 0 {
			given = b.seatAll(r, t, claim, want, (*Session).freeUnits)
		}
		if want -= given; given == 0 {
			break
		}
	}

	n := 0
	for _, s := range claim.Seats {
		n += s.Slots
	}
	if n == 0 {
		return
	}

	// Another tenant's units begin: slots are reserved for a while.
	if r.tenant != b.lastTenant {
		b.lastTenant, b.mixedAt = r.tenant, b.now()
	}

	claim.Candidates = append(claim.Candidates, r.queue[:n]...)
	r.queue = r.queue[n:]
	r.waitingSince = time.Time{}
	r.noteWaiting(b.now())
	r.takeCandidates(claim.Candidates)
	b.addHeldUnits(r, n)

	// The claim has all tokens of the grant, and gives back what it does not reserve.
	if r.spec.Budget > 0 {
		claim.Bounded, claim.Tokens = true, r.tokens
		t.tokens, r.tokens, r.claiming = r.tokens, 0, true
	}

	_, slots, all := b.Sessions.reachableSlots(r)
	claim.Slots = turns.Share{Slots: int64(min(r.held, slots)), Taken: r.revocations}
	if r.usesFleetCalls() {
		claim.Calls = turns.Share{Slots: min(b.Grants.calling, int64(all)), Taken: b.Grants.callsTaken}
	}

	t.Turn.Claim = claim
}

// seatAll sets a place aside at each session that has any, and returns how many it
// has set aside, which is at most the given number.
func (b *Scheduler) seatAll(r *Job, t *Task, claim *turns.Claim, most int, places func(*Session) int) (given int) {
	for _, s := range b.Sessions.rotate() {
		if given < most && s.canRun(r, b.now()) && places(s) > 0 {
			s.promised++
			given++
			t.addClaimSlot(claim, s)
		}
	}
	return given
}

// addClaimSlot adds one slot of s to the claim.
func (t *Task) addClaimSlot(c *turns.Claim, s *Session) {
	for i, other := range t.seats {
		if other == s {
			c.Seats[i].Slots++
			return
		}
	}
	t.seats = append(t.seats, s)
	c.Seats = append(c.Seats, turns.WorkerSlots{Session: s.ID, Epoch: s.Epoch, Slots: 1})
}

// activateAll makes the fair queue visit all jobs, as more of their units may begin. The
// caller holds b.mu.
func (b *Scheduler) activateAll() {
	for _, r := range b.runs {
		b.fairQueue.add(r)
	}
	b.wake.Broadcast()
}

// TryTask returns something to do, or nil if there is nothing now. It is for simulations,
// in which nobody waits.
func (b *Scheduler) TryTask() *Task {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.findTask(b.now())
}
