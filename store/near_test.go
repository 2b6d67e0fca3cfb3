package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

// A tallied reader counts what is read, and may fail ranges.
type tallied struct {
	store.Reader
	ranges, points int
	fail           error // of every range
}

func (r *tallied) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	r.points += len(keys)
	return r.Reader.GetAll(ctx, keys)
}

func (r *tallied) GetRange(ctx context.Context, span store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	r.ranges++
	if r.fail != nil {
		return nil, false, r.fail
	}
	return r.Reader.GetRange(ctx, span, o)
}

func nearKey(n int) []byte { return fmt.Appendf(nil, "unit-%05d", n) }

// nearStore has so many keys, of which every third has an empty value.
func nearStore(t *testing.T, n int) store.Store {
	s, err := pebble.Open("near", pebble.Config{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	db := store.NewDB(s, store.Config{})
	err = db.Update(t.Context(), func(tx store.Tx) error {
		for i := range n {
			tx.Set(nearKey(i), nearKey(i)[:i%3*5])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type testContext interface {
	rapid.TB
	Context() context.Context
}

// near runs fn with a reader of s.
func near(t testContext, s store.Store, fn func(r *tallied)) {
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Discard()
	fn(&tallied{Reader: tx.Snapshot()})
}

// TestNearIsAll holds GetNear against GetAll, whatever is asked for: keys that are
// there or not, twice, in any order, close together or apart.
func TestNearIsAll(t *testing.T) {
	s := nearStore(t, 500)
	rapid.Check(t, func(t *rapid.T) {
		first, width := rapid.IntRange(0, 600).Draw(t, "first"), rapid.IntRange(1, 600).Draw(t, "width")
		places := rapid.SliceOfN(rapid.IntRange(first, first+width), 0, 40).Draw(t, "places")
		keys := make([][]byte, len(places))
		for i, n := range places {
			keys[i] = nearKey(n)
		}
		near(t, s, func(r *tallied) {
			want, err := r.GetAll(t.Context(), keys)
			if err != nil {
				t.Fatal(err)
			}
			got, err := store.GetNear(t.Context(), r, keys)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Values); diff != "" {
				t.Errorf("GetNear returned other values than GetAll (-want +got):\n%s", diff)
			}
		})
	})
}

// TestNeighboursAreReadTogether says what GetNear reads: one range of neighbours,
// and one by one only what lies beyond twice as many pairs as there are keys. And as
// one range neighbours conflict.
func TestNeighboursAreReadTogether(t *testing.T) {
	s := nearStore(t, 500)
	broken := errors.New("broken")
	for _, tt := range []struct {
		name           string
		step, keys     int
		fail, want     error
		ranges, points int
		conflicts      int
	}{
		{name: "few", step: 1, keys: store.MinNear - 1, points: store.MinNear - 1, conflicts: store.MinNear - 1},
		{name: "neighbours", step: 1, keys: 64, ranges: 1, conflicts: 1},
		{name: "every second", step: 2, keys: 64, ranges: 1, conflicts: 64},
		{name: "every fourth", step: 4, keys: 64, ranges: 1, points: 32, conflicts: 64},
		{name: "a damaged neighbour", step: 1, keys: 64, fail: store.ErrCorrupt, ranges: 1, points: 64, conflicts: 64},
		{name: "an unreadable neighbour", step: 1, keys: 64, fail: broken, ranges: 1, points: 64, conflicts: 64},
		{name: "a store that lags", step: 1, keys: 64, fail: store.ErrProcessBehind, want: store.ErrProcessBehind, ranges: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keys := make([][]byte, tt.keys)
			for i := range keys {
				keys[i] = nearKey(i * tt.step)
			}
			near(t, s, func(r *tallied) {
				r.fail = tt.fail
				got, err := store.GetNear(t.Context(), r, keys)
				if !errors.Is(err, tt.want) {
					t.Errorf("GetNear: %v, want %v", err, tt.want)
				}
				if err == nil {
					if n := len(conflictsOf(got, func(int) bool { return true })); n != tt.conflicts {
						t.Errorf("%d ranges conflict, want %d", n, tt.conflicts)
					}
				}
				if r.ranges != tt.ranges || r.points != tt.points {
					t.Errorf("%d ranges and %d keys were read, want %d and %d", r.ranges, r.points, tt.ranges, tt.points)
				}
			})
		})
	}
}

// A conflictTx notes the ranges that are to conflict.
type conflictTx struct {
	store.Tx
	ranges []store.Range
}

func (x *conflictTx) AddReadConflict(r store.Range) { x.ranges = append(x.ranges, r) }

func conflictsOf(n *store.Near, wanted func(place int) bool) []store.Range {
	x := new(conflictTx)
	n.AddConflicts(x, wanted)
	return x.ranges
}

// TestNearConflictsWithWhatIsWanted has every key conflict that is wanted, and no other of
// those that were asked for or are stored.
func TestNearConflictsWithWhatIsWanted(t *testing.T) {
	const stored = 300
	s := nearStore(t, stored)
	rapid.Check(t, func(t *rapid.T) {
		first, width := rapid.IntRange(0, stored).Draw(t, "first"), rapid.IntRange(1, stored).Draw(t, "width")
		places := rapid.SliceOfN(rapid.IntRange(first, first+width), 0, 60).Draw(t, "places")
		wanted := rapid.SliceOfN(rapid.Bool(), len(places), len(places)).Draw(t, "wanted")
		keys, expected := make([][]byte, len(places)), make(map[string]bool)
		for n := range stored {
			expected[string(nearKey(n))] = false
		}
		for i, n := range places {
			keys[i] = nearKey(n)
			expected[string(keys[i])] = expected[string(keys[i])] || wanted[i]
		}
		near(t, s, func(r *tallied) {
			got, err := store.GetNear(t.Context(), r, keys)
			if err != nil {
				t.Fatal(err)
			}
			ranges := conflictsOf(got, func(place int) bool { return wanted[place] })
			for key, want := range expected {
				conflicts := slices.ContainsFunc(ranges, func(r store.Range) bool { return string(r.Begin) <= key && key < string(r.End) })
				if conflicts != want {
					t.Errorf("%s conflicts: %v, want %v", key, conflicts, want)
				}
			}
		})
	})
}
