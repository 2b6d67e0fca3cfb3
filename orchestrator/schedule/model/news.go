package model

import (
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs/limit"
)

// Hear takes what a worker says of the model, and reports whether others have to know at
// once.
func (s *State) Hear(n *protocol.LimitNote, now time.Time) (urgent bool) {
	s.note.Successes += n.Successes
	if n.Told != (mapreduce.Rates{}) {
		s.note.Told, s.left, s.leftAt = n.Told, n.Left, now
	}

	if n.Refused {
		s.noteRefusal(n, now)
	}
	if n.Successes > 0 {
		s.refused = time.Time{}
	}
	return n.Refused
}

// HearManners takes what a worker says that a server refuses, and reports whether others have to
// know.
func (s *State) HearManners(of *protocol.ModelManners) (news bool) {
	if news = s.manners.hear(of.Server, of.Refuses); news {
		s.urgent = true
	}
	return news
}

// LookAtManners takes what the fleet knows of what servers refuse, and returns what workers here were
// not told.
func (s *State) LookAtManners(scope *limit.Scope) (news []protocol.ModelManners) {
	for _, server := range slices.Sorted(maps.Keys(scope.Manners)) {
		if refuses := scope.Manners[server]; s.manners.look(server, refuses) {
			news = append(news, protocol.ModelManners{Name: s.Name, Server: server, Refuses: refuses})
		}
	}
	return news
}

// Manners returns what the servers of the model refuse, as far as is known here.
func (s *State) Manners() (all []protocol.ModelManners) {
	for _, server := range slices.Sorted(maps.Keys(s.manners.known)) {
		all = append(all, protocol.ModelManners{Name: s.Name, Server: server, Refuses: s.manners.known[server]})
	}
	return all
}

// noteRefusal notes that the vendor refused a call. Those that it refuses while the
// model rests anyway were under way before.
func (s *State) noteRefusal(n *protocol.LimitNote, now time.Time) {
	if !now.Before(s.frozen) {
		s.note.Refused, s.note.Seen, s.urgent = true, s.scope.Pauses, true
		s.note.Guess = n.Told == (mapreduce.Rates{}) && s.scope.Rates == (mapreduce.Rates{})
	}

	if s.note.Refused {
		s.note.Pause = max(s.note.Pause, n.Pause)
	}

	end := now.Add(max(n.Pause, limit.LeastPause))
	if end.After(s.refused) {
		s.refused = end
	}
	if end.After(s.frozen) {
		s.frozen = end
	}
}

// HearBreaker takes that a worker's breaker has opened for a time. It opens the fleet's if
// that is closed, or if this node probes, and returns until when workers are to have none
// of the model's units.
func (s *State) HearBreaker(d time.Duration, now time.Time) (until time.Time, opened bool) {
	if s.scope.Breaker.Open && !s.IsProber() {
		return time.Time{}, false
	}
	return s.openBreaker(d, now), true
}

// openBreaker opens the breaker here, before the fleet knows, and returns until when.
func (s *State) openBreaker(d time.Duration, now time.Time) time.Time {
	s.note.Opened, s.note.Closed, s.urgent = max(d, time.Millisecond), false, true
	s.scope.Breaker.Open, s.scope.Breaker.For, s.scope.Breaker.Prober = true, d, ""
	s.until = now.Add(d)
	return s.until
}

// EndProbe takes how a unit of the model ended, and reports whether the fleet has to know,
// as the unit probed. If the breaker has opened again, it returns until when workers are
// to have none of the model's units.
func (s *State) EndProbe(rep *protocol.Report, now time.Time) (until time.Time, news bool) {
	if !s.IsProber() || rep.Calls == 0 {
		return time.Time{}, false
	}

	switch {
	case rep.Outcome == protocol.Done, rep.Outcome == protocol.Parked:
		s.note.Closed, s.urgent = true, true
		return time.Time{}, true
	case rep.Outcome == protocol.Errored && rep.Class == protocol.Retryable:
		return s.openBreaker(s.scope.Breaker.For, now), true
	}
	return time.Time{}, false // says nothing of the provider; the next unit will
}

// MarkUrgent makes the fleet be told and asked of the model at once.
func (s *State) MarkUrgent() { s.urgent = true }

// IsUrgent reports whether the fleet is to be told and asked of the model at once.
func (s *State) IsUrgent() bool { return s.urgent }

// IsSilent reports whether the fleet need not be told or asked of the model, unless this
// node has use for calls of it.
func (s *State) IsSilent() bool { return s.looked && !s.HasShare() && !s.hasNews() }

// TakeNote returns the note on the model for the fleet: most is how many calls at once the
// fleet may make of all models, want is how many this node has use for, held how many of
// the model's units it holds, and mayCall whether it may make any call.
func (s *State) TakeNote(most, want, held int64, mayCall bool, now time.Time) limit.Note {
	n := s.note
	n.Manners = s.manners.takeNews()
	n.Most, n.Set, n.Want, n.Held = most, s.set.Calls, want, held
	n.Probe = s.scope.Breaker.Open && s.scope.Breaker.Prober == "" && n.Opened == 0 && n.Want > 0 && mayCall && !now.Before(s.until)
	if n.Probe {
		n.Turns = s.scope.Breaker.Turns
	}
	s.note, s.urgent = limit.Note{}, false
	return n
}

// PutBack keeps what could not be told.
func (s *State) PutBack(n limit.Note) {
	s.note.Successes += n.Successes
	s.note.Pause, s.note.Opened = max(s.note.Pause, n.Pause), max(s.note.Opened, n.Opened)
	s.note.Closed = s.note.Closed || n.Closed

	if n.Refused {
		s.note.Refused, s.note.Guess, s.note.Seen = true, n.Guess, n.Seen
	}
	if s.note.Told == (mapreduce.Rates{}) {
		s.note.Told = n.Told
	}

	s.manners.putBack(n.Manners)
}

// Look takes what the fleet knows of the model. It reports whether the breaker is closed
// that was open, or may have been, and otherwise until when workers are to have none of the
// model's units, zero if that has not changed. Pauses that others have begun since the
// latest look are timed from now; for a node without a share, which hears of them late, the
// time that has passed is taken off. At the first look a pause is over if no other node is
// left that could have begun it.
func (s *State) Look(scope *limit.Scope, now time.Time) (until time.Time, closed bool) {
	before, first := s.scope, !s.looked
	stale := first && len(scope.Shares) < 2
	pause, open := scope.Pause, scope.Breaker.For

	if !s.HasShare() {
		pause, open = scope.PauseLeft, scope.OpenLeft
		s.told = true // workers may keep to what another node has told them
	}

	if scope.Pauses > before.Pauses && !stale {
		if end := now.Add(pause); end.After(s.frozen) {
			s.frozen = end
		}
	}

	s.scope, s.share, s.looked = *scope, scope.Shares[s.node], true
	switch {
	case s.note.Opened > 0: // opened here meanwhile, which the fleet is yet to learn
		s.scope.Breaker.Open, s.scope.Breaker.Prober = true, ""
	case !scope.Breaker.Open && (before.Breaker.Open || first):
		return time.Time{}, true
	case scope.Breaker.Turns != before.Breaker.Turns && scope.Breaker.Open && scope.Breaker.Prober == "":
		s.until = now
		if !stale {
			s.until = now.Add(open)
		}
		s.urgent = s.urgent || !s.until.After(now) // it may probe
		return s.until, false
	}
	return time.Time{}, false
}
