package workers

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
)

// A Table is the sessions of workers, as far as this node sees them.
type Table struct {
	bound    map[mapreduce.SessionID]*Session // whose streams are here
	away     map[mapreduce.SessionID]*Session // whose streams have ended, and who may come back
	expected map[*Session]struct{}            // that are being bound here, or may have been
	rotation int                              // rotates the session that is offered a unit first
	texts    int64                            // bytes that units which run keep of what they were given
}

// NewTable returns a table without sessions.
func NewTable() *Table {
	return &Table{
		bound: make(map[mapreduce.SessionID]*Session), away: make(map[mapreduce.SessionID]*Session), expected: make(map[*Session]struct{}),
	}
}

// Rotate returns the sessions, beginning with another one each time.
func (t *Table) Rotate() []*Session {
	all := make([]*Session, 0, len(t.bound))
	for _, session := range t.bound {
		all = append(all, session)
	}
	if len(all) > 1 {
		t.rotation = (t.rotation + 1) % len(all)
		all = append(all[t.rotation:], all[:t.rotation]...)
	}
	return all
}

// Suspend notes that the stream of a session has ended. It returns an earlier stream of the
// session whose units were to come back with it, if there is one.
func (t *Table) Suspend(session *Session) (earlier *Session) {
	session.gone = true
	delete(t.bound, session.ID)
	earlier = t.away[session.ID]
	t.away[session.ID] = session
	return earlier
}

// AwaySince returns a session whose stream here has ended, if it was not here since; or nil.
func (t *Table) AwaySince(ref nodes.SessionRef) *Session {
	if session := t.away[ref.Session]; session != nil && session.Epoch <= ref.Epoch {
		return session
	}
	return nil
}

// Expect notes that a session is being bound here, which may hold what its worker names. Until it is let
// go that may run.
func (t *Table) Expect(session *Session, named []protocol.Held) {
	kept := make([]queue.Held, len(named))
	for i, h := range named {
		kept[i].Held = h
	}
	session.texts, session.gone = &t.texts, true
	session.takeUp(session.ID, kept, nil, "")
	t.expected[session] = struct{}{}
}

// ExpectedAs returns the sessions of a name that were being bound as of an epoch, or before.
func (t *Table) ExpectedAs(id mapreduce.SessionID, epoch int64) (all []*Session) {
	for session := range t.expected {
		if session.ID == id && session.Epoch <= epoch {
			all = append(all, session)
		}
	}
	return all
}

// HasLater reports whether a later stream of a session is, or was, here.
func (t *Table) HasLater(session *Session) bool {
	for _, other := range []*Session{t.bound[session.ID], t.away[session.ID]} {
		if other != nil && other.Epoch > session.Epoch {
			return true
		}
	}
	return false
}

// Has reports whether a session is the one of its name whose stream is here.
func (t *Table) Has(session *Session) bool { return t.bound[session.ID] == session }

// Knows reports whether a session is the one of its name whose stream is here, or has ended: what it was
// given it holds until it is let go.
func (t *Table) Knows(session *Session) bool {
	return t.Has(session) || t.away[session.ID] == session
}

// Bound returns the session of a name whose stream is here; or nil.
func (t *Table) Bound(id mapreduce.SessionID) *Session { return t.bound[id] }

// Open returns the session of a name whose stream is here and has not been ended; or nil.
func (t *Table) Open(id mapreduce.SessionID) *Session {
	if session := t.bound[id]; session != nil && !session.gone {
		return session
	}
	return nil
}

// All are the sessions whose streams are here, in no order.
func (t *Table) All() iter.Seq[*Session] { return maps.Values(t.bound) }

// Len returns how many sessions have their streams here.
func (t *Table) Len() int { return len(t.bound) }

// Bind has the stream of a session be the one here, which holds what its worker has kept. It
// returns the session of before, whose units were to come back, or nil. There must be no later
// stream, and no other here. node is this one.
func (t *Table) Bind(session *Session, kept []queue.Held, node mapreduce.NodeID, now time.Time) (before *Session) {
	session.texts, session.seen = &t.texts, now
	before = t.away[session.ID]
	session.takeUp(session.ID, kept, before, node)
	t.bound[session.ID] = session
	return before
}

// LetGo forgets a session whose stream has ended, and returns what it held.
func (t *Table) LetGo(session *Session) (held []*Attempt) {
	if t.away[session.ID] == session { // else a later one has ended
		delete(t.away, session.ID)
	}
	delete(t.expected, session)

	for _, h := range session.held {
		session.dropInput(h)
		held = append(held, h)
	}
	session.held = nil
	return held
}

