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

func (e *env) watch(ctx context.Context, key string) <-chan struct{} {
	fired, err := e.store.Watch(ctx, e.key(key))
	e.must("watch", err)
	return fired
}

// await waits for fired as long as the check may take.
func (e *env) await(what string, fired <-chan struct{}) {
	select {
	case <-fired:
	case <-e.ctx.Done():
		e.fail("%s: the watch did not fire", what)
	}
}

func watchFires(e *env) {
	e.put("stored", "1", "empty", "")
	for _, key := range []string{"stored", "empty", "missing"} {
		first, second := e.watch(e.ctx, key), e.watch(e.ctx, key)
		e.put(key, "2")
		e.await("change of "+key, first)
		e.await("change of "+key, second)
	}
}

func watchWriters(e *env) {
	for name, write := range map[string]func(a *actor){
		"set":         func(a *actor) { a.set("k", number(2)) },
		"set empty":   func(a *actor) { a.set("k", "") },
		"clear":       func(a *actor) { a.clear("k") },
		"clear range": func(a *actor) { a.clearRange("", "z") },
		"add":         func(a *actor) { a.add("k", 1) },
	} {
		e.put("k", number(1))
		fired := e.watch(e.ctx, "k")
		a := e.begin()
		write(a)
		a.commit()
		e.await(name, fired)
	}
	// A missing key that becomes empty has changed.
	missing := e.watch(e.ctx, "missing")
	e.put("missing", "")
	e.await("set of an empty value", missing)
}

func watchEnds(e *env) {
	ctx, cancel := context.WithCancel(e.ctx)
	first, second := e.watch(ctx, "k"), e.watch(ctx, "k")
	other := e.watch(e.ctx, "k")
	cancel()
	e.await("end of the context", first)
	e.await("end of the context", second)
	e.put("k", "1")
	e.await("change after another's end", other)
	if fired, err := e.store.Watch(ctx, e.key("k")); err == nil {
		e.await("watch with an ended context", fired)
	}
}

// watchHandOver passes a number back and forth between two goroutines that arm,
// look, and wait. One lost wake-up and both wait for ever.
func watchHandOver(e *env) {
	const rounds = 100
	var players sync.WaitGroup
	errs := make([]error, 2)
	for me := range errs {
		players.Go(func() { errs[me] = e.play(int64(me), rounds) })
	}
	players.Wait()
	for _, err := range errs {
		e.must("hand over", err)
	}
	e.want("ball", number(rounds))
}

// play adds one whenever it is this player's turn. It recognises a move it made
// before by the number having gone on.
func (e *env) play(me, rounds int64) error {
	db := e.db()
	for turn := me; turn < rounds; turn += 2 {
		if err := e.awaitBall(turn); err != nil {
			return err
		}
		err := db.Update(e.ctx, func(tx store.Tx) error {
			value, err := tx.Get(e.ctx, e.key("ball"))
			if err == nil && numberOf(value) == turn {
				tx.Set(e.key("ball"), []byte(number(turn+1)))
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
	db := e.db()
	for {
		fired, err := e.store.Watch(e.ctx, e.key("ball"))
		if store.Retryable(err) {
			continue
		} else if err != nil {
			return err
		}
		ball := int64(0)
		err = db.View(e.ctx, func(tx store.Tx) error {
			value, err := tx.Get(e.ctx, e.key("ball"))
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
