package habits

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/coditect/mapreduce/api/schema/format"
)

// A tally is counts by key, of which there may be millions, a few numbers each. So it keeps
// a key as a hash, and a count in a word where it fits into one, which is a third of what names and
// counts would take. The zero value is empty.
type tally struct {
	small map[[16]byte]uint64             // counts of which each is at most math.MaxUint8
	large map[[16]byte]format.NumberCount // all others
}

// tallyKey returns the key of names: the first half of the SHA-256 of them, each behind its length.
func tallyKey(names ...string) [16]byte {
	var b []byte
	for _, name := range names {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	}
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}

// of returns the count of a key.
func (t *tally) of(key [16]byte) format.NumberCount {
	if word, ok := t.small[key]; ok {
		return unpackCount(word)
	}
	return t.large[key]
}

// add adds to the count of a key.
func (t *tally) add(key [16]byte, c format.NumberCount) {
	all := t.of(key)
	all.Add(c)

	word, ok := packCount(all)
	if ok {
		if t.small == nil {
			t.small = make(map[[16]byte]uint64)
		}
		t.small[key] = word
		return
	}

	delete(t.small, key)
	if t.large == nil {
		t.large = make(map[[16]byte]format.NumberCount)
	}
	t.large[key] = all
}

// partsOf returns the numbers of a count.
func partsOf(c *format.NumberCount) [7]*int64 {
	return [...]*int64{&c.Points, &c.Commas, &c.Blanks, &c.Marks, &c.Minuses, &c.Trailing, &c.Brackets}
}

// packCount returns a count as a word, a byte for each of its numbers, if they fit.
func packCount(c format.NumberCount) (word uint64, ok bool) {
	for _, n := range partsOf(&c) {
		if *n < 0 || *n > math.MaxUint8 {
			return 0, false
		}
		word = word<<8 | uint64(*n)
	}
	return word, true
}

func unpackCount(word uint64) (c format.NumberCount) {
	parts := partsOf(&c)
	for i := len(parts) - 1; i >= 0; i-- {
		*parts[i] = int64(word & math.MaxUint8)
		word >>= 8
	}
	return c
}
