// Package driver opens the store that tests run on, so that one suite runs on
// every driver unchanged: Pebble, or with the build tag fdb, and a cluster named
// by FDB_CLUSTER_FILE, FoundationDB. There each store that is opened is a part
// of the cluster's key space of its own, and is cleared when its test ends.
//
// It is for tests only: it imports testing.
package driver

import (
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

// A Test is what a store needs of the test that opens it: of *testing.T, of
// *testing.B, or of one try of a property, which *rapid.T is.
type Test interface {
	Helper()
	Cleanup(fn func())
	Error(args ...any)
	Fatal(args ...any)
}

// Open returns a store that is empty, and closed when the test ends. It
// survives nothing.
//
// A property that is tried many times opens one in each try: in a store that is
// used again each try has to step over what those before it have deleted.
func Open(t Test) store.Store {
	t.Helper()
	if s, found := openCluster(t); found {
		return s
	}

	return openEmbedded(t, "store", pebble.Config{FS: vfs.NewMem(), FlushDelay: flushDelay})
}

// OpenOnDisk is as Open, with commits that cost what they cost in production.
func OpenOnDisk(t testing.TB) store.Store {
	t.Helper()
	if s, found := openCluster(t); found {
		return s
	}
	return openEmbedded(t, t.TempDir(), pebble.Config{})
}

// Buggified says that FoundationDB's client fails and dawdles at random, of its own
// accord, more often than tests bear that foretell every outcome.
func Buggified() bool {
	_, set := os.LookupEnv("FDB_NETWORK_OPTION_CLIENT_BUGGIFY_ENABLE")
	return set
}

func openEmbedded(t Test, folder string, c pebble.Config) store.Store {
	t.Helper()
	s, err := pebble.Open(folder, c)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