// SetAside sets a slot for a unit of a job aside at each session that has places, and returns
// these sessions, which are at most the given number.
func (t *Table) SetAside(wants *Wants, most int, places func(*Session) int, now time.Time) (at []*Session) {
	for _, session := range t.Rotate() {
		if len(at) < most && session.CanRun(wants, now) && places(session) > 0 {
			session.promised++
			at = append(at, session)
		}
	}
	return at
}

// Capacity counts the slots of the sessions that can run units of a job.
func (t *Table) Capacity(wants *Wants, now time.Time) (slots int64) {
	for _, session := range t.bound {
		if session.CanRun(wants, now) {
			slots += int64(session.Slots)
		}
	}
	return slots
}

// HasUsable reports whether a session can run units of a job, now or once a slot is free.
func (t *Table) HasUsable(wants *Wants, now time.Time) bool {
	for _, session := range t.bound {
		if session.CanRun(wants, now) {
			return true
		}
	}
	return false
}

// Reachable returns how many more units of a job the workers of this node can be given, and how
// many of j, and of all jobs, they can run at once: those that may come back as well.
func (t *Table) Reachable(wants *Wants, now time.Time) (free, slots, all int) {
	for _, session := range t.bound {
		all += session.Slots
		if session.CanRun(wants, now) {
			free += max(0, session.FreeUnits()) // one that came back may hold more than it may be given
			slots += session.Slots
		} else {
			slots += session.countHeld(wants.Job)
		}
	}

	// These are given nothing, but what they hold may still run.
	for _, session := range t.away {
		all += session.Slots
		slots += session.countHeld(wants.Job)
	}
	for session := range t.expected {
		all += session.Slots
		slots += session.countHeld(wants.Job)
	}

	return free, slots, all
}

// ProviderSlots counts the slots of workers that have a provider.
func (t *Table) ProviderSlots(provider string) (slots int64) {
	for _, session := range t.bound {
		if session.HasProvider(provider) {
			slots += int64(session.Slots)
		}
	}
	return slots
}

// CallSlots counts the slots of all workers, and of those that have a provider of those that
// jobs ask.
func (t *Table) CallSlots(asking map[string]int) (all, needed int64) {
	for _, session := range t.bound {
		all += int64(session.Slots)
		if slices.ContainsFunc(session.offer.Providers, func(p string) bool { return asking[p] > 0 }) {
			needed += int64(session.Slots)
		}
	}
	return all, needed
}

// Lacking returns what no worker that is connected here has of what units need; "" if one
// has it all, or none is connected.
func (t *Table) Lacking(needs mapreduce.Requirements) (missing string) {
	for _, session := range t.bound {
		lacks := needs.Missing(session.offer)
		if lacks == "" {
			return ""
		}
		if missing == "" {
			missing = lacks
		}
	}
	return missing
}

// OpenBreaker keeps the units of a model from workers until then.
func (t *Table) OpenBreaker(model string, until time.Time) {
	for _, session := range t.bound {
		session.breakers[model] = until
	}
}

// CloseBreaker lets the units of a model be given to workers again.
func (t *Table) CloseBreaker(model string) {
	for _, session := range t.bound {
		delete(session.breakers, model)
	}
}

// Tell sends a message to the workers that have a provider, but for one.
func (t *Table) Tell(provider string, m *protocol.ToWorker, but *Session) {
	for _, session := range t.bound {
		if session != but && session.HasProvider(provider) {
			session.Peer.Send(m)
		}
	}
}

// ForgetJob has the workers that know of a job forget it.
func (t *Table) ForgetJob(id mapreduce.JobID) {
	for _, session := range t.bound {
		if _, known := session.knows[id]; known {
			delete(session.knows, id)
			session.Peer.Send(&protocol.ToWorker{Forget: []mapreduce.JobID{id}})
		}
	}
}

// A Count is what there is of workers.
type Count struct {
	Here, Draining, Away int // sessions whose streams are here; of these, those that are given nothing more; whose streams have ended
	Slots, Busy          int // units that the workers can run at once, and those that they have, at most as many
}

// Statuses returns what is known of each worker, in no order: of those whose streams are here, and
// of those whose streams have ended a moment ago.
func (t *Table) Statuses(now time.Time) []mapreduce.WorkerStatus {
	all := make([]mapreduce.WorkerStatus, 0, len(t.bound)+len(t.away))
	for _, session := range t.bound {
		all = append(all, session.status(now))
	}
	for _, session := range t.away {
		s := session.status(now)
		s.Away = true
		all = append(all, s)
	}
	return all
}

// Count counts what there is of workers. Units that wait there for a slot do not count.
func (t *Table) Count() Count {
	all := Count{Here: len(t.bound), Away: len(t.away)}
	for _, session := range t.bound {
		if session.draining {
			all.Draining++
		}
		all.Slots += session.Slots
		all.Busy += min(session.busy, session.Slots)
	}
	return all
}
