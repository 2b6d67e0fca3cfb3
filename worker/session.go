package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/apart"
	"github.com/coditect/mapreduce/worker/breaker"
	"github.com/coditect/mapreduce/worker/library"
	"github.com/coditect/mapreduce/worker/observe"
	"github.com/coditect/mapreduce/worker/report"
	"github.com/coditect/mapreduce/worker/transfer"
)

// The causes that end an attempt's context, besides its deadline.
var (
	errDraining   = errors.New("worker is draining")
	errCancelled  = errors.New("cancelled by the orchestrator")
	errSuperseded = errors.New("superseded by a later attempt")
	errOver       = errors.New("attempt is over")
)

// A session is everything a worker holds, connected or not. Streams come and
// go; see link.go for what happens on one.
//
// Its lock guards what must change together: what is held, what waits for slots, and how far the
// session is with leaving. The receiver of the stream, the slots, timers and agents take it, each
// for a moment. What need not change with them has a lock of its own, which is taken after it.
type session struct {
	cfg        Config
	breakers   *breaker.Set
	library    *library.Library
	transfers  *transfer.Carrier
	memory     *semaphore.Weighted // bytes of what is fetched for units
	jobs       *jobs
	relays     *apart.Relays
	deliveries *deliveries
	out        outbox // what is to be sent

	connected atomic.Bool           // an orchestrator has taken it up, and the stream has not ended
	trouble   atomic.Pointer[error] // why the latest stream ended, or could not be opened
	slots     sync.WaitGroup        // goroutines of slots, abandoned ones excepted

	mu       sync.Mutex // guards the fields below, and entries
	entries  entries
	queue    slotQueue
	retiring retirement
	finished uint64 // numbers reports
	stats    observe.Stats
}

// fetchedUnits is the number of units whose largest possible blobs fit into the
// session's memory together.
const fetchedUnits = 4

func newSession(cfg Config) *session {
	s := &session{
		cfg:       cfg,
		library:   library.New(protocol.MaxWholeText),
		transfers: transfer.New(cfg.Session, cfg.MaxInput),
		memory:    semaphore.NewWeighted(fetchedUnits * (int64(cfg.MaxInput) + maxReferred)),
		relays:    apart.NewRelays(),
		out:       outbox{wake: make(chan struct{}, 1)},
		entries:   make(entries),
		queue:     slotQueue{slots: cfg.Slots, runsApart: cfg.StartApart != nil},
		retiring:  retirement{idle: make(chan struct{})},
	}

	s.breakers = breaker.NewSet(s.breakerOpened)
	s.jobs = newJobs(s.breakers)
	s.deliveries = &deliveries{mu: &s.mu, out: &s.out, transfers: s.transfers, log: cfg.Logger}
	return s
}

// queueAssignments queues assignments and starts those that have a slot.
func (s *session) queueAssignments(as []protocol.Assignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range as {
		if e := s.accept(&as[i]); e != nil {
			s.enqueue(e)
		}
	}
	s.fillSlots()
}

// accept holds an attempt, or returns nil if that one, or a later one of the unit, is held
// already. mu is held.
func (s *session) accept(a *protocol.Assignment) *entry {
	key := unitKey{a.Job, a.Unit}
	old := s.entries[key]
	if old != nil && a.Attempt <= old.held.Attempt {
		s.stats.Duplicates++
		return nil
	}

	// The new attempt takes the place first: forget then leaves it there.
	e := s.newEntry(a)
	s.entries[key] = e
	if old != nil {
		s.drop(old, errSuperseded)
	}
	return e
}

// newEntry returns the entry of an assignment, with its attempt and its calls. mu is held.
func (s *session) newEntry(a *protocol.Assignment) *entry {
	held := protocol.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt}
	ctx, end := context.WithCancelCause(context.Background())
	e := &entry{mu: &s.mu, held: held, alone: a.Alone, deadline: deadline{end: end}}

	job := s.jobs.find(a.Job)
	c := &calls{session: s, entry: e, held: held, job: job, ctx: ctx}
	e.calls = c
	e.reports = report.Reporter{Held: held, Context: ctx, Account: &c.Account, MaxOutput: s.cfg.MaxOutput}
	if job != nil {
		e.reports.Spec, e.reports.Estimate = job.spec, job.estimate
	}
	e.reports.Account.Open(e.reports.Spec, a.Reserved)
	e.attempt = newAttempt(s, e, a)

	if a.Attempt > 1 {
		e.announced = &announcement{made: make(chan struct{})}
	}
	return e
}

// enqueue lets an attempt wait for a slot, or settles it at once if it cannot run.
// mu is held.
func (s *session) enqueue(e *entry) {
	switch {
	case s.retiring.draining:
		s.settle(e, e.reports.Returned(errDraining.Error()))
	case e.attempt.job == nil:
		s.handBack(e, errors.New("assigned before its job was introduced"))
	case s.queue.taken+len(s.queue.waiting) >= 2*(s.cfg.Slots+s.cfg.Prefetch):
		s.handBack(e, errors.New("assigned beyond slots and prefetch"))
	default:
		s.queue.add(e)
	}
}

