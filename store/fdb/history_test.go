//go:build fdb

package fdb_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
	"github.com/coditect/mapreduce/store/storetest"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

const sharedHistories = 150

// The same interleaved transactions come to the same on both drivers: each step
// of either, and what is stored at the end, is that of the reference.
func TestSameHistoryOnBothDrivers(t *testing.T) {
	if driver.Buggified() {
		t.Skip("the client fails at random")
	}
	embedded, err := pebble.Open("store", pebble.Config{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	below := prefix(t)
	cluster := open(t)
	defer cluster.Close()
	for seed := range sharedHistories {
		program := storetest.Programs().Example(seed)
		for name, s := range map[string]store.Store{"pebble": embedded, "fdb": cluster} {
			if err := storetest.Lockstep(t.Context(), s, fmt.Sprint(below, seed, "/"), program, storetest.Options{}); err != nil {
				t.Fatalf("%s, history %d: %v\n%v", name, seed, err, program)
			}
		}
	}
}
