package concurrency

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/api/errs"
)

// limiter returns a limiter of exactly n calls at once.
func limiter(n int, limits Limits) *Limiter {
	limits.Least, limits.Most = n, n
	if limits.CountReady == nil {
		limits.CountReady = func() int { return 0 }
	}
	return New(limits)
}

// enter takes a slot that must be free.
func enter(t *testing.T, l *Limiter, peer any) *Slot {
	t.Helper()
	s, err := l.Enter(t.Context(), peer)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// No more calls than the limit are carried out at once, however many come, and all are in the end.
func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(3, Limits{Patience: time.Hour})
		var now, done atomic.Int64
		var mu sync.Mutex // guards most
		most := int64(0)
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				s := enter(t, l, i%7)
				defer s.Leave()
				for range 3 {
					mu.Lock()
					most = max(most, now.Add(1))
					mu.Unlock()
					time.Sleep(time.Millisecond) //nolint:forbidigo // in a synctest bubble
					now.Add(-1)
					_ = s.Await(func() error { time.Sleep(time.Millisecond); return nil }) //nolint:forbidigo // in a synctest bubble
				}
				done.Add(1)
			})
		}
		all.Wait()
		if most != 3 || done.Load() != 200 {
			t.Errorf("%d at once, %d done; want 3 and 200", most, done.Load())
		}
		if l.working.Len() != 0 || l.waiting != 0 || len(l.lines) != 0 || len(l.turn) != 0 {
			t.Errorf("left behind: %d working, %d waiting, lines %v", l.working.Len(), l.waiting, l.lines)
		}
	})
}

// A peer with one call waits for one call of each other peer at most, whatever they ask for.
func TestEachPeerHasItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(1, Limits{})
		first := enter(t, l, "greedy")
		var order []any // guarded by the one slot
		for i := range 100 {
			go func() {
				s := enter(t, l, "greedy")
				order = append(order, i)
				s.Leave()
			}()
		}
		synctest.Wait()
		go func() {
			s := enter(t, l, "modest")
			order = append(order, "modest")
			s.Leave()
		}()
		synctest.Wait()

		first.Leave()
		synctest.Wait()
		if len(order) != 101 || order[1] != "modest" {
			t.Errorf("order %v; want the modest one second", order)
		}
	})
}

// A call that has begun goes on before others of its peer begin.
func TestBegunGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(1, Limits{})
		s := enter(t, l, "a")
		var order []string
		lent := make(chan struct{})
		back := make(chan struct{})
		go func() {
			_ = s.Await(func() error { close(lent); <-back; return nil })
			order = append(order, "begun")
			s.Leave()
		}()
		<-lent

		between := enter(t, l, "a")
		go func() {
			s := enter(t, l, "a")
			order = append(order, "fresh")
			s.Leave()
		}()
		synctest.Wait()
		close(back)
		synctest.Wait()
		between.Leave()
		synctest.Wait()
		if len(order) != 2 || order[0] != "begun" {
			t.Errorf("order %v", order)
		}
	})
}

// Who cannot be served soon is told so, and when to come back.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(1, Limits{Waiting: 2, Patience: 200 * time.Millisecond})
		s := enter(t, l, "a")
		refused := make(chan error, 2)
		start := time.Now()
		for range 2 {
			go func() {
				_, err := l.Enter(t.Context(), "a")
				refused <- err
			}()
		}
		synctest.Wait()

		_, err := l.Enter(t.Context(), "b")
		wantBusy(t, err)
		if time.Since(start) != 0 {
			t.Errorf("refused after %v, as too many wait", time.Since(start))
		}
		for range 2 {
			wantBusy(t, <-refused)
		}
		if time.Since(start) != 200*time.Millisecond {
			t.Errorf("refused after %v", time.Since(start))
		}

		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		if _, err := l.Enter(ctx, "c"); !errors.Is(err, gone) {
			t.Errorf("a call that is over: %v", err)
		}
		s.Leave()
		enter(t, l, "d").Leave()
	})
}

func wantBusy(t *testing.T, err error) {
	t.Helper()
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Exhausted || e.Reason != "BUSY" || e.RetryAfter <= 0 {
		t.Errorf("refused with %v", err)
	}
}

// A few calls that last keep nobody waiting for long.
func TestLongCallsLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(2, Limits{})
		lasting := []*Slot{enter(t, l, "a"), enter(t, l, "a")}
		start := time.Now()
		s := enter(t, l, "b")
		if waited := time.Since(start); waited != 250*time.Millisecond {
			t.Errorf("waited for %v beside calls that last", waited)
		}
		s.Leave()
		for _, s := range lasting {
			s.Leave()
			if err := s.Await(func() error { return nil }); err != nil {
				t.Error(err)
			}
		}
		if l.working.Len() != 0 {
			t.Errorf("%d slots are left", l.working.Len())
		}
	})
}

