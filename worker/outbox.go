package worker

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// maxMessage is about how many bytes one message may take. It is well inside
// gRPC's default limit of 4 MiB.
const maxMessage = 1 << 20

// An outbox holds what is to be sent on the current stream. When the stream breaks,
// the outbox is filled again from the units, which keep everything that must not be
// lost. Anybody may put something in; units are read with session.mu held.
type outbox struct {
	wake chan struct{} // capacity 1: there may be something to send

	mu      sync.Mutex // guards the fields below; taken after session.mu
	reports []*unit    // settled, in order
	started []*unit
	asks    []*unit
	limits  bool // models have something to tell
	beat    bool // a sign of life is due
	drain   bool // the orchestrator is to know that this worker drains

	notes    []mapreduce.Progress // what units said since the last message, oldest first
	notesDue bool                 // a timer runs that has them sent
	notesOut bool                 // they are to be sent
}

// What units say of themselves is sent soon, and not more often than that: a turn of a model
// takes seconds. Of what is said meanwhile the last is kept.
const (
	notePause = 100 * time.Millisecond
	maxQueued = 256 // notes
)

// wakeSender makes the sender look at the outbox. It needs no lock.
func (o *outbox) wakeSender() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// queueReport queues the report of a unit. session.mu is held.
func (o *outbox) queueReport(u *unit) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reports = append(o.reports, u)
	o.wakeSender()
}

// queueStart queues that a unit has started.
func (o *outbox) queueStart(u *unit) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started = append(o.started, u)
	o.wakeSender()
}

// queueQuestion queues a unit's question.
func (o *outbox) queueQuestion(u *unit) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asks = append(o.asks, u)
	o.wakeSender()
}

// queueHeartbeat queues a heartbeat.
func (o *outbox) queueHeartbeat() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beat = true
	o.wakeSender()
}

// queueLimits makes the next message carry the notes on models.
func (o *outbox) queueLimits() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limits = true
	o.wakeSender()
}

// queueDrain queues that this worker drains.
func (o *outbox) queueDrain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drain = true
	o.wakeSender()
}

// queueNote queues what a unit says of itself.
func (o *outbox) queueNote(p mapreduce.Progress) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if len(o.notes) == maxQueued {
		o.notes = slices.Delete(o.notes, 0, 1)
	}
	o.notes = append(o.notes, p)

	if !o.notesDue {
		o.notesDue = true
		time.AfterFunc(notePause, o.sendNotes)
	}
}

// sendNotes has the notes sent that are queued.
func (o *outbox) sendNotes() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notesDue = false
	if len(o.notes) > 0 {
		o.notesOut = true
		o.wakeSender()
	}
}

// forgetStarts leaves out the starts that a hello tells of.
func (o *outbox) forgetStarts() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started = nil
}

// empty makes the outbox ready for a new stream. It keeps what is told once: starts, that
// the worker drains, and notes.
func (o *outbox) empty() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reports, o.asks = nil, nil
	o.limits, o.notesOut, o.beat = false, false, true
	o.wakeSender()
}

// pullNotes takes the notes that are to be sent, or that go along with something else. mu is
// held.
func (o *outbox) pullNotes(m *mapreduce.FromWorker) {
	if len(o.notes) > 0 {
		m.Heartbeat = &mapreduce.Heartbeat{Progress: o.notes}
	}
	o.notes, o.notesOut = nil, false
}

// isEmpty reports whether there is nothing to send. mu is held.
func (o *outbox) isEmpty() bool {
	return len(o.reports)+len(o.started)+len(o.asks) == 0 && !o.beat && !o.drain && !o.limits && !o.notesOut
}

// pullMessage takes one message out of the outbox, or returns nil if there is nothing
// to send. The units whose start it tells are to be announced once it is sent.
func (l *streamLink) pullMessage() (*mapreduce.FromWorker, []*unit) {
	s, o := l.session, &l.session.out
	s.mu.Lock()
	defer s.mu.Unlock()
	// Both locks are held: reports and starts are read off the units.
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isEmpty() {
		return nil, nil
	}

	m := &mapreduce.FromWorker{Drain: o.drain}
	o.drain = false
	o.pullNotes(m)
	o.pullReports(m)
	announced := o.pullStarted(m)
	o.pullAsks(m)
	o.pullManners(m, s.cfg.Manners)
	o.pullLimits(m, s.cfg.Limits)

	if o.beat {
		o.beat = false
		beat := s.newHeartbeat()
		if m.Heartbeat != nil {
			beat.Progress = append(m.Heartbeat.Progress, beat.Progress...) // what was said comes first
		}
		m.Heartbeat = beat
	}
	return m, announced
}

