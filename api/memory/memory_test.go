package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/memory"
)

// hold has a call over a connection, which may be nil, wait for room, and tells when it has it.
func hold(t *testing.T, b *memory.Budget, c *memory.Connection, n int64, granted func()) *memory.Lease {
	ctx, l := b.Open(t.Context(), c)
	go func() {
		if err := l.Hold(ctx, n); err == nil {
			granted()
		}
	}()
	synctest.Wait() // calls wait in the order in which they begin
	return l
}

// Of those who wait, the oldest calls come first, over whichever connection, but those
// over a connection that holds much come behind all others.
func TestWhoWaitsIsGrantedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Limits{Total: 800, Patience: time.Hour}) // 700 of it for calls
		full := b.Connect(func(error) {})
		_, first := b.Open(t.Context(), full)
		if err := first.Hold(t.Context(), 400); err != nil {
			t.Fatal(err)
		}
		_, second := b.Open(t.Context(), nil)
		if err := second.Hold(t.Context(), 300); err != nil {
			t.Fatal(err)
		}
		var (
			mu    sync.Mutex
			order []string
		)
		leases := make(map[string]*memory.Lease)
		wait := func(name string, c *memory.Connection) {
			leases[name] = hold(t, b, c, 100, func() {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
			})
		}
		one, other := b.Connect(func(error) {}), b.Connect(func(error) {})
		wait("full0", full)
		wait("one0", one)
		wait("other0", other)
		wait("alone", nil)
		wait("one1", one)
		second.Release(100)
		for range 4 { // each makes room for the next
			synctest.Wait()
			mu.Lock()
			last := order[len(order)-1]
			mu.Unlock()
			leases[last].Close()
		}
		synctest.Wait()
		if want := []string{"one0", "other0", "alone", "one1", "full0"}; !slices.Equal(order, want) {
			t.Errorf("room was given to %v; want %v", order, want)
		}
	})
}

// However many requests of a connection wait that are more than it may hold, others are
// given room, and so are those once it has room.
func TestAFullConnectionWaitsForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Limits{Total: 8000, Connection: 100, Patience: time.Hour})
		greedy, modest := b.Connect(func(error) {}), b.Connect(func(error) {})
		_, holder := b.Open(t.Context(), greedy)
		if err := holder.Hold(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		var granted sync.Map
		for i := range 200 {
			hold(t, b, greedy, 1, func() { granted.Store(fmt.Sprint("greedy", i), true) })
		}
		hold(t, b, modest, 100, func() { granted.Store("modest", true) })
		if _, ok := granted.Load("modest"); !ok {
			t.Error("a call over another connection waits; want it to have room at once")
		}
		if _, ok := granted.Load("greedy0"); ok {
			t.Error("a call over a full connection has room; want it to wait")
		}
		holder.Close()
		synctest.Wait()
		n := 0
		granted.Range(func(any, any) bool { n++; return true })
		if n != 101 {
			t.Errorf("%d calls have room; want the modest one and a hundred over the greedy connection", n)
		}
	})
}

// Who gives up leaves its place to others.
func TestWhoGivesUpWaitsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Limits{Total: 800, Patience: time.Hour})
		_, holder := b.Open(t.Context(), nil)
		if err := holder.Hold(t.Context(), 400); err != nil {
			t.Fatal(err)
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		ctx, large := b.Open(ctx, nil)
		failed := make(chan error, 1)
		go func() { failed <- large.Hold(ctx, 400) }()
		synctest.Wait()
		granted := false
		hold(t, b, nil, 300, func() { granted = true })
		if granted {
			t.Error("a small call has room before the large one that waits; want it behind that")
		}
		cancel(gone)
		if err := <-failed; !errors.Is(err, gone) {
			t.Errorf("the large call was told %v; want %v", err, gone)
		}
		synctest.Wait()
		if !granted {
			t.Error("the small call waits behind one that has given up")
		}
	})
}

// BenchmarkCharge is what it costs a connection to read and to go on while thousands of
// calls of a few peers wait for memory.
func BenchmarkCharge(b *testing.B) {
	budget := memory.New(memory.Limits{Total: 8000, Patience: time.Hour})
	_, holder := budget.Open(b.Context(), nil)
	if err := holder.Hold(b.Context(), 4000); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	var all sync.WaitGroup
	for range 10 {
		c := budget.Connect(func(error) {})
		for range 500 {
			ctx, l := budget.Open(ctx, c)
			all.Go(func() {
				if err := l.Hold(ctx, 4000); err == nil {
					b.Error("a call has room; want it to wait")
				}
			})
		}
	}
	c := budget.Connect(func(error) {})
	for b.Loop() {
		c.Charge(1)
		c.Charge(0)
	}
	stop()
	all.Wait()
}

// What still runs of a call that has ended must hold nothing: nobody would give it back.
func TestAnEndedCallHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Limits{Total: 800, Patience: time.Hour})
		_, ended := b.Open(t.Context(), nil)
		ended.Close()
		if err := ended.Hold(t.Context(), 100); errs.KindOf(err) != errs.Cancelled {
			t.Errorf("a call that has ended asked for memory and was told %v; want that it has ended", err)
		}
		_, holder := b.Open(t.Context(), nil)
		if err := holder.Hold(t.Context(), 700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ctx, waiting := b.Open(ctx, nil)
		failed := make(chan error, 1)
		go func() { failed <- waiting.Hold(ctx, 100) }()
		synctest.Wait()
		waiting.Close()
		holder.Close()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("a call that ended while it waited was told %v; want its own end", err)
		}
		if n := b.Used(); n != 0 {
			t.Errorf("%d bytes are held when all calls have ended", n)
		}
	})
}

// A call may ask for more than it can have. What it waits for has to become free some time,
// whatever the transport of its connection holds.
func TestClippedHoldsLeaveRoomForTheTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Limits{Total: 8000, Connection: 800, Patience: time.Minute})
		c := b.Connect(func(err error) { t.Errorf("the connection was cut: %v", err) })
		c.Charge(50)
		ctx, l := b.Open(t.Context(), c)
		defer l.Close()
		release, err := memory.HoldFor(ctx, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		c.Charge(60)
		release()
	})
}
