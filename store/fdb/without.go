//go:build !fdb

package fdb

import "github.com/coditect/mapreduce/store"

// Open fails: see ErrNotBuilt.
func Open(string, Config) (store.Store, error) { return nil, ErrNotBuilt }
