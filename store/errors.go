package store

import "errors"

// Errors of transactions. Drivers wrap them; test with errors.Is.
var (
	// ErrConflict: something that was read has changed (FoundationDB 1020).
	ErrConflict = errors.New("store: transaction conflicts with another")
	// ErrTooOld: the transaction is older than MaxTxAge (1007).
	ErrTooOld = errors.New("store: transaction too old")
	// ErrProcessBehind: the store cannot serve the read version yet (1037, 1009).
	ErrProcessBehind = errors.New("store: process behind")
	// ErrUnknownResult: the commit happened or never will (1021).
	ErrUnknownResult = errors.New("store: commit result unknown")
	// ErrTimedOut: the commit happened, may yet happen, or never will (1031).
	ErrTimedOut = errors.New("store: transaction timed out")
	// ErrKeyTooLarge: a key is longer than MaxKeySize (2102).
	ErrKeyTooLarge = errors.New("store: key too large")
	// ErrValueTooLarge: a value is longer than MaxValueSize (2103).
	ErrValueTooLarge = errors.New("store: value too large")
	// ErrTxTooLarge: a transaction is larger than MaxTxSize (2101).
	ErrTxTooLarge = errors.New("store: transaction too large")
	// ErrReservedKey: the key begins with 0xFF (2004).
	ErrReservedKey = errors.New("store: key begins with 0xFF, which is reserved")
	// ErrUnreadable: the key has a pending versionstamp (1036).
	ErrUnreadable = errors.New("store: key not readable before its commit")
	// ErrUsed: the transaction was committed or discarded before (2017).
	ErrUsed = errors.New("store: transaction used after its end")
	// ErrNoSpace: the store refuses writes until there is disk space.
	ErrNoSpace = errors.New("store: no space left")
	// ErrReadOnly: the store was opened for reading alone.
	ErrReadOnly = errors.New("store: open for reading only")
	// ErrCorrupt: what is stored cannot be what was written.
	ErrCorrupt = errors.New("store: corrupt")
	// ErrInUse: another process holds the store.
	ErrInUse = errors.New("store: in use by another process")
	// ErrNewer: the store was written by a newer version of this program.
	ErrNewer = errors.New("store: written by a newer version")
	// ErrOlder: the store was written by an older version of this program, whose
	// layout this one does not read.
	ErrOlder = errors.New("store: written by an older version")
	// ErrForeign: the part of the store is another's.
	ErrForeign = errors.New("store: in use by another installation, or another program")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store: closed")
)

// Retryable reports whether running a transaction again may succeed. After
// some of these errors the first run may have committed, see MaybeCommitted.
func Retryable(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrTooOld) ||
		errors.Is(err, ErrProcessBehind) || MaybeCommitted(err)
}

// MaybeCommitted reports whether err leaves open that the transaction
// committed, or yet commits. A driver whose wait for a commit is cut off by the
// context says ErrTimedOut.
func MaybeCommitted(err error) bool {
	return errors.Is(err, ErrUnknownResult) || errors.Is(err, ErrTimedOut)
}
