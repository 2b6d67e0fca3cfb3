package model

import (
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/limit"
)

// Hear takes what a worker says of the model, and reports whether others have to know at
// once.
func (m *State) Hear(n *mapreduce.LimitNote, now time.Time) (urgent bool) {
	m.note.Successes += n.Successes
	if n.Told != (mapreduce.Rates{}) {
		m.note.Told, m.left, m.leftAt = n.Told, n.Left, now
	}

	if n.Refused {
		m.noteRefusal(n, now)
	}
	if n.Successes > 0 {
		m.refused = time.Time{}
	}
	return n.Refused
}

// HearManners takes what a worker says that a server refuses, and reports whether others have to
// know.
func (m *State) HearManners(of *mapreduce.ModelManners) (news bool) {
	if was, known := m.manners[of.Server]; known && was == of.Refuses || !m.keepManners(of.Server, of.Refuses) {
		return false
	}
	m.noteManners(of.Server, of.Refuses)
	m.urgent = true
	return true
}

// keepManners keeps what a server refuses, unless that of too many servers is known.
func (m *State) keepManners(server, refuses string) bool {
	if _, known := m.manners[server]; !known && len(m.manners) >= limit.MaxServers {
		return false
	}
	if m.manners == nil {
		m.manners = make(map[string]string)
	}
	m.manners[server] = refuses
	return true
}

// noteManners notes for the fleet what a server refuses.
func (m *State) noteManners(server, refuses string) {
	if m.note.Manners == nil {
		m.note.Manners = make(map[string]string)
	}
	m.note.Manners[server] = refuses
}

// LookAtManners takes what the fleet knows of what servers refuse, and returns what workers here were
// not told.
func (m *State) LookAtManners(s *limit.Scope) (news []mapreduce.ModelManners) {
	for _, server := range slices.Sorted(maps.Keys(s.Manners)) {
		refuses := s.Manners[server]
		_, later := m.note.Manners[server] // heard here, and yet to be told
		if later || m.manners[server] == refuses || !m.keepManners(server, refuses) {
			continue
		}
		news = append(news, mapreduce.ModelManners{Name: m.Name, Server: server, Refuses: refuses})
	}
	return news
}

// Manners returns what the servers of the model refuse, as far as is known here.
func (m *State) Manners() (all []mapreduce.ModelManners) {
	for _, server := range slices.Sorted(maps.Keys(m.manners)) {
		all = append(all, mapreduce.ModelManners{Name: m.Name, Server: server, Refuses: m.manners[server]})
	}
	return all
}

// noteRefusal notes that the vendor refused a call. Those that it refuses while the
// model rests anyway were under way before.
func (m *State) noteRefusal(n *mapreduce.LimitNote, now time.Time) {
	if !now.Before(m.frozen) {
		m.note.Refused, m.note.Seen, m.urgent = true, m.scope.Pauses, true
		m.note.Guess = n.Told == (mapreduce.Rates{}) && m.scope.Rates == (mapreduce.Rates{})
	}

	if m.note.Refused {
		m.note.Pause = max(m.note.Pause, n.Pause)
	}

	end := now.Add(max(n.Pause, limit.LeastPause))
	if end.After(m.refused) {
		m.refused = end
	}
	if end.After(m.frozen) {
		m.frozen = end
	}
}

// HearBreaker takes that a worker's breaker has opened for a time. It opens the fleet's if
// that is closed, or if this node probes, and returns until when workers are to have none
// of the model's units.
func (m *State) HearBreaker(d time.Duration, now time.Time) (until time.Time, opened bool) {
	if m.scope.Breaker.Open && !m.IsProber() {
		return time.Time{}, false
	}
	return m.openBreaker(d, now), true
}

// openBreaker opens the breaker here, before the fleet knows, and returns until when.
func (m *State) openBreaker(d time.Duration, now time.Time) time.Time {
	m.note.Opened, m.note.Closed, m.urgent = max(d, time.Millisecond), false, true
	m.scope.Breaker.Open, m.scope.Breaker.For, m.scope.Breaker.Prober = true, d, ""
	m.until = now.Add(d)
	return m.until
}

