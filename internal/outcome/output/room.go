package output

import (
	"slices"

	"github.com/coditect/mapreduce/internal/outcome/merge"
)

// takeRoom reports whether there is room for an entry, and takes it.
func (r *reducer) takeRoom(e *Entry) bool {
	if r.Room == 0 {
		return true
	}

	n := r.encodedSize(e)
	if r.held+n > r.Room {
		return false
	}
	r.held += n
	return true
}

// Bytes that parts of an entry take when encoded, beside their texts; about, and
// rather too many.
const (
	memberBytes    = 12
	positionBytes  = 24
	referenceBytes = 6
	citationBytes  = 80
)

// encodedSize returns about how many bytes an entry takes when encoded, with its
// citations.
func (r *reducer) encodedSize(e *Entry) int {
	n := len(e.Entity) + memberBytes*len(e.Members)
	for _, s := range e.Sources {
		n += len(s.Document) + positionBytes
	}

	for _, f := range e.Fields {
		n += len(f.Path) + positionBytes
		if f.Missing != nil {
			n += len(f.Missing.Reason)
		}
		for _, c := range f.Candidates {
			n += 2*len(c.Key) + positionBytes // and the value, about as long
		}
	}

	for _, m := range e.Mentions() {
		n += positionBytes*(1+len(m.Readings)) + referenceBytes*len(m.Citations)
		for _, id := range m.Citations {
			c := r.out.Citations[id]
			n += citationBytes + len(c.Document) + len(c.Unit) + len(c.Quote)
		}
	}

	return n
}

// Deferred returns the entities for which a reduce had no room: one output names
// several records of them, or one beside those that it holds.
func Deferred(outputs []*Output) map[string]bool {
	late := make(map[string]bool)
	for _, o := range outputs {
		seen := make(map[string]bool, len(o.Open)+len(o.Entries))
		for i := range o.Entries {
			seen[o.Entries[i].Entity] = true
		}
		for _, op := range o.Open {
			if seen[op.Entity] {
				late[op.Entity] = true
			}
			seen[op.Entity] = true
		}
	}

	return late
}

// unmergedRecords returns the records that are named and have yet to be merged.
func (o *Output) unmergedRecords() []Open {
	late := Deferred([]*Output{o})
	return slices.DeleteFunc(slices.Clone(o.Open), func(op Open) bool { return !late[op.Entity] })
}

// Unmerged is how many entities the output only names, though it knows of several
// records of them.
func (o *Output) Unmerged() int { return len(Deferred([]*Output{o})) }

// A Shared is an entity of several records, as the last reduce leaves it.
type Shared struct {
	Entity  string
	Members []Member // all its records, in order of the input
	Held    *Entry   // what was merged of them; nil if nothing was
	Open    []Open   // the others: they stand in the outputs of their map units
}

// Shared returns the entities of several records that the last reduce's output
// tells of.
func (o *Output) Shared() []*Shared {
	byName := make(map[string]*Shared, len(o.Entries))
	all := make([]*Shared, 0, len(o.Entries))
	of := func(entity string) *Shared {
		s := byName[entity]
		if s == nil {
			s = &Shared{Entity: entity}
			byName[entity] = s
			all = append(all, s)
		}
		return s
	}

	for i := range o.Entries {
		e := &o.Entries[i]
		s := of(e.Entity)
		s.Held, s.Members = e, e.Members
	}

	for _, op := range o.unmergedRecords() {
		s := of(op.Entity)
		s.Open = append(s.Open, op)
	}

	// The members may be the list of the entry, so they are copied before others join them.
	for _, s := range all {
		if len(s.Open) == 0 {
			continue
		}
		s.Members = slices.Clone(s.Members)
		for _, op := range s.Open {
			s.Members = append(s.Members, op.Member)
		}
		slices.SortFunc(s.Members, Member.Compare)
	}

	return all
}

// Together merges an entity: what the last reduce holds of it, and its other
// records, of which parts have one or more each. The output has the entity alone,
// with its citations.
func (s *Shared) Together(last *Output, parts []*Output) *Output {
	r := &reducer{out: &Output{Citations: make(map[merge.Citation]Citation)}}
	add := func(e Entry, from *Output) {
		for _, m := range e.Mentions() {
			for _, id := range m.Citations {
				c := from.Citations[id]
				if had, ok := r.out.Citations[id]; !ok || c.isBetter(&had) {
					r.out.Citations[id] = c
				}
			}
		}

		// Records that stand in parts may go by an older name of the entity.
		e.Entity = s.Entity
		r.entries = append(r.entries, e)
	}

	if s.Held != nil {
		add(*s.Held, last)
	}
	for _, p := range parts {
		for _, e := range p.Entries {
			add(e, p)
		}
	}

	r.out.Entries = joinEntries(r.entries)
	return r.out
}
