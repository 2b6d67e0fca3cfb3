package memory

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/coditect/mapreduce/store"
)

// An index is a list of pairs sorted by key. It is never changed after it was
// published.
type index []store.KeyValue

func (entries index) searchKey(key []byte) (int, bool) {
	return slices.BinarySearchFunc(entries, key, func(kv store.KeyValue, key []byte) int {
		return bytes.Compare(kv.Key, key)
	})
}

func (entries index) get(key []byte) []byte {
	if i, ok := entries.searchKey(key); ok {
		return entries[i].Value
	}
	return nil
}

// pairsIn returns the pairs of r.
func (entries index) pairsIn(r store.Range) index {
	begin, _ := entries.searchKey(r.Begin)
	end, _ := entries.searchKey(r.End)
	return entries[begin:max(begin, end)]
}

func (entries index) set(key, value []byte) index {
	i, ok := entries.searchKey(key)
	if ok {
		entries[i].Value = value
		return entries
	}
	return slices.Insert(entries, i, store.KeyValue{Key: key, Value: value})
}

func (entries index) clear(r store.Range) index {
	begin, _ := entries.searchKey(r.Begin)
	end, _ := entries.searchKey(r.End)
	return slices.Delete(entries, begin, max(begin, end))
}

// An op is one write.
type op struct {
	kind       kind
	key, value []byte      // unused by a clear
	span       store.Range // of a clear
	offset     int         // of the placeholder of a stamped key
	delta      int64       // of an add
}

type kind int

const (
	kindSet kind = iota
	kindClear
	kindAdd
	kindStamped
)

// applyTo applies o to entries and returns the result. It changes entries.
func (o op) applyTo(entries index, stamp store.Versionstamp) index {
	switch o.kind {
	case kindClear:
		return entries.clear(o.span)
	case kindAdd:
		return entries.set(o.key, addDelta(entries.get(o.key), o.delta))
	case kindStamped:
		return entries.set(o.stampedKey(stamp), o.value)
	default:
		return entries.set(o.key, o.value)
	}
}

// writtenRange returns the range that o writes.
func (o op) writtenRange(stamp store.Versionstamp) store.Range {
	switch o.kind {
	case kindClear:
		return o.span
	case kindStamped:
		return store.Single(o.stampedKey(stamp))
	default:
		return store.Single(o.key)
	}
}

// byteSize returns the bytes of o that count towards store.MaxTxSize.
func (o op) byteSize() int {
	return len(o.key) + len(o.value) + len(o.span.Begin) + len(o.span.End)
}

func (o op) stampedKey(stamp store.Versionstamp) []byte {
	key := bytes.Clone(o.key)
	copy(key[o.offset:], stamp[:])
	return key
}

// stampRange returns the range in which the key of a stamped write will be.
func (o op) stampRange() store.Range {
	var lowest, highest store.Versionstamp
	for i := range highest {
		highest[i] = 0xff
	}
	return store.Range{Begin: o.stampedKey(lowest), End: store.Single(o.stampedKey(highest)).End}
}

func addDelta(value []byte, delta int64) []byte {
	var n uint64
	if len(value) == 8 {
		n = binary.LittleEndian.Uint64(value)
	}
	return binary.LittleEndian.AppendUint64(nil, n+uint64(delta))
}

func stampOf(version uint64) store.Versionstamp {
	var s store.Versionstamp
	binary.BigEndian.PutUint64(s[:], version)
	return s
}

// isEmpty reports whether r holds no key.
func isEmpty(r store.Range) bool { return bytes.Compare(r.Begin, r.End) >= 0 }

// holdsReserved reports whether r holds a key that begins with 0xFF.
func holdsReserved(r store.Range) bool {
	return !isEmpty(r) && bytes.Compare(r.End, []byte{0xff}) > 0
}

// rangesOverlap reports whether a range of a and one of b have a key in common.
func rangesOverlap(a, b []store.Range) bool {
	for _, r := range a {
		for _, s := range b {
			if bytes.Compare(r.Begin, s.End) < 0 && bytes.Compare(s.Begin, r.End) < 0 {
				return true
			}
		}
	}
	return false
}

// subtractRanges returns r without the ranges of known.
func subtractRanges(r store.Range, known []store.Range) []store.Range {
	left := []store.Range{r}
	for _, k := range known {
		var next []store.Range
		for _, l := range left {
			next = append(next, subtractRange(l, k)...)
		}
		left = next
	}
	return left
}

func subtractRange(r, k store.Range) []store.Range {
	var left []store.Range
	for _, l := range []store.Range{
		{Begin: r.Begin, End: minKey(r.End, k.Begin)},
		{Begin: maxKey(r.Begin, k.End), End: r.End},
	} {
		if !isEmpty(l) {
			left = append(left, l)
		}
	}
	return left
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