// EndProbe takes how a unit of the model ended, and reports whether the fleet has to know,
// as the unit probed. If the breaker has opened again, it returns until when workers are
// to have none of the model's units.
func (m *State) EndProbe(rep *mapreduce.Report, now time.Time) (until time.Time, news bool) {
	if !m.IsProber() || rep.Calls == 0 {
		return time.Time{}, false
	}

	switch {
	case rep.Outcome == mapreduce.Done, rep.Outcome == mapreduce.Parked:
		m.note.Closed, m.urgent = true, true
		return time.Time{}, true
	case rep.Outcome == mapreduce.Errored && rep.Class == mapreduce.Retryable:
		return m.openBreaker(m.scope.Breaker.For, now), true
	}
	return time.Time{}, false // says nothing of the provider; the next unit will
}

// MarkUrgent makes the fleet be told and asked of the model at once.
func (m *State) MarkUrgent() { m.urgent = true }

// IsUrgent reports whether the fleet is to be told and asked of the model at once.
func (m *State) IsUrgent() bool { return m.urgent }

// IsSilent reports whether the fleet need not be told or asked of the model, unless this
// node has use for calls of it.
func (m *State) IsSilent() bool { return m.looked && !m.HasShare() && m.note.IsZero() }

// TakeNote returns the note on the model for the fleet: most is how many calls at once the
// fleet may make of all models, want is how many this node has use for, held how many of
// the model's units it holds, and mayCall whether it may make any call.
func (m *State) TakeNote(most, want, held int64, mayCall bool, now time.Time) limit.Note {
	n := m.note
	n.Most, n.Set, n.Want, n.Held = most, m.set.Calls, want, held
	n.Probe = m.scope.Breaker.Open && m.scope.Breaker.Prober == "" && n.Opened == 0 && n.Want > 0 && mayCall && !now.Before(m.until)
	if n.Probe {
		n.Turns = m.scope.Breaker.Turns
	}
	m.note, m.urgent = limit.Note{}, false
	return n
}

// PutBack keeps what could not be told.
func (m *State) PutBack(n limit.Note) {
	m.note.Successes += n.Successes
	m.note.Pause, m.note.Opened = max(m.note.Pause, n.Pause), max(m.note.Opened, n.Opened)
	m.note.Closed = m.note.Closed || n.Closed

	if n.Refused {
		m.note.Refused, m.note.Guess, m.note.Seen = true, n.Guess, n.Seen
	}
	if m.note.Told == (mapreduce.Rates{}) {
		m.note.Told = n.Told
	}

	// The later word on a server counts.
	for server, refuses := range n.Manners {
		if _, newer := m.note.Manners[server]; !newer {
			m.noteManners(server, refuses)
		}
	}
}

// Look takes what the fleet knows of the model. It reports whether the breaker is closed
// that was open, or may have been, and otherwise until when workers are to have none of the
// model's units, zero if that has not changed. Pauses that others have begun since the
// latest look are timed from now; for a node without a share, which hears of them late, the
// time that has passed is taken off. At the first look a pause is over if no other node is
// left that could have begun it.
func (m *State) Look(s *limit.Scope, now time.Time) (until time.Time, closed bool) {
	before, first := m.scope, !m.looked
	stale := first && len(s.Shares) < 2
	pause, open := s.Pause, s.Breaker.For

	if !m.HasShare() {
		pause, open = s.PauseLeft, s.OpenLeft
		m.told = true // workers may keep to what another node has told them
	}

	if s.Pauses > before.Pauses && !stale {
		if end := now.Add(pause); end.After(m.frozen) {
			m.frozen = end
		}
	}

	m.scope, m.share, m.looked = *s, s.Shares[m.node], true
	switch {
	case m.note.Opened > 0: // opened here meanwhile, which the fleet is yet to learn
		m.scope.Breaker.Open, m.scope.Breaker.Prober = true, ""
	case !s.Breaker.Open && (before.Breaker.Open || first):
		return time.Time{}, true
	case s.Breaker.Turns != before.Breaker.Turns && s.Breaker.Open && s.Breaker.Prober == "":
		m.until = now
		if !stale {
			m.until = now.Add(open)
		}
		m.urgent = m.urgent || !m.until.After(now) // it may probe
		return m.until, false
	}
	return time.Time{}, false
}
