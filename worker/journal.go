package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/worker/agent"
)

// openJournal makes ready what earlier attempts at the unit have remembered.
func (u *unit) openJournal() error {
	a := &u.task.Assignment
	opened, err := journal.Open(a.Journal, a.JournalEntries, u.attempt, journalOwner{u})
	if err != nil {
		return err
	}

	u.session.mu.Lock()
	defer u.session.mu.Unlock()
	u.journal = opened
	return nil
}

// A journalOwner is told of the journal of a unit.
type journalOwner struct{ u *unit }

// Offer implements journal.Owner. It has entries stored if that is due, or somebody waits
// for it.
func (o journalOwner) Offer(now bool) {
	u := o.u
	due := now || u.unkept() >= agent.KeepEvery
	if !due {
		return
	}

	s := u.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.phase == running { // else its report has sent them, or nobody takes them
		u.sendEntries()
	}
}

// Strayed implements journal.Owner.
func (o journalOwner) Strayed(key string, next journal.Entry, left int) {
	o.u.session.cfg.Logger.Info("the unit does something that its journal does not hold, before all of it was used; the rest is used only for what has the same key",
		"job", o.u.id.job, "unit", o.u.id.unit, "attempt", o.u.attempt, "key", key, "next", next.Key, "of_attempt", next.Attempt, "unused", left)
}

// Forgot implements journal.Owner.
func (o journalOwner) Forgot(key string, why error) {
	o.u.session.cfg.Logger.Warn("what a unit has done cannot be remembered: another attempt would do it again",
		"job", o.u.id.job, "unit", o.u.id.unit, "attempt", o.u.attempt, "key", key, "error", why)
}

// Do implements agent.Journal.
func (u *unit) Do(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	return u.journal.Do(ctx, key, fn)
}

// DoOnce implements agent.Journal.
func (u *unit) DoOnce(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	ctx, stop := u.attemptContext(ctx)
	defer stop()
	return u.journal.DoOnce(ctx, key, fn)
}

// Recall implements agent.Journal.
func (u *unit) Recall(key string) ([]byte, bool) { return u.journal.Recall(key) }

// storeBefore returns when what was done is stored, if the tokens that it took and those of
// the call that is about to be made are more than may be lost with the worker. Where
// nothing is stored any more, the call is made all the same. An error says why the
// attempt, or the call, has ended.
func (u *unit) storeBefore(ctx context.Context, tokens int64) error {
	if u.unkept()+tokens <= agent.KeepEvery || u.journal.Waiting() == 0 {
		return nil
	}
	ctx, stop := u.attemptContext(ctx)
	defer stop()
	if err := u.journal.Sync(ctx); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// sendEntries has all entries of the journal stored that are there now. The report of
// the attempt waits for it. session.mu is held.
func (u *unit) sendEntries() {
	if u.journal == nil {
		return // the agent was not started
	}

	u.markKept()
	u.sendUpTo = u.journal.Len()

	if u.sending || u.journal.Waiting() == 0 {
		return
	}

	u.sending = true
	u.session.beginPut(u, u.putEntries)
}

// putEntries stores entries, as many at once as fit, until those are stored that were
// to be sent.
func (u *unit) putEntries(ctx context.Context) {
	s := u.session
	for {
		s.mu.Lock()
		first, data, n := u.journal.Next(u.sendUpTo)
		u.sending = n > 0
		s.mu.Unlock()
		if n == 0 {
			return
		}

		sum := sha256.Sum256(data)
		b := mapreduce.Blob{Kind: mapreduce.BlobJournal, FirstEntry: first, SHA256: sum[:]}

		err := s.transfers.Put(ctx, u.attemptHeld(), b, data, 0)
		if err == nil {
			u.journal.Acknowledge(n)
			continue
		}

		u.journal.Break(fmt.Errorf("the journal of the unit is not stored any more: %w", err))
		if ctx.Err() == nil && !errors.Is(err, errs.Precondition) { // the last: the report will be refused as well
			s.cfg.Logger.Error("storing the journal of a unit", "job", u.id.job, "unit", u.id.unit, "attempt", u.attempt, "error", err)
		}
	}
}

// leavesJournal reports whether what a unit that ends so has remembered is of use: it
// may be tried again, or the job be repeated.
func (u *unit) leavesJournal(o mapreduce.Outcome) bool {
	return o != mapreduce.Done || u.job != nil && u.job.spec.Capture == mapreduce.CaptureFull
}
