package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/breaker"
	"github.com/coditect/mapreduce/worker/library"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/transfer"
)

// The causes that end an attempt's context, besides its deadline.
var (
	errDraining   = errors.New("worker is draining")
	errCancelled  = errors.New("cancelled by the orchestrator")
	errSuperseded = errors.New("superseded by a later attempt")
	errOver       = errors.New("attempt is over")
)

// A unitKey names a unit. A session holds at most one attempt of it.
type unitKey struct {
	job  mapreduce.JobID
	unit mapreduce.UnitID
}

func unitKeyOf(h mapreduce.Held) unitKey { return unitKey{h.Job, h.Unit} }

// A job is the session's copy of one JobInfo of a job. The next JobInfo of the same job
// makes another one, and units keep the one that they began with.
type job struct {
	spec    *mapreduce.JobSpec
	stages  map[string]stage // by name, of those that units came for; guarded by session.mu
	breaker *breaker.Breaker // of the provider and model

	estimate token.Estimator // of outputs that no provider counted; nil guesses
}

// A stage is the specification of a stage in the pipeline of a job, or the error of
// reading it.
type stage struct {
	spec    *agent.StageSpec // nil of units without a stage
	unclear error            // why the pipeline does not say it
}

// stageOf returns the specification of a stage. The session's mu is held.
func (j *job) stageOf(name string) stage {
	found, ok := j.stages[name]
	if !ok {
		found.spec, found.unclear = step.Specify(j.spec, name)
		j.stages[name] = found
	}
	return found
}

// A session is everything a worker holds, connected or not. Streams come and
// go; see link.go for what happens on one.
type session struct {
	cfg       Config
	breakers  *breaker.Set
	library   *library.Library
	transfers *transfer.Carrier
	memory    *semaphore.Weighted // bytes of what is fetched for units
	tokens    *token.Counter
	life      context.Context       // ends when the session does; set by Run
	connected atomic.Bool           // an orchestrator has taken it up, and the stream has not ended
	trouble   atomic.Pointer[error] // why the latest stream ended, or could not be opened
	slots     sync.WaitGroup        // goroutines of slots, abandoned ones excepted
	putting   sync.WaitGroup        // what reports wait for
	out       outbox                // what is to be sent
	idle      chan struct{}         // closed when draining and nothing is held

	mu       sync.Mutex // guards the fields below, and those of units marked so
	jobs     map[mapreduce.JobID]*job
	units    map[unitKey]*unit     // waiting, running and reported
	queue    []*unit               // waiting, in order of arrival
	taken    int                   // slots
	apart    int                   // units that run in processes of their own
	relays   map[*relay]struct{}   // of those
	shares   map[string]knownShare // of limits, by model
	draining bool
	rested   time.Time // since when nothing runs while draining; zero if something does
	finished uint64    // numbers reports
	stats    Stats
}

// fetchedUnits is the number of units whose largest possible blobs fit into the
// session's memory together.
const fetchedUnits = 4

func newSession(cfg Config) *session {
	s := &session{
		cfg:       cfg,
		library:   library.New(mapreduce.MaxWholeText),
		transfers: transfer.New(cfg.Session, cfg.MaxInput),
		memory:    semaphore.NewWeighted(fetchedUnits * (int64(cfg.MaxInput) + maxReferred)),
		tokens:    token.New(),
		out:       outbox{wake: make(chan struct{}, 1)},
		idle:      make(chan struct{}),
		jobs:      make(map[mapreduce.JobID]*job),
		units:     make(map[unitKey]*unit),
		relays:    make(map[*relay]struct{}),
		shares:    make(map[string]knownShare),
	}
	s.breakers = breaker.NewSet(s.breakerOpened)
	return s
}

// learnJob takes what an orchestrator says of a job, for the units that follow.
func (s *session) learnJob(info mapreduce.JobInfo) {
	spec := withDefaults(info.Spec)
	j := &job{spec: &spec, stages: make(map[string]stage), breaker: s.breakers.Of(&spec, "")}
	j.estimate, _ = token.Named(spec.Estimator, s.tokens.Count) // one that only a later version knows is a guess
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[info.Job] = j
}

