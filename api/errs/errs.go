// Package errs holds the service's closed set of error kinds. A kind tells what the
// caller can do, survives the wire, and maps to one status code of gRPC.
// It imports nothing of the project.
package errs

import (
	"errors"
	"fmt"
	"time"
)

// A Kind tells what a caller can do about an error.
type Kind uint8

// The kinds.
const (
	Internal     Kind = iota // a bug or an external failure: report it
	Invalid                  // the request is wrong: change it (see Error.Field)
	NotFound                 // the object does not exist
	Exists                   // the object exists already
	Precondition             // the object's state does not allow it
	Exhausted                // too much: try later, see Error.RetryAfter
	Unavailable              // try again
	Aborted                  // lost a race: read again and try again
	Unauthenticated
	Denied
	Cancelled
	Deadline
	DataLoss // the stored data is damaged
)

var kindNames = [...]string{
	"internal", "invalid", "not_found", "exists", "precondition", "exhausted", "unavailable",
	"aborted", "unauthenticated", "denied", "cancelled", "deadline", "data_loss",
}

// String returns the kind's stable name.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "internal"
}

// Error makes a kind usable as a target: errors.Is(err, errs.NotFound).
func (k Kind) Error() string { return k.String() }

// An Error has a kind and tells what was wrong, where, and what to do.
type Error struct {
	Kind       Kind
	Op         string        // the operation; may be empty
	Field      string        // the field of the request that is wrong, for Invalid
	Reason     string        // a stable word in upper case for programs; may be empty
	Message    string        // for people
	RetryAfter time.Duration // the least pause before trying again; 0 if unknown
	Err        error         // the cause; not shown beyond this process
}

// New returns an error of kind k.
func New(k Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: k, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Field returns an Invalid error about one field of a request.
func Field(field, format string, args ...any) *Error {
	e := New(Invalid, format, args...)
	e.Field = field
	return e
}

// Error returns the operation and the message.
func (e *Error) Error() string {
	msg := e.Message
	if e.Field != "" {
		msg = e.Field + ": " + msg
	}
	if e.Op != "" {
		msg = e.Op + ": " + msg
	}
	return msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is e's kind.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// StoreAway is the reason of an Unavailable error if the server answers but its store
// does not.
const StoreAway = "STORE_AWAY"

// LineOpen is the reason of a Precondition error if a unit waits for a batch to answer another request.
const LineOpen = "LINE_OPEN"

// NoBatchRoom is the reason of an Exhausted error if a batch has to wait: with those that its vendor has it
// would pass a limit of the account.
const NoBatchRoom = "NO_BATCH_ROOM"

// StoreFull is the reason of an Exhausted error if the disk of the store is full. The
// store logs that itself, and goes on when there is room again.
const StoreFull = "STORE_FULL"

// JobComplete is the reason of a Precondition error if a job cannot be resumed because it
// is complete, and no unit of it failed.
const JobComplete = "JOB_COMPLETE"

// ReasonOf returns the reason of the first Error in err's chain, or "".
func ReasonOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// KindOf returns the kind of the first Error in err's chain, or Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}
