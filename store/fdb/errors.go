//go:build fdb

package fdb

import (
	"errors"
	"fmt"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/coditect/mapreduce/store"
)

// errorKinds maps codes of FoundationDB to the errors that callers distinguish. A
// retry does not help with any other error.
//
// After 1021 the transaction is certainly no longer in flight. After 1025, 1031, 1039
// and 1101 it may still commit later. If the cluster refused a transaction because
// of load, nothing was written.
var errorKinds = map[int]error{
	1007: store.ErrTooOld,        // transaction_too_old
	1009: store.ErrProcessBehind, // future_version
	1020: store.ErrConflict,      // not_committed
	1021: store.ErrUnknownResult, // commit_unknown_result
	1025: store.ErrTimedOut,      // transaction_cancelled
	1031: store.ErrTimedOut,      // transaction_timed_out
	1036: store.ErrUnreadable,    // accessed_unreadable
	1037: store.ErrProcessBehind, // process_behind
	1038: store.ErrProcessBehind, // database_locked, as while a backup is restored
	1039: store.ErrTimedOut,      // cluster_version_changed
	1042: store.ErrProcessBehind, // commit_proxy_memory_limit_exceeded
	1051: store.ErrProcessBehind, // batch_transaction_throttled
	1078: store.ErrProcessBehind, // grv_proxy_memory_limit_exceeded
	1101: store.ErrTimedOut,      // operation_cancelled
	1213: store.ErrProcessBehind, // tag_throttled
	1223: store.ErrProcessBehind, // proxy_tag_throttled
	2004: store.ErrReservedKey,   // key_outside_legal_range
	2017: store.ErrUsed,          // used_during_commit
	2101: store.ErrTxTooLarge,    // transaction_too_large
	2102: store.ErrKeyTooLarge,   // key_too_large
	2103: store.ErrValueTooLarge, // value_too_large
}

// invalidConnection is the code for a cluster file that the client cannot parse.
const invalidConnection = 2104

// codeOf returns the code of an error of the client, or 0.
func codeOf(err error) int {
	if e, ok := errors.AsType[fdb.Error](err); ok {
		return e.Code
	}
	return 0
}

// mapError wraps an error of the client in the corresponding error of package store.
func mapError(err error) error {
	var e fdb.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("store/fdb: %w", err)
	}
	if kind, ok := errorKinds[e.Code]; ok {
		return fmt.Errorf("%w (FoundationDB %d: %w)", kind, e.Code, e)
	}
	return fmt.Errorf("store/fdb: FoundationDB %d: %w", e.Code, e)
}