// forgetJobs drops jobs. Units that the session holds keep theirs.
func (s *session) forgetJobs(ids []mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(s.jobs, id)
	}
}

// queueAssignments queues assignments and starts those that have a slot.
func (s *session) queueAssignments(as []mapreduce.Assignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range as {
		if u := s.acceptUnit(&as[i]); u != nil {
			s.enqueueUnit(u)
		}
	}
	s.fillSlots()
}

// acceptUnit makes a unit of an assignment, or returns nil if that attempt, or a
// later one, is held already. mu is held.
func (s *session) acceptUnit(a *mapreduce.Assignment) *unit {
	id := unitKey{a.Job, a.Unit}
	old := s.units[id]
	if old != nil && a.Attempt <= old.attempt {
		s.stats.Duplicates++
		return nil
	}

	u := &unit{
		session: s, id: id, attempt: a.Attempt, account: account{granted: a.Reserved},
		job: s.jobs[a.Job], task: &agent.Task{Assignment: *a},
	}
	u.task.Whole = u.wholeText(a.Text)
	if u.job != nil {
		u.task.Spec, u.bounded = u.job.spec, u.job.spec.Budget > 0
		u.runner, u.misfit = u.chooseRunner(s.cfg.Steps)
	}

	if a.Attempt > 1 {
		u.announced = &announcement{made: make(chan struct{})}
	}

	// The new attempt takes the place first: forgetUnit then leaves it there.
	s.units[id] = u
	if old != nil {
		s.dropUnit(old, errSuperseded)
	}
	return u
}

// enqueueUnit lets a unit wait for a slot, or settles it at once if it cannot run.
// mu is held.
func (s *session) enqueueUnit(u *unit) {
	switch {
	case s.draining:
		s.settleUnit(u, u.returnedReport(errDraining.Error()))
	case u.job == nil:
		s.protocolError(u, errors.New("assigned before its job was introduced"))
	case s.taken+len(s.queue) >= 2*(s.cfg.Slots+s.cfg.Prefetch):
		s.protocolError(u, errors.New("assigned beyond slots and prefetch"))
	default:
		s.queue = append(s.queue, u)
	}
}

// protocolError hands a unit back that should not have come like this.
func (s *session) protocolError(u *unit, err error) {
	s.cfg.Logger.Error("unit handed back", "job", u.id.job, "unit", u.id.unit, "attempt", u.attempt, "error", err)
	s.settleUnit(u, u.returnedReport(err.Error()))
}

// settleUnit queues the report of a unit. Of a unit that was dropped it is sent
// once, and only if something was made or spent. mu is held.
func (s *session) settleUnit(u *unit, r *mapreduce.Report) {
	s.stats.countReport(r)
	if u.timer != nil {
		u.timer.Stop()
		u.cancel(errOver)
	}

	u.report = r
	if u.phase == dropped {
		if r.Outcome == mapreduce.Done || r.Tokens.Total() > 0 {
			s.out.queueReport(u)
		}
		return
	}

	s.finished++
	u.phase, u.number = reported, s.finished

	// Before the report is delivered: it waits for these entries as well.
	if u.leavesJournal(r.Outcome) {
		u.sendEntries()
	}
	s.deliverReport(u)
}

