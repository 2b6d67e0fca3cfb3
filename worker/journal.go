package worker

import (
	"context"

	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/worker/agent"
)

// openJournal makes ready what earlier attempts at the unit have remembered.
func (a *attempt) openJournal() error {
	assigned := &a.task.Assignment
	opened, err := journal.Open(assigned.Journal, assigned.JournalEntries, a.held.Attempt, journalOwner{a.calls})
	if err != nil {
		return err
	}

	a.session.mu.Lock()
	defer a.session.mu.Unlock()
	a.calls.journal = opened
	return nil
}

// A journalOwner is told of the journal of a unit.
type journalOwner struct{ calls *calls }

// Offer implements journal.Owner. It has entries stored if that is due, or somebody waits
// for it.
func (o journalOwner) Offer(now bool) {
	due := now || o.calls.Unkept() >= agent.KeepEvery
	if !due {
		return
	}

	s, e := o.calls.session, o.calls.entry
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.phase == running { // else its report has sent them, or nobody takes them
		s.deliveries.sendEntries(e)
	}
}

// Strayed implements journal.Owner.
func (o journalOwner) Strayed(key string, next journal.Entry, left int) {
	o.calls.session.cfg.Logger.Info("the unit does something that its journal does not hold, before all of it was used; the rest is used only for what has the same key",
		o.calls.entry.logged("key", key, "next", next.Key, "of_attempt", next.Attempt, "unused", left)...)
}

// Forgot implements journal.Owner.
func (o journalOwner) Forgot(key string, why error) {
	o.calls.session.cfg.Logger.Warn("what a unit has done cannot be remembered: another attempt would do it again",
		o.calls.entry.logged("key", key, "error", why)...)
}

// Do implements agent.Journal.
func (c *calls) Do(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	return c.journal.Do(ctx, key, fn)
}

// DoOnce implements agent.Journal.
func (c *calls) DoOnce(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	ctx, stop := c.attemptContext(ctx)
	defer stop()
	return c.journal.DoOnce(ctx, key, fn)
}

// Recall implements agent.Journal.
func (c *calls) Recall(key string) ([]byte, bool) { return c.journal.Recall(key) }

// storeBefore returns when what was done is stored, if the tokens that it took and those of
// the call that is about to be made are more than may be lost with the worker. Where
// nothing is stored any more, the call is made all the same. An error says why the
// attempt, or the call, has ended.
func (c *calls) storeBefore(ctx context.Context, tokens int64) error {
	if c.Unkept()+tokens <= agent.KeepEvery || c.journal.Waiting() == 0 {
		return nil
	}
	ctx, stop := c.attemptContext(ctx)
	defer stop()
	if err := c.journal.Sync(ctx); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}
