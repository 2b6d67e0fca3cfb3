package orchestrator

import (
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/notify"
	"github.com/coditect/mapreduce/store/jobs/grants"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/turns"
)

// A scheduler is what an orchestrator sees of its jobs and workers, and decides what
// its lanes do next. Nothing on it is needed after a crash.
type scheduler struct {
	node mapreduce.NodeID

	mu             sync.Mutex // guards everything below
	wake           *sync.Cond // a committer may find something to do
	claimEnded     *sync.Cond // a claim of a job with a budget has ended
	closed         bool
	runs           map[mapreduce.JobID]*scheduledJob
	fairQueue      fairQueue
	sessions       map[mapreduce.SessionID]*session
	away           map[mapreduce.SessionID]*session // whose streams have ended, and who may come back
	rotationOffset int                              // rotates the session that is offered a unit first
	lastTenant     mapreduce.TenantID               // whose units were claimed last
	mixedAt        time.Time                        // when another tenant's were claimed before
	// callSlots is how many units that call models this node may hold, and
	// calling how many it holds.
	callSlots, calling int64
	callsTaken         int64                  // how often others took some of callSlots
	callsAsked         grants.CallsRequest    // of which callSlots are what came
	callsDue           bool                   // it is to be asked for them again
	models             map[string]*modelState // by provider and model
	texts              int64                  // bytes that units which run keep of what they were given
	limits             func(model string) ModelLimits
	lease              time.Duration // that shares of their limits are good for
	modelsChanged      notify.Signal // models have something to tell the fleet, or to ask it
	// onPrimed is called when a job is cold no more, and others have to know. It must
	// not wait.
	onPrimed func(mapreduce.JobID)
}

// A scheduledJob is a job on the scheduler.
type scheduledJob struct {
	id       mapreduce.JobID
	tenant   mapreduce.TenantID
	priority int
	spec     *mapreduce.JobSpec // as the units of the stage run with it
	stages   jobspec.Stages     // of its levels
	needs    mapreduce.Requirements
	asks     bool  // the stage's provider asks models
	share    int64 // of the budget, for one document
	epoch    int64
	level    int64
	shards   int64

	running bool            // it may make claims
	reports []pendingReport // waiting for a turn
	release []turns.HeldID  // claims all of whose units have ended
	turns   int             // under way
	held    int             // units that sessions of this node hold, or are being given: see hold
	retryAt time.Time       // no turn before: the last one failed
	retries int             // turns that failed in a row

	queue   []records.Candidate // seen waiting
	cursors []cursor            // by shard; nil: from the beginning
	crowded bool                // another orchestrator claims where this one did
	// taken are the candidates of turns under way, and those of turns that have
	// ended since the queue is being read: what is read may still show them.
	taken   map[records.Candidate]bool // whether the turn is under way
	drained bool                       // the queue was read to its end
	starved bool                       // it waits for slots in the fair queue
	queued  bool                       // it waits for its turn there
	reading bool                       // it is being read
	reread  bool                       // something was put into it meanwhile

	slots        int64     // granted
	revocations  int64     // how often others took some of them
	grantUnsure  bool      // slots may not be what the store says
	tokens       int64     // granted and neither spent nor reserved
	granted      bool      // tokens is what the store says, but for what happened here since
	neededTokens int64     // tokens without which no unit can start; 0 if that is not so
	claiming     bool      // a claim of a job with a budget is under way
	blockedSince time.Time // since when it lacks tokens; zero if it does not
	// reserving is held while what runs reserves more: at once, only one would commit.
	reserving    chan struct{}
	stuckSince   time.Time    // since when no worker can run it, as far as is known; zero if one can
	lastProgress progressMark // how far it was when that was last looked into
	priming      prefixPriming
	// parkedAfter is the parked unit behind which the next poll looks for more.
	parkedAfter mapreduce.UnitID
}

// A progressMark is how far a job was at some moment at which it may have rested.
type progressMark struct{ epoch, ended int64 }

type pendingReport struct {
	report  *mapreduce.Report
	session *session
	jitter  float64
	broke   bool // the unit broke the session's stream when it was handed out
}

func newBoard(node mapreduce.NodeID, limits func(string) ModelLimits) *scheduler {
	b := &scheduler{
		node: node, limits: limits,
		runs: make(map[mapreduce.JobID]*scheduledJob), sessions: make(map[mapreduce.SessionID]*session),
		away: make(map[mapreduce.SessionID]*session), models: make(map[string]*modelState),
	}
	b.wake, b.claimEnded = sync.NewCond(&b.mu), sync.NewCond(&b.mu)
	return b
}

func (b *scheduler) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake.Broadcast()
	b.claimEnded.Broadcast()
}

