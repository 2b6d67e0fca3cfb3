package pebble

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/coditect/mapreduce/store"
)

// An opKind is a kind of write.
type opKind uint8

const (
	opSet opKind = iota
	opClear
	opClearRange
	opAdd
	opStamp // Set of a key that gets a versionstamp
)

// An op is one write of a transaction.
type op struct {
	kind   opKind
	key    []byte
	value  []byte // or the end of the range
	number int64  // delta of opAdd, offset of opStamp
}

// writes holds the writes of a transaction: an ordered list and an overlay of their
// effects, which is built when a read first needs it.
type writes struct {
	ops      []op
	size     int   // bytes of keys and values
	keysSize int   // bytes of keys
	err      error // the first breach of a limit

	points  map[string]pending // effects on single keys
	keys    []string           // of points
	sorted  bool               // whether keys is sorted
	cleared []store.Range      // sorted, not overlapping
	stamped []store.Range      // where keys with pending versionstamps may be
	applied int                // how many of ops the overlay holds
}

// A pending is the effect of a transaction's writes on one key.
type pending struct {
	effect effect
	value  []byte // of replaced
	delta  uint64 // of added
}

type effect uint8

const (
	untouched effect = iota // the store has the value
	replaced                // the value is known
	removed                 // there is none
	added                   // the value is that of the store, plus delta
)

// isKnown reports whether the value does not depend on the store.
func (p pending) isKnown() bool { return p.effect == replaced || p.effect == removed }

// applyTo returns the value of the key if the store has base, where nil is no
// value.
func (p pending) applyTo(base []byte) []byte {
	switch p.effect {
	case replaced:
		return p.value
	case removed:
		return nil
	case added:
		return encodeSum(decodeSum(base) + p.delta)
	default:
		return base
	}
}

func (w *writes) add(o op) {
	w.ops = append(w.ops, o)
	w.size += len(o.key) + len(o.value)
	w.keysSize += len(o.key)
	if w.err == nil {
		w.err = o.checkLimits()
	}
}

func (o op) checkLimits() error {
	switch {
	case len(o.key) > store.MaxKeySize:
		return store.ErrKeyTooLarge
	case o.kind == opClearRange:
		return checkRange(store.Range{Begin: o.key, End: o.value})
	case isReserved(o.key):
		return store.ErrReservedKey
	case len(o.value) > store.MaxValueSize:
		return store.ErrValueTooLarge
	case o.kind == opStamp && (o.number < 0 || int(o.number) > len(o.key)-len(store.Versionstamp{})):
		return errStampOffset
	}

	return nil
}

// effectOn returns the effect of the writes on key.
func (w *writes) effectOn(key []byte) pending {
	if len(w.ops) == 0 {
		return pending{}
	}
	w.updateOverlay()
	return w.overlayEffect(key)
}

// overlayEffect returns the effect on key of the writes in the overlay.
func (w *writes) overlayEffect(key []byte) pending {
	if p, ok := w.points[string(key)]; ok {
		return p
	}
	i := clearedAfter(w.cleared, key)
	if i < len(w.cleared) && bytes.Compare(w.cleared[i].Begin, key) <= 0 {
		return pending{effect: removed}
	}
	return pending{}
}

// clearedAfter returns the index of the first of ranges that ends after key.
func clearedAfter(ranges []store.Range, key []byte) int {
	i, _ := slices.BinarySearchFunc(ranges, key, func(r store.Range, key []byte) int {
		if bytes.Compare(r.End, key) <= 0 {
			return -1
		}
		return 1
	})
	return i
}

// mayHoldStamp reports whether a pending versionstamp may be in r.
func (w *writes) mayHoldStamp(r store.Range) bool {
	return slices.ContainsFunc(w.stamped, func(s store.Range) bool { return rangesOverlap(r, s) })
}

// keysIn returns the single keys of the writes in r, in order.
func (w *writes) keysIn(r store.Range) []string {
	w.updateOverlay()
	if !w.sorted {
		slices.Sort(w.keys)
		w.sorted = true
	}
	begin, _ := slices.BinarySearch(w.keys, string(r.Begin))
	end, _ := slices.BinarySearch(w.keys, string(r.End))
	return w.keys[begin:max(begin, end)]
}

