// Package workers is what an orchestrator knows of its workers: the sessions whose streams are
// here, what each was given and has not lost, and what it may be given. Of jobs it knows what
// their units need of a worker. It reads and writes nothing, and takes the time as an argument;
// whoever holds it sees to it that one goroutine at a time uses it.
package workers

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Session is a worker, as this node sees it.
type Session struct {
	ID       mapreduce.SessionID
	Epoch    int64
	Slots    int
	prefetch int
	offer    mapreduce.Offer
	Tenant   mapreduce.TenantID // whose units alone it is given; empty for all
	Peer     Peer

	gone     bool // its stream has ended, or another has taken it up
	draining bool
	promised int // slots set aside for turns under way
	busy     int // units given and not reported
	held     map[unitKey]*Attempt
	breakers map[string]time.Time      // open until
	seen     time.Time                 // of its latest message
	knows    map[mapreduce.JobID]int64 // the epoch whose spec it was told
	refused  int                       // of its outputs
	heard    int                       // units that have begun or ended there, as it said
	texts    *int64                    // of the table: bytes of the texts that attempts keep
}

// A Peer is the stream of a session. Its methods do not wait.
type Peer interface {
	// Send queues a message for the worker, behind those that wait.
	Send(m *mapreduce.ToWorker)
	// Lags reports whether the worker has to read what it was sent before it is sent more.
	Lags() bool
	// Stop ends the stream.
	Stop(why error)
}

// NewSession returns a session that a worker has begun, or goes on with, as of an
// epoch. tenant is the only one whose units it may be given; empty stands for all. It is in no table yet.
func NewSession(hello *mapreduce.Hello, tenant mapreduce.TenantID, epoch int64, draining bool, p Peer) *Session {
	return &Session{
		ID: hello.Session, Epoch: epoch, Slots: hello.Slots, prefetch: hello.Prefetch, offer: hello.Offer, Tenant: tenant, Peer: p,
		held: make(map[unitKey]*Attempt), breakers: make(map[string]time.Time), knows: make(map[mapreduce.JobID]int64), draining: draining,
	}
}

type unitKey struct {
	job  mapreduce.JobID
	unit mapreduce.UnitID
}

