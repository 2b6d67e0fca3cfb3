package llm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
)

// Kind says what went wrong with a call.
type Kind uint8

// The kinds of errors. A job cannot go on after one of the first group, a unit
// cannot after one of the second, and the rest is worth another attempt.
const (
	Auth       Kind = iota + 1 // no key, or a wrong one
	Permission                 // a key that may not do this
	Billing                    // no money, or a quota used up
	NotFound                   // an unknown model or address
	NotAPI                     // what answered is no such interface: a proxy's web page
	NotThere                   // nobody listens at the address, and nobody has since this process began
	BadSchema                  // the vendor cannot express the schema

	Invalid  // the request was refused
	TooLarge // the prompt does not fit, or the answer did not: a smaller unit might
	Refused  // the model would not answer
	Filtered // the vendor's filter would not let it

	RateLimited // too many calls or tokens
	Overloaded  // the vendor has too much to do
	Server      // the vendor's fault
	Timeout     // no answer in time, or none for too long in mid-stream
	Network     // no connection
	CutOff      // the stream ended before the answer did
	Garbled     // an answer that is not in the vendor's own format
	Empty       // an answer that says nothing
	Mismatch    // an answer that does not fit the schema
)

// String names the kind.
func (k Kind) String() string {
	names := [...]string{
		"unknown", "authentication", "permission", "billing", "not found", "not the interface", "not there", "schema",
		"invalid request", "too large", "refused", "filtered",
		"rate limit", "overloaded", "server error", "timeout", "network", "cut off", "garbled", "empty", "mismatch",
	}
	if int(k) < len(names) {
		return names[k]
	}
	return names[0]
}

// Class returns what an error of the kind means for the unit and the job.
func (k Kind) Class() protocol.FailureClass {
	switch k {
	case Auth, Permission, Billing, NotFound, NotAPI, NotThere, BadSchema:
		return protocol.PermanentJob
	case Invalid, TooLarge, Refused, Filtered:
		return protocol.PermanentUnit
	default:
		return protocol.Retryable
	}
}

// An Error is a call without an answer that could be used.
type Error struct {
	Kind       Kind
	Class      protocol.FailureClass // that of Kind, unless the vendor says otherwise
	Status     int                   // of HTTP; 200 if it broke in mid-stream; 0 without a response
	Sent       bool                  // the request was sent: its vendor may have begun to answer, and to charge
	Message    string                // for users; keys are taken out
	RequestID  string                // the vendor's
	RetryAfter time.Duration         // the least pause; 0 if none was asked for
	Usage      Usage                 // what was paid for in vain
	Limits     Limits                // what the vendor says is left
	Err        error                 // a cause, or nil
}

// NewError returns an error of a kind, with the class of that kind.
func NewError(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Class: kind.Class(), Message: fmt.Sprintf(format, args...)}
}

// Error returns the failure, with the vendor's id of the request.
func (e *Error) Error() string {
	text := e.Kind.String()
	if e.Status >= 300 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}

	if e.Message != "" {
		text += ": " + e.Message
	}

	if e.RequestID != "" {
		text += " [request " + e.RequestID + "]"
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ForAgent returns err as agents report it, with its class and pause, so that
// breakers and orchestrators judge it rightly. What is not an *Error is returned
// as it is.
func ForAgent(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	if _, done := errors.AsType[*agent.Error](err); done {
		return err
	}
	return &agent.Error{Class: e.Class, RetryAfter: e.RetryAfter, Err: err}
}

// BrokenError returns the error of a call whose connection or stream broke with err.
func BrokenError(ctx context.Context, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}

	cause := context.Cause(ctx)
	// The reason for which the context ended says more than the error that this led to.
	switch {
	case cause != nil:
		if e, ok := errors.AsType[*Error](cause); ok {
			return e
		}
		e := NewError(Timeout, "the call was called off: %v", cause)
		if !errors.Is(cause, context.DeadlineExceeded) {
			e.Kind = Network
		}
		e.Err = cause
		return e
	case isTimeout(err):
		return WrapError(Timeout, err)
	default:
		return WrapError(Network, err)
	}
}

// WrapError returns an error of a kind whose cause is err.
func WrapError(kind Kind, err error) *Error {
	e := NewError(kind, "%v", err)
	e.Err = err
	return e
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && t.Timeout()
}
