package pebble_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
	"github.com/coditect/mapreduce/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		s, err := pebble.Open("data", pebble.Config{FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// With so little memory, Pebble writes tables and compacts them all the time.
func TestConformanceOfTables(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		s, err := pebble.Open("data", pebble.Config{FS: vfs.NewMem(), MemTableSize: 32 << 10, CacheSize: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
