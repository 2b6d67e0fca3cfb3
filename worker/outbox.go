package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
)

// maxMessage is about how many bytes one message may take. It is well inside
// gRPC's default limit of 4 MiB.
const maxMessage = 1 << 20

// An outbox holds what is to be sent on the current stream. When the stream breaks,
// the outbox is filled again from the entries, which keep everything that must not be
// lost. Anybody may put something in; entries are read with session.mu held.
type outbox struct {
	wake chan struct{} // capacity 1: there may be something to send

	mu      sync.Mutex // guards the fields below; taken after session.mu
	reports []*entry   // settled, in order
	started []*entry
	asks    []*entry
	limits  bool // models have something to tell
	beat    bool // a sign of life is due
	drain   bool // the orchestrator is to know that this worker drains

	notes    []protocol.Progress // what units said since the last message, oldest first
	notesDue bool                // a timer runs that has them sent
	notesOut bool                // they are to be sent
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
func (o *outbox) queueReport(e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reports = append(o.reports, e)
	o.wakeSender()
}

// queueStart queues that a unit has started.
func (o *outbox) queueStart(e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started = append(o.started, e)
	o.wakeSender()
}

// queueQuestion queues a unit's question.
func (o *outbox) queueQuestion(e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asks = append(o.asks, e)
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
func (o *outbox) queueNote(p protocol.Progress) {
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
func (o *outbox) pullNotes(m *protocol.FromWorker) {
	if len(o.notes) > 0 {
		m.Heartbeat = &protocol.Heartbeat{Progress: o.notes}
	}
	o.notes, o.notesOut = nil, false
}

// isEmpty reports whether there is nothing to send. mu is held.
func (o *outbox) isEmpty() bool {
	return len(o.reports)+len(o.started)+len(o.asks) == 0 && !o.beat && !o.drain && !o.limits && !o.notesOut
}

// pullReports takes as many reports as suit a message. mu is held, and session.mu.
func (o *outbox) pullReports(m *protocol.FromWorker) {
	room := maxMessage
	for len(o.reports) > 0 && room > 0 {
		r := o.reports[0].report
		if m.Reports == nil {
			m.Reports = make([]protocol.Report, 0, min(len(o.reports), 1024))
		}

		m.Reports = append(m.Reports, wireReport(r))
		room -= reportBytes(r)
		// The queue must not keep the unit alive once its verdict has come.
		o.reports[0] = nil
		o.reports = o.reports[1:]
	}
}

// reportBytes returns about how many bytes a report takes.
func reportBytes(r *protocol.Report) int {
	n := 256
	if r.Length == 0 {
		n += len(r.Output)
	}
	for _, e := range r.Errors {
		n += len(e)
	}
	return n
}

// pullStarted takes the starts of what still runs, and returns what is announced by that. Others
// are over, and their reports say so. mu is held, and session.mu.
func (o *outbox) pullStarted(m *protocol.FromWorker) (announced []*announcement) {
	for _, e := range o.started {
		if e.phase != running {
			continue
		}
		m.Started = append(m.Started, e.state())
		if e.announced != nil {
			announced = append(announced, e.announced)
		}
	}

	clear(o.started)
	o.started = o.started[:0]
	return announced
}

// pullAsks takes the open questions of what still runs. mu is held, and session.mu.
func (o *outbox) pullAsks(m *protocol.FromWorker) {
	for _, e := range o.asks {
		if n := e.calls.OpenReserve(); n > 0 && e.phase == running {
			m.Reserve = append(m.Reserve, protocol.ReserveRequest{Held: e.state(), Tokens: n})
		}
	}
	o.asks = nil
}

// pullNews adds the notes on models to m, and news of what servers refuse, if they are due. mu
// is held.
func (o *outbox) pullNews(m *protocol.FromWorker, limits Limiter, manners MannersKeeper) {
	if o.limits || o.beat {
		o.limits = false
		m.Manners, m.Limits = manners.News(), limits.Notes()
	}
}

// wireReport returns r as it is sent: without an output that is put before.
func wireReport(r *protocol.Report) protocol.Report {
	out := *r
	if r.Length > 0 {
		out.Output = nil
	}
	return out
}