// pullReports takes as many reports as suit a message. mu is held, and session.mu.
func (o *outbox) pullReports(m *mapreduce.FromWorker) {
	room := maxMessage
	for len(o.reports) > 0 && room > 0 {
		r := o.reports[0].report
		if m.Reports == nil {
			m.Reports = make([]mapreduce.Report, 0, min(len(o.reports), 1024))
		}

		m.Reports = append(m.Reports, wireReport(r))
		room -= reportBytes(r)
		// The queue must not keep the unit alive once its verdict has come.
		o.reports[0] = nil
		o.reports = o.reports[1:]
	}
}

// reportBytes returns about how many bytes a report takes.
func reportBytes(r *mapreduce.Report) int {
	n := 256
	if r.Length == 0 {
		n += len(r.Output)
	}
	for _, e := range r.Errors {
		n += len(e)
	}
	return n
}

// pullStarted takes the starts of what still runs. Others are over, and their
// reports say so. mu is held, and session.mu.
func (o *outbox) pullStarted(m *mapreduce.FromWorker) (announced []*unit) {
	for _, u := range o.started {
		if u.phase != running {
			continue
		}
		m.Started = append(m.Started, u.heldState())
		if u.announced != nil {
			announced = append(announced, u)
		}
	}

	clear(o.started)
	o.started = o.started[:0]
	return announced
}

// pullAsks takes the open questions of what still runs. mu is held, and session.mu.
func (o *outbox) pullAsks(m *mapreduce.FromWorker) {
	for _, u := range o.asks {
		if n := u.openReserve(); n > 0 && u.phase == running {
			m.Reserve = append(m.Reserve, mapreduce.ReserveRequest{Held: u.heldState(), Tokens: n})
		}
	}
	o.asks = nil
}

// newHeartbeat tells how far everything is that runs. mu is held.
func (s *session) newHeartbeat() *mapreduce.Heartbeat {
	h := &mapreduce.Heartbeat{Breakers: s.breakers.Untold()}
	for _, u := range s.units {
		if u.phase == running {
			h.Progress = append(h.Progress, u.readProgress())
		}
	}
	slices.SortFunc(h.Progress, func(a, b mapreduce.Progress) int { return compareHeld(a.Held, b.Held) })
	return h
}

// newHello returns the first message of a stream, and the units that it reports as
// running. Units that start later are reported after it.
func (c *connector) newHello() (*mapreduce.FromWorker, []*unit) {
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()

	var announced []*unit
	for _, u := range s.units {
		if u.phase == running && u.announced != nil {
			announced = append(announced, u)
		}
	}

	// The hello itself lists what runs, so starts that were queued before it need not be
	// sent.
	s.out.forgetStarts()
	s.stats.Connections++

	return &mapreduce.FromWorker{
		Hello: &mapreduce.Hello{
			Session: s.cfg.Session, Version: s.cfg.Version, Slots: s.cfg.Slots, Prefetch: s.cfg.Prefetch,
			Offer: s.cfg.workerOffer(), Embedded: s.cfg.Embedded, Holding: s.listHeld(),
		},
		Drain: s.draining,
	}, announced
}

// refillOutbox fills the outbox for a new stream with everything that has no answer yet.
func (l *streamLink) refillOutbox() {
	s := l.session
	s.mu.Lock()
	defer s.mu.Unlock()

	s.jobs = make(map[mapreduce.JobID]*job) // each stream introduces its own
	s.out.empty()                           // first: a question that is put meanwhile stays

	var settled []*unit
	for _, u := range s.units {
		switch u.phase {
		case reported:
			if u.puts == 0 {
				settled = append(settled, u)
			}
		case running:
			if u.openReserve() > 0 {
				s.out.queueQuestion(u)
			}
		}
	}

	// Reports go in the order in which the attempts ended.
	slices.SortFunc(settled, func(a, b *unit) int { return cmp.Compare(a.number, b.number) })
	for _, u := range settled {
		s.out.queueReport(u)
	}
}

// breakerOpened tells at once that a breaker is open, so that no more units
// come that would meet it.
func (s *session) breakerOpened(name string, d time.Duration, cause error) {
	s.cfg.Logger.Warn("circuit breaker opened", "breaker", name, "for", d, "cause", cause)
	s.out.queueHeartbeat()
}
