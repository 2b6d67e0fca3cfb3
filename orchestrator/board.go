package orchestrator

import (
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs"
)

// A board is what an orchestrator sees of its jobs and workers, and decides what
// its lanes do next. Nothing on it is needed after a crash.
type board struct {
	node mapreduce.NodeID

	mu       sync.Mutex // guards everything below
	wake     *sync.Cond // a lane may find something to do
	calm     *sync.Cond // a claim of a job with a budget has ended
	closed   bool
	runs     map[mapreduce.JobID]*run
	fair     fair
	sessions map[mapreduce.SessionID]*session
	away     map[mapreduce.SessionID]*session // whose streams have ended, and who may come back
	dealt    int                              // rotates the session that is offered a unit first
	latest   mapreduce.TenantID               // whose units were claimed last
	mixed    time.Time                        // when another tenant's were claimed before
	// callSlots is how many units that call models this node may hold, and
	// calling how many it holds.
	callSlots, calling int64
	callsTaken         int64             // how often others took some of callSlots
	callsAsked         jobs.CallsAsk     // of which callSlots are what came
	callsDue           bool              // it is to be asked for them again
	models             map[string]*model // by provider and model
	texts              int64             // bytes that units which run keep of what they were given
	limits             func(model string) ModelLimits
	lease              time.Duration // that shares of their limits are good for
	news               signal        // models have something to tell the fleet, or to ask it
	// thawed is called when a job is cold no more, and others have to know. It must
	// not wait.
	thawed func(mapreduce.JobID)
}

// A run is a job on the board.
type run struct {
	id       mapreduce.JobID
	tenant   mapreduce.TenantID
	priority int
	spec     *mapreduce.JobSpec // as the units of the stage run with it
	stages   stagesOf           // of its levels
	needs    mapreduce.Requirements
	asks     bool  // the stage's provider asks models
	share    int64 // of the budget, for one document
	epoch    int64
	level    int64
	shards   int64

	running bool            // it may make claims
	reports []pendingReport // waiting for a turn
	release []jobs.HeldID   // claims all of whose units have ended
	turns   int             // under way
	held    int             // units that sessions of this node hold, or are being given: see hold
	quiet   time.Time       // no turn before: the last one failed
	retries int             // turns that failed in a row

	queue   []jobs.Candidate // seen waiting
	cursors []cursor         // by shard; nil: from the beginning
	crowded bool             // another orchestrator claims where this one did
	// taken are the candidates of turns under way, and those of turns that have
	// ended since the queue is being read: what is read may still show them.
	taken   map[jobs.Candidate]bool // whether the turn is under way
	drained bool                    // the queue was read to its end
	starved bool                    // it waits for slots in the fair queue
	queued  bool                    // it waits for its turn there
	reading bool                    // it is being read
	reread  bool                    // something was put into it meanwhile

	slots    int64     // granted
	usurped  int64     // how often others took some of them
	unsure   bool      // slots may not be what the store says
	tokens   int64     // granted and neither spent nor reserved
	granted  bool      // tokens is what the store says, but for what happened here since
	need     int64     // tokens without which no unit can start; 0 if that is not so
	claiming bool      // a claim of a job with a budget is under way
	blocked  time.Time // since when it lacks tokens; zero if it does not
	// reserving is held while what runs reserves more: at once, only one would commit.
	reserving chan struct{}
	stuck     time.Time // since when no worker can run it, as far as is known; zero if one can
	rested    rest      // how far it was when that was last looked into
	warm      warmth
	// parkedAfter is the parked unit behind which the next poll looks for more.
	parkedAfter mapreduce.UnitID
}

// A rest is how far a job was at some moment at which it may have rested.
type rest struct{ epoch, ended int64 }

type pendingReport struct {
	report  *mapreduce.Report
	session *session
	jitter  float64
	broke   bool // the unit broke the session's stream when it was handed out
}

