package figures

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fdb"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/pebble"
	"github.com/coditect/mapreduce/store/tuple"
)

// A storePlace is where something is measured: a folder, which holds the store unless
// that is a part of a cluster, named as the folder.
type storePlace struct {
	dir     string
	cluster string // cluster file; empty for none
	lanes   int    // of each orchestrator
	without orchestrator.Courtesies
}

func (p storePlace) openStore() (store.Store, error) {
	if p.cluster != "" {
		return fdb.Open(p.cluster, fdb.Config{})
	}
	return pebble.Open(filepath.Join(p.dir, "store"), pebble.Config{})
}

func (p storePlace) keyPrefix() string { return filepath.Base(p.dir) }

// keySpace returns the keys that are used there.
func (p storePlace) keySpace() *keys.Space {
	if p.cluster != "" {
		return keys.New(p.keyPrefix())
	}
	return keys.New()
}

// inPlace runs fn in a place of its own, which is removed afterwards.
func (l *Lab) inPlace(fn func(p storePlace) error) error {
	dir, err := os.MkdirTemp(l.Dir, "bench-")
	if err != nil {
		return err
	}
	p := storePlace{dir, l.Cluster, l.Lanes, l.Without}
	return errors.Join(fn(p), p.clearCluster(), os.RemoveAll(dir))
}

// clearCluster removes what is in a cluster.
func (p storePlace) clearCluster() error {
	if p.cluster == "" {
		return nil
	}
	s, err := p.openStore()
	if err != nil {
		return err
	}
	err = store.NewDB(s, store.Config{}).Update(context.Background(), func(tx store.Tx) error {
		tx.ClearRange(store.Prefixed(tuple.AppendString(nil, p.keyPrefix())))
		return nil
	})
	return errors.Join(err, s.Close())
}
