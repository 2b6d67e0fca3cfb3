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
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
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

	Sessions *Sessions // of workers
	Grants   *Grants   // what this node may use of what the fleet shares
	Models   *Models   // what may be asked of models
	Turns    *Turns    // what became of tasks

	mu        sync.Mutex // guards everything below, and in the parts above
	wake      *sync.Cond // a committer may find something to do
	closed    bool
	jobs      *jobTable
	workers   *workerTable
	calls     nodeCalls
	fairQueue fairQueue
	mix       tenantMix
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
		jobs: newJobTable(), workers: newWorkerTable(),
	}

	s.wake = sync.NewCond(&s.mu)
	s.Sessions = &Sessions{sched: s, workers: s.workers}
	s.Grants = &Grants{sched: s, claimEnded: sync.NewCond(&s.mu)}
	s.Models = &Models{sched: s, states: make(map[string]*model.State), limits: c.Limits, lease: c.Lease}
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
	Job      *Job
	Spec     *mapreduce.JobSpec // of the job, as it was then, as is the next
	Stages   jobspec.Stages
	Scan     bool
	Turn     *queue.Turn
	Sent     []pendingReport // the reports of the turn
	sessions []*Session      // of the turn's claim
	last     []*claimOf      // claims that end with the turn's reports
	release  []queue.HeldID  // claims that had ended before
	tokens   int64           // set aside for the claim
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

		if now.Before(j.turns.retryAt) {
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
			j, ok = starved.NextBelow(math.MaxInt, s.jobs.busyUnits)
		} else {
			j, ok = starved.Next()
		}
		if !ok {
			return
		}

		switch {
		case !j.isStarved() || now.Before(j.turns.retryAt): // its timer activates it
			j.place.starved = false
		case s.freeSlots(j) > 0:
			j.place.starved = false
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
	few := len(j.queue.waiting) < min(room, records.MaxBatch)
	if few && !j.queue.drained && !j.queue.reading && (len(j.queue.waiting) == 0 || !s.fairQueue.isContended()) {
		j.queue.reading = true
		return &Task{Job: j, Scan: true}
	}

	task := &Task{Job: j, Spec: j.spec, Stages: j.stages, Turn: &queue.Turn{Job: j.ID}}
	task.takeReports(j)
	if room > 0 && len(j.queue.waiting) > 0 && (j.turns.batch == 0 || len(task.Sent) == 0) { // what fails alone is all of its turn
		s.claimSlots(j, task, room)
	}

	// Claims that have ended are released along with other work. They are worth a turn of
	// their own only once nothing else is under way.
	idle := j.turns.underWay == 0 && j.held == 0 && len(j.turns.ended) > 0
	if len(task.Turn.Reports) == 0 && task.Turn.Claim == nil && !idle {
		return nil
	}

	task.release = j.turns.takeEnded()
	task.Turn.Release = append(task.Turn.Release, task.release...)
	j.turns.underWay++
	return task
}

// freeSlots returns how many more units j may have claimed now.
func (s *Scheduler) freeSlots(j *Job) int {
	if !j.running || j.grant.claiming || j.isFailing() || j.spec.Budget > 0 && j.grant.lacksTokens() {
		return 0
	}
	if s.Turns.isFull(j.tenant) {
		return 0
	}

	free, slots, all := s.workers.reachable(j, s.now())
	if slots == 0 {
		return 0
	}

	// Calls are the scarcer of the two if fewer are granted than workers have slots.
	if j.usesFleetCalls() && int64(all) > s.calls.slots {
		free = min(free, int(s.calls.slots-s.jobs.calling))
	}
	free = j.priming.capSlots(min(free, s.Models.modelRoom(j)), j.held)
	if int64(slots) > j.grant.slots {
		// The workers could run more of it at once than it may: what they
		// hold waiting would run as well.
		free = min(free, int(j.grant.slots)-j.held)
	}

	// A job that holds less than the reserve may use it.
	spare := 0
	if !s.noReservedSlots {
		spare = s.mix.reserved(slots, s.now())
	}
	return max(0, free-spare, min(free, spare-j.held))
}