func newBoard(node mapreduce.NodeID, limits func(string) ModelLimits) *board {
	b := &board{
		node: node, limits: limits,
		runs: make(map[mapreduce.JobID]*run), sessions: make(map[mapreduce.SessionID]*session),
		away: make(map[mapreduce.SessionID]*session), models: make(map[string]*model),
	}
	b.wake, b.calm = sync.NewCond(&b.mu), sync.NewCond(&b.mu)
	return b
}

func (b *board) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake.Broadcast()
	b.calm.Broadcast()
}

// run returns the job's run, a new one if there is none. The caller holds b.mu.
func (b *board) run(id mapreduce.JobID) *run {
	r := b.runs[id]
	if r == nil {
		r = &run{id: id, reserving: make(chan struct{}, 1)}
		b.runs[id] = r
	}
	return r
}

// activate makes the fair queue visit r. The caller holds b.mu.
func (b *board) activate(r *run) {
	b.fair.add(r)
	b.wake.Signal()
}

// A task is what a lane does next: it reads a job's queue, or carries out a
// turn.
type task struct {
	run     *run
	spec    *mapreduce.JobSpec // of the run, as it was then, as is the next
	stages  stagesOf
	scan    bool
	turn    *jobs.Turn
	sent    []pendingReport // the reports of the turn
	seats   []*session      // of the turn's claim
	last    []*claimOf      // claims that end with the turn's reports
	release []jobs.HeldID   // claims that had ended before
	tokens  int64           // set aside for the claim
}

