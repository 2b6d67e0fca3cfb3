//go:build !fdb

package driver

import (
	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/store"
)

// FDB says whether this program was built with FoundationDB.
const FDB = false

// Cluster returns the cluster file that tests are to use, and whether there is
// one: there is none without the build tag fdb.
func Cluster(Test) (file string, found bool) { return "", false }

// Clear removes what an installation has in a cluster under a prefix.
func Clear(string, string) error { return nil }

// Update runs a transaction on a cluster, behind the back of all who use it.
func Update(string, func(store.Tx) error) error { return nil }

func openCluster(Test) (store.Store, bool) { return nil, false }

// Leaks are the goroutines that the driver leaves running, for goleak.
func Leaks() []goleak.Option { return nil }
