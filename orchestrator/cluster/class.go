package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
)

// A Class says what an error means for the job, or the unit, that it happened to.
type Class uint8

// The classes of errors.
const (
	// Unclear says neither of the others: what failed is tried again for a while, and then
	// the error counts as Permanent.
	Unclear Class = iota
	// Passing has to do with the moment: the store is away or full, another was faster.
	Passing
	// Permanent would come again: what is stored is at fault, or the job, or the program.
	Permanent
)

// ClassOf returns the class of an error.
func ClassOf(err error) Class {
	for _, target := range []error{ErrPanic, store.ErrCorrupt, store.ErrKeyTooLarge, store.ErrValueTooLarge, store.ErrTxTooLarge, store.ErrReservedKey} {
		if errors.Is(err, target) {
			return Permanent
		}
	}

	if store.Retryable(err) {
		return Passing
	}
	for _, target := range []error{store.ErrNoSpace, store.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, target) {
			return Passing
		}
	}

	switch errs.KindOf(err) {
	case errs.DataLoss, errs.Invalid:
		return Permanent
	case errs.Unavailable, errs.Exhausted, errs.Aborted, errs.Cancelled, errs.Deadline:
		return Passing
	}
	return Unclear
}

// IsPermanent reports whether what is stored is at fault, or the job, or the program, so
// that trying again cannot help.
func IsPermanent(err error) bool { return ClassOf(err) == Permanent }

// IsDamage reports whether what is stored is at fault: no attempt at the unit that met it
// can do better, and no worker is to blame.
func IsDamage(err error) bool {
	return errors.Is(err, store.ErrCorrupt) || errs.KindOf(err) == errs.DataLoss
}

// unclearFor is how long what fails with an unclear error is tried again, on the clock
// that runs while the store answers.
const unclearFor = 30 * time.Second

// Troubles are the jobs for which something fails with unclear errors, and since when. The
// zero value has none. Its methods are safe for concurrent use.
type Troubles struct {
	mu    sync.Mutex // guards since
	since map[mapreduce.JobID]time.Duration
}

// End forgets a job for which all went well.
func (t *Troubles) End(id mapreduce.JobID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.since, id)
}

// HasLasted notes that something failed for a job, and reports whether it has done so for
// as long as errors are tried again that are unclear; now is the store's uptime.
func (t *Troubles) HasLasted(id mapreduce.JobID, now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()

	since, known := t.since[id]
	if !known {
		if t.since == nil {
			t.since = make(map[mapreduce.JobID]time.Duration)
		}
		t.since[id] = now
		return false
	}

	return now-since >= unclearFor
}

// MustFail reports whether a job has to fail with an error that came while something was
// tried for it that is tried again: the error is permanent, or has come for long. The job's
// troubles are noted in t.
func (s *Supervisor) MustFail(t *Troubles, id mapreduce.JobID, err error) bool {
	switch ClassOf(err) {
	case Permanent:
		return true
	case Passing:
		return false
	}
	return t.HasLasted(id, s.StoreUptime())
}
