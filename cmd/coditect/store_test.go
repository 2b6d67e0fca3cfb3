package main_test

import (
	"crypto/rand"
	"testing"

	"github.com/coditect/mapreduce/store/storetest/driver"
)

// onCluster returns the environment that makes commands keep their jobs in a
// part of a FoundationDB cluster, if that is what these tests are to use, and
// what clears it; else nothing. Lives are short there: nobody can know at once
// that the process which held a job was killed.
func onCluster(t testing.TB) (env []string, clear func()) {
	t.Helper()
	file, found := driver.Cluster(t)
	if !found {
		return nil, func() {}
	}
	prefix := "test-" + rand.Text()
	env = []string{
		"CODITECT_STORE=fdb:" + file, "CODITECT_STORE_PREFIX=" + prefix,
		"FDB_CLUSTER_FILE=" + file, "CODITECT_LEASE=2s", "CODITECT_HEARTBEAT=100ms", "CODITECT_GRACE=300ms",
	}
	return env, func() {
		if err := driver.Clear(file, prefix); err != nil {
			t.Error(err)
		}
	}
}

// buildFlags are what a program needs to have the store of these tests, and the scripted provider.
func buildFlags() []string {
	if driver.FDB {
		return []string{"-tags", "fdb,scripted"}
	}
	return []string{"-tags", "scripted"}
}
