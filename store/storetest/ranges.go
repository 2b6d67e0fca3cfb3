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
		e.wantRange(r, e.allKeys(), store.RangeOptions{}, false, ascending...)
		e.wantRange(r, e.allKeys(), store.RangeOptions{Reverse: true}, false, descending...)
	}
}

func rangeHalfOpen(e *env) {
	e.put("a", "1", "a\x00", "2", "b", "3", "c", "4")
	a := e.begin()
	for _, o := range []store.RangeOptions{{}, {Reverse: true}} {
		a.wantRange(e.prefixedRange("a", "a\x00"), o, false, "a", "1")
		a.wantRange(e.prefixedRange("aa", "c"), o, false, "b", "3")
		a.wantRange(e.prefixedRange("c", "z"), o, false, "c", "4")
		a.wantRange(e.prefixedRange("b", "b"), o, false)
		a.wantRange(e.prefixedRange("d", "e"), o, false)
		a.wantRange(store.Single(e.prefixedKey("b")), o, false, "b", "3")
	}
}

func rangeLimit(e *env) {
	e.put("a", "1", "b", "2", "c", "3", "d", "4")
	a := e.begin()
	for _, r := range []store.Reader{a.Tx, a.Snapshot()} {
		e.wantRange(r, e.allKeys(), store.RangeOptions{Limit: 1}, true, "a", "1")
		e.wantRange(r, e.allKeys(), store.RangeOptions{Limit: 3}, true, "a", "1", "b", "2", "c", "3")
		e.wantRange(r, e.allKeys(), store.RangeOptions{Limit: 5}, false, "a", "1", "b", "2", "c", "3", "d", "4")
		e.wantRange(r, e.allKeys(), store.RangeOptions{Limit: 1, Reverse: true}, true, "d", "4")
		e.wantRange(r, e.prefixedRange("b", "d"), store.RangeOptions{Limit: 1, Reverse: true}, true, "c", "3")
		e.wantRange(r, e.prefixedRange("b", "d"), store.RangeOptions{Limit: 3, Reverse: true}, false, "c", "3", "b", "2")
	}
}

// rangeBytes counts the bytes of keys and values.
func rangeBytes(e *env) {
	e.put("a", "123", "b", "123", "c", "123")
	one := len(e.prefixedKey("a")) + 3
	a := e.begin()

	for _, r := range []store.Reader{a.Tx, a.Snapshot()} {
		e.wantRange(r, e.allKeys(), store.RangeOptions{Bytes: 1}, true, "a", "123")
		e.wantRange(r, e.allKeys(), store.RangeOptions{Bytes: one}, true, "a", "123")
		e.wantRange(r, e.allKeys(), store.RangeOptions{Bytes: one + 1}, true, "a", "123", "b", "123")
		e.wantRange(r, e.allKeys(), store.RangeOptions{Bytes: 3*one + 1}, false, "a", "123", "b", "123", "c", "123")
		e.wantRange(r, e.allKeys(), store.RangeOptions{Bytes: one, Reverse: true}, true, "c", "123")
		e.wantRange(r, e.allKeys(), store.RangeOptions{Bytes: one, Limit: 2}, true, "a", "123")
		e.wantRange(r, e.allKeys(), store.RangeOptions{Bytes: 3 * one, Limit: 2}, true, "a", "123", "b", "123")
	}
}

// emptyRanges returns ranges without keys. There are keys around their bounds.
func (e *env) emptyRanges() []store.Range {
	return []store.Range{e.prefixedRange("b", "b"), e.prefixedRange("c", "b"), e.prefixedRange("z", "")}
}

func emptyRead(e *env) {
	e.put("a", "1", "b", "2", "c", "3")
	a := e.begin()
	a.clear("b")
	a.set("bb", "own")
	for _, r := range e.emptyRanges() {
		for _, o := range []store.RangeOptions{{}, {Reverse: true}, {Limit: 1}} {
			a.wantRange(r, o, false)
			e.wantRange(a.Snapshot(), r, o, false)
		}
	}
}

// emptyWrite checks that a transaction that writes only empty ranges counts as
// reading only: it commits whatever others wrote, and nobody conflicts with it.
func emptyWrite(e *env) {
	e.put("a", "1", "b", "2", "c", "3")
	for _, r := range e.emptyRanges() {
		a, b := e.begin().pinVersion(), e.begin()
		a.wantRange(e.allKeys(), store.RangeOptions{}, false, "a", "1", "b", "2", "c", "3")
		b.wantRange(e.allKeys(), store.RangeOptions{}, false, "a", "1", "b", "2", "c", "3")

		a.AddReadConflict(r)
		a.AddWriteConflict(r)
		a.ClearRange(r)

		e.put("a", "1")
		a.commit()
		b.commit()
	}

	e.wantContents("a", "1", "b", "2", "c", "3")
}

// emptyReadConflicts writes keys all around an empty range that was read.
func emptyReadConflicts(e *env) {
	for _, r := range e.emptyRanges() {
		a := e.begin().pinVersion()
		a.wantRange(r, store.RangeOptions{}, false)
		a.AddReadConflict(r)
		a.set("seen", "1")

		w := e.begin()
		w.ClearRange(e.allKeys())
		w.AddWriteConflict(e.allKeys())
		w.commit()

		a.commit()
	}
}

// rangePages reads page by page, each from the last key of the one before. A read
// that just reaches its bound may or may not report more pairs.
func rangePages(e *env) {
	var all []string
	for _, key := range keysOfAllKinds() {
		all = append(all, key, key)
	}
	e.put(all...)

	for _, o := range []store.RangeOptions{
		{Limit: 1}, {Limit: 2}, {Limit: 7}, {Limit: len(all) / 2}, {Limit: 1000}, {Bytes: 1}, {Bytes: 100}, {Bytes: 1 << 20},
	} {
		e.wantEqual("pages", e.readPages(o), all)
		o.Reverse = true
		e.wantEqual("pages backwards", e.readPages(o), reversePairs(all))
	}
}

// readPages reads everything page by page.
func (e *env) readPages(o store.RangeOptions) []string {
	a, rest := e.begin(), e.allKeys()
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

		last := e.prefixedKey(page[len(page)-2])
		if o.Reverse {
			rest.End = last
		} else {
			rest.Begin = store.Single(last).End
		}
	}
}

// reversePairs returns flat pairs in the opposite order.
func reversePairs(pairs []string) []string {
	var flipped []string
	for i := len(pairs) - 2; i >= 0; i -= 2 {
		flipped = append(flipped, pairs[i], pairs[i+1])
	}
	return flipped
}
