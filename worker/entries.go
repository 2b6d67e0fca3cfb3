package worker

import (
	"cmp"
	"slices"

	"github.com/coditect/mapreduce/api/protocol"
)

// entries are what a session holds: waiting, running and reported attempts, by their units.
// The session's lock guards them.
type entries map[unitKey]*entry

// find returns the entry of an attempt, or nil if it is not held.
func (es entries) find(h protocol.Held) *entry {
	e := es[unitKeyOf(h)]
	if e == nil || !e.isOf(h) {
		return nil
	}
	return e
}

// remove removes an entry, unless a later attempt has taken its place already.
func (es entries) remove(e *entry) {
	if key := unitKeyOf(e.held); es[key] == e {
		delete(es, key)
	}
}

// states names everything held, in a stable order.
func (es entries) states() []protocol.Held {
	hs := make([]protocol.Held, 0, len(es))
	for _, e := range es {
		hs = append(hs, e.state())
	}
	slices.SortFunc(hs, compareHeld)
	return hs
}

// progress tells how far everything is that runs, in a stable order.
func (es entries) progress() []protocol.Progress {
	var all []protocol.Progress
	for _, e := range es {
		if e.phase == running {
			all = append(all, e.progress())
		}
	}
	slices.SortFunc(all, func(a, b protocol.Progress) int { return compareHeld(a.Held, b.Held) })
	return all
}

// running returns what runs, in no order.
func (es entries) running() []*entry {
	var all []*entry
	for _, e := range es {
		if e.phase == running {
			all = append(all, e)
		}
	}
	return all
}

// settled returns what may be reported, in the order in which the attempts ended.
func (es entries) settled() []*entry {
	var all []*entry
	for _, e := range es {
		if e.phase == reported && e.puts.underWay == 0 {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.number, b.number) })
	return all
}

// unfinished counts what is not handed back. What came too late to begin goes back with the
// session.
func (es entries) unfinished() (n int) {
	for _, e := range es {
		if e.phase != reported || e.report.Outcome != protocol.Returned {
			n++
		}
	}
	return n
}
