package storetest

import (
	"context"
	"errors"

	"github.com/coditect/mapreduce/store"
)

func endChecks() []Check {
	return []Check{
		{Name: "a transaction is used once", check: usedOnce},
		{Name: "a discarded transaction is used", check: usedAfterDiscard},
		{Name: "a failed transaction is used", check: usedAfterFailure},
		{Name: "a commit whose context has ended tells the truth", check: endedContext},
		{Name: "a closed store says so", check: closedStore},
	}
}

// wantUsed tries everything on a transaction that has ended.
func (a *actor) wantUsed() {
	e := a.env
	for name, r := range map[string]store.Reader{"transaction": a.Tx, "snapshot": a.Snapshot()} {
		_, err := r.Get(e.ctx, e.prefixedKey("a"))
		e.wantErr("get of a used "+name, err, store.ErrUsed)
		_, err = r.GetAll(e.ctx, [][]byte{e.prefixedKey("a")})
		e.wantErr("get all of a used "+name, err, store.ErrUsed)
		_, _, err = r.GetRange(e.ctx, e.allKeys(), store.RangeOptions{})
		e.wantErr("get range of a used "+name, err, store.ErrUsed)
	}

	a.set("late", "1")
	a.clear("a")
	a.clearRange("", "z")
	a.add("n", 1)
	a.setStamped("s", "", "1")
	a.AddReadConflict(e.allKeys())
	a.AddWriteConflict(e.allKeys())

	e.wantErr("commit of a used transaction", a.Commit(e.ctx), store.ErrUsed)
	a.Discard()
}

func usedOnce(e *env) {
	a := e.begin()
	a.set("a", "1")
	a.commit()
	a.wantUsed()
	b := e.begin()
	b.wantGet("a", "1")
	b.commit()
	b.wantUsed()
	e.wantContents("a", "1")
}

func usedAfterDiscard(e *env) {
	e.put("a", "1")
	a, b := e.begin(), e.begin()
	a.Discard()
	a.wantUsed()
	b.wantGet("a", "1")
	b.set("b", "1")
	b.Discard()
	b.wantUsed()
	e.wantContents("a", "1")
}

func usedAfterFailure(e *env) {
	a := e.begin()
	a.wantMissing("a")
	a.set("b", "1")
	e.put("a", "1")
	a.wantConflict()
	a.wantUsed()
	e.wantContents("a", "1")
}

// endedContext checks that the answer of a commit whose context has ended is true.
func endedContext(e *env) {
	ctx, cancel := context.WithCancel(e.ctx)
	a := e.begin()
	a.wantMissing("a")
	a.set("a", "1")

	cancel()
	err := a.Commit(ctx)
	switch {
	case err == nil:
		e.wantContents("a", "1")
	case store.MaybeCommitted(err):
		// Both outcomes are possible. Later transactions must not be blocked.
		e.put("b", "1")
	default:
		e.wantContents()
		e.put("b", "1")
		e.wantContents("b", "1")
	}
}

func closedStore(e *env) {
	e.put("a", "1")
	read, fresh, writing := e.begin(), e.begin(), e.begin()
	read.wantGet("a", "1")
	writing.set("a", "2")
	fired := e.watchKey(e.ctx, "a")
	e.must("close", e.store.Close())

	// All that is under way fails, and nothing new begins.
	_, err := read.Get(e.ctx, e.prefixedKey("a"))
	e.wantErr("get of one under way", err, store.ErrClosed)
	_, _, err = fresh.GetRange(e.ctx, e.allKeys(), store.RangeOptions{})
	e.wantErr("get range of one that had not read", err, store.ErrClosed)
	e.wantErr("commit", writing.Commit(e.ctx), store.ErrClosed)
	_, err = e.store.Begin(e.ctx)
	e.wantErr("begin", err, store.ErrClosed)
	_, err = e.store.Watch(e.ctx, e.prefixedKey("a"))
	e.wantErr("watch", err, store.ErrClosed)
	e.awaitFire("close of the store", fired)
	read.Discard()
	fresh.Discard()
	if err := e.store.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
		e.fail("closing again: %w", err)
	}
}
