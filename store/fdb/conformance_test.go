//go:build fdb

package fdb_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"testing"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/fdb"
	"github.com/coditect/mapreduce/store/storetest"
	"github.com/coditect/mapreduce/store/storetest/driver"
	"github.com/coditect/mapreduce/store/storetest/history"
)

// cluster returns the cluster file that tests are to use. They write under a
// random prefix, and clear it.
func cluster(t testing.TB) string {
	t.Helper()
	file := os.Getenv("FDB_CLUSTER_FILE")
	if file != "" {
		return file
	}
	if os.Getenv("CODITECT_TEST_FDB") == "require" {
		t.Fatal("FDB_CLUSTER_FILE names no cluster, and CODITECT_TEST_FDB requires one")
	}
	t.Skip("FDB_CLUSTER_FILE names no cluster")
	return ""
}

func open(t testing.TB) store.Store {
	t.Helper()
	s, err := fdb.Open(cluster(t), fdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func prefix(t testing.TB) string {
	t.Helper()
	p := "test-" + rand.Text() + "/"
	t.Cleanup(func() {
		s := open(t)
		defer s.Close()
		err := store.NewDB(s, store.Config{}).Update(context.Background(), func(tx store.Tx) error {
			tx.ClearRange(store.Prefixed([]byte(p)))
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestConformance(t *testing.T) {
	if driver.Buggified() {
		t.Skip("the client fails at random: TestHistoriesOfABuggyClient")
	}
	storetest.RunWith(t, func(t *testing.T) store.Store { return open(t) }, storetest.Options{Prefix: prefix(t)})
}

func TestConformanceUnderFaults(t *testing.T) {
	if driver.Buggified() {
		t.Skip("the client fails at random: TestHistoriesOfABuggyClient")
	}
	storetest.RunWith(t, func(t *testing.T) store.Store {
		return fault.New(open(t), fault.Config{Seed: 1, Rates: fault.Retryable(0.002)})
	}, storetest.Options{Prefix: prefix(t), Faulty: true})
}

const buggyHistories = 20

// Whatever the client fails with, what transactions that went through have seen
// is explained by some serial order.
func TestHistoriesOfABuggyClient(t *testing.T) {
	if !driver.Buggified() {
		t.Skip("FDB_NETWORK_OPTION_CLIENT_BUGGIFY_ENABLE is not set")
	}
	below := prefix(t)
	s := open(t)
	defer s.Close()
	for seed := range uint64(buggyHistories) {
		if err := history.Check(t.Context(), s, fmt.Sprint(below, seed, "/"), seed); err != nil {
			t.Error(err)
		}
	}
}