// takeVerdicts takes what became of reports.
func (s *session) takeVerdicts(vs []mapreduce.VerdictOn) {
	if len(vs) == 0 {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for _, v := range vs {
		s.takeVerdict(v)
	}
	s.fillSlots()
}

// takeVerdict takes what became of a report. A unit that runs may be refused too:
// it has moved on without this worker. mu is held.
func (s *session) takeVerdict(v mapreduce.VerdictOn) {
	u := s.heldUnit(v.Held)
	switch {
	case u == nil:
		s.stats.Unknown++
	case v.Verdict == mapreduce.Accepted && u.phase == reported:
		s.stats.Accepted++
		s.forgetUnit(u)
	case v.Verdict == mapreduce.Stale || v.Verdict == mapreduce.Gone:
		s.stats.Refused++
		s.dropUnit(u, errSuperseded)
	default:
		s.stats.Unknown++
	}
}

// takeReserve takes the answer to a unit's question.
func (s *session) takeReserve(r mapreduce.ReserveReply) {
	s.mu.Lock()
	u := s.heldUnit(r.Held)
	s.mu.Unlock()
	if u != nil {
		u.answerQuestion(r.Granted)
	}
}

// heldUnit returns the unit that h names, or nil if its attempt is not held. mu is
// held.
func (s *session) heldUnit(h mapreduce.Held) *unit {
	u := s.units[unitKeyOf(h)]
	if u == nil || u.attempt != h.Attempt {
		return nil
	}
	return u
}

// forgetUnit removes a unit that nobody waits for, unless a later attempt has taken
// its place already. mu is held.
func (s *session) forgetUnit(u *unit) {
	if u.stopPuts != nil {
		u.stopPuts(errOver)
	}
	if s.units[u.id] == u {
		delete(s.units, u.id)
	}
	s.checkIdle()
}

// dropUnit gives a unit up: no verdict on it is awaited. If it runs it is told to
// stop, and keeps its slots until it does. mu is held.
func (s *session) dropUnit(u *unit, why error) {
	switch u.phase {
	case waiting:
		s.queue = slices.DeleteFunc(s.queue, func(v *unit) bool { return v == u })
	case running:
		s.interruptUnit(u, why)
	}
	u.phase = dropped
	s.forgetUnit(u)
}

// dropAll drops what hs name, reported units excepted: their verdict is due.
func (s *session) dropAll(hs []mapreduce.Held, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range hs {
		if u := s.heldUnit(h); u != nil && u.phase != reported {
			s.dropUnit(u, why)
		}
	}
	s.fillSlots()
}

// drainQueue stops accepting units and hands back those that wait.
func (s *session) drainQueue() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.draining = true
	s.out.queueDrain()

	for _, u := range s.queue {
		s.settleUnit(u, u.returnedReport(errDraining.Error()))
	}

	s.queue = nil
	s.checkIdle()
}

// checkIdle notes when nothing runs any more while draining, and closes idle
// once nothing is left to do. mu is held.
func (s *session) checkIdle() {
	if !s.draining || s.taken > 0 {
		return
	}

	if s.rested.IsZero() {
		s.rested = time.Now()
	}
	if len(s.units) == 0 && !s.isIdle() {
		close(s.idle)
	}
}

// hasResigned reports whether a session that lost its orchestrator is to end
// without one: while it drains, nothing runs, and none has come back in time.
func (s *session) hasResigned(lost time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.rested.IsZero() && time.Since(s.rested) >= verdictWait && time.Since(lost) >= verdictWait
}

func (s *session) isIdle() bool {
	select {
	case <-s.idle:
		return true
	default:
		return false
	}
}

// leftBehind returns an error about the units that the session could not hand back.
func (s *session) leftBehind() error {
	s.mu.Lock()
	defer s.mu.Unlock()

	var errs []error
	n := 0
	for _, u := range s.units {
		if u.phase != reported || u.report.Outcome != mapreduce.Returned {
			n++ // one that came too late to begin goes back with the session
		}
	}

	if n > 0 {
		errs = append(errs, fmt.Errorf("worker: stopped with %d units whose report has no verdict", n))
	}
	return errors.Join(errs...)
}

// listHeld names everything held, in a stable order. mu is held.
func (s *session) listHeld() []mapreduce.Held {
	hs := make([]mapreduce.Held, 0, len(s.units))
	for _, u := range s.units {
		hs = append(hs, u.heldState())
	}
	slices.SortFunc(hs, compareHeld)
	return hs
}
