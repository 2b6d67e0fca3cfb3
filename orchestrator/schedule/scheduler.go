// Package schedule decides what an orchestrator does next, from what this node sees of
// jobs, workers, slots and models: which units are claimed for which workers, and what
// the node has to ask of the fleet. It reads and writes nothing, and takes the time and
// its randomness as arguments; others carry out what it decides, and tell it what came
// of that.
package schedule

import (
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/fair"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	"github.com/coditect/mapreduce/orchestrator/schedule/view"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
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
	workers   *workers.Table
	calls     view.Calls
	fairQueue fair.Rounds[*Job] // of jobs that may have something to do
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
		jobs: newJobTable(), workers: workers.NewTable(),
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
	s.fairQueue.Add(j)
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
	Sent     []pendingReport    // the reports of the turn
	sessions []*workers.Session // of the turn's claim
	last     []*workers.Claim   // claims that end with the turn's reports
	release  []queue.HeldID     // claims that had ended before
	tokens   int64              // set aside for the claim
}

// NextTask waits for something to do. It returns nil when the scheduler is closed.
func (s *Scheduler) NextTask() *Task {
	s.mu.Lock()
	defer s.mu.Unlock()

	for {
		if task := s.findTask(s.now()); task != nil {
			// A signal wakes one committer, which wakes the next if more jobs wait.
			if s.fairQueue.HasWaiting() {
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
		j, ok := s.fairQueue.Next()
		if !ok {
			return nil
		}

		if now.Before(j.turns.retryAt) {
			continue // its timer activates it
		}
		if task := s.taskFor(j); task != nil {
			s.fairQueue.Add(j) // it may have more; its next visit finds out
			return task
		}

		if j.isStarved() {
			s.fairQueue.AddStarved(j)
		}
	}
}

// requeueStarved lets a job that found no slot go first once there is one for it, of the
// tenant with the fewest units at workers.
func (s *Scheduler) requeueStarved(now time.Time) {
	s.fairQueue.RequeueStarved(s.jobs.busyUnits, func(j *Job) fair.Look {
		switch {
		case !j.isStarved() || now.Before(j.turns.retryAt): // its timer activates it
			return fair.Forgets
		case s.freeSlots(j) > 0:
			return fair.Goes
		}
		return fair.Waits
	})
}

// taskFor returns what a committer can do for j. It reads on in the queue before a
// turn that would leave slots empty for want of candidates: that costs less
// than another commit for them. While another job waits, j claims what it has: each time
// that its turn came and it read instead, the slots would be gone when it has read.
func (s *Scheduler) taskFor(j *Job) *Task {
	room := s.freeSlots(j)
	few := j.queue.Len() < min(room, records.MaxBatch)
	if few && j.queue.NeedsRead() && (j.queue.Len() == 0 || !s.fairQueue.IsContended()) {
		j.queue.BeginRead()
		return &Task{Job: j, Scan: true}
	}

	task := &Task{Job: j, Spec: j.spec, Stages: j.stages, Turn: &queue.Turn{Job: j.ID}}
	task.takeReports(j)
	if room > 0 && j.queue.Len() > 0 && (j.turns.batch == 0 || len(task.Sent) == 0) { // what fails alone is all of its turn
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
	if !j.running || j.grant.IsClaiming() || j.isFailing() || j.spec.Budget > 0 && j.grant.LacksTokens() {
		return 0
	}
	if s.Turns.isFull(j.tenant) {
		return 0
	}

	free, slots, all := s.workers.Reachable(&j.wants, s.now())
	if slots == 0 {
		return 0
	}

	// Calls are the scarcer of the two if fewer are granted than workers have slots.
	if j.usesFleetCalls() && int64(all) > s.calls.Slots() {
		free = min(free, int(s.calls.Slots()-s.jobs.calling))
	}
	free = j.priming.capSlots(min(free, s.Models.modelRoom(j)), j.held)
	if int64(slots) > j.grant.Slots() {
		// The workers could run more of it at once than it may: what they
		// hold waiting would run as well.
		free = min(free, int(j.grant.Slots())-j.held)
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
	last := make(map[*workers.Claim]int)
	for _, p := range task.Sent {
		task.Turn.Reports = append(task.Turn.Reports, queue.Report{Report: p.Report, Jitter: p.jitter, Session: p.Session.ID, Broke: p.broke, Overdue: p.overdue})

		h := p.Session.Attempt(heldOf(p.Report))
		if h == nil || !h.Take() {
			continue
		}

		if last[h.Claim]++; last[h.Claim] == h.Claim.Left {
			task.Turn.Release = append(task.Turn.Release, h.Claim.ID)
			task.last = append(task.last, h.Claim)
			h.Claim.Released = true
		}
	}
}

// claimSlots sets free slots and candidates aside for a claim. Sessions are
// offered units in turn; those first that would run them at once, for what another
// held waiting would take a place in a limit and use it for nothing.
func (s *Scheduler) claimSlots(j *Job, task *Task, room int) {
	want := min(room, j.turns.size(), j.queue.Len(), s.fairQueue.Allowance(j, room, records.MaxBatch))
	claim := &queue.Claim{ID: s.newID(), Share: j.share}
	for want > 0 {
		given := s.workers.SetAside(&j.wants, want, (*workers.Session).IdleSlots, s.now())
		if len(given) == 0 {
			given = s.workers.SetAside(&j.wants, want, (*workers.Session).FreeUnits, s.now())
		}
		if len(given) == 0 {
			break
		}

		want -= len(given)
		for _, session := range given {
			task.addClaimSlot(claim, session)
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
	claim.Candidates = j.queue.Claim(n, s.now())
	s.jobs.addHeld(j, n)

	// The claim has all tokens of the grant, and gives back what it does not reserve.
	if j.spec.Budget > 0 {
		task.tokens = j.grant.TakeAll()
		claim.Bounded, claim.Tokens = true, task.tokens
	}

	_, slots, all := s.workers.Reachable(&j.wants, s.now())
	claim.Slots = j.grant.Share(int64(min(j.held, slots)))
	if j.usesFleetCalls() {
		claim.Calls = s.calls.Share(min(s.jobs.calling, int64(all)))
	}

	task.Turn.Claim = claim
}

// addClaimSlot adds one slot of session to the claim.
func (task *Task) addClaimSlot(c *queue.Claim, session *workers.Session) {
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
		s.fairQueue.Add(j)
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
