package workers

import (
	"bytes"
	"iter"
	"maps"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// An Attempt is one that a session was given and has not lost.
type Attempt struct {
	protocol.Held
	Claim    *Claim
	Reserved int64
	Granted  bool // reserved from this node's grant

	suspect  bool // not the first attempt: a worker may have died of an earlier one
	running  bool
	reported bool
	checking bool // its output is being checked: it has ended, and holds its slot
	taken    bool // its report is in a turn under way
	clock    Clock
	said     saidNotes

	// The unit's record, against which its output is checked; nil if it must be read
	// again.
	unit   *records.Unit
	text   []byte
	inputs []*records.Unit // that it takes, with their outputs
	epoch  int64           // of the job when it was claimed
	kept   int64           // bytes of text and inputs
}

// Runs reports whether the worker said that the attempt has begun.
func (a *Attempt) Runs() bool { return a.running }

// IsReported reports whether the attempt's report is known, so that its slot is free.
func (a *Attempt) IsReported() bool { return a.reported }

// HasEnded reports whether the attempt has ended on its worker.
func (a *Attempt) HasEnded() bool { return a.reported || a.checking }

// Take notes that the report of the attempt is in a turn, and reports whether it was in none
// before.
func (a *Attempt) Take() (first bool) {
	first = !a.taken
	a.taken = true
	return first
}

// maxKeptTexts bounds the texts and inputs of units that run, in bytes, that are kept for
// their outputs to be checked against.
const maxKeptTexts = 32 << 20

// keptInput is about how many bytes an input takes beside its output.
const keptInput = 512

// A Given is what a unit was given, as far as it is kept. What is nil has to be read again.
type Given struct {
	Unit   *records.Unit
	Text   []byte          // that a map unit reads
	Inputs []*records.Unit // that it takes, with their outputs
}

// Given returns what the unit was given, as far as it is kept. Of one that takes outputs that
// is nothing once the job has changed: a resume drops levels and plans them anew, and then
// another unit may have the same name, and another attempt the same number. epoch is that of
// the job now, and negative if the job is not known.
func (a *Attempt) Given(epoch int64) Given {
	if a.unit != nil && a.unit.Inputs != nil && epoch != a.epoch {
		return Given{}
	}
	return Given{Unit: a.unit, Text: a.text, Inputs: a.inputs}
}

// A Claim counts the units of a claim that have not ended.
type Claim struct {
	ID       queue.HeldID
	Left     int
	Released bool // by the turn that ended its last units
}

// EndUnit notes that a unit has ended, and reports whether the claim's record is to be cleared:
// that was its last one, and no turn has released it.
func (c *Claim) EndUnit() (clear bool) {
	c.Left--
	return c.Left == 0 && !c.Released
}

// attempts are those that a session was given and has not lost.
type attempts struct {
	held  map[unitKey]*Attempt
	busy  int    // that were not reported
	heard int    // units that have begun or ended at the worker, as it said
	texts *int64 // of the table: bytes of the texts that attempts keep
}

type unitKey struct {
	job  mapreduce.JobID
	unit mapreduce.UnitID
}

// KeepInput has an attempt keep what it was given, as far as there is room. epoch is that of
// its job as it was claimed.
func (all *attempts) KeepInput(h *Attempt, u *records.Unit, epoch int64, text []byte) {
	h.unit, h.epoch = u, epoch
	if n := int64(len(text)); text != nil && *all.texts+n <= maxKeptTexts {
		h.text = bytes.Clone(text) // it may be part of something larger
		h.kept += n
		*all.texts += n
	}
}

// KeepTaken has an attempt keep the units that it takes, as far as there is room, if it keeps
// its own and keeps none of them yet.
func (all *attempts) KeepTaken(h *Attempt, taken []*records.Unit) {
	if h.unit == nil || h.inputs != nil {
		return
	}

	n := int64(0)
	for _, in := range taken {
		n += keptInput + int64(len(in.Published().Inline))
	}
	if *all.texts+n <= maxKeptTexts {
		h.inputs = taken
		h.kept += n
		*all.texts += n
	}
}

// dropInput forgets what an attempt was given.
func (all *attempts) dropInput(h *Attempt) {
	*all.texts -= h.kept
	h.unit, h.text, h.inputs, h.kept = nil, nil, nil, 0
}

// Hold gives session an attempt at a unit that was claimed.
func (all *attempts) Hold(job mapreduce.JobID, u *records.Unit, c *Claim, granted bool) {
	all.busy++
	all.held[unitKey{job, u.ID}] = &Attempt{
		Held: protocol.Held{Job: job, Unit: u.ID, Attempt: int(u.Attempt)}, Claim: c, Reserved: u.Reserved, Granted: granted,
		suspect: u.Attempt > 1,
	}
}

// Attempt returns an attempt that session was given and has not lost; else nil.
func (all *attempts) Attempt(of protocol.Held) *Attempt {
	if h := all.held[unitKey{of.Job, of.Unit}]; h != nil && h.Held.Attempt == of.Attempt {
		return h
	}
	return nil
}

// Attempts are all that session was given and has not lost.
func (all *attempts) Attempts() iter.Seq[*Attempt] { return maps.Values(all.held) }

// PutBackReport notes that the turn failed which had the report of a unit.
func (all *attempts) PutBackReport(job mapreduce.JobID, unit mapreduce.UnitID) {
	if h := all.held[unitKey{job, unit}]; h != nil {
		h.taken = false
	}
}

// NoteArrived notes that an attempt has ended on its worker, so that what ends the worker
// now is not blamed on it. Its slot is free once its output was checked: then one turn takes
// the report and fills the slot.
func (all *attempts) NoteArrived(of protocol.Held) {
	if h := all.Attempt(of); h != nil {
		h.checking = true
	}
}

// NoteReported notes that an attempt has ended on the worker, so that its slot is
// free. It returns whether the session holds the attempt, and whether this is the first
// report of it.
func (all *attempts) NoteReported(of protocol.Held) (held, first bool) {
	h := all.Attempt(of)
	if h == nil {
		return false, false
	}

	if h.reported {
		return true, false
	}

	h.reported = true
	all.heard++
	all.busy--
	return true, true
}

// Forget removes an attempt whose verdict is known, and returns it; nil if session does not
// hold it.
func (all *attempts) Forget(of protocol.Held) *Attempt {
	h := all.Attempt(of)
	if h == nil {
		return nil
	}

	delete(all.held, unitKey{of.Job, of.Unit})
	all.dropInput(h)
	if !h.reported {
		all.busy--
	}
	return h
}

// Drop removes the attempts at units of a job that were not reported, and returns them. A unit
// that was reported has ended, and waits for its verdict.
func (all *attempts) Drop(job mapreduce.JobID) (dropped []*Attempt) {
	for key, h := range all.held {
		if key.job == job && !h.reported {
			dropped = append(dropped, all.Forget(h.Held))
		}
	}
	return dropped
}

// Running returns the attempts that run, and have not ended.
func (all *attempts) Running() map[protocol.Held]bool {
	running := make(map[protocol.Held]bool)
	for _, h := range all.held {
		if h.running && !h.HasEnded() {
			running[h.Held] = true
		}
	}
	return running
}

// CountParsing returns how many of the units that session holds parse documents.
func (all *attempts) CountParsing() (n int) {
	for key := range all.held {
		if key.unit.Parses() {
			n++
		}
	}
	return n
}

// takeUp has a session hold what its worker has kept, as of the clocks of the same attempts in
// the stream before: a stream that begins anew gives no attempt more time. before may be nil,
// and node is this one.
func (all *attempts) takeUp(session mapreduce.SessionID, kept []queue.Held, before *Session, node mapreduce.NodeID) {
	claims := make(map[string]*Claim)
	for _, h := range kept {
		c := claims[h.Claim]
		if c == nil {
			c = &Claim{ID: queue.HeldID{Session: session, Claim: h.Claim}}
			claims[h.Claim] = c
		}

		c.Left++
		all.busy++
		all.heard++

		at := protocol.Held{Job: h.Job, Unit: h.Unit, Attempt: h.Attempt}
		a := &Attempt{
			Held: at, Claim: c, Reserved: h.Reserved, Granted: h.Node == node, running: h.Running, suspect: h.Attempt > 1,
		}
		if before != nil {
			if old := before.Attempt(at); old != nil {
				a.clock = old.clock
			}
		}
		all.held[unitKey{h.Job, h.Unit}] = a
	}
}

// begin notes which units have begun, and returns those of them that are suspected of having
// brought a worker down before.
func (all *attempts) begin(started []protocol.Held) (suspects []protocol.Held) {
	for _, of := range started {
		h := all.Attempt(of)
		if h == nil {
			continue
		}

		// Each unit that begins lets the worker be given more.
		if !h.running {
			all.heard++
		}
		h.running = true

		if h.suspect {
			suspects = append(suspects, of)
		}
	}
	return suspects
}

// countOf counts the attempts at units of a job, or those that have not ended.
func (all *attempts) countOf(job mapreduce.JobID, unended bool) (n int) {
	for key, h := range all.held {
		if key.job == job && !(unended && h.HasEnded()) {
			n++
		}
	}
	return n
}