// An Attempt is one that a session was given and has not lost.
type Attempt struct {
	mapreduce.Held
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

// KeepInput has an attempt keep what it was given, as far as there is room. epoch is that of
// its job as it was claimed.
func (session *Session) KeepInput(h *Attempt, u *records.Unit, epoch int64, text []byte) {
	h.unit, h.epoch = u, epoch
	if n := int64(len(text)); text != nil && *session.texts+n <= maxKeptTexts {
		h.text = bytes.Clone(text) // it may be part of something larger
		h.kept += n
		*session.texts += n
	}
}

// KeepTaken has an attempt keep the units that it takes, as far as there is room, if it keeps
// its own and keeps none of them yet.
func (session *Session) KeepTaken(h *Attempt, taken []*records.Unit) {
	if h.unit == nil || h.inputs != nil {
		return
	}

	n := int64(0)
	for _, in := range taken {
		n += keptInput + int64(len(in.Published().Inline))
	}
	if *session.texts+n <= maxKeptTexts {
		h.inputs = taken
		h.kept += n
		*session.texts += n
	}
}

// A Given is what a unit was given, as far as it is kept: nil is not.
type Given struct {
	Unit   *records.Unit
	Text   []byte
	Inputs []*records.Unit
}

// Given returns what the unit was given, as far as it is kept. Of one that takes outputs that
// is nothing once the job has changed: a resume drops levels and plans them anew, and then
// another unit may have the same name, and another attempt the same number. epoch is that of
// the job now, and negative if the job is not known.
func (h *Attempt) Given(epoch int64) Given {
	if h.unit != nil && h.unit.Inputs != nil && epoch != h.epoch {
		return Given{}
	}
	return Given{Unit: h.unit, Text: h.text, Inputs: h.inputs}
}

// dropInput forgets what an attempt was given.
func (session *Session) dropInput(h *Attempt) {
	*session.texts -= h.kept
	h.unit, h.text, h.inputs, h.kept = nil, nil, nil, 0
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

// Wants are what the units of a job need of a worker.
type Wants struct {
	Job    mapreduce.JobID
	Tenant mapreduce.TenantID
	Needs  mapreduce.Requirements
	Models []string // one of which is to be asked; none are if it is empty
	// SkipsBreakers says that units end with an error, rather than wait, while no model is to be
	// asked.
	SkipsBreakers bool
	// Nothing says that no worker is to be given any.
	Nothing bool
}

// CanRun reports whether session may be given units of a job.
func (session *Session) CanRun(w *Wants, now time.Time) bool {
	if session.gone || session.draining || session.Peer.Lags() || w.Nothing || !w.Needs.MetBy(session.offer) {
		return false
	}
	if session.Tenant != "" && session.Tenant != w.Tenant {
		return false
	}
	if w.SkipsBreakers {
		return true
	}

	return len(w.Models) == 0 || slices.ContainsFunc(w.Models, func(name string) bool {
		until, open := session.breakers[name]
		return !open || now.After(until)
	})
}

// FreeUnits is how many more units session may be given, and IdleSlots how many of them it would
// run at once.
func (session *Session) FreeUnits() int {
	return min(session.Slots+session.prefetch, session.trusted()) - session.busy - session.promised
}

func (session *Session) IdleSlots() int {
	return min(session.Slots, session.trusted()) - session.busy - session.promised
}

// firstUnits is how many units a worker may be given of which nothing was heard.
const firstUnits = 64

// trusted returns how many units session may be given by what was heard of it: twice as many as
// have begun or ended there. So one that does not read what it is given gets few, however
// many it asks for.
func (session *Session) trusted() int { return firstUnits + 2*session.heard }

// HasProvider reports whether session can ask the models of a provider.
func (session *Session) HasProvider(name string) bool {
	return slices.Contains(session.offer.Providers, name)
}

// takeUp has session hold what its worker has kept, as of the clocks of the same attempts in
// the stream before: a stream that begins anew gives no attempt more time. before may be nil,
// and node is this one.
func (session *Session) takeUp(kept []queue.Held, before *Session, node mapreduce.NodeID) {
	claims := make(map[string]*Claim)
	for _, h := range kept {
		c := claims[h.Claim]
		if c == nil {
			c = &Claim{ID: queue.HeldID{Session: session.ID, Claim: h.Claim}}
			claims[h.Claim] = c
		}

		c.Left++
		session.busy++
		session.heard++

		at := mapreduce.Held{Job: h.Job, Unit: h.Unit, Attempt: h.Attempt}
		a := &Attempt{
			Held: at, Claim: c, Reserved: h.Reserved, Granted: h.Node == node, running: h.Running, suspect: h.Attempt > 1,
		}
		if before != nil {
			if old := before.Attempt(at); old != nil {
				a.clock = old.clock
			}
		}
		session.held[unitKey{h.Job, h.Unit}] = a
	}
}

// countHeld counts what session has of a job, as far as it can run at once.
func (session *Session) countHeld(job mapreduce.JobID) (n int) {
	for key := range session.held {
		if key.job == job {
			n++
		}
	}
	return min(n, session.Slots)
}

// Hold gives session an attempt at a unit that was claimed.
func (session *Session) Hold(job mapreduce.JobID, u *records.Unit, c *Claim, granted bool) {
	session.busy++
	session.held[unitKey{job, u.ID}] = &Attempt{
		Held: mapreduce.Held{Job: job, Unit: u.ID, Attempt: int(u.Attempt)}, Claim: c, Reserved: u.Reserved, Granted: granted,
		suspect: u.Attempt > 1,
	}
}

// Attempt returns an attempt that session was given and has not lost; else nil.
func (session *Session) Attempt(of mapreduce.Held) *Attempt {
	if h := session.held[unitKey{of.Job, of.Unit}]; h != nil && h.Held.Attempt == of.Attempt {
		return h
	}
	return nil
}

// Attempts are all that session was given and has not lost.
func (session *Session) Attempts() iter.Seq[*Attempt] { return maps.Values(session.held) }

// PutBackReport notes that the turn failed which had the report of a unit.
func (session *Session) PutBackReport(job mapreduce.JobID, unit mapreduce.UnitID) {
	if h := session.held[unitKey{job, unit}]; h != nil {
		h.taken = false
	}
}

// NoteArrived notes that an attempt has ended on its worker, so that what ends the worker
// now is not blamed on it. Its slot is free once its output was checked: then one turn takes
// the report and fills the slot.
func (session *Session) NoteArrived(of mapreduce.Held) {
	if h := session.Attempt(of); h != nil {
		h.checking = true
	}
}

// NoteReported notes that an attempt has ended on the worker, so that its slot is
// free. It returns whether the session holds the attempt, and whether this is the first
// report of it.
func (session *Session) NoteReported(of mapreduce.Held) (held, first bool) {
	h := session.Attempt(of)
	if h == nil {
		return false, false
	}

	if h.reported {
		return true, false
	}

	h.reported = true
	session.heard++
	session.busy--
	return true, true
}

// NoteStarted notes which units have begun. It returns those of them that are suspected of
// having brought a worker down before, and whether session may be given more units than
// before.
func (session *Session) NoteStarted(started []mapreduce.Held) (suspects []mapreduce.Held, more bool) {
	capped, heard := session.trusted() < session.Slots+session.prefetch, session.heard

	for _, of := range started {
		h := session.Attempt(of)
		if h == nil {
			continue
		}

		// Each unit that begins lets the worker be given more.
		if !h.running {
			session.heard++
		}
		h.running = true

		if h.suspect {
			suspects = append(suspects, of)
		}
	}

	return suspects, capped && session.heard > heard
}

// Forget removes an attempt whose verdict is known, and returns it; nil if session does not
// hold it.
func (session *Session) Forget(of mapreduce.Held) *Attempt {
	h := session.Attempt(of)
	if h == nil {
		return nil
	}

	delete(session.held, unitKey{of.Job, of.Unit})
	session.dropInput(h)
	if !h.reported {
		session.busy--
	}
	return h
}

// Drop removes the attempts at units of a job that were not reported, and returns them. A unit
// that was reported has ended, and waits for its verdict.
func (session *Session) Drop(job mapreduce.JobID) (dropped []*Attempt) {
	for key, h := range session.held {
		if key.job == job && !h.reported {
			dropped = append(dropped, session.Forget(h.Held))
		}
	}
	return dropped
}

// Running returns the attempts that run, and have not ended.
func (session *Session) Running() map[mapreduce.Held]bool {
	all := make(map[mapreduce.Held]bool)
	for _, h := range session.held {
		if h.running && !h.HasEnded() {
			all[h.Held] = true
		}
	}
	return all
}

// CountWaiting returns how many units of a job wait at the worker for a slot there.
func (session *Session) CountWaiting(job mapreduce.JobID) int64 {
	held := 0
	for key, h := range session.held {
		if key.job == job && !h.HasEnded() {
			held++
		}
	}
	return int64(max(0, held-session.Slots))
}

// CountParsing returns how many of the units that session holds parse documents.
func (session *Session) CountParsing() (n int) {
	for key := range session.held {
		if key.unit.Parses() {
			n++
		}
	}
	return n
}

// Rounds returns in how many rounds of as many units as session has slots all that it may be
// given has its turn.
func (session *Session) Rounds() int { return 1 + (session.prefetch+session.Slots-1)/session.Slots }

// Learns notes that the worker is told the spec of a job as of an epoch, and reports whether it
// was not told before.
func (session *Session) Learns(job mapreduce.JobID, epoch int64) (news bool) {
	news = session.knows[job] != epoch
	session.knows[job] = epoch
	return news
}

// NoteSeen notes that a message of the worker came.
func (session *Session) NoteSeen(now time.Time) { session.seen = now }

// Seen returns when the latest message of the worker came.
func (session *Session) Seen() time.Time { return session.seen }

// Drain has the worker be given nothing more.
func (session *Session) Drain() { session.draining = true }

// IsDrained reports whether the worker has nothing left to do, and is given nothing more.
func (session *Session) IsDrained() bool { return len(session.held) == 0 && session.draining }

// EndsAs ends the stream of a session, which counts as gone from now on.
func (session *Session) EndsAs(why error) {
	session.gone = true
	session.Peer.Stop(why)
}

// Release gives back slots that a turn had set aside.
func (session *Session) Release(slots int) { session.promised -= slots }

// CountRefused counts an output that was refused, and returns how many were of session.
func (session *Session) CountRefused() int {
	session.refused++
	return session.refused
}

// NoteBreaker keeps the units of a model from the worker until then.
func (session *Session) NoteBreaker(model string, until time.Time) { session.breakers[model] = until }

// BreakerUntil returns until when the units of a model are kept from the worker.
func (session *Session) BreakerUntil(model string) time.Time { return session.breakers[model] }
