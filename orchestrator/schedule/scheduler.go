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
	s := &Scheduler{
		node: c.Node, now: c.Now, newID: c.NewID, jitter: c.Jitter, noReservedSlots: c.NoReservedSlots,
		runs: make(map[mapreduce.JobID]*Job), uses: make(map[string]*modelUse), asking: make(map[string]int),
		busy: make(map[mapreduce.TenantID]int),
	}

	s.wake = sync.NewCond(&s.mu)
	s.Sessions = &Sessions{sched: s, bound: make(map[mapreduce.SessionID]*Session), away: make(map[mapreduce.SessionID]*Session)}
	s.Grants = &Grants{sched: s, claimEnded: sync.NewCond(&s.mu)}
	s.Models = &Models{sched: s, states: make(map[string]*model.State), limits: c.Limits, lease: c.Lease}
	s.Priming = &Priming{sched: s}
	s.Turns = &Turns{sched: s, full: make(map[mapreduce.TenantID]time.Time)}

	return s
}

// Close makes NextTask return nil once nothing is left to do.
func (s *Scheduler) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.wake.Broadcast()
	s.Grants.claimEnded.Broadcast()
}

// activateJob makes the fair queue visit a job. The caller holds s.mu.
func (s *Scheduler) activateJob(j *Job) {
	s.fairQueue.add(j)
	s.wake.Signal()
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
func (s *Scheduler) NextTask() *Task {
	s.mu.Lock()
	defer s.mu.Unlock()

	for {
		if task := s.findTask(s.now()); task != nil {
			// A signal wakes one committer, which wakes the next if more jobs wait.
			if s.fairQueue.hasWaiting() {
				s.wake.Signal()
			}
			return task
		}
		if s.closed {
			return nil
		}
		s.wake.Wait()
	}
}

// findTask visits active jobs in fair order until one has something to do. One that has not
// leaves the queue until it is activated again, or, if it is slots that it lacks, until
// there are some.
func (s *Scheduler) findTask(now time.Time) *Task {
	s.requeueStarved(now)

	for {
		j := s.fairQueue.nextJob()
		if j == nil {
			return nil
		}

		if now.Before(j.retryAt) {
			continue // its timer activates it
		}
		if task := s.taskFor(j); task != nil {
			s.fairQueue.add(j) // it may have more; its next visit finds out
			return task
		}

		if j.isStarved() {
			s.fairQueue.addStarved(j)
		}
	}
}

// starvedLooks is how many jobs that lack slots are looked at in one visit.
const starvedLooks = 8

// requeueStarved lets a job that found no slot go first once there is one for it. A job
// that frees slots would otherwise take them again and again, in the very turns that end
// its units. It is one job, of the tenant with the fewest units at workers: so tenants
// share the slots evenly, however many jobs each has, and however long its units take.
func (s *Scheduler) requeueStarved(now time.Time) {
	starved := &s.fairQueue.starved
	for look := range starvedLooks {
		var j *Job
		var ok bool
		// Every second look goes by turn: a tenant whose jobs no worker can run has the
		// fewest units for ever.
		if look%2 == 0 {
			j, ok = starved.NextBelow(math.MaxInt, s.busyUnits)
		} else {
			j, ok = starved.Next()
		}
		if !ok {
			return
		}

		switch {
		case !j.isStarved() || now.Before(j.retryAt): // its timer activates it
			j.starved = false
		case s.freeSlots(j) > 0:
			j.starved = false
			s.fairQueue.addFirst(j)
			return
		default:
			starved.Add(j.tenant, j)
		}
	}
}

// taskFor returns what a committer can do for j. It reads on in the queue before a
// turn that would leave slots empty for want of candidates: that costs less
// than another commit for them. While another job waits, j claims what it has: each time
// that its turn came and it read instead, the slots would be gone when it has read.
func (s *Scheduler) taskFor(j *Job) *Task {
	room := s.freeSlots(j)
	few := len(j.queue) < min(room, records.MaxBatch)
	if few && !j.drained && !j.reading && (len(j.queue) == 0 || !s.fairQueue.isContended()) {
		j.reading = true
		return &Task{Job: j, Scan: true}
	}

	task := &Task{Job: j, Spec: j.spec, Stages: j.stages, Turn: &turns.Turn{Job: j.ID}}
	s.takeReports(j, task)
	if room > 0 && len(j.queue) > 0 && (j.batch == 0 || len(task.Sent) == 0) { // what fails alone is all of its turn
		s.takeSeats(j, task, room)
	}

	// Claims that have ended are released along with other work. They are worth a turn of
	// their own only once nothing else is under way.
	idle := j.turns == 0 && j.held == 0 && len(j.release) > 0
	if len(task.Turn.Reports) == 0 && task.Turn.Claim == nil && !idle {
		return nil
	}

	task.Turn.Release = append(task.Turn.Release, j.release...)
	task.release, j.release = j.release, nil
	j.turns++
	return task
}

// freeSlots returns how many more units j may have claimed now.
func (s *Scheduler) freeSlots(j *Job) int {
	if !j.running || j.claiming || j.isFailing() || (j.spec.Budget > 0 && (j.neededTokens > j.tokens || !j.granted)) {
		return 0
	}
	if s.now().Before(s.Turns.full[j.tenant]) {
		return 0
	}

	free, slots, all := s.Sessions.reachableSlots(j)
	if slots == 0 {
		return 0
	}

	// Calls are the scarcer of the two if fewer are granted than workers have slots.
	if j.usesFleetCalls() && int64(all) > s.Grants.callSlots {
		free = min(free, int(s.Grants.callSlots-s.Grants.calling))
	}
	free = j.priming.capSlots(min(free, s.Models.modelRoom(j)), j.held)
	if int64(slots) > j.slots {
		// The workers could run more of it at once than it may: what they
		// hold waiting would run as well.
		free = min(free, int(j.slots)-j.held)
	}

	// A job that holds less than the reserve may use it.
	spare := s.reservedSlots(slots)
	return max(0, free-spare, min(free, spare-j.held))
}

const (
	spareOf  = 32          // one slot in so many is reserved
	spareFor = time.Second // after a unit of another tenant was begun, slots are reserved
)

// reservedSlots returns how many slots stay free for jobs that have few, while units of
// several tenants are begun. Units that begin together end together, so a unit of a small
// job that becomes ready in between would otherwise wait until then.
func (s *Scheduler) reservedSlots(slots int) int {
	if s.noReservedSlots || s.now().Sub(s.mixedAt) > spareFor {
		return 0
	}
	return slots / spareOf
}

// addHeldUnits notes that this node holds n units more of j, or fewer. The caller holds
// s.mu.
func (s *Scheduler) addHeldUnits(j *Job, n int) {
	j.held += n
	s.addHeldOf(j, n)
	s.addBusyUnits(j, n)
	if j.usesFleetCalls() {
		s.Grants.calling += int64(n)
	}
}

// addReportedUnits notes that n units more of those that this node holds of j, or fewer,
// have been reported, so that their slots are free. The caller holds s.mu.
func (s *Scheduler) addReportedUnits(j *Job, n int) {
	j.reported += n
	s.addBusyUnits(j, -n)
}

// forgetHeldUnit notes that this node does not hold a unit of j any more. The caller holds
// s.mu.
func (s *Scheduler) forgetHeldUnit(j *Job, h *HeldUnit) {
	s.addHeldUnits(j, -1)
	if h.reported {
		s.addReportedUnits(j, -1)
	}
}

func (s *Scheduler) addBusyUnits(j *Job, n int) {
	if s.busy[j.tenant] += n; s.busy[j.tenant] == 0 {
		delete(s.busy, j.tenant)
	}
}

// busyUnits returns how many units of a tenant are in slots of this node's workers, or
// wait there. The caller holds s.mu.
func (s *Scheduler) busyUnits(tenant mapreduce.TenantID) int { return s.busy[tenant] }

func (s *Scheduler) takeReports(j *Job, task *Task) {
	n := min(len(j.reports), j.turnSize())
	last := make(map[*claimOf]int)
	for _, p := range j.reports[:n] {
		task.Turn.Reports = append(task.Turn.Reports, turns.Report{Report: p.Report, Jitter: p.jitter, Session: p.Session.ID, Broke: p.broke, Overdue: p.overdue})

		h := p.Session.held[unitKey{p.Report.Job, p.Report.Unit}]
		if h == nil || h.attempt != p.Report.Attempt || h.taken {
			continue
		}
		h.taken = true

		// The turn that takes the last report of a claim releases the claim as well.
		if last[h.claim]++; last[h.claim] == h.claim.left {
			task.Turn.Release = append(task.Turn.Release, h.claim.id)
			task.last = append(task.last, h.claim)
			h.claim.released = true
		}
	}

	task.Sent = append(task.Sent, j.reports[:n]...)
	if j.reports = j.reports[n:]; len(j.reports) == 0 {
		j.reports = nil
	}
}

// takeSeats sets free slots and candidates aside for a claim. Sessions are
// offered units in turn; those first that would run them at once, for what another
// held waiting would take a place in a limit and use it for nothing.
func (s *Scheduler) takeSeats(j *Job, task *Task, room int) {
	want := min(room, j.turnSize(), len(j.queue), s.fairQueue.visitAllowance(j, room))
	claim := &turns.Claim{ID: s.newID(), Share: j.share}
	for want > 0 {
		given := s.seatAll(j, task, claim, want, (*Session).idleSlots)
		if given == 0 {
			given = s.seatAll(j, task, claim, want, (*Session).freeUnits)
		}
		if want -= given; given == 0 {
			break
		}
	}

	n := 0
	for _, seat := range claim.Seats {
		n += seat.Slots
	}
	if n == 0 {
		return
	}

	// Another tenant's units begin: slots are reserved for a while.
	if j.tenant != s.lastTenant {
		s.lastTenant, s.mixedAt = j.tenant, s.now()
	}

	claim.Candidates = append(claim.Candidates, j.queue[:n]...)
	j.queue = j.queue[n:]
	j.waitingSince = time.Time{}
	j.noteWaiting(s.now())
	j.takeCandidates(claim.Candidates)
	s.addHeldUnits(j, n)

	// The claim has all tokens of the grant, and gives back what it does not reserve.
	if j.spec.Budget > 0 {
		claim.Bounded, claim.Tokens = true, j.tokens
		task.tokens, j.tokens, j.claiming = j.tokens, 0, true
	}

	_, slots, all := s.Sessions.reachableSlots(j)
	claim.Slots = turns.Share{Slots: int64(min(j.held, slots)), Taken: j.revocations}
	if j.usesFleetCalls() {
		claim.Calls = turns.Share{Slots: min(s.Grants.calling, int64(all)), Taken: s.Grants.callsTaken}
	}

	task.Turn.Claim = claim
}

// seatAll sets a place aside at each session that has any, and returns how many it
// has set aside, which is at most the given number.
func (s *Scheduler) seatAll(j *Job, task *Task, claim *turns.Claim, most int, places func(*Session) int) (given int) {
	for _, session := range s.Sessions.rotate() {
		if given < most && session.canRun(j, s.now()) && places(session) > 0 {
			session.promised++
			given++
			task.addClaimSlot(claim, session)
		}
	}
	return given
}

// addClaimSlot adds one slot of session to the claim.
func (task *Task) addClaimSlot(c *turns.Claim, session *Session) {
	for i, other := range task.seats {
		if other == session {
			c.Seats[i].Slots++
			return
		}
	}
	task.seats = append(task.seats, session)
	c.Seats = append(c.Seats, turns.WorkerSlots{Session: session.ID, Epoch: session.Epoch, Slots: 1})
}

// activateAll makes the fair queue visit all jobs, as more of their units may begin. The
// caller holds s.mu.
func (s *Scheduler) activateAll() {
	for _, j := range s.runs {
		s.fairQueue.add(j)
	}
	s.wake.Broadcast()
}

// TryTask returns something to do, or nil if there is nothing now. It is for simulations,
// in which nobody waits.
func (s *Scheduler) TryTask() *Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.findTask(s.now())
}
