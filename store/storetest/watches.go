package storetest

import (
	"context"
	"fmt"
	"sync"

	"github.com/coditect/mapreduce/store"
)

func watchChecks() []Check {
	return []Check{
		{Name: "a watch fires on a change", check: watchFires},
		{Name: "a watch fires for every writer", check: watchWriters},
		{Name: "a watch ends with its context", check: watchEnds},
		{Name: "no wake-up is lost", check: watchHandOver},
	}
}

func (e *env) watchKey(ctx context.Context, key string) <-chan struct{} {
	fired, err := e.store.Watch(ctx, e.prefixedKey(key))
	e.must("watch", err)
	return fired
}

// awaitFire waits until fired is closed, at most until the check times out.
func (e *env) awaitFire(what string, fired <-chan struct{}) {
	select {
	case <-fired:
	case <-e.ctx.Done():
		e.fail("%s: the watch did not fire", what)
	}
}

func watchFires(e *env) {
	e.put("stored", "1", "empty", "")
	for _, key := range []string{"stored", "empty", "missing"} {
		first, second := e.watchKey(e.ctx, key), e.watchKey(e.ctx, key)
		e.put(key, "2")
		e.awaitFire("change of "+key, first)
		e.awaitFire("change of "+key, second)
	}
}

func watchWriters(e *env) {
	for name, write := range map[string]func(a *actor){
		"set":         func(a *actor) { a.set("k", encodeNumber(2)) },
		"set empty":   func(a *actor) { a.set("k", "") },
		"clear":       func(a *actor) { a.clear("k") },
		"clear range": func(a *actor) { a.clearRange("", "z") },
		"add":         func(a *actor) { a.add("k", 1) },
	} {
		e.put("k", encodeNumber(1))
		fired := e.watchKey(e.ctx, "k")
		a := e.begin()
		write(a)
		a.commit()
		e.awaitFire(name, fired)
	}

	// A missing key that becomes empty has changed.
	missing := e.watchKey(e.ctx, "missing")
	e.put("missing", "")
	e.awaitFire("set of an empty value", missing)
}

func watchEnds(e *env) {
	ctx, cancel := context.WithCancel(e.ctx)
	first, second := e.watchKey(ctx, "k"), e.watchKey(ctx, "k")
	other := e.watchKey(e.ctx, "k")

	cancel()
	e.awaitFire("end of the context", first)
	e.awaitFire("end of the context", second)

	e.put("k", "1")
	e.awaitFire("change after another's end", other)

	if fired, err := e.store.Watch(ctx, e.prefixedKey("k")); err == nil {
		e.awaitFire("watch with an ended context", fired)
	}
}

// watchHandOver passes a number back and forth between two goroutines that set a
// watch, read, and wait. If one wake-up is lost, both wait for ever.
func watchHandOver(e *env) {
	const rounds = 100
	var players sync.WaitGroup
	errs := make([]error, 2)
	for me := range errs {
		players.Go(func() { errs[me] = e.playBall(int64(me), rounds) })
	}

	players.Wait()
	for _, err := range errs {
		e.must("hand over", err)
	}

	e.wantContents("ball", encodeNumber(rounds))
}

// playBall adds one whenever it is this player's turn. A number that is already
// higher tells that an earlier attempt was committed.
func (e *env) playBall(me, rounds int64) error {
	db := e.retryingDB()
	for turn := me; turn < rounds; turn += 2 {
		if err := e.awaitBall(turn); err != nil {
			return err
		}

		err := db.Update(e.ctx, func(tx store.Tx) error {
			value, err := tx.Get(e.ctx, e.prefixedKey("ball"))
			if err == nil && numberOf(value) == turn {
				tx.Set(e.prefixedKey("ball"), []byte(encodeNumber(turn+1)))
			}
			return err
		})
		if err != nil {
			return err
		}
	}

	return nil
}

func (e *env) awaitBall(turn int64) error {
	db := e.retryingDB()
	for {
		// The watch comes before the read, so that no change is missed.
		fired, err := e.store.Watch(e.ctx, e.prefixedKey("ball"))
		if store.Retryable(err) {
			continue
		} else if err != nil {
			return err
		}

		ball := int64(0)
		err = db.View(e.ctx, func(tx store.Tx) error {
			value, err := tx.Get(e.ctx, e.prefixedKey("ball"))
			ball = numberOf(value)
			return err
		})
		if err != nil || ball == turn {
			return err
		}

		select {
		case <-fired:
		case <-e.ctx.Done():
			return fmt.Errorf("at %d, waiting for %d: %w", ball, turn, context.Cause(e.ctx))
		}
	}
}
