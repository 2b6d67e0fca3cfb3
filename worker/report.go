package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
)

const (
	maxError  = 1 << 10 // bytes of one error's text
	maxErrors = 100     // of one report
	maxSize   = 1 << 34 // tokens of an output, whatever its provider says: a level's sum is a number still
)

// A reporter makes the reports of one attempt, by how it ended and what it has spent. Nothing
// in it changes, and the account has a lock of its own, so any goroutine may use it: that of the
// slot, and the session's in place of an agent that does not return.
type reporter struct {
	held      mapreduce.Held
	job       *job            // nil if it was not introduced
	ctx       context.Context // of the attempt
	account   *account
	maxOutput int // bytes of an output
}

// base returns a report of the attempt with its spending so far.
func (p reporter) base(o mapreduce.Outcome, texts ...string) *mapreduce.Report {
	r := &mapreduce.Report{Job: p.held.Job, Unit: p.held.Unit, Attempt: p.held.Attempt, Outcome: o, Errors: cleanAll(texts)}
	p.account.enterInto(r)
	return r
}

// returned is the report of an attempt that costs its unit nothing.
func (p reporter) returned(why string) *mapreduce.Report {
	return p.base(mapreduce.Returned, why)
}

// failed is the report of an attempt that ended with err.
func (p reporter) failed(err error) *mapreduce.Report {
	if parked, ok := errors.AsType[*agent.ParkedError](err); ok {
		return p.parked(parked.Parking)
	}

	class, after := agent.Classify(err)
	var late *deadlineError
	var open *agent.BreakerError
	cause := p.interruptCause()

	// The order matters: what an agent calls permanent stays so even if the attempt was
	// interrupted, and an attempt that was interrupted is not blamed on a breaker.
	switch {
	case class != mapreduce.Retryable:
		return p.errored(class, after, err.Error())
	case errors.As(cause, &late):
		return p.errored(class, after, late.Error())
	case cause != nil:
		return p.returned(cause.Error())
	case errors.As(err, &open):
		return p.blocked(open)
	case errors.Is(err, agent.ErrBudget):
		return p.returned(err.Error())
	}
	return p.errored(class, after, err.Error())
}

// interruptCause returns why the attempt's context ended, or nil if it has not.
func (p reporter) interruptCause() error {
	return context.Cause(p.ctx)
}

// errored is the report of an attempt that failed.
func (p reporter) errored(class mapreduce.FailureClass, after time.Duration, text string) *mapreduce.Report {
	r := p.base(mapreduce.Errored, text)
	r.Class, r.RetryAfter = class, after
	return r
}

// parked is the report of an attempt whose unit waits for something outside. It is
// taken even if the attempt was interrupted: what is waited for has begun.
func (p reporter) parked(how mapreduce.Parking) *mapreduce.Report {
	if how.Handle == "" || len(how.Handle) > mapreduce.MaxHandle || !utf8.ValidString(how.Handle) || how.WakeAfter < 0 {
		return p.errored(mapreduce.PermanentUnit, 0, fmt.Sprintf(
			"agent parked the unit under the handle %.64q, for %v: a handle is text of 1 to %d bytes", how.Handle, how.WakeAfter, mapreduce.MaxHandle))
	}

	how.Note = cleanText(how.Note, mapreduce.MaxNote)
	r := p.base(mapreduce.Parked)
	r.Parking = &how
	return r
}

// blocked is the report of an attempt that met an open breaker. For want of room no
// unit is skipped: there will be some.
func (p reporter) blocked(open *agent.BreakerError) *mapreduce.Report {
	if p.job.spec.OnBreaker == mapreduce.BreakerSkip && !open.NoRoom {
		return p.errored(mapreduce.PermanentUnit, 0, mapreduce.BreakerSkipped)
	}

	r := p.returned(open.Error())
	r.RetryAfter = open.OpenFor
	if !open.NoRoom {
		r.Breaker = open.Name // so that this worker gets no more units of the model meanwhile
	}
	return r
}

// done is the report of an attempt with a result.
func (p reporter) done(res *agent.Result) *mapreduce.Report {
	if n, most := len(res.Output), p.maxOutput; n > most {
		return p.errored(mapreduce.PermanentUnit, 0, fmt.Sprintf("output of %d bytes; at most %d are taken", n, most))
	}

	r := p.base(mapreduce.Done, res.Errors...)
	r.Output = res.Output

	size, _ := token.Size(res.Text, res.Size, p.job.estimate)
	r.Size = min(size, maxSize)
	if res.Confidence > 0 { // not a NaN
		r.Confidence = min(res.Confidence, 1)
	}

	// A larger output is put before the report, which then only names it.
	if n := len(res.Output); n > mapreduce.MaxInline {
		sum := sha256.Sum256(res.Output)
		r.SHA256, r.Length = sum[:], int64(n)
	}
	return r
}

// wireReport returns r as it is sent: without an output that is put before.
func wireReport(r *mapreduce.Report) mapreduce.Report {
	out := *r
	if r.Length > 0 {
		out.Output = nil
	}
	return out
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
		out = append(out, cleanText(t, maxError))
	}
	return out
}

// cleanText returns text as valid UTF-8 without NUL, which stores and protocols
// choke on, in at most n bytes, cut between runes.
func cleanText(text string, n int) string {
	if len(text) > 2*n { // bound the work on what a model or a panic may have said
		text = text[:2*n]
	}

	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	text = strings.ReplaceAll(text, "\x00", string(utf8.RuneError))
	return shorten.MarkedBytes(text, n)
}