// next waits for something to do. It returns nil when the board is closed.
func (b *board) next() *task {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if t := b.find(time.Now()); t != nil {
			if b.fair.any() {
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

// find visits active runs in fair order until one has something to do. One that
// has not leaves the queue until it is activated again, or, if it is slots that
// it lacks, until there are some.
func (b *board) find(now time.Time) *task {
	b.feed()
	for {
		r := b.fair.next()
		if r == nil {
			return nil
		}
		if now.Before(r.quiet) {
			continue // its timer activates it
		}
		if t := b.taskFor(r); t != nil {
			b.fair.add(r) // it may have more; its next visit finds out
			return t
		}
		if r.starves() {
			b.fair.starve(r)
		}
	}
}

// fed is how many runs that lack slots are looked at in one visit.
const fed = 8

// feed lets the runs that found no slot go first once there is one for them. Else
// a job that frees slots would take them again and again, in the very turns that
// end its units.
func (b *board) feed() {
	var first []*run
	for range min(fed, len(b.fair.starved)) {
		r := b.fair.starved[0]
		b.fair.starved = b.fair.starved[1:]
		switch {
		case !r.starves():
			r.starved = false
		case b.room(r) > 0:
			r.starved = false
			first = append(first, r)
		default:
			b.fair.starved = append(b.fair.starved, r)
		}
	}
	for _, r := range slices.Backward(first) {
		b.fair.addFirst(r)
	}
}

// starves reports whether r has units that nothing but slots keeps from running.
func (r *run) starves() bool {
	return r.running && !r.claiming && (len(r.queue) > 0 || !r.drained && !r.reading)
}

// taskFor returns what a lane can do for r. It reads on in the queue before a
// turn that would leave slots empty for want of candidates: that costs less
// than another commit for them.
func (b *board) taskFor(r *run) *task {
	room := b.room(r)
	if len(r.queue) < min(room, jobs.MaxBatch) && !r.drained && !r.reading {
		r.reading = true
		return &task{run: r, scan: true}
	}
	t := &task{run: r, spec: r.spec, stages: r.stages, turn: &jobs.Turn{Job: r.id}}
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

// room returns how many more units r may have claimed now.
func (b *board) room(r *run) int {
	if !r.running || r.claiming || (r.spec.Budget > 0 && (r.need > r.tokens || !r.granted)) {
		return 0
	}
	free := 0
	for _, s := range b.sessions {
		if s.usable(r) {
			free += s.free()
		}
	}
	slots, all := b.reach(r)
	if r.calls() && int64(all) > b.callSlots {
		free = min(free, int(b.callSlots-b.calling))
	}
	free = r.warm.cap(min(free, b.modelRoom(r)), r.held)
	if int64(slots) > r.slots {
		// The workers could run more of it at once than it may: what they
		// hold waiting would run as well.
		free = min(free, int(r.slots)-r.held)
	}
	spare := b.spare(slots)
	return max(0, free-spare, min(free, spare-r.held))
}

// reach returns how many units of r, and of all jobs, the workers of this node can
// run at once: those that may come back as well.
func (b *board) reach(r *run) (slots, all int) {
	for _, s := range b.sessions {
		all += s.slots
		if s.usable(r) {
			slots += s.slots
		} else {
			slots += s.holds(r)
		}
	}
	for _, s := range b.away {
		all += s.slots
		slots += s.holds(r)
	}
	return slots, all
}

const (
	spareOf  = 32          // of so many slots one is spare
	spareFor = time.Second // after tenants were served in turn
)

// spare returns how many of the slots no job takes that has more of them already,
// while tenants come and go. Units that were begun together end together: one
// that comes in between would have to wait for that.
func (b *board) spare(slots int) int {
	if time.Since(b.mixed) > spareFor {
		return 0
	}
	return slots / spareOf
}

// calls reports whether units of a job make calls that the fleet counts. Those
// of a job that is not known yet may.
func (r *run) calls() bool { return r.spec == nil || r.asks }

// hold notes that this node holds n units more of r, or fewer. The caller holds
// b.mu.
func (b *board) hold(r *run, n int) {
	r.held += n
	if r.calls() {
		b.calling += int64(n)
	}
}

// capacity counts the slots of the sessions that can run units of r.
func (b *board) capacity(r *run) (n int64) {
	for _, s := range b.sessions {
		if s.usable(r) {
			n += int64(s.slots)
		}
	}
	return n
}

// seats counts the sessions that can run units of r, now or once a slot is free.
func (b *board) seats(r *run) (n int) {
	for _, s := range b.sessions {
		if s.usable(r) {
			n++
		}
	}
	return n
}

func (b *board) takeReports(r *run, t *task) {
	n := min(len(r.reports), jobs.MaxBatch)
	last := make(map[*claimOf]int)
	for _, p := range r.reports[:n] {
		t.turn.Reports = append(t.turn.Reports, jobs.TurnReport{Report: p.report, Jitter: p.jitter, Session: p.session.id, Broke: p.broke})
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
func (b *board) takeSeats(r *run, t *task, room int) {
	want := min(room, jobs.MaxBatch, len(r.queue), b.fair.allowance(r))
	claim := &jobs.Claim{ID: newID(), Share: r.share}
	for want > 0 {
		given := b.seatAll(r, t, claim, want, (*session).idle)
		if given == 0 {
			given = b.seatAll(r, t, claim, want, (*session).free)
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
	if r.tenant != b.latest {
		b.latest, b.mixed = r.tenant, time.Now()
	}
	claim.Candidates = append(claim.Candidates, r.queue[:n]...)
	r.queue = r.queue[n:]
	r.take(claim.Candidates)
	b.hold(r, n)
	if r.spec.Budget > 0 {
		claim.Bounded, claim.Tokens = true, r.tokens
		t.tokens, r.tokens, r.claiming = r.tokens, 0, true
	}
	slots, all := b.reach(r)
	claim.Slots = jobs.Share{Slots: int64(min(r.held, slots)), Taken: r.usurped}
	if r.calls() {
		claim.Calls = jobs.Share{Slots: min(b.calling, int64(all)), Taken: b.callsTaken}
	}
	t.turn.Claim = claim
}

// seatAll sets a place aside at each session that has any, and returns how many it
// has set aside, which is at most the given number.
func (b *board) seatAll(r *run, t *task, claim *jobs.Claim, most int, places func(*session) int) (given int) {
	for _, s := range b.rotation() {
		if given < most && s.usable(r) && places(s) > 0 {
			s.promised++
			given++
			t.seat(claim, s)
		}
	}
	return given
}

// seat adds one slot of s to the claim.
func (t *task) seat(c *jobs.Claim, s *session) {
	for i, other := range t.seats {
		if other == s {
			c.Seats[i].Slots++
			return
		}
	}
	t.seats = append(t.seats, s)
	c.Seats = append(c.Seats, jobs.Seat{Session: s.id, Epoch: s.epoch, Slots: 1})
}

// rotation returns the sessions, beginning with another one each time.
func (b *board) rotation() []*session {
	all := make([]*session, 0, len(b.sessions))
	for _, s := range b.sessions {
		all = append(all, s)
	}
	if len(all) > 1 {
		b.dealt = (b.dealt + 1) % len(all)
		all = append(all[b.dealt:], all[:b.dealt]...)
	}
	return all
}

// putBack returns candidates that are still to be claimed. The caller holds
// b.mu.
func (r *run) putBack(c []jobs.Candidate) {
	if len(c) > 0 {
		r.queue = append(append(make([]jobs.Candidate, 0, len(c)+len(r.queue)), c...), r.queue...)
	}
}

// adopt puts a job that may run on the board, or brings what stands there up to
// date. If all units that wait are known, its queue need not be read.
func (b *board) adopt(id mapreduce.JobID, ctl *storagev1.Ctl, spec *mapreduce.JobSpec, stages stagesOf, asks bool, share int64, waiting []jobs.Candidate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.run(id)
	if r.running && (r.epoch > ctl.Epoch || r.epoch == ctl.Epoch && waiting != nil) {
		return // what stands there is no older
	}
	b.fair.remove(r) // its tenant was not known if only reports had come for it
	if r.spec == nil || r.spec.Budget != spec.Budget {
		r.granted = false
	}
	// Its submission may have granted slots, whose commit was unknown.
	r.unsure = r.unsure || r.spec == nil && r.slots == 0
	held := r.held
	b.hold(r, -held)
	r.tenant, r.priority, r.spec, r.share = mapreduce.TenantID(ctl.Tenant), int(ctl.Priority), spec, share
	r.stages, r.asks, r.needs = stages, asks, requirements(spec, stages.now())
	b.hold(r, held) // which may have counted as calls
	r.epoch, r.level, r.shards, r.running = ctl.Epoch, jobs.OpenLevel(ctl), max(1, ctl.Shards), true
	r.need = 0
	r.restart()
	if waiting != nil {
		r.queue, r.cursors, r.drained = waiting, make([]cursor, r.shards), true
	}
	b.activate(r)
}

// stands reports whether a job stands on the board as of an epoch.
func (b *board) stands(id mapreduce.JobID, epoch int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	return r != nil && r.running && r.epoch == epoch
}

// retire takes a job that may not run off the board, unless reports for it are
// still to come.
func (b *board) retire(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	if r == nil {
		return
	}
	r.running, r.queue = false, nil
	r.restart()
	b.drop(r)
}

// drop forgets a run that nothing is left to do for. The caller holds b.mu.
func (b *board) drop(r *run) {
	if !r.running && r.turns == 0 && len(r.reports) == 0 && r.held == 0 && len(r.release) == 0 {
		b.fair.remove(r)
		delete(b.runs, r.id)
		b.unlearn(r.id)
	}
}

// unlearn tells the workers that know of a job that they need not. The caller
// holds b.mu.
func (b *board) unlearn(id mapreduce.JobID) {
	for _, s := range b.sessions {
		if _, known := s.knows[id]; known {
			delete(s.knows, id)
			s.out.put(&mapreduce.ToWorker{Forget: []mapreduce.JobID{id}})
		}
	}
}

// requeue puts units into a job's queue that are known to wait there.
func (b *board) requeue(id mapreduce.JobID, found []jobs.Candidate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil && r.running {
		r.putBack(found)
		b.activate(r)
	}
}

// stir makes a job's queue be read again: something may have been put into it.
func (b *board) stir(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil && r.running {
		r.restart()
		b.activate(r)
	}
}

// activateAll has all jobs visited, as there are more calls to be made. The caller
// holds b.mu.
func (b *board) activateAll() {
	for _, r := range b.runs {
		b.fair.add(r)
	}
	b.wake.Broadcast()
}