// getOrAddJob returns the job's run, a new one if there is none. The caller holds b.mu.
func (b *scheduler) getOrAddJob(id mapreduce.JobID) *scheduledJob {
	r := b.runs[id]
	if r == nil {
		r = &scheduledJob{id: id, reserving: make(chan struct{}, 1)}
		b.runs[id] = r
	}
	return r
}

// activateJob makes the fair queue visit r. The caller holds b.mu.
func (b *scheduler) activateJob(r *scheduledJob) {
	b.fairQueue.add(r)
	b.wake.Signal()
}

// A task is what a committer does next: it reads a job's queue, or carries out a
// turn.
type task struct {
	job     *scheduledJob
	spec    *mapreduce.JobSpec // of the run, as it was then, as is the next
	stages  jobspec.Stages
	scan    bool
	turn    *turns.Turn
	sent    []pendingReport // the reports of the turn
	seats   []*session      // of the turn's claim
	last    []*claimOf      // claims that end with the turn's reports
	release []turns.HeldID  // claims that had ended before
	tokens  int64           // set aside for the claim
}

// nextTask waits for something to do. It returns nil when the scheduler is closed.
func (b *scheduler) nextTask() *task {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if t := b.findTask(time.Now()); t != nil {
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

// findTask visits active runs in fair order until one has something to do. One that
// has not leaves the queue until it is activated again, or, if it is slots that
// it lacks, until there are some.
func (b *scheduler) findTask(now time.Time) *task {
	b.requeueStarved()
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

// fed is how many runs that lack slots are looked at in one visit.
const fed = 8

// requeueStarved lets the runs that found no slot go first once there is one for them. Else
// a job that frees slots would take them again and again, in the very turns that
// end its units.
func (b *scheduler) requeueStarved() {
	var first []*scheduledJob
	for range min(fed, len(b.fairQueue.starved)) {
		r := b.fairQueue.starved[0]
		b.fairQueue.starved = b.fairQueue.starved[1:]
		switch {
		case !r.isStarved():
			r.starved = false
		case b.freeSlots(r) > 0:
			r.starved = false
			first = append(first, r)
		default:
			b.fairQueue.starved = append(b.fairQueue.starved, r)
		}
	}
	for _, r := range slices.Backward(first) {
		b.fairQueue.addFirst(r)
	}
}

// isStarved reports whether r has units that nothing but slots keeps from running.
func (r *scheduledJob) isStarved() bool {
	return r.running && !r.claiming && (len(r.queue) > 0 || !r.drained && !r.reading)
}

// taskFor returns what a committer can do for r. It reads on in the queue before a
// turn that would leave slots empty for want of candidates: that costs less
// than another commit for them.
func (b *scheduler) taskFor(r *scheduledJob) *task {
	room := b.freeSlots(r)
	if len(r.queue) < min(room, records.MaxBatch) && !r.drained && !r.reading {
		r.reading = true
		return &task{job: r, scan: true}
	}
	t := &task{job: r, spec: r.spec, stages: r.stages, turn: &turns.Turn{Job: r.id}}
	b.takeReports(r, t)
	if room > 0 && len(r.queue) > 0 {
		b.takeSeats(r, t, room)
	}
	idle := r.turns == 0 && r.held == 0 && len(r.release) > 0
	if len(t.turn.Reports) == 0 && t.turn.Claim == nil && !idle {
		return nil
	}
	t.turn.Release = append(t.turn.Release, r.release...)
	t.release, r.release = r.release, nil
	r.turns++
	return t
}

// freeSlots returns how many more units r may have claimed now.
func (b *scheduler) freeSlots(r *scheduledJob) int {
	if !r.running || r.claiming || (r.spec.Budget > 0 && (r.neededTokens > r.tokens || !r.granted)) {
		return 0
	}
	free := 0
	for _, s := range b.sessions {
		if s.canRun(r) {
			free += s.freeUnits()
		}
	}
	slots, all := b.reachableSlots(r)
	if r.usesFleetCalls() && int64(all) > b.callSlots {
		free = min(free, int(b.callSlots-b.calling))
	}
	free = r.priming.capSlots(min(free, b.modelRoom(r)), r.held)
	if int64(slots) > r.slots {
		// The workers could run more of it at once than it may: what they
		// hold waiting would run as well.
		free = min(free, int(r.slots)-r.held)
	}
	spare := b.reservedSlots(slots)
	return max(0, free-spare, min(free, spare-r.held))
}

// reachableSlots returns how many units of r, and of all jobs, the workers of this node can
// run at once: those that may come back as well.
func (b *scheduler) reachableSlots(r *scheduledJob) (slots, all int) {
	for _, s := range b.sessions {
		all += s.slots
		if s.canRun(r) {
			slots += s.slots
		} else {
			slots += s.countHeld(r)
		}
	}
	for _, s := range b.away {
		all += s.slots
		slots += s.countHeld(r)
	}
	return slots, all
}

const (
	spareOf  = 32          // of so many slots one is spare
	spareFor = time.Second // after tenants were served in turn
)

// reservedSlots returns how many of the slots no job takes that has more of them already,
// while tenants come and go. Units that were begun together end together: one
// that comes in between would have to wait for that.
func (b *scheduler) reservedSlots(slots int) int {
	if time.Since(b.mixedAt) > spareFor {
		return 0
	}
	return slots / spareOf
}

// usesFleetCalls reports whether units of a job make calls that the fleet counts. Those
// of a job that is not known yet may.
func (r *scheduledJob) usesFleetCalls() bool { return r.spec == nil || r.asks }

// addHeldUnits notes that this node holds n units more of r, or fewer. The caller holds
// b.mu.
func (b *scheduler) addHeldUnits(r *scheduledJob, n int) {
	r.held += n
	if r.usesFleetCalls() {
		b.calling += int64(n)
	}
}

// slotCapacity counts the slots of the sessions that can run units of r.
func (b *scheduler) slotCapacity(r *scheduledJob) (n int64) {
	for _, s := range b.sessions {
		if s.canRun(r) {
			n += int64(s.slots)
		}
	}
	return n
}

// countUsableSessions counts the sessions that can run units of r, now or once a slot is free.
func (b *scheduler) countUsableSessions(r *scheduledJob) (n int) {
	for _, s := range b.sessions {
		if s.canRun(r) {
			n++
		}
	}
	return n
}

func (b *scheduler) takeReports(r *scheduledJob, t *task) {
	n := min(len(r.reports), records.MaxBatch)
	last := make(map[*claimOf]int)
	for _, p := range r.reports[:n] {
		t.turn.Reports = append(t.turn.Reports, turns.Report{Report: p.report, Jitter: p.jitter, Session: p.session.id, Broke: p.broke})
		h := p.session.held[unitKey{p.report.Job, p.report.Unit}]
		if h == nil || h.attempt != p.report.Attempt || h.taken {
			continue
		}
		h.taken = true
		if last[h.claim]++; last[h.claim] == h.claim.left {
			t.turn.Release = append(t.turn.Release, h.claim.id)
			t.last = append(t.last, h.claim)
			h.claim.released = true
		}
	}
	t.sent = append(t.sent, r.reports[:n]...)
	if r.reports = r.reports[n:]; len(r.reports) == 0 {
		r.reports = nil
	}
}

// takeSeats sets free slots and candidates aside for a claim. Sessions are
// offered units in turn; those first that would run them at once, for what another
// held waiting would take a place in a limit and use it for nothing.
func (b *scheduler) takeSeats(r *scheduledJob, t *task, room int) {
	want := min(room, records.MaxBatch, len(r.queue), b.fairQueue.visitAllowance(r))
	claim := &turns.Claim{ID: newID(), Share: r.share}
	for want > 0 {
		given := b.seatAll(r, t, claim, want, (*session).idleSlots)
		if given == 0 {
			given = b.seatAll(r, t, claim, want, (*session).freeUnits)
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
	if r.tenant != b.lastTenant {
		b.lastTenant, b.mixedAt = r.tenant, time.Now()
	}
	claim.Candidates = append(claim.Candidates, r.queue[:n]...)
	r.queue = r.queue[n:]
	r.takeCandidates(claim.Candidates)
	b.addHeldUnits(r, n)
	if r.spec.Budget > 0 {
		claim.Bounded, claim.Tokens = true, r.tokens
		t.tokens, r.tokens, r.claiming = r.tokens, 0, true
	}
	slots, all := b.reachableSlots(r)
	claim.Slots = turns.Share{Slots: int64(min(r.held, slots)), Taken: r.revocations}
	if r.usesFleetCalls() {
		claim.Calls = turns.Share{Slots: min(b.calling, int64(all)), Taken: b.callsTaken}
	}
	t.turn.Claim = claim
}

// seatAll sets a place aside at each session that has any, and returns how many it
// has set aside, which is at most the given number.
func (b *scheduler) seatAll(r *scheduledJob, t *task, claim *turns.Claim, most int, places func(*session) int) (given int) {
	for _, s := range b.rotateSessions() {
		if given < most && s.canRun(r) && places(s) > 0 {
			s.promised++
			given++
			t.addClaimSlot(claim, s)
		}
	}
	return given
}

// addClaimSlot adds one slot of s to the claim.
func (t *task) addClaimSlot(c *turns.Claim, s *session) {
	for i, other := range t.seats {
		if other == s {
			c.Seats[i].Slots++
			return
		}
	}
	t.seats = append(t.seats, s)
	c.Seats = append(c.Seats, turns.WorkerSlots{Session: s.id, Epoch: s.epoch, Slots: 1})
}

// rotateSessions returns the sessions, beginning with another one each time.
func (b *scheduler) rotateSessions() []*session {
	all := make([]*session, 0, len(b.sessions))
	for _, s := range b.sessions {
		all = append(all, s)
	}
	if len(all) > 1 {
		b.rotationOffset = (b.rotationOffset + 1) % len(all)
		all = append(all[b.rotationOffset:], all[:b.rotationOffset]...)
	}
	return all
}

// putBack returns candidates that are still to be claimed. The caller holds
// b.mu.
func (r *scheduledJob) putBack(c []records.Candidate) {
	if len(c) > 0 {
		r.queue = append(append(make([]records.Candidate, 0, len(c)+len(r.queue)), c...), r.queue...)
	}
}

// putJob puts a job that may run on the scheduler, or brings what stands there up to
// date. If all units that wait are known, its queue need not be read.
func (b *scheduler) putJob(id mapreduce.JobID, ctl *records.Control, spec *mapreduce.JobSpec, stages jobspec.Stages, asks bool, share int64, waiting []records.Candidate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.getOrAddJob(id)
	if r.running && (r.epoch > ctl.Epoch || r.epoch == ctl.Epoch && waiting != nil) {
		return // what stands there is no older
	}
	b.fairQueue.remove(r) // its tenant was not known if only reports had come for it
	if r.spec == nil || r.spec.Budget != spec.Budget {
		r.granted = false
	}
	// Its submission may have granted slots, whose commit was unknown.
	r.grantUnsure = r.grantUnsure || r.spec == nil && r.slots == 0
	held := r.held
	b.addHeldUnits(r, -held)
	r.tenant, r.priority, r.spec, r.share = ctl.Tenant, ctl.Priority, spec, share
	r.stages, r.asks, r.needs = stages, asks, jobspec.Requirements(spec, stages.Current())
	b.addHeldUnits(r, held) // which may have counted as calls
	r.epoch, r.level, r.shards, r.running = ctl.Epoch, ctl.OpenLevel(), max(1, ctl.Shards), true
	r.neededTokens = 0
	r.restartScan()
	if waiting != nil {
		r.queue, r.cursors, r.drained = waiting, make([]cursor, r.shards), true
	}
	b.activateJob(r)
}

// hasJobEpoch reports whether a job stands on the scheduler as of an epoch.
func (b *scheduler) hasJobEpoch(id mapreduce.JobID, epoch int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	return r != nil && r.running && r.epoch == epoch
}

// retireJob takes a job that may not run off the scheduler, unless reports for it are
// still to come.
func (b *scheduler) retireJob(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	if r == nil {
		return
	}
	r.running, r.queue = false, nil
	r.restartScan()
	b.dropJob(r)
}

// dropJob forgets a run that nothing is left to do for. The caller holds b.mu.
func (b *scheduler) dropJob(r *scheduledJob) {
	if !r.running && r.turns == 0 && len(r.reports) == 0 && r.held == 0 && len(r.release) == 0 {
		b.fairQueue.remove(r)
		delete(b.runs, r.id)
		b.releaseJobOnWorkers(r.id)
	}
}

// releaseJobOnWorkers tells the workers that know of a job that they need not. The caller
// holds b.mu.
func (b *scheduler) releaseJobOnWorkers(id mapreduce.JobID) {
	for _, s := range b.sessions {
		if _, known := s.knows[id]; known {
			delete(s.knows, id)
			s.out.put(&mapreduce.ToWorker{Forget: []mapreduce.JobID{id}})
		}
	}
}

// enqueueCandidates puts units into a job's queue that are known to wait there.
func (b *scheduler) enqueueCandidates(id mapreduce.JobID, found []records.Candidate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil && r.running {
		r.putBack(found)
		b.activateJob(r)
	}
}

// rereadQueue makes a job's queue be read again: something may have been put into it.
func (b *scheduler) rereadQueue(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil && r.running {
		r.restartScan()
		b.activateJob(r)
	}
}

// activateAll has all jobs visited, as there are more calls to be made. The caller
// holds b.mu.
func (b *scheduler) activateAll() {
	for _, r := range b.runs {
		b.fairQueue.add(r)
	}
	b.wake.Broadcast()
}

// compiledJob returns a job that stands on the scheduler, compiled; else nil.
func (b *scheduler) compiledJob(id mapreduce.JobID) *jobspec.Compiled {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil {
		return r.stages.Compiled
	}
	return nil
}
