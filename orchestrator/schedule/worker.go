package schedule

import (
	"bytes"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Session is a worker, as the scheduler sees it.
type Session struct {
	ID       mapreduce.SessionID
	Epoch    int64
	Slots    int
	prefetch int
	offer    mapreduce.Offer
	Tenant   mapreduce.TenantID // whose units alone it is given; empty for all
	Peer     Peer

	// Guarded by the scheduler's mu.
	gone     bool // its stream has ended, or another has taken it up
	draining bool
	promised int // slots set aside for turns under way
	busy     int // units given and not reported
	held     map[unitKey]*HeldUnit
	breakers map[string]time.Time      // open until
	seen     time.Time                 // of its latest message
	knows    map[mapreduce.JobID]int64 // the epoch whose spec it was told
	refused  int                       // of its outputs
	heard    int                       // units that have begun or ended there, as it said
	texts    *int64                    // of the scheduler: bytes of the texts that held units keep
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
// epoch. tenant is the only one whose units it may be given; empty stands for all. It is on no scheduler yet.
func NewSession(hello *mapreduce.Hello, tenant mapreduce.TenantID, epoch int64, draining bool, p Peer) *Session {
	return &Session{
		ID: hello.Session, Epoch: epoch, Slots: hello.Slots, prefetch: hello.Prefetch, offer: hello.Offer, Tenant: tenant, Peer: p,
		held: make(map[unitKey]*HeldUnit), breakers: make(map[string]time.Time), knows: make(map[mapreduce.JobID]int64), draining: draining,
	}
}

type unitKey struct {
	job  mapreduce.JobID
	unit mapreduce.UnitID
}

// A HeldUnit is an attempt that a session was given.
type HeldUnit struct {
	attempt  int
	claim    *claimOf
	Reserved int64
	granted  bool // reserved from this node's grant
	suspect  bool // not the first attempt: a worker may have died of an earlier one
	running  bool
	reported bool
	checking bool // its output is being checked: it has ended, and holds its slot
	taken    bool // its report is in a turn under way
	clock    attemptClock
	said     saidNotes

	// The unit's record, against which its output is checked; nil if it must be read
	// again.
	unit   *records.Unit
	text   []byte
	inputs []*records.Unit // that it takes, with their outputs
	epoch  int64           // of the job when it was claimed
	kept   int64           // bytes of text and inputs
}

// maxKeptTexts bounds the texts and inputs of units that run, in bytes, that are kept for
// their outputs to be checked against.
const maxKeptTexts = 32 << 20

// keptInput is about how many bytes an input takes beside its output.
const keptInput = 512

// keepInput has a unit keep what it was given, as far as there is room. The caller holds
// the scheduler's mu.
func (session *Session) keepInput(h *HeldUnit, u *records.Unit, epoch int64, text []byte) {
	h.unit, h.epoch = u, epoch
	if n := int64(len(text)); text != nil && *session.texts+n <= maxKeptTexts {
		h.text = bytes.Clone(text) // it may be part of something larger
		h.kept += n
		*session.texts += n
	}
}

// keepTaken has a unit keep the units that it takes, as far as there is room. The caller
// holds the scheduler's mu.
func (session *Session) keepTaken(h *HeldUnit, taken []*records.Unit) {
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

// givenInput returns what a unit was given, as far as it is kept. Of one that takes outputs
// that is nothing once the job has changed: a resume drops levels and plans them anew, and
// then another unit may have the same name, and another attempt the same number. j is nil
// if the job is not known. The caller holds the scheduler's mu.
func (h *HeldUnit) givenInput(j *Job) AssignedInput {
	if h.unit != nil && h.unit.Inputs != nil && (j == nil || j.epoch != h.epoch) {
		return AssignedInput{}
	}
	return AssignedInput{Unit: h.unit, Text: h.text, Inputs: h.inputs}
}

// dropInput forgets what a unit was given. The caller holds the scheduler's mu.
func (session *Session) dropInput(h *HeldUnit) {
	*session.texts -= h.kept
	h.unit, h.text, h.inputs, h.kept = nil, nil, nil, 0
}

// A claimOf counts the units of a claim that have not ended.
type claimOf struct {
	id       queue.HeldID
	left     int
	released bool // by the turn that ended its last units
}

// endUnit notes that a unit has ended. With the last one the claim's record is to be
// cleared.
func (c *claimOf) endUnit(j *Job) {
	if c.left--; c.left == 0 && !c.released {
		j.turns.ended = append(j.turns.ended, c.id)
	}
}

// canRun reports whether session may be given units of j. The caller holds the
// scheduler's mu.
func (session *Session) canRun(j *Job, now time.Time) bool {
	if session.gone || session.draining || session.Peer.Lags() || j.assembles || !j.needs.MetBy(session.offer) {
		return false
	}
	if session.Tenant != "" && session.Tenant != j.tenant {
		return false
	}

	if j.spec.OnBreaker == mapreduce.BreakerSkip {
		return true // its units end with an error there, rather than wait
	}

	return len(j.models) == 0 || slices.ContainsFunc(j.models, func(name string) bool {
		until, open := session.breakers[name]
		return !open || now.After(until)
	})
}

func breakerOf(spec *mapreduce.JobSpec) string { return spec.Provider + "/" + spec.Model }

// freeUnits is how many more units session may be given, and idleSlots how many of them it would
// run at once.
func (session *Session) freeUnits() int {
	return min(session.Slots+session.prefetch, session.trusted()) - session.busy - session.promised
}

func (session *Session) idleSlots() int {
	return min(session.Slots, session.trusted()) - session.busy - session.promised
}

// firstUnits is how many units a worker may be given of which nothing was heard.
const firstUnits = 64

// trusted returns how many units session may be given by what was heard of it: twice as many as
// have begun or ended there. So one that does not read what it is given gets few, however
// many it asks for.
func (session *Session) trusted() int { return firstUnits + 2*session.heard }

// hasProvider reports whether session can ask the models of a provider.
func (session *Session) hasProvider(name string) bool {
	return slices.Contains(session.offer.Providers, name)
}

// takeUp has session hold what its worker has kept, as of clocks of the same attempts: a
// stream that begins anew gives no attempt more time. Node is the one of this scheduler.
func (session *Session) takeUp(kept []queue.Held, clocks map[unitKey]attemptClock, node mapreduce.NodeID) {
	claims := make(map[string]*claimOf)
	for _, h := range kept {
		c := claims[h.Claim]
		if c == nil {
			c = &claimOf{id: queue.HeldID{Session: session.ID, Claim: h.Claim}}
			claims[h.Claim] = c
		}

		c.left++
		session.busy++
		session.heard++
		key := unitKey{h.Job, h.Unit}
		session.held[key] = &HeldUnit{
			attempt: h.Attempt, claim: c, Reserved: h.Reserved, granted: h.Node == node, running: h.Running,
			suspect: h.Attempt > 1, clock: clocks[key],
		}
	}
}

// clocksOf returns the clocks of those attempts that session holds.
func (session *Session) clocksOf(kept []queue.Held) map[unitKey]attemptClock {
	clocks := make(map[unitKey]attemptClock, len(kept))
	for _, k := range kept {
		if h := session.heldAttempt(k.Job, k.Unit, k.Attempt); h != nil {
			clocks[unitKey{k.Job, k.Unit}] = h.clock
		}
	}
	return clocks
}

// countHeld counts what session has of a job, as far as it can run at once.
func (session *Session) countHeld(j *Job) (n int) {
	for key := range session.held {
		if key.job == j.ID {
			n++
		}
	}
	return min(n, session.Slots)
}

func (session *Session) holdUnit(job mapreduce.JobID, u *records.Unit, c *claimOf, granted bool) {
	session.busy++
	session.held[unitKey{job, u.ID}] = &HeldUnit{
		attempt: int(u.Attempt), claim: c, Reserved: u.Reserved, granted: granted,
		suspect: u.Attempt > 1,
	}
}

// heldAttempt returns an attempt that session was given and has not lost; else nil. The
// caller holds the scheduler's mu.
func (session *Session) heldAttempt(job mapreduce.JobID, unit mapreduce.UnitID, attempt int) *HeldUnit {
	if h := session.held[unitKey{job, unit}]; h != nil && h.attempt == attempt {
		return h
	}
	return nil
}

// noteArrived notes that an attempt has ended on its worker, so that what ends the worker
// now is not blamed on it. Its slot is free once its output was checked: then one turn takes
// the report and fills the slot. The caller holds the scheduler's mu.
func (session *Session) noteArrived(r *mapreduce.Report) {
	if h := session.heldAttempt(r.Job, r.Unit, r.Attempt); h != nil {
		h.checking = true
	}
}

// noteReported notes that an attempt has ended on the worker, so that its slot is
// free. It returns whether the session holds the attempt, and whether this is the first
// report of it.
func (session *Session) noteReported(r *mapreduce.Report) (held, first bool) {
	h := session.heldAttempt(r.Job, r.Unit, r.Attempt)
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

// forgetAttempt removes an attempt whose verdict is known.
func (session *Session) forgetAttempt(job mapreduce.JobID, unit mapreduce.UnitID, attempt int) *HeldUnit {
	h := session.heldAttempt(job, unit, attempt)
	if h == nil {
		return nil
	}

	delete(session.held, unitKey{job, unit})
	session.dropInput(h)
	if !h.reported {
		session.busy--
	}
	return h
}
