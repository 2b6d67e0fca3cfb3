package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

// ErrBudget is the error of Calls.Reserve if the job has too few tokens left.
var ErrBudget = errors.New("token budget refused")

// ErrTooLong is why a document is not looked through for a quote that does not
// stand in its chunk.
var ErrTooLong = errors.New("the document is too long to be looked through")

// ErrNoRoom is the error of EvidenceKeeper.KeepEvidence for a unit that has as much
// evidence as it may have.
var ErrNoRoom = errors.New("the unit has no room for more evidence")

// ErrNoPages is why no pages of a document are drawn: nothing here draws any.
var ErrNoPages = errors.New("nothing draws pages of documents here")

// A BreakerError is why Calls.Call did not run a call, or why one that the vendor took
// too long to have room for was given up.
type BreakerError struct {
	Name    string        // provider/model
	OpenFor time.Duration // how long the breaker stays open yet
	NoRoom  bool          // the vendor is well, and refuses for want of room
}

// Error names the breaker.
func (e *BreakerError) Error() string {
	if e.NoRoom {
		return fmt.Sprintf("%s has no room for another call, and none is expected within %v", e.Name, e.OpenFor.Round(time.Millisecond))
	}
	return fmt.Sprintf("circuit breaker of %s is open for %v", e.Name, e.OpenFor.Round(time.Millisecond))
}

// A ParkedError is what an agent returns whose unit waits for something outside: a
// batch at a vendor, or a person. The attempt ends, its slot is free, and what it
// kept reaches the next attempt, which begins when the time has come or a call wakes
// the unit (Task.WakeCall). It is no failure, and none is counted.
type ParkedError struct{ mapreduce.Parking }

// Park returns what an agent returns to wait under a handle of 1 to
// mapreduce.MaxHandle bytes, for after at most; 0 waits until a call wakes the unit.
// The note says for people what the unit waits for.
func Park(handle string, after time.Duration, note string) error {
	return &ParkedError{mapreduce.Parking{Handle: handle, WakeAfter: after, Note: note}}
}

// Error says what the unit waits for.
func (e *ParkedError) Error() string {
	return fmt.Sprintf("the unit waits for %q: %s", e.Handle, e.Note)
}

// An Error classifies a failure: what it means for its unit and its job. Its text is
// the text of Err.
type Error struct {
	Class      protocol.FailureClass
	RetryAfter time.Duration // the least pause before another attempt; 0 if unknown
	Err        error
}

// Error returns the text of the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retry marks err as worth another attempt, no sooner than after a pause.
func Retry(err error, after time.Duration) error {
	return &Error{Class: protocol.Retryable, RetryAfter: after, Err: err}
}

// Permanent marks err as one that every attempt at the unit would meet.
func Permanent(err error) error {
	return &Error{Class: protocol.PermanentUnit, Err: err}
}

// PermanentJob marks err as one that every unit of the job would meet:
// authentication, billing, settings.
func PermanentJob(err error) error {
	return &Error{Class: protocol.PermanentJob, Err: err}
}

// Classify returns the class of the outermost Error in err's chain and the
// least pause before another attempt. An error of another type is retryable: the
// number of attempts bounds it.
func Classify(err error) (protocol.FailureClass, time.Duration) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class, e.RetryAfter
	}
	return protocol.Retryable, 0
}
