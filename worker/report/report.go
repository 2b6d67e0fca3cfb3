// Package report is what an attempt at a unit comes to. While it runs, an Account holds what it may spend, has
// spent and has done, and a Recorder holds the calls that are captured of it; at its end a Reporter makes the
// report of both, by how it ended.
//
// It knows of one attempt, and not which others there are, how its report is sent, or what runs it: it must
// not import the worker that does.
package report

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
)

const (
	maxError  = 1 << 10 // bytes of one error's text
	maxErrors = 100     // of one report
	maxSize   = 1 << 34 // tokens of an output, whatever its provider says: a level's sum is a number still
)

// A LateError is why the context of an attempt ends that takes too long.
type LateError struct{ After time.Duration }

func (e *LateError) Error() string { return fmt.Sprintf("deadline exceeded after %v", e.After) }

// Is makes a LateError a context.DeadlineExceeded, for agents that look at the cause.
func (e *LateError) Is(target error) bool { return target == context.DeadlineExceeded }

// A Reporter makes the reports of one attempt, by how it ended and what it has spent. Nothing
// in it changes, and the account has a lock of its own, so any goroutine may use it: that of the
// slot, and the session's in place of an agent that does not return.
type Reporter struct {
	Held      protocol.Held
	Spec      *mapreduce.JobSpec // of its job; nil if it was not introduced
	Estimate  token.Estimator    // of outputs that no provider counted; nil guesses
	Context   context.Context    // of the attempt
	Account   *Account
	MaxOutput int // bytes of an output
}

// base returns a report of the attempt with its spending so far.
func (p Reporter) base(o protocol.Outcome, texts ...string) *protocol.Report {
	r := &protocol.Report{Job: p.Held.Job, Unit: p.Held.Unit, Attempt: p.Held.Attempt, Outcome: o, Errors: cleanAll(texts)}
	p.Account.enterInto(r)
	return r
}

// Returned is the report of an attempt that costs its unit nothing.
func (p Reporter) Returned(why string) *protocol.Report {
	return p.base(protocol.Returned, why)
}

// Failed is the report of an attempt that ended with err.
func (p Reporter) Failed(err error) *protocol.Report {
	if parked, ok := errors.AsType[*agent.ParkedError](err); ok {
		return p.parked(parked.Parking)
	}

	class, after := agent.Classify(err)
	var late *LateError
	var open *agent.BreakerError
	cause := p.InterruptCause()

	// The order matters: what an agent calls permanent stays so even if the attempt was
	// interrupted, and an attempt that was interrupted is not blamed on a breaker.
	switch {
	case class != protocol.Retryable:
		return p.Errored(class, after, err.Error())
	case errors.As(cause, &late):
		return p.Errored(class, after, late.Error())
	case cause != nil:
		return p.Returned(cause.Error())
	case errors.As(err, &open):
		return p.blocked(open)
	case errors.Is(err, agent.ErrBudget):
		return p.Returned(err.Error())
	}
	return p.Errored(class, after, err.Error())
}

// InterruptCause returns why the attempt's context ended, or nil if it has not.
func (p Reporter) InterruptCause() error {
	return context.Cause(p.Context)
}

// Errored is the report of an attempt that failed.
func (p Reporter) Errored(class protocol.FailureClass, after time.Duration, text string) *protocol.Report {
	r := p.base(protocol.Errored, text)
	r.Class, r.RetryAfter = class, after
	return r
}

// parked is the report of an attempt whose unit waits for something outside. It is
// taken even if the attempt was interrupted: what is waited for has begun.
func (p Reporter) parked(how mapreduce.Parking) *protocol.Report {
	if how.Handle == "" || len(how.Handle) > mapreduce.MaxHandle || !utf8.ValidString(how.Handle) || how.WakeAfter < 0 {
		return p.Errored(protocol.PermanentUnit, 0, fmt.Sprintf(
			"agent parked the unit under the handle %.64q, for %v: a handle is text of 1 to %d bytes", how.Handle, how.WakeAfter, mapreduce.MaxHandle))
	}

	how.Note = Clean(how.Note, protocol.MaxNote)
	r := p.base(protocol.Parked)
	r.Parking = &how
	return r
}

// blocked is the report of an attempt that met an open breaker. For want of room no
// unit is skipped: there will be some.
func (p Reporter) blocked(open *agent.BreakerError) *protocol.Report {
	if p.Spec.OnBreaker == mapreduce.BreakerSkip && !open.NoRoom {
		return p.Errored(protocol.PermanentUnit, 0, mapreduce.BreakerSkipped)
	}

	r := p.Returned(open.Error())
	r.RetryAfter = open.OpenFor
	if !open.NoRoom {
		r.Breaker = open.Name // so that this worker gets no more units of the model meanwhile
	}
	return r
}

// Done is the report of an attempt with a result.
func (p Reporter) Done(res *agent.Result) *protocol.Report {
	if n, most := len(res.Output), p.MaxOutput; n > most {
		return p.Errored(protocol.PermanentUnit, 0, fmt.Sprintf("output of %d bytes; at most %d are taken", n, most))
	}

	r := p.base(protocol.Done, res.Errors...)
	r.Output = res.Output

	size, _ := token.Size(res.Text, res.Size, p.Estimate)
	r.Size = min(size, maxSize)
	if res.Confidence > 0 { // not a NaN
		r.Confidence = min(res.Confidence, 1)
	}

	// A larger output is put before the report, which then only names it.
	if n := len(res.Output); n > protocol.MaxInline {
		sum := sha256.Sum256(res.Output)
		r.SHA256, r.Length = sum[:], int64(n)
	}
	return r
}

// cleanAll makes texts fit for a report.
func cleanAll(texts []string) []string {
	if len(texts) == 0 {
		return nil
	}

	out := make([]string, 0, min(len(texts), maxErrors+1))
	for i, t := range texts {
		if i == maxErrors {
			return append(out, fmt.Sprintf("and %d more", len(texts)-i))
		}
		out = append(out, Clean(t, maxError))
	}
	return out
}

// Clean returns text as valid UTF-8 without NUL, which stores and protocols
// choke on, in at most n bytes, cut between runes.
func Clean(text string, n int) string {
	if len(text) > 2*n { // bound the work on what a model or a panic may have said
		text = text[:2*n]
	}

	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	text = strings.ReplaceAll(text, "\x00", string(utf8.RuneError))
	return shorten.MarkedBytes(text, n)
}
