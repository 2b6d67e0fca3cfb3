package fair

import (
	"math"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// An Item of Rounds is somebody's, and may go before others of the same tenant.
type Item interface {
	comparable
	// Tenant and Priority must not change while the item is in the rounds.
	Tenant() mapreduce.TenantID
	Priority() int
	// Place returns where the item keeps its place, which is of one Rounds only.
	Place() *Place
}

// A Place is where an item is in its rounds. The zero value is that of one which is not there.
type Place struct {
	queued  bool // it waits for its turn
	starved bool // it waits for a place
}

// Rounds decide whose turn it is, by round robin on two levels: tenants first, then the items
// of one, those of higher priority before the others. Ten units so do not wait behind a
// million of another tenant. Only items that may have something to do are in it. Those that
// found no place when they were visited wait beside it until there is one. The zero value is
// empty.
type Rounds[T Item] struct {
	tenants []*round[T] // in round-robin order
	starved Queue[T]    // that found no place when they were visited
}

// A round is a tenant's part of the rounds.
type round[T Item] struct {
	tenant mapreduce.TenantID
	items  []T // by priority, then in round-robin order
}

// quantum is the most that an item may take in one visit while other tenants wait.
const quantum = 32

// Add puts an item into the rounds unless it is there.
func (r *Rounds[T]) Add(item T) {
	if item.Place().queued {
		return
	}
	item.Place().queued = true

	s := r.roundOf(item.Tenant())
	if s == nil {
		s = &round[T]{tenant: item.Tenant()}
		r.tenants = append(r.tenants, s)
	}

	// It goes behind the others of its priority.
	at := len(s.items)
	for at > 0 && s.items[at-1].Priority() < item.Priority() {
		at--
	}
	s.items = slices.Insert(s.items, at, item)
}

// AddFirst puts an item into the rounds so that it comes next of its priority, and its
// tenant next of all.
func (r *Rounds[T]) AddFirst(item T) {
	r.Remove(item)
	item.Place().queued = true

	s := r.roundOf(item.Tenant())
	if s == nil {
		s = &round[T]{tenant: item.Tenant()}
	} else {
		r.tenants = slices.DeleteFunc(r.tenants, func(other *round[T]) bool { return other == s })
	}
	r.tenants = slices.Insert(r.tenants, 0, s)

	at := 0
	for at < len(s.items) && s.items[at].Priority() > item.Priority() {
		at++
	}
	s.items = slices.Insert(s.items, at, item)
}

// AddStarved has an item wait for a place, behind those of its tenant that wait already.
func (r *Rounds[T]) AddStarved(item T) {
	if item.Place().starved {
		return
	}
	item.Place().starved = true
	r.starved.Add(item.Tenant(), item)
}

// starvedLooks is how many items that lack a place are looked at in one visit.
const starvedLooks = 8

// A Look says what becomes of an item that waits for a place.
type Look uint8

// What becomes of it.
const (
	Waits   Look = iota // there is none for it yet
	Goes                // there is one: it comes next of all
	Forgets             // it needs none now, and is added again when it does
)

// RequeueStarved lets an item that found no place go first once there is one for it, as look
// says. An item that frees places would otherwise take them again and again. It is one item, of
// the tenant with the smallest load: so tenants share the places evenly, however many items each
// has, and however long each takes.
func (r *Rounds[T]) RequeueStarved(load func(mapreduce.TenantID) int, look func(T) Look) {
	for n := range starvedLooks {
		var item T
		var ok bool
		// Every second look goes by turn: a tenant that has no use for any place has the
		// smallest load for ever.
		if n%2 == 0 {
			item, ok = r.starved.NextBelow(math.MaxInt, load)
		} else {
			item, ok = r.starved.Next()
		}
		if !ok {
			return
		}

		switch look(item) {
		case Forgets:
			item.Place().starved = false
		case Goes:
			item.Place().starved = false
			r.AddFirst(item)
			return
		default:
			r.starved.Add(item.Tenant(), item)
		}
	}
}

func (r *Rounds[T]) roundOf(tenant mapreduce.TenantID) *round[T] {
	for _, s := range r.tenants {
		if s.tenant == tenant {
			return s
		}
	}
	return nil
}

// Next takes the item whose turn it is out of the rounds. Its tenant moves to the end. It
// returns false if there is none.
func (r *Rounds[T]) Next() (item T, ok bool) {
	if len(r.tenants) == 0 {
		return item, false
	}

	s := r.tenants[0]
	item = s.items[0]
	item.Place().queued = false
	clear(s.items[:1])
	s.items = s.items[1:] // there may be thousands

	r.tenants = slices.Delete(r.tenants, 0, 1)
	if len(s.items) > 0 {
		r.tenants = append(r.tenants, s)
	}
	return item, true
}

// HasWaiting reports whether an item waits for its turn.
func (r *Rounds[T]) HasWaiting() bool { return len(r.tenants) > 0 }

// IsContended reports whether an item waits for its turn or for a place.
func (r *Rounds[T]) IsContended() bool { return r.HasWaiting() || r.starved.HasItems() }

// Remove takes an item out of the rounds, unless it waits for a place beside them.
func (r *Rounds[T]) Remove(item T) {
	if !item.Place().queued {
		return
	}
	item.Place().queued = false

	for i, s := range r.tenants {
		if at := slices.Index(s.items, item); at >= 0 {
			s.items = slices.Delete(s.items, at, at+1)
			if len(s.items) == 0 {
				r.tenants = slices.Delete(r.tenants, i, i+1)
			}
			return
		}
	}
}

// Allowance is how much an item may take in this visit of the room there is: most while no other
// tenant waits, and otherwise its share.
func (r *Rounds[T]) Allowance(item T, room, most int) int {
	others := r.starved.Others(item.Tenant())

	waiting := 0
	for _, s := range r.tenants {
		if s.tenant != item.Tenant() {
			waiting++
		}
	}

	if others = max(others, waiting); others == 0 {
		return most
	}
	return min(quantum, 1+(room-1)/(1+others))
}
