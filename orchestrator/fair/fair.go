// Package fair has tenants take turns where not all that waits can be done at once, so
// that a thousand jobs of one tenant do not delay the only job of another.
//
// It is pure.
package fair

import (
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Queue holds what waits to be done, each item for a tenant. Its tenants take turns; the
// items of a tenant come in the order in which they were added. The zero value is an
// empty queue.
type Queue[T comparable] struct {
	lines []*line[T] // of tenants with waiting items; the first is next
}

// A line is the waiting items of a tenant, the first of which is next.
type line[T comparable] struct {
	tenant mapreduce.TenantID
	items  []T
}

// Add puts an item behind the others of its tenant. The item must not be in the queue.
func (q *Queue[T]) Add(tenant mapreduce.TenantID, item T) {
	for _, l := range q.lines {
		if l.tenant == tenant {
			l.items = append(l.items, item)
			return
		}
	}
	q.lines = append(q.lines, &line[T]{tenant: tenant, items: []T{item}})
}

// Next takes the first item of the tenant whose turn it is, and puts that tenant behind
// the others. It returns false if the queue is empty.
func (q *Queue[T]) Next() (item T, ok bool) {
	return q.NextBelow(1, func(mapreduce.TenantID) int { return 0 })
}

// NextBelow is Next among the tenants with the smallest load. It returns false if no
// tenant has a load below most.
func (q *Queue[T]) NextBelow(most int, load func(mapreduce.TenantID) int) (item T, ok bool) {
	at := -1
	for i, l := range q.lines {
		if n := load(l.tenant); n < most {
			at, most = i, n
		}
	}
	if at < 0 {
		return item, false
	}

	next := q.lines[at]
	q.lines = slices.Delete(q.lines, at, at+1)
	item, next.items = next.items[0], next.items[1:]
	if len(next.items) > 0 {
		q.lines = append(q.lines, next)
	}
	return item, true
}

// Remove takes an item out of the queue, if it is there.
func (q *Queue[T]) Remove(item T) {
	for i, l := range q.lines {
		at := slices.Index(l.items, item)
		if at < 0 {
			continue
		}
		if l.items = slices.Delete(l.items, at, at+1); len(l.items) == 0 {
			q.lines = slices.Delete(q.lines, i, i+1)
		}
		return
	}
}

// HasItems reports whether anything is in the queue.
func (q *Queue[T]) HasItems() bool { return len(q.lines) > 0 }

// Others returns how many tenants but the given one have items in the queue.
func (q *Queue[T]) Others(tenant mapreduce.TenantID) int {
	n := len(q.lines)
	for _, l := range q.lines {
		if l.tenant == tenant {
			return n - 1
		}
	}
	return n
}
