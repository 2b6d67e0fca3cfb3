//go:build !fdb

package fdb

import (
	"errors"

	"github.com/coditect/mapreduce/store"
)

// ErrNotBuilt is what Open returns in a program built without FoundationDB.
var ErrNotBuilt = errors.New("store/fdb: this program was built without FoundationDB: " +
	"install FoundationDB's client library (libfdb_c 7.3 with its headers) and build with `make build-fdb`, " +
	"which is `CGO_ENABLED=1 go build -tags fdb ./cmd/coditect`, or use the image that has it")

// Open fails: see ErrNotBuilt.
func Open(string, Config) (store.Store, error) { return nil, ErrNotBuilt }