// A slot goes on at the moment at which its call has had it for long, whoever has waited since when, and
// also if the slot that was to be the next one was left before.
func TestLongCallsLeaveRoomAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(2, Limits{Long: 100 * time.Millisecond})
		start := time.Now()
		pass := func(ms time.Duration) { time.Sleep(ms * time.Millisecond) } //nolint:forbidigo // in a synctest bubble
		early := enter(t, l, "a")
		pass(40)
		enter(t, l, "a") // until 140 ms

		served := make(chan time.Duration, 3)
		for range 3 {
			go func() {
				enter(t, l, "b")
				served <- time.Since(start)
			}()
			pass(10)
		}
		early.Leave() // at 70 ms: the first has its slot until 170 ms

		for i, want := range []time.Duration{70, 140, 170} {
			if got := <-served; got != want*time.Millisecond {
				t.Errorf("call %d was let in after %v; want %v", i, got, want*time.Millisecond)
			}
		}
		pass(200)
		if l.armed {
			t.Error("the alarm is set though nobody waits")
		}
	})
}

// Goroutines that wait for a processor let fewer calls in, and calls that wait while none do let more in.
func TestFollowsTheProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ready atomic.Int64
		l := New(Limits{Least: 2, Most: 64, Ready: 4, Waiting: 1000, Patience: time.Hour, CountReady: func() int { return int(ready.Load()) }})
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 500 {
			all.Go(func() {
				for ctx.Err() == nil {
					s, err := l.Enter(ctx, i)
					if err != nil {
						return
					}
					time.Sleep(time.Millisecond) //nolint:forbidigo // in a synctest bubble
					s.Leave()
				}
			})
		}
		atOnce := func() int {
			time.Sleep(time.Second) //nolint:forbidigo // in a synctest bubble
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.atOnce
		}

		if n := atOnce(); n != 64 {
			t.Errorf("%d at once while processors are idle; want all 64", n)
		}
		ready.Store(100)
		if n := atOnce(); n != 2 {
			t.Errorf("%d at once while 100 wait for a processor; want 2", n)
		}
		ready.Store(0)
		if n := atOnce(); n != 64 {
			t.Errorf("%d at once when they are idle again", n)
		}
		stop()
		all.Wait()
	})
}

// Whatever calls do, and in whatever order they give up, no slot is lost and none is made.
func TestNoSlotIsLost(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			l := limiter(1+int(seed%3), Limits{Waiting: 20, Patience: 3 * time.Millisecond})
			var all sync.WaitGroup
			for i := range 60 {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				draw := func(least, n int) time.Duration { return time.Duration(least+random.IntN(n)) * time.Millisecond }
				begins, patience, peer, waits, lasts := draw(0, 20), draw(0, 8), random.IntN(4), draw(0, 4), draw(1, 3)
				all.Go(func() {
					time.Sleep(begins) //nolint:forbidigo // in a synctest bubble
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					s, err := l.Enter(ctx, peer)
					if err != nil {
						return
					}
					apart := make(chan struct{})
					go func() { // a part of the call that may outlast it
						defer close(apart)
						_ = s.Await(func() error { time.Sleep(waits); return nil }) //nolint:forbidigo // in a synctest bubble
					}()
					time.Sleep(lasts) //nolint:forbidigo // in a synctest bubble
					s.Leave()
					cancel()
					<-apart
				})
			}
			all.Wait()
			if l.working.Len() != 0 || l.waiting != 0 || len(l.lines) != 0 || len(l.turn) != 0 {
				t.Fatalf("seed %d: %d working, %d waiting, lines %v", seed, l.working.Len(), l.waiting, l.lines)
			}
		})
	}
}

// The runtime tells how many goroutines are ready.
func TestReadyGoroutines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var stop atomic.Bool
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for !stop.Load() {
				runtime.Gosched()
			}
		})
	}
	defer all.Wait()
	defer stop.Store(true)
	for range 1000 {
		runtime.Gosched()
		if countReady() >= 10 {
			return
		}
	}
	t.Errorf("%d are ready, of 50", countReady())
}

func BenchmarkEnter(b *testing.B) {
	l := New(Limits{})
	for b.Loop() {
		s, err := l.Enter(b.Context(), 1)
		if err != nil {
			b.Fatal(err)
		}
		s.Leave()
	}
}

func BenchmarkCountReady(b *testing.B) {
	for b.Loop() {
		countReady()
	}
}
