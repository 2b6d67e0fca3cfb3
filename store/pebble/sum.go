package pebble

import (
	"encoding/binary"
	"io"

	pebbledb "github.com/cockroachdb/pebble/v2"
)

// sumMerger returns a Pebble merger that adds: a merge operand is a delta, and the
// oldest value may be anything that Set stored.
//
// Its name is stored with the data.
func sumMerger() *pebbledb.Merger {
	return &pebbledb.Merger{
		Name: "coditect.sum.v1",
		Merge: func(_, value []byte) (pebbledb.ValueMerger, error) {
			s := sum(decodeSum(value))
			return &s, nil
		},
	}
}

// A sum wraps around at 64 bits, so the order in which Pebble adds does not matter.
type sum uint64

func (s *sum) MergeNewer(value []byte) error {
	*s += sum(decodeSum(value))
	return nil
}

func (s *sum) MergeOlder(value []byte) error { return s.MergeNewer(value) }

func (s *sum) Finish(bool) ([]byte, io.Closer, error) { return encodeSum(uint64(*s)), nil, nil }

func encodeSum(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// decodeSum reads a value of any length as FoundationDB does: missing bytes are
// zero, and extra bytes are cut off.
func decodeSum(value []byte) uint64 {
	var b [8]byte
	copy(b[:], value)
	return binary.LittleEndian.Uint64(b[:])
}
