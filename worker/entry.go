package worker

import (
	"cmp"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/report"
)

// A unitKey names a unit. A session holds at most one attempt of it.
type unitKey struct {
	job  mapreduce.JobID
	unit mapreduce.UnitID
}

func unitKeyOf(h protocol.Held) unitKey { return unitKey{h.Job, h.Unit} }

// A phase is the state of an entry within the session.
type phase uint8

const (
	waiting  phase = iota // for a slot
	running               // its agent runs
	reported              // its report waits for a verdict
	dropped               // nobody waits for it; its agent may run yet
)

// An entry is what a session holds of one attempt at a unit, from its assignment to its
// verdict: how far it is, the slots that it takes, the time that it has left, and its report.
// An entry runs nothing: the attempt does, in the goroutine of a slot.
//
// Any goroutine may come to an entry, by the session: the streams' with messages, the slot's
// with a report, a timer's. So the session's lock guards it. The methods that take the lock say
// so; all others are called with it.
type entry struct {
	mu *sync.Mutex // the session's; guards what may change

	// These do not change.
	held      protocol.Held // the attempt by name; whether it runs state says
	alone     bool          // workers were lost with it: nothing else is to run in its process
	calls     *calls
	reports   report.Reporter
	announced *announcement // that it runs; nil if it need not be announced

	attempt *attempt // nil once it has ended: a verdict is waited for without the inputs

	phase     phase
	weight    int  // slots it takes; set when it takes them
	apart     bool // it runs in a process of its own; set when it takes its slots
	abandoned bool // the agent did not return in time; its slots are given away
	deadline  deadline

	report *protocol.Report // nil until the attempt has ended
	number uint64           // orders reports
	puts   puts             // which the report waits for
}

// isOf reports whether the entry is of the attempt that h names. It needs no lock.
func (e *entry) isOf(h protocol.Held) bool {
	return e.held.Job == h.Job && e.held.Unit == h.Unit && e.held.Attempt == h.Attempt
}

// logged returns the attempt by name, for the log. It needs no lock.
func (e *entry) logged(more ...any) []any {
	return append([]any{"job", e.held.Job, "unit", e.held.Unit, "attempt", e.held.Attempt}, more...)
}

// state returns the attempt by name, and whether it runs or has.
func (e *entry) state() protocol.Held {
	h := e.held
	h.Running = e.phase >= running
	return h
}

// progress returns how far the attempt is.
func (e *entry) progress() protocol.Progress {
	p := e.calls.SoFar()
	p.Held = e.state()
	return p
}

// leavesJournal reports whether what the attempt has remembered is of use if it ends so: the
// unit may be tried again, or the job be repeated.
func (e *entry) leavesJournal(o protocol.Outcome) bool {
	spec := e.reports.Spec
	return o != protocol.Done || spec != nil && spec.Capture == mapreduce.CaptureFull
}

// restartTime gives the attempt its whole time anew: its blobs have arrived, or its turn has
// come. It takes the lock.
func (e *entry) restartTime() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deadline.restart()
}

// pauseTime has the time of the attempt stand still, as it waits for its turn at the processor.
// It takes the lock.
func (e *entry) pauseTime() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deadline.pause()
}

// extendTime has the time of the attempt begin, as its process has begun it. The process keeps
// to the limit itself, once it has what the unit needs; here the attempt only must end some
// time. It takes the lock.
func (e *entry) extendTime(grace time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase == running {
		e.deadline.extend(2*e.deadline.limit + grace)
	}
}

// compareHeld orders attempts by their names.
func compareHeld(a, b protocol.Held) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Attempt, b.Attempt))
}
