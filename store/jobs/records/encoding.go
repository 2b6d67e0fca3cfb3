package records

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/store"
)

// Read decodes the value of key into m and reports whether there is one.
func Read(ctx context.Context, r store.Reader, key []byte, m proto.Message) (bool, error) {
	value, err := r.Get(ctx, key)
	if err != nil || value == nil {
		return false, err
	}
	return true, Decode(key, value, m)
}

// Decode decodes a value into m. The error names the key.
func Decode(key, value []byte, m proto.Message) error {
	if err := proto.Unmarshal(value, m); err != nil {
		return fmt.Errorf("jobs: value of %x: %w: %w", key, store.ErrCorrupt, err)
	}
	return nil
}

// CorruptError returns the error of a value that is not as it was written, or is not
// there: what is wrong, and under which key one has to look.
func CorruptError(key []byte, format string, args ...any) error {
	return fmt.Errorf("jobs: key %x: %s: %w", key, fmt.Sprintf(format, args...), store.ErrCorrupt)
}

// Encode returns the stored form of m. It is deterministic within one version
// of this program, which the audit chain does not rely on: it hashes what was
// stored.
func Encode(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic("jobs: message cannot be encoded: " + err.Error()) // invalid UTF-8 is stopped at the edges
	}
	return b
}

// DecodeCount returns the number that a counter holds: 64 bits, little-endian. A value
// of another length counts as 0.
func DecodeCount(value []byte) int64 {
	if len(value) != 8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(value))
}

// ReadPresent returns the values of keys, or nothing if none has one. Documents mostly
// come in the order of their names, so one look usually tells that nothing lies
// between the first key and the last, which costs less than to look for each; and
// what was stored there before, by a run whose outcome was unknown, are neighbours.
func ReadPresent(ctx context.Context, tx store.Tx, ks [][]byte) ([][]byte, error) {
	if len(ks) == 0 {
		return nil, nil
	}

	all := store.Range{Begin: slices.MinFunc(ks, bytes.Compare), End: store.Single(slices.MaxFunc(ks, bytes.Compare)).End}
	pairs, _, err := tx.GetRange(ctx, all, store.RangeOptions{Limit: 1})
	if err != nil {
		return nil, err
	}

	if len(pairs) == 0 {
		return nil, nil
	}

	return ReadNear(ctx, tx, ks)
}

// ReadNear reads keys that are likely to be neighbours, serializably.
func ReadNear(ctx context.Context, tx store.Tx, ks [][]byte) ([][]byte, error) {
	near, err := store.GetNear(ctx, tx.Snapshot(), ks)
	if err != nil {
		return nil, err
	}
	near.AddConflicts(tx, func(int) bool { return true })
	return near.Values, nil
}

// maxErrors bounds the errors that a unit's record keeps: the first, and the
// latest of the rest.
const maxErrors = 8

// KeepErrors adds errors to those that a unit keeps, each of them clipped.
func KeepErrors(old, more []string) []string {
	for _, e := range more {
		if len(old) == maxErrors {
			old = append(old[:1], old[2:]...)
		}
		old = append(old, ClipText(e))
	}
	return old
}

// maxMessage bounds one message that a record keeps, in bytes. One that a value
// cannot hold would make its transaction fail for ever.
const maxMessage = 1 << 10

// ClipText returns s as a record may hold it: short, and valid UTF-8.
func ClipText(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// readBeside returns the values of keys, nil of those that have none. Keys in order are likely to be neighbours, as those of
// units are whose documents were submitted in the order of their names: one read of their range costs a cluster a fraction
// of a read for each.
func readBeside(ctx context.Context, r store.Reader, ks [][]byte) ([][]byte, error) {
	if !slices.IsSortedFunc(ks, bytes.Compare) {
		return r.GetAll(ctx, ks)
	}
	near, err := store.GetNear(ctx, r, ks)
	if err != nil {
		return nil, err
	}
	return near.Values, nil
}
