package pebble

import (
	"slices"
	"testing"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/coditect/mapreduce/store"
)

// A counter to which many transactions add is read in few steps, and no transaction sees
// another value than without.
func TestLongSumsAreShortened(t *testing.T) {
	s, err := Open("data", Config{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	key := []byte("counter")
	add := func() {
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Discard()
		tx.Add(key, 1)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	read := func(tx store.Tx) uint64 {
		v, err := tx.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return decodeSum(v)
	}
	begin := func() store.Tx {
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tx.Discard)
		return tx
	}
	steps := func() int {
		iter, err := s.db.NewIter(&pebbledb.IterOptions{LowerBound: key, UpperBound: append(slices.Clip(key), 0)})
		if err != nil {
			t.Fatal(err)
		}
		iter.First()
		n := iter.Stats().ForwardStepCount[pebbledb.InternalIterCall]
		if err := iter.Close(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 3 * longSum {
		add()
	}
	if n := steps(); n < 3*longSum {
		t.Fatalf("%d steps: this test sees no deltas", n)
	}
	before := begin()
	if n := read(before); n != 3*longSum {
		t.Fatalf("the counter is %d, want %d", n, 3*longSum)
	}
	add()
	if n := steps(); n > 2 {
		t.Errorf("a counter that was read and added to is read in %d steps, want as few as of a value", n)
	}
	add()
	if n := read(begin()); n != 3*longSum+2 {
		t.Errorf("the counter is %d, want %d", n, 3*longSum+2)
	}
	if n := read(before); n != 3*longSum {
		t.Errorf("a transaction that began before reads %d, want %d", n, 3*longSum)
	}
}
