package rig

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fdb"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/pebble"
	"github.com/coditect/mapreduce/store/tuple"
)

// A Site is where places are made.
type Site struct {
	Dir     string                  // holds the places, each a folder that is removed afterwards
	Cluster string                  // cluster file of the FoundationDB that holds the stores instead; empty for none
	Lanes   int                     // of an orchestrator, and of the bare loop
	Without orchestrator.Courtesies // that orchestrators leave out

	// Rules are those of tenants; nil sets none.
	Rules func(mapreduce.TenantID) mapreduce.TenantRule `json:"-"`
}

// A Place is where something is measured: a folder, which holds the store unless
// that is a part of a cluster, named as the folder.
type Place struct {
	Dir     string
	Cluster string // cluster file; empty for none
	lanes   int    // of each orchestrator
	without orchestrator.Courtesies
	rules   func(mapreduce.TenantID) mapreduce.TenantRule
}

// OpenStore opens the store of the place.
func (p Place) OpenStore() (store.Store, error) {
	if p.Cluster != "" {
		return fdb.Open(p.Cluster, fdb.Config{})
	}
	return pebble.Open(filepath.Join(p.Dir, "store"), pebble.Config{})
}

// KeyPrefix is what the keys of the place begin with where others share its store.
func (p Place) KeyPrefix() string { return filepath.Base(p.Dir) }

// keySpace returns the keys that are used there.
func (p Place) keySpace() *keys.Space {
	if p.Cluster != "" {
		return keys.New(p.KeyPrefix())
	}
	return keys.New()
}

// InPlace runs fn in a place of its own, which is removed afterwards.
func (site *Site) InPlace(fn func(p Place) error) error {
	dir, err := os.MkdirTemp(site.Dir, "bench-")
	if err != nil {
		return err
	}
	p := Place{dir, site.Cluster, site.Lanes, site.Without, site.Rules}
	return errors.Join(fn(p), p.clearCluster(), os.RemoveAll(dir))
}

// clearCluster removes what is in a cluster.
func (p Place) clearCluster() error {
	if p.Cluster == "" {
		return nil
	}
	s, err := p.OpenStore()
	if err != nil {
		return err
	}

	err = store.NewDB(s, store.Config{}).Update(context.Background(), func(tx store.Tx) error {
		tx.ClearRange(store.Prefixed(tuple.AppendString(nil, p.KeyPrefix())))
		return nil
	})
	return errors.Join(err, s.Close())
}
