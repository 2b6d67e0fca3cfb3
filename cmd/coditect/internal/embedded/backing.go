package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fdb"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/pebble"
)

// A Cluster is where the services of several machines keep their jobs together:
// a part of a FoundationDB cluster. The zero value is none.
type Cluster struct {
	// File is the cluster file.
	File string
	// Prefix is the first element of all keys, so that installations can
	// share the cluster. Defaults to none.
	Prefix string
	// Installation is the name of the installation whose keys they have to
	// be. It is given to a part of the cluster that is empty.
	Installation string
	// Timeout is how long to wait for the cluster to answer at first. Defaults
	// to that of fdb.Config.
	Timeout time.Duration
}

// maxTxSize is what a transaction on a cluster may have: more than any of ours
// has, and far less than what a cluster bears with.
const maxTxSize = 2_000_000 // bytes

// isShared reports whether other processes may work on the store as well.
func (c Config) isShared() bool { return c.Cluster.File != "" }

// keySpace returns the keys that the service has in its store.
func (c Config) keySpace() *keys.Space {
	if c.Cluster.Prefix == "" {
		return keys.New()
	}
	return keys.New(c.Cluster.Prefix)
}

func (c Config) openStore() (store.Store, error) {
	if c.isShared() {
		return fdb.Open(c.Cluster.File, fdb.Config{ConnectTimeout: c.Cluster.Timeout, MaxTxSize: maxTxSize})
	}
	return pebble.Open(c.Dir, pebble.Config{
		Logger: c.Logger, ReadOnly: c.ReadOnly, Beside: []string{socketFile, pointerFile},
	})
}

// checkInstallation refuses a part of a cluster that is not this installation's.
func (n *Node) checkInstallation() error {
	if !n.config.isShared() {
		return nil
	}
	timeout := max(n.config.Cluster.Timeout, minInspect)
	ctx, stop := context.WithTimeoutCause(context.Background(), timeout,
		fmt.Errorf("the FoundationDB cluster of %s answered at first, but within %v it did not return the name of the installation that it holds", n.config.Cluster.File, timeout))
	defer stop()
	return n.jobs.Inspect(ctx, n.config.Cluster.Installation)
}

// minInspect is the least time for a look into a cluster that has answered.
const minInspect = 5 * time.Second

// markInstallation makes an empty part of a cluster this installation's.
func (n *Node) markInstallation(ctx context.Context) error {
	if !n.config.isShared() {
		return nil
	}
	return n.jobs.Install(ctx, n.config.Cluster.Installation)
}

// storeSystem names what keeps the data, by the conventions for databases.
func (c Config) storeSystem() string {
	if c.isShared() {
		return "foundationdb"
	}
	return "pebble"
}