// handBack returns an attempt that should not have come like this.
func (s *session) handBack(e *entry, err error) {
	s.cfg.Logger.Error("unit handed back", e.logged("error", err)...)
	s.settle(e, e.reports.Returned(err.Error()))
}

// settle queues the report of an attempt that is over. Of one that was dropped it is sent
// once, and only if something was made or spent. mu is held.
func (s *session) settle(e *entry, r *protocol.Report) {
	s.stats.CountReport(r)
	e.deadline.stop()
	e.report, e.attempt = r, nil

	if e.phase == dropped {
		if r.Outcome == protocol.Done || r.Tokens.Total() > 0 {
			s.out.queueReport(e)
		}
		return
	}

	s.finished++
	e.phase, e.number = reported, s.finished

	// Before the report is delivered: it waits for these entries as well.
	if e.leavesJournal(r.Outcome) {
		s.deliveries.sendEntries(e)
	}
	s.deliveries.deliverReport(e)
}

// takeVerdicts takes what became of reports.
func (s *session) takeVerdicts(vs []protocol.VerdictOn) {
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

// takeVerdict takes what became of a report. An attempt that runs may be refused too:
// its unit has moved on without this worker. mu is held.
func (s *session) takeVerdict(v protocol.VerdictOn) {
	e := s.entries.find(v.Held)
	switch {
	case e == nil:
		s.stats.Unknown++
	case v.Verdict == protocol.Accepted && e.phase == reported:
		s.stats.Accepted++
		s.forget(e)
	case v.Verdict == protocol.Stale || v.Verdict == protocol.Gone:
		s.stats.Refused++
		s.drop(e, errSuperseded)
	default:
		s.stats.Unknown++
	}
}

// takeReserve takes the answer to an attempt's question.
func (s *session) takeReserve(r protocol.ReserveReply) {
	s.mu.Lock()
	e := s.entries.find(r.Held)
	s.mu.Unlock()
	if e != nil {
		e.calls.AnswerQuestion(r.Granted)
	}
}

// forget removes an attempt that nobody waits for. mu is held.
func (s *session) forget(e *entry) {
	s.deliveries.stopPuts(e)
	s.entries.remove(e)
	s.checkIdle()
}

// drop gives an attempt up: no verdict on it is awaited. If it runs it is told to
// stop, and keeps its slots until it does. mu is held.
func (s *session) drop(e *entry, why error) {
	switch e.phase {
	case waiting:
		s.queue.remove(e)
	case running:
		e.deadline.interrupt(why, s.cfg.Grace)
	}
	e.phase = dropped
	s.forget(e)
}

// dropAll drops what hs name, reported attempts excepted: their verdict is due.
func (s *session) dropAll(hs []protocol.Held, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range hs {
		if e := s.entries.find(h); e != nil && e.phase != reported {
			s.drop(e, why)
		}
	}
	s.fillSlots()
}

// giveBackAll ends what an orchestrator does not have the session go on with. What runs of it is handed
// back with what it has remembered: if nobody has begun the unit anew, the next attempt has what was paid for.
func (s *session) giveBackAll(hs []protocol.Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range hs {
		switch e := s.entries.find(h); {
		case e == nil || e.phase == reported: // its verdict is due
		case e.phase == running:
			e.deadline.interrupt(errSuperseded, s.cfg.Grace)
		default:
			s.drop(e, errSuperseded)
		}
	}

	s.fillSlots()
}

// drainQueue stops accepting attempts and hands back those that wait.
func (s *session) drainQueue() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.retiring.draining = true
	s.out.queueDrain()

	for _, e := range s.queue.removeAll() {
		s.settle(e, e.reports.Returned(errDraining.Error()))
	}
	s.checkIdle()
}

// checkIdle notes whether anything runs or is held while the session drains. mu is held.
func (s *session) checkIdle() { s.retiring.note(s.queue.taken, len(s.entries)) }

// hasResigned reports whether a session that lost its orchestrator is to end
// without one: while it drains, nothing runs, and none has come back in time.
func (s *session) hasResigned(lost time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retiring.hasWaited(lost)
}

// leftBehind returns an error about the units that the session could not hand back.
func (s *session) leftBehind() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.entries.unfinished(); n > 0 {
		return fmt.Errorf("worker: stopped with %d units whose report has no verdict", n)
	}
	return nil
}

// breakerOpened tells at once that a breaker is open, so that no more units
// come that would meet it.
func (s *session) breakerOpened(name string, d time.Duration, cause error) {
	s.cfg.Logger.Warn("circuit breaker opened", "breaker", name, "for", d, "cause", cause)
	s.out.queueHeartbeat()
}

func (s *session) copyStats() observe.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Running, st.Waiting, st.Held = s.queue.taken, len(s.queue.waiting), len(s.entries)
	return st
}

func (s *session) countPanic() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Panics++
}