// updateOverlay brings the overlay up to date with ops.
func (w *writes) updateOverlay() {
	if w.points == nil {
		w.points = make(map[string]pending, len(w.ops))
	}

	for _, o := range w.ops[w.applied:] {
		// A key with a versionstamp has no effect yet: mayHoldStamp knows where it may
		// come.
		switch o.kind {
		case opSet:
			w.setEffect(o.key, pending{effect: replaced, value: append([]byte{}, o.value...)})
		case opClear:
			w.setEffect(o.key, pending{effect: removed})
		case opAdd:
			w.setEffect(o.key, w.addEffect(o))
		case opClearRange:
			w.clearRange(store.Range{Begin: o.key, End: o.value})
		}
		w.applied++
	}
}

func (w *writes) setEffect(key []byte, p pending) {
	if _, ok := w.points[string(key)]; !ok {
		w.keys = append(w.keys, string(key))
		w.sorted = false
	}
	w.points[string(key)] = p
}

// addEffect returns the effect of o, an Add, combined with the writes before it. The
// overlay holds all writes before o.
func (w *writes) addEffect(o op) pending {
	before, delta := w.overlayEffect(o.key), uint64(o.number)
	if before.isKnown() {
		return pending{effect: replaced, value: encodeSum(decodeSum(before.applyTo(nil)) + delta)}
	}
	return pending{effect: added, delta: before.delta + delta}
}

// clearRange removes the keys of r, and joins r with the cleared ranges that it
// overlaps or adjoins.
func (w *writes) clearRange(r store.Range) {
	if bytes.Compare(r.Begin, r.End) >= 0 {
		return
	}

	for key := range w.points {
		if string(r.Begin) <= key && key < string(r.End) {
			w.points[key] = pending{effect: removed}
		}
	}

	begin := clearedAfter(w.cleared, r.Begin)
	end := begin
	for ; end < len(w.cleared) && bytes.Compare(w.cleared[end].Begin, r.End) <= 0; end++ {
		r.Begin = minKey(r.Begin, w.cleared[end].Begin)
		r.End = maxKey(r.End, w.cleared[end].End)
	}

	w.cleared = slices.Replace(w.cleared, begin, end, r)
}

// pendingStamp records the range of keys that o may write once it has its
// versionstamp, which will be at or above version. o has passed checkLimits.
func (w *writes) pendingStamp(o op, version uint64) {
	least, greatest := bytes.Clone(o.key), append(bytes.Clone(o.key), 0)
	stamp := least[o.number:][:len(store.Versionstamp{})]
	clear(stamp)
	binary.BigEndian.PutUint64(stamp, version)
	for i := range stamp {
		greatest[int(o.number)+i] = 0xff
	}
	w.stamped = append(w.stamped, store.Range{Begin: least, End: greatest})
}

// ownedRanges returns the parts of r whose contents depend on the writes alone, in
// order and without overlap.
func (w *writes) ownedRanges(r store.Range) []store.Range {
	var parts []store.Range
	for _, key := range w.keysIn(r) {
		if w.points[key].isKnown() {
			parts = append(parts, store.Single([]byte(key)))
		}
	}

	for _, c := range w.cleared {
		if rangesOverlap(c, r) {
			parts = append(parts, c)
		}
	}

	slices.SortFunc(parts, func(a, b store.Range) int { return bytes.Compare(a.Begin, b.Begin) })
	return parts
}

// visitStored calls yield with each part of r whose contents depend on the store.
func (w *writes) visitStored(r store.Range, yield func(store.Range)) {
	begin := r.Begin
	if len(w.ops) > 0 {
		for _, part := range w.ownedRanges(r) {
			if bytes.Compare(begin, part.Begin) < 0 {
				yield(store.Range{Begin: begin, End: part.Begin})
			}
			begin = maxKey(begin, part.End)
		}
	}

	if bytes.Compare(begin, r.End) < 0 {
		yield(store.Range{Begin: begin, End: r.End})
	}
}

func rangesOverlap(a, b store.Range) bool {
	return bytes.Compare(a.Begin, b.End) < 0 && bytes.Compare(b.Begin, a.End) < 0
}

func minKey(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return a
	}
	return b
}

func maxKey(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return a
	}
	return b
}
