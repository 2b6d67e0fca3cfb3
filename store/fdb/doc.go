// Package fdb is the driver for FoundationDB, the store of a fleet. It needs
// FoundationDB's client library, libfdb_c, and cgo, so it is built only with the
// build tag fdb; without it, Open says how to get a program that has it.
//
// What it relies on of FoundationDB is the contract of package store, and
// nothing that is experimental or on its way out: no tenants, no tags, no
// automatic idempotency. Transactions are tried again by store.DB, which knows
// contexts and counts attempts, not by the binding's Transact, which does
// neither. No time-out is set on transactions: one that times out may still
// commit later.
package fdb

import (
	"errors"
	"time"
)

// APIVersion is the version of FoundationDB's API that the driver speaks: that
// of release 7.3.
const APIVersion = 730

// A Config says how a cluster is used. The zero value works.
type Config struct {
	// ConnectTimeout is how long Open waits for the cluster to answer.
	// Defaults to 5 s.
	ConnectTimeout time.Duration
	// MaxTxSize is the size from which a commit fails with store.ErrTxTooLarge:
	// bytes of keys, values and conflict ranges. Defaults to store.MaxTxSize,
	// which is FoundationDB's own limit.
	MaxTxSize int
}

// ErrNotBuilt is what Open returns in a program built without FoundationDB.
var ErrNotBuilt = errors.New("store/fdb: this program was built without FoundationDB: " +
	"install FoundationDB's client library (libfdb_c 7.3 with its headers) and build with `make build-fdb`, " +
	"which is `CGO_ENABLED=1 go build -tags fdb ./cmd/coditect`, or use the image that has it")
