package pebble_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

// The deletion of a range is flushed to a table when its delay has passed, or waits for other writes.
func TestFlushesOfDeletions(t *testing.T) {
	for _, test := range []struct {
		name   string
		delay  time.Duration
		before time.Duration // there is no table yet
		after  time.Duration // and then there is one, if there is ever
	}{
		{"default", 0, 9 * time.Second, 11 * time.Second},
		{"configured", time.Minute, 59 * time.Second, 61 * time.Second},
		{"never", -1, time.Hour, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := vfs.NewMem()
				s := open(t, pebble.Config{FS: fs, FlushDelay: test.delay})
				set(t, s, "k", "v")
				tx := begin(t, s)
				tx.ClearRange(store.Range{Begin: []byte("a"), End: []byte("z")})
				if err := tx.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}

				<-time.After(test.before)
				synctest.Wait()
				if tables(t, fs) {
					t.Errorf("the deletion is in a table after %v", test.before)
				}
				if test.after == 0 {
					return
				}
				<-time.After(test.after - test.before)
				synctest.Wait()
				if !tables(t, fs) {
					t.Errorf("the deletion is in no table after %v", test.after)
				}
			})
		})
	}
}

// tables tells whether a store in folder "data" has a table.
func tables(t *testing.T, fs vfs.FS) bool {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".sst") })
}
