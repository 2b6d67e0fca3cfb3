package figures

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fdb"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/pebble"
	"github.com/coditect/mapreduce/store/tuple"
)

// A place is where something is measured: a folder, which holds the store unless
// that is a part of a cluster, named as the folder.
type place struct {
	dir     string
	cluster string // cluster file; empty for none
	lanes   int    // of each orchestrator
}

func (p place) open() (store.Store, error) {
	if p.cluster != "" {
		return fdb.Open(p.cluster, fdb.Config{})
	}
	return pebble.Open(filepath.Join(p.dir, "store"), pebble.Config{})
}

func (p place) prefix() string { return filepath.Base(p.dir) }

// space returns the keys that are used there.
func (p place) space() *keys.Space {
	if p.cluster != "" {
		return keys.New(p.prefix())
	}
	return keys.New()
}

// at runs fn in a place of its own, which is removed afterwards.
func (l *Lab) at(fn func(p place) error) error {
	dir, err := os.MkdirTemp(l.Dir, "bench-")
	if err != nil {
		return err
	}
	p := place{dir, l.Cluster, l.Lanes}
	return errors.Join(fn(p), p.clear(), os.RemoveAll(dir))
}

// clear removes what is in a cluster.
func (p place) clear() error {
	if p.cluster == "" {
		return nil
	}
	s, err := p.open()
	if err != nil {
		return err
	}
	err = store.NewDB(s, store.Config{}).Update(context.Background(), func(tx store.Tx) error {
		tx.ClearRange(store.Prefixed(tuple.AppendString(nil, p.prefix())))
		return nil
	})
	return errors.Join(err, s.Close())
}
