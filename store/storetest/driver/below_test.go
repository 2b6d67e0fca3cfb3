package driver_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/storetest"
	"github.com/coditect/mapreduce/store/storetest/driver"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

// sizes are the checks that count bytes of keys, of which a part of a store has
// more.
var sizes = []string{
	"a number of bytes cuts a range", "the longest key and value", "conflict ranges count as size",
	"keys that begin with 0xFF are reserved", "own writes count towards a limit",
	"no phantom before the last key of a limited read",
}

// A part of a store keeps the contract as a whole one does.
func TestBelow(t *testing.T) {
	for _, c := range storetest.Checks() {
		t.Run(c.Name, func(t *testing.T) {
			if slices.Contains(sizes, c.Name) {
				t.Skip("counts the bytes of keys")
			}
			s := driver.Below(new(memory.Store), "a prefix")
			if err := c.Run(t.Context(), s, storetest.Options{}); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	for name, open := range map[string]func(testing.TB) store.Store{
		"memory": func(t testing.TB) store.Store { return driver.Open(t) }, "disk": driver.OpenOnDisk,
	} {
		t.Run(name, func(t *testing.T) {
			s, other := open(t), open(t)
			db := store.NewDB(s, store.Config{})
			err := db.Update(t.Context(), func(tx store.Tx) error {
				tx.Set([]byte("key"), []byte("value"))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			err = store.NewDB(other, store.Config{}).View(t.Context(), func(tx store.Tx) error {
				pairs, _, err := tx.GetRange(t.Context(), store.Range{End: []byte{0xff}}, store.RangeOptions{})
				if len(pairs) > 0 {
					t.Errorf("another store holds %q", pairs)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
