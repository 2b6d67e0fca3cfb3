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

import "time"

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
