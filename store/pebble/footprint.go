package pebble

import (
	"bytes"
	"slices"
	"sort"

	"github.com/coditect/mapreduce/store"
)

// A keyList is a list of keys with their hashes, in few allocations. It copies the
// keys that it is given.
type keyList struct {
	bytes  []byte
	ends   []uint32 // end of each key in bytes
	hashes []uint64
}

func (l *keyList) grow(keys, size int) {
	l.bytes = slices.Grow(l.bytes, size)
	l.ends = slices.Grow(l.ends, keys)
	l.hashes = slices.Grow(l.hashes, keys)
}

func (l *keyList) add(key []byte, hash uint64) {
	l.bytes = append(l.bytes, key...)
	l.ends = append(l.ends, uint32(len(l.bytes)))
	l.hashes = append(l.hashes, hash)
}

func (l *keyList) len() int { return len(l.ends) }

func (l *keyList) keyAt(i int) []byte {
	begin := uint32(0)
	if i > 0 {
		begin = l.ends[i-1]
	}
	return l.bytes[begin:l.ends[i]:l.ends[i]]
}

// A footprint holds the keys and ranges that a transaction read, or that it wrote.
type footprint struct {
	keys   keyList
	ranges []store.Range
	order  []uint32 // indices of keys, sorted; computed at first use
}

// addRange copies r.
func (f *footprint) addRange(r store.Range) {
	both := make([]byte, 0, len(r.Begin)+len(r.End))
	both = append(append(both, r.Begin...), r.End...)
	f.ranges = append(f.ranges, store.Range{Begin: both[:len(r.Begin)], End: both[len(r.Begin):]})
}

func (f *footprint) isEmpty() bool { return f.keys.len() == 0 && len(f.ranges) == 0 }

// memorySize returns the memory used, in bytes.
func (f *footprint) memorySize() int {
	n := len(f.keys.bytes) + 4*len(f.keys.ends) + 8*len(f.keys.hashes) + 100
	for _, r := range f.ranges {
		n += len(r.Begin) + len(r.End) + 48
	}
	return n
}

// limitSize returns the bytes that count towards store.MaxTxSize.
func (f *footprint) limitSize() int {
	n := len(f.keys.bytes)
	for _, r := range f.ranges {
		n += len(r.Begin) + len(r.End)
	}
	return n
}

// coversKey reports whether key is in one of the ranges.
func (f *footprint) coversKey(key []byte) bool {
	for _, r := range f.ranges {
		if bytes.Compare(r.Begin, key) <= 0 && bytes.Compare(key, r.End) < 0 {
			return true
		}
	}
	return false
}

// touchesRange reports whether a key or a range of f is in r, which is not empty.
func (f *footprint) touchesRange(r store.Range) bool {
	for _, own := range f.ranges {
		if rangesOverlap(own, r) {
			return true
		}
	}
	f.sortKeys()
	i := sort.Search(len(f.order), func(i int) bool {
		return bytes.Compare(f.keys.keyAt(int(f.order[i])), r.Begin) >= 0
	})
	return i < len(f.order) && bytes.Compare(f.keys.keyAt(int(f.order[i])), r.End) < 0
}

func (f *footprint) sortKeys() {
	if len(f.order) == f.keys.len() {
		return
	}
	f.order = make([]uint32, f.keys.len())
	for i := range f.order {
		f.order[i] = uint32(i)
	}
	slices.SortFunc(f.order, func(a, b uint32) int {
		return bytes.Compare(f.keys.keyAt(int(a)), f.keys.keyAt(int(b)))
	})
}
