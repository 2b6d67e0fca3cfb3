//go:build fdb

package driver

import (
	"context"
	"crypto/rand"
	"errors"
	"os"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fdb"
	"github.com/coditect/mapreduce/store/tuple"
)

// FDB says whether this program was built with FoundationDB.
const FDB = true

// Cluster returns the cluster file that tests are to use, and whether there is
// one. CODITECT_TEST_FDB=require turns its lack into a failure.
func Cluster(t Test) (file string, found bool) {
	t.Helper()
	file = os.Getenv("FDB_CLUSTER_FILE")
	if file == "" && os.Getenv("CODITECT_TEST_FDB") == "require" {
		t.Fatal("FDB_CLUSTER_FILE names no cluster, and CODITECT_TEST_FDB requires one")
	}
	return file, file != ""
}

// Clear removes what an installation has in a cluster under a prefix.
func Clear(file, prefix string) error {
	return Update(file, func(tx store.Tx) error {
		tx.ClearRange(store.Prefixed(tuple.AppendString(nil, prefix)))
		return nil
	})
}

// Update runs a transaction on a cluster, behind the back of all who use it.
func Update(file string, fn func(store.Tx) error) error {
	s, err := fdb.Open(file, fdb.Config{})
	if err != nil {
		return err
	}
	return errors.Join(store.NewDB(s, store.Config{}).Update(context.Background(), fn), s.Close())
}

func openCluster(t Test) (store.Store, bool) {
	t.Helper()
	file, found := Cluster(t)
	if !found {
		return nil, false
	}

	s, err := fdb.Open(file, fdb.Config{})
	if err != nil {
		t.Fatal(err)
	}

	b := &prefixedStore{store: s, prefix: []byte("test-" + rand.Text() + "/")} // no tuple begins so
	t.Cleanup(func() {
		if err := clearBelow(s, b.prefix); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, true
}

func clearBelow(s store.Store, prefix []byte) error {
	return store.NewDB(s, store.Config{}).Update(context.Background(), func(tx store.Tx) error {
		tx.ClearRange(store.Prefixed(prefix))
		return nil
	})
}

// Leaks are the goroutines that the driver leaves running, for goleak: the
// client's network runs until the process ends.
func Leaks() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/apple/foundationdb/bindings/go/src/fdb._Cfunc_fdb_run_network"),
	}
}
