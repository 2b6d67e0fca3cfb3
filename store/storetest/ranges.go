package storetest

import (
	"slices"

	"github.com/coditect/mapreduce/store"
)

func rangeChecks() []Check {
	return []Check{
		{Name: "ranges are in the order of bytes", check: rangeOrder},
		{Name: "ranges are half open", check: rangeHalfOpen},
		{Name: "a limit cuts a range", check: rangeLimit},
		{Name: "a number of bytes cuts a range", check: rangeBytes},
		{Name: "pages of a range add up to it", check: rangePages},
		{Name: "an empty range reads nothing", check: emptyRead},
		{Name: "writes of an empty range are none", check: emptyWrite},
		{Name: "reads of an empty range are none", check: emptyReadConflicts, exact: true},
	}
}

func rangeOrder(e *env) {
	keys := keysOfAllKinds()
	var ascending, descending []string
	for _, key := range keys {
		ascending = append(ascending, key, "of "+key)
	}
	for _, key := range slices.Backward(keys) {
		descending = append(descending, key, "of "+key)
	}
	e.put(descending...)
	a := e.begin()
	for _, r := range []store.Reader{a.Tx, a.Snapshot()} {
		e.wantRange(r, e.all(), store.RangeOptions{}, false, ascending...)
		e.wantRange(r, e.all(), store.RangeOptions{Reverse: true}, false, descending...)
	}
}

func rangeHalfOpen(e *env) {
	e.put("a", "1", "a\x00", "2", "b", "3", "c", "4")
	a := e.begin()
	for _, o := range []store.RangeOptions{{}, {Reverse: true}} {
		a.wantRange(e.span("a", "a\x00"), o, false, "a", "1")
		a.wantRange(e.span("aa", "c"), o, false, "b", "3")
		a.wantRange(e.span("c", "z"), o, false, "c", "4")
		a.wantRange(e.span("b", "b"), o, false)
		a.wantRange(e.span("d", "e"), o, false)
		a.wantRange(store.Single(e.key("b")), o, false, "b", "3")
	}
}

func rangeLimit(e *env) {
	e.put("a", "1", "b", "2", "c", "3", "d", "4")
	a := e.begin()
	for _, r := range []store.Reader{a.Tx, a.Snapshot()} {
		e.wantRange(r, e.all(), store.RangeOptions{Limit: 1}, true, "a", "1")
		e.wantRange(r, e.all(), store.RangeOptions{Limit: 3}, true, "a", "1", "b", "2", "c", "3")
		e.wantRange(r, e.all(), store.RangeOptions{Limit: 5}, false, "a", "1", "b", "2", "c", "3", "d", "4")
		e.wantRange(r, e.all(), store.RangeOptions{Limit: 1, Reverse: true}, true, "d", "4")
		e.wantRange(r, e.span("b", "d"), store.RangeOptions{Limit: 1, Reverse: true}, true, "c", "3")
		e.wantRange(r, e.span("b", "d"), store.RangeOptions{Limit: 3, Reverse: true}, false, "c", "3", "b", "2")
	}
}

// rangeBytes counts the bytes of keys and values.
func rangeBytes(e *env) {
	e.put("a", "123", "b", "123", "c", "123")
	one := len(e.key("a")) + 3
	a := e.begin()
	for _, r := range []store.Reader{a.Tx, a.Snapshot()} {
		e.wantRange(r, e.all(), store.RangeOptions{Bytes: 1}, true, "a", "123")
		e.wantRange(r, e.all(), store.RangeOptions{Bytes: one}, true, "a", "123")
		e.wantRange(r, e.all(), store.RangeOptions{Bytes: one + 1}, true, "a", "123", "b", "123")
		e.wantRange(r, e.all(), store.RangeOptions{Bytes: 3*one + 1}, false, "a", "123", "b", "123", "c", "123")
		e.wantRange(r, e.all(), store.RangeOptions{Bytes: one, Reverse: true}, true, "c", "123")
		e.wantRange(r, e.all(), store.RangeOptions{Bytes: one, Limit: 2}, true, "a", "123")
		e.wantRange(r, e.all(), store.RangeOptions{Bytes: 3 * one, Limit: 2}, true, "a", "123", "b", "123")
	}
}

// empties are ranges without keys, though there are keys around their bounds.
func (e *env) empties() []store.Range {
	return []store.Range{e.span("b", "b"), e.span("c", "b"), e.span("z", "")}
}

func emptyRead(e *env) {
	e.put("a", "1", "b", "2", "c", "3")
	a := e.begin()
	a.clear("b")
	a.set("bb", "own")
	for _, r := range e.empties() {
		for _, o := range []store.RangeOptions{{}, {Reverse: true}, {Limit: 1}} {
			a.wantRange(r, o, false)
			e.wantRange(a.Snapshot(), r, o, false)
		}
	}
}

// emptyWrite: what wrote nothing but empty ranges has only read, so it commits
// whatever others wrote, and nobody conflicts with it.
func emptyWrite(e *env) {
	e.put("a", "1", "b", "2", "c", "3")
	for _, r := range e.empties() {
		a, b := e.begin().pin(), e.begin()
		a.wantRange(e.all(), store.RangeOptions{}, false, "a", "1", "b", "2", "c", "3")
		b.wantRange(e.all(), store.RangeOptions{}, false, "a", "1", "b", "2", "c", "3")
		a.AddReadConflict(r)
		a.AddWriteConflict(r)
		a.ClearRange(r)
		e.put("a", "1")
		a.commit()
		b.commit()
	}
	e.want("a", "1", "b", "2", "c", "3")
}

// emptyReadConflicts writes all around an empty range that was read.
func emptyReadConflicts(e *env) {
	for _, r := range e.empties() {
		a := e.begin().pin()
		a.wantRange(r, store.RangeOptions{}, false)
		a.AddReadConflict(r)
		a.set("seen", "1")
		w := e.begin()
		w.ClearRange(e.all())
		w.AddWriteConflict(e.all())
		w.commit()
		a.commit()
	}
}

// rangePages reads on from the last key as the service does. A read that ends
// just where its bound does may say either that there is more.
func rangePages(e *env) {
	var all []string
	for _, key := range keysOfAllKinds() {
		all = append(all, key, key)
	}
	e.put(all...)
	for _, o := range []store.RangeOptions{
		{Limit: 1}, {Limit: 2}, {Limit: 7}, {Limit: len(all) / 2}, {Limit: 1000}, {Bytes: 1}, {Bytes: 100}, {Bytes: 1 << 20},
	} {
		e.diff("pages", e.pages(o), all)
		o.Reverse = true
		e.diff("pages backwards", e.pages(o), flip(all))
	}
}

// pages reads everything page by page.
func (e *env) pages(o store.RangeOptions) []string {
	a, rest := e.begin(), e.all()
	var all []string
	for {
		page, more := a.scan(rest, o)
		all = append(all, page...)
		if !more {
			return all
		}
		if len(page) == 0 {
			e.fail("an empty page of %+v says that there is more", o)
		}
		last := e.key(page[len(page)-2])
		if o.Reverse {
			rest.End = last
		} else {
			rest.Begin = store.Single(last).End
		}
	}
}

// flip returns flat pairs in the opposite order.
func flip(pairs []string) []string {
	var flipped []string
	for i := len(pairs) - 2; i >= 0; i -= 2 {
		flipped = append(flipped, pairs[i], pairs[i+1])
	}
	return flipped
}
