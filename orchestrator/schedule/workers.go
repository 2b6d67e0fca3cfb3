package schedule

import (
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
)

// A workerTable is the sessions of workers, as far as this node sees them. The scheduler's
// mu guards it.
type workerTable struct {
	bound    map[mapreduce.SessionID]*Session // whose streams are here
	away     map[mapreduce.SessionID]*Session // whose streams have ended, and who may come back
	rotation int                              // rotates the session that is offered a unit first
	texts    int64                            // bytes that units which run keep of what they were given
}

func newWorkerTable() *workerTable {
	return &workerTable{bound: make(map[mapreduce.SessionID]*Session), away: make(map[mapreduce.SessionID]*Session)}
}

// rotate returns the sessions, beginning with another one each time.
func (w *workerTable) rotate() []*Session {
	all := make([]*Session, 0, len(w.bound))
	for _, session := range w.bound {
		all = append(all, session)
	}
	if len(all) > 1 {
		w.rotation = (w.rotation + 1) % len(all)
		all = append(all[w.rotation:], all[:w.rotation]...)
	}
	return all
}

// suspend notes that the stream of a session has ended. It returns an earlier stream of the
// session whose units were to come back with it, if there is one.
func (w *workerTable) suspend(session *Session) (earlier *Session) {
	session.gone = true
	delete(w.bound, session.ID)
	earlier = w.away[session.ID]
	w.away[session.ID] = session
	return earlier
}

// removeAway forgets a session whose stream has ended, unless a later one has.
func (w *workerTable) removeAway(session *Session) {
	if w.away[session.ID] == session {
		delete(w.away, session.ID)
	}
}

// awaySince returns a session whose stream here has ended, if it was not here since; or nil.
func (w *workerTable) awaySince(ref nodes.SessionRef) *Session {
	if session := w.away[ref.Session]; session != nil && session.Epoch <= ref.Epoch {
		return session
	}
	return nil
}

// hasLater reports whether a later stream of a session is, or was, here.
func (w *workerTable) hasLater(session *Session) bool {
	for _, other := range []*Session{w.bound[session.ID], w.away[session.ID]} {
		if other != nil && other.Epoch > session.Epoch {
			return true
		}
	}
	return false
}

// stillHere returns the session that a turn has set slots aside at, if it is still the one
// whose stream is here.
func (w *workerTable) stillHere(task *Task, id mapreduce.SessionID) *Session {
	for _, session := range task.sessions {
		if session.ID == id && w.bound[id] == session {
			return session
		}
	}
	return nil
}

// setAside sets a slot for a unit of j aside at each session that has places, and adds it to
// the claim. It returns how many it has set aside, which is at most the given number.
func (w *workerTable) setAside(j *Job, task *Task, claim *queue.Claim, most int, places func(*Session) int, now time.Time) (given int) {
	for _, session := range w.rotate() {
		if given < most && session.canRun(j, now) && places(session) > 0 {
			session.promised++
			given++
			task.addClaimSlot(claim, session)
		}
	}
	return given
}

// capacity counts the slots of the sessions that can run units of j.
func (w *workerTable) capacity(j *Job, now time.Time) (slots int64) {
	for _, session := range w.bound {
		if session.canRun(j, now) {
			slots += int64(session.Slots)
		}
	}
	return slots
}

// hasUsable reports whether a session can run units of j, now or once a slot is free.
func (w *workerTable) hasUsable(j *Job, now time.Time) bool {
	for _, session := range w.bound {
		if session.canRun(j, now) {
			return true
		}
	}
	return false
}

// reachable returns how many more units of j the workers of this node can be given, and how
// many of j, and of all jobs, they can run at once: those that may come back as well.
func (w *workerTable) reachable(j *Job, now time.Time) (free, slots, all int) {
	for _, session := range w.bound {
		all += session.Slots
		if session.canRun(j, now) {
			free += max(0, session.freeUnits()) // one that came back may hold more than it may be given
			slots += session.Slots
		} else {
			slots += session.countHeld(j)
		}
	}

	// These are given nothing, but what they hold may still run.
	for _, session := range w.away {
		all += session.Slots
		slots += session.countHeld(j)
	}

	return free, slots, all
}

// providerSlots counts the slots of workers that have a provider.
func (w *workerTable) providerSlots(provider string) (slots int64) {
	for _, session := range w.bound {
		if session.hasProvider(provider) {
			slots += int64(session.Slots)
		}
	}
	return slots
}

// callSlots counts the slots of all workers, and of those that have a provider of those that
// jobs ask.
func (w *workerTable) callSlots(asking map[string]int) (all, needed int64) {
	for _, session := range w.bound {
		all += int64(session.Slots)
		if slices.ContainsFunc(session.offer.Providers, func(p string) bool { return asking[p] > 0 }) {
			needed += int64(session.Slots)
		}
	}
	return all, needed
}

// lacking returns what no worker that is connected here has of what units need; "" if one
// has it all, or none is connected.
func (w *workerTable) lacking(needs mapreduce.Requirements) (missing string) {
	for _, session := range w.bound {
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

// openBreaker keeps the units of a model from workers until then, and closeBreaker lets them
// be given to workers again.
func (w *workerTable) openBreaker(model string, until time.Time) {
	for _, session := range w.bound {
		session.breakers[model] = until
	}
}

func (w *workerTable) closeBreaker(model string) {
	for _, session := range w.bound {
		delete(session.breakers, model)
	}
}

// tell sends a message to the workers that have a provider, but for one.
func (w *workerTable) tell(provider string, m *mapreduce.ToWorker, but *Session) {
	for _, session := range w.bound {
		if session != but && session.hasProvider(provider) {
			session.Peer.Send(m)
		}
	}
}

// forgetJob has the workers that know of a job forget it.
func (w *workerTable) forgetJob(id mapreduce.JobID) {
	for _, session := range w.bound {
		if _, known := session.knows[id]; known {
			delete(session.knows, id)
			session.Peer.Send(&mapreduce.ToWorker{Forget: []mapreduce.JobID{id}})
		}
	}
}