const (
	spareOf  = 32          // one slot in so many is reserved
	spareFor = time.Second // after a unit of another tenant was begun, slots are reserved
)

// A tenantMix is whether units of several tenants are begun.
type tenantMix struct {
	last    mapreduce.TenantID // whose units were claimed last
	mixedAt time.Time          // when another tenant's were claimed before
}

// noteClaim notes that units of a tenant begin.
func (m *tenantMix) noteClaim(tenant mapreduce.TenantID, now time.Time) {
	if tenant != m.last {
		m.last, m.mixedAt = tenant, now
	}
}

// reserved returns how many slots stay free for jobs that have few, while units of several
// tenants are begun. Units that begin together end together, so a unit of a small job that
// becomes ready in between would otherwise wait until then.
func (m *tenantMix) reserved(slots int, now time.Time) int {
	if now.Sub(m.mixedAt) > spareFor {
		return 0
	}
	return slots / spareOf
}

// takeReports has the turn take reports of j. The last one of a claim releases the claim as
// well.
func (task *Task) takeReports(j *Job) {
	task.Sent = j.turns.take()
	last := make(map[*claimOf]int)
	for _, p := range task.Sent {
		task.Turn.Reports = append(task.Turn.Reports, queue.Report{Report: p.Report, Jitter: p.jitter, Session: p.Session.ID, Broke: p.broke, Overdue: p.overdue})

		h := p.Session.heldAttempt(p.Report.Job, p.Report.Unit, p.Report.Attempt)
		if h == nil || h.taken {
			continue
		}
		h.taken = true

		if last[h.claim]++; last[h.claim] == h.claim.left {
			task.Turn.Release = append(task.Turn.Release, h.claim.id)
			task.last = append(task.last, h.claim)
			h.claim.released = true
		}
	}
}

// claimSlots sets free slots and candidates aside for a claim. Sessions are
// offered units in turn; those first that would run them at once, for what another
// held waiting would take a place in a limit and use it for nothing.
func (s *Scheduler) claimSlots(j *Job, task *Task, room int) {
	want := min(room, j.turns.size(), len(j.queue.waiting), s.fairQueue.visitAllowance(j, room))
	claim := &queue.Claim{ID: s.newID(), Share: j.share}
	for want > 0 {
		given := s.workers.setAside(j, task, claim, want, (*Session).idleSlots, s.now())
		if given == 0 {
			given = s.workers.setAside(j, task, claim, want, (*Session).freeUnits, s.now())
		}
		if want -= given; given == 0 {
			break
		}
	}

	n := 0
	for _, worker := range claim.Workers {
		n += worker.Slots
	}
	if n == 0 {
		return
	}

	s.mix.noteClaim(j.tenant, s.now()) // slots are reserved for a while where tenants mix
	claim.Candidates = j.queue.claim(n, s.now())
	s.jobs.addHeld(j, n)

	// The claim has all tokens of the grant, and gives back what it does not reserve.
	if j.spec.Budget > 0 {
		task.tokens = j.grant.takeAll()
		claim.Bounded, claim.Tokens = true, task.tokens
	}

	_, slots, all := s.workers.reachable(j, s.now())
	claim.Slots = queue.Share{Slots: int64(min(j.held, slots)), Taken: j.grant.revocations}
	if j.usesFleetCalls() {
		claim.Calls = queue.Share{Slots: min(s.jobs.calling, int64(all)), Taken: s.calls.revocations}
	}

	task.Turn.Claim = claim
}

// addClaimSlot adds one slot of session to the claim.
func (task *Task) addClaimSlot(c *queue.Claim, session *Session) {
	for i, other := range task.sessions {
		if other == session {
			c.Workers[i].Slots++
			return
		}
	}
	task.sessions = append(task.sessions, session)
	c.Workers = append(c.Workers, queue.WorkerSlots{Session: session.ID, Epoch: session.Epoch, Slots: 1})
}

// activateAll makes the fair queue visit all jobs, as more of their units may begin. The
// caller holds s.mu.
func (s *Scheduler) activateAll() {
	for _, j := range s.jobs.byID {
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
