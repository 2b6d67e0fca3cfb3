// Package workers is what an orchestrator knows of its workers: the sessions whose streams are
// here, what each was given and has not lost, and what it may be given. Of jobs it knows what
// their units need of a worker. It reads and writes nothing, and takes the time as an argument;
// whoever holds it sees to it that one goroutine at a time uses it.
package workers

import (
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

// A Session is a worker, as this node sees it.
type Session struct {
	ID       mapreduce.SessionID
	Epoch    int64
	Slots    int
	prefetch int
	offer    mapreduce.Offer
	version  string             // of the worker's program
	embedded bool               // it shares this process
	Tenant   mapreduce.TenantID // whose units alone it is given; empty for all
	Peer     Peer

	attempts
	gone     bool // its stream has ended, or another has taken it up
	draining bool
	promised int                       // slots set aside for turns under way
	breakers map[string]time.Time      // open until
	seen     time.Time                 // of its latest message
	knows    map[mapreduce.JobID]int64 // the epoch whose spec it was told
	refused  int                       // of its outputs
}

// A Peer is the stream of a session. Its methods do not wait.
type Peer interface {
	// Send queues a message for the worker, behind those that wait.
	Send(m *protocol.ToWorker)
	// Lags reports whether the worker has to read what it was sent before it is sent more.
	Lags() bool
	// Stop ends the stream.
	Stop(why error)
}

// NewSession returns a session that a worker has begun, or goes on with, as of an
// epoch. tenant is the only one whose units it may be given; empty stands for all. It is in no table yet.
func NewSession(hello *protocol.Hello, tenant mapreduce.TenantID, epoch int64, draining bool, p Peer) *Session {
	return &Session{
		ID: hello.Session, Epoch: epoch, Slots: hello.Slots, prefetch: hello.Prefetch, offer: hello.Offer, Tenant: tenant, Peer: p,
		version: hello.Version, embedded: hello.Embedded,
		attempts: attempts{held: make(map[unitKey]*Attempt)}, breakers: make(map[string]time.Time), knows: make(map[mapreduce.JobID]int64), draining: draining,
	}
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

// status is what is known of the worker now.
func (session *Session) status(now time.Time) mapreduce.WorkerStatus {
	s := mapreduce.WorkerStatus{
		Session: session.ID, Embedded: session.embedded, Known: true, Version: session.version, Tenant: session.Tenant,
		Slots: session.Slots, Prefetch: session.prefetch, Held: session.busy, Draining: session.draining, Seen: session.seen,
		Offer: session.offer, Refused: session.refused,
	}

	for name, until := range session.breakers {
		if !now.After(until) {
			s.Breakers = append(s.Breakers, name)
		}
	}
	slices.Sort(s.Breakers)
	return s
}

// Batches returns the providers whose batches the worker can make.
func (session *Session) Batches() []string { return session.offer.Batches }

// FreeUnits is how many more units session may be given.
func (session *Session) FreeUnits() int {
	return min(session.Slots+session.prefetch, session.trusted()) - session.busy - session.promised
}

// IdleSlots is how many more units session may be given that it would run at once.
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

// countHeld counts what session has of a job, as far as it can run at once. What is set aside for
// turns under way may become the job's.
func (session *Session) countHeld(job mapreduce.JobID) int {
	return min(session.countOf(job, false)+session.promised, session.Slots)
}

// CountWaiting returns how many units of a job wait at the worker for a slot there.
func (session *Session) CountWaiting(job mapreduce.JobID) int64 {
	return int64(max(0, session.countOf(job, true)-session.Slots))
}

// NoteStarted notes which units have begun. It returns those of them that are suspected of
// having brought a worker down before, and whether session may be given more units than
// before.
func (session *Session) NoteStarted(started []protocol.Held) (suspects []protocol.Held, more bool) {
	capped, heard := session.trusted() < session.Slots+session.prefetch, session.heard
	suspects = session.begin(started)
	return suspects, capped && session.heard > heard
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
