// Package fdb is the driver for FoundationDB, the store of a fleet. It needs
// FoundationDB's client library, libfdb_c, and cgo, so it is built only with the
// build tag fdb; without it, Open says how to get a program that has it.
//
// It relies on the part of FoundationDB that the contract of package store describes, and
// on nothing that is experimental or on its way out: no tenants, no tags, no
// automatic idempotency, no cached read versions. A prefix stands for a tenant,
// and is no protection.
//
// # What using FoundationDB well asks for, and where it is answered
//
// Keys are short tuples under a prefix that stands in each; the directory layer
// would make it shorter by a few bytes, and opening by a transaction longer. Keys
// are those of package store/keys: one record a unit is its fence, one record a
// claim names what a session holds, one counter wakes all orchestrators.
//
// Limits. Results and texts are in chunks (store.ChunkSize), which are written
// under their attempt before the transaction that publishes them; long work goes
// in steps (store.TargetTxSize, and those of store/jobs). Config.MaxTxSize makes
// the client refuse what got too large all the same (TestMaxTxSize).
//
// Claims read queues by snapshot, and the records of what they take serializably,
// which is all that conflicts; they are made by orchestrators in batches, in one
// transaction with the finishes that freed the slots (queue.Turn of store/jobs). Counters
// are atomic adds, striped by orchestrator. The last finish of a level is seen by
// a read after the commit, so that finishes do not conflict.
//
// Time. Versions are no clock: after a recovery they are far ahead. Nothing reads
// one as time. An orchestrator is dead when its beat has not moved for the lease
// on the watcher's own clock while the store answered (BeatLoop of
// orchestrator/cluster); what a unit's record says of its attempt is all that safety rests on.
//
// Attempts. The binding's Transact tries for ever, takes no context and turns
// panics into errors; store.DB tries again instead, counts, and stops with the
// context. Every transaction recognises its own success, as it may run again after
// 1021 (TestAgainstModelTwice of store/jobs, and make test-fdb with
// client_buggify). No time-out is set on transactions: one that times out may
// still commit later, as one that is cancelled, and callers are told so
// (store.ErrTimedOut, TestErrorsOfTheClient). Waits are cut off by the context.
//
// Watches are armed in read-only transactions of their own, as arming adds a read
// conflict, and cancelled when nobody waits any more. An orchestrator has one, on
// the counter of wake-ups, which it arms before it looks; a poll is the net under
// it (wakeLoop of orchestrator/lifecycle). So the client's bound of 10,000 watches is far away.
//
// Priorities. All transactions have the default one: background work is bounded
// by its steps, and batch priority may stop for as long as a cluster is busy,
// which a deletion or a takeover must not.
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
