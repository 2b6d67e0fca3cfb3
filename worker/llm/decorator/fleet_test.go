package decorator_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

const shareName = "script/m-1"

// limited returns a gate over s, and the gates that it is of.
func limited(s *script) (*decorator.Limit, *decorator.Gates) {
	gates := decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{} })
	return &decorator.Limit{Provider: s, Gates: gates, Count: func(*llm.Request) int64 { return 100 }}, gates
}

// second answers after a second.
func second() *script {
	return &script{do: func(context.Context, int) (*llm.Response, error) {
		time.Sleep(time.Second) //nolint:forbidigo // in a synctest bubble
		return done(100, 100), nil
	}}
}

func TestGatesKeepToTheirShareOfTheFleet(t *testing.T) {
	for _, c := range []struct {
		name  string
		share protocol.LimitShare
		took  time.Duration
	}{
		{"no limit", protocol.LimitShare{Part: 1}, time.Second},
		{"calls at once", protocol.LimitShare{Calls: 5, Part: 1}, 6 * time.Second},
		{"half of the requests", protocol.LimitShare{Rates: mapreduce.Rates{Requests: 20}, Left: mapreduce.Rates{Requests: 20}, Part: 0.5}, 121 * time.Second},
		{"half of the prompts", protocol.LimitShare{Rates: mapreduce.Rates{Input: 3000}, Left: mapreduce.Rates{Input: 3000}, Part: 0.5}, 61 * time.Second},
		{"nothing left", protocol.LimitShare{Rates: mapreduce.Rates{Requests: 60}, Part: 0.5}, 61 * time.Second},
		{"a pause", protocol.LimitShare{Part: 1, Pause: 20 * time.Second}, 21 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, gates := limited(second())
				c.share.Name = shareName
				gates.Share([]protocol.LimitShare{c.share})
				start := time.Now()
				many(t, 30, l)
				if took := time.Since(start).Truncate(time.Second); took != c.took {
					t.Errorf("30 calls took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// A share that is not renewed lets nothing more begin, and a new one does.
func TestASharesTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := second()
		l, gates := limited(s)
		share := []protocol.LimitShare{{Name: shareName, Part: 1, For: 10 * time.Second}}
		gates.Share(share)
		many(t, 1, l)
		time.Sleep(10 * time.Second) //nolint:forbidigo // in a synctest bubble
		var all sync.WaitGroup
		all.Go(func() { many(t, 1, l) })
		time.Sleep(time.Hour) //nolint:forbidigo // in a synctest bubble
		if s.calls != 1 {
			t.Errorf("%d calls began, want none after the share's time", s.calls-1)
		}
		gates.Share(share)
		all.Wait()
		if s.calls != 2 {
			t.Errorf("%d calls were made in the end, want 2", s.calls)
		}
	})
}

func TestGatesTellWhatTheyWereTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := llm.Limits{
			Requests: llm.Bucket{Known: true, Limit: 60, Remaining: 50},
			Input:    llm.Bucket{Known: true, Limit: 9000, Remaining: 8000},
			Output:   llm.Bucket{Known: true, Limit: 700, Remaining: 600},
		}
		l, gates := limited(&script{do: func(_ context.Context, n int) (*llm.Response, error) {
			if n == 2 {
				return nil, failure(llm.RateLimited, 3*time.Second)
			}
			res := done(100, 100)
			res.Limits = limits
			return res, nil
		}})
		many(t, 1, l)
		select {
		case <-gates.Due():
			t.Error("a success is told at once")
		default:
		}
		many(t, 1, l)
		select {
		case <-gates.Due():
		default:
			t.Error("a refusal is not told at once")
		}
		want := []protocol.LimitNote{{
			Name: shareName, Successes: 2, Refused: true, Pause: 3 * time.Second,
			Told: mapreduce.Rates{Requests: 60, Input: 9000, Output: 700},
			Left: mapreduce.Rates{Requests: 50, Input: 8000, Output: 600},
		}}
		if diff := cmp.Diff(want, gates.Notes()); diff != "" {
			t.Errorf("notes (-want +got):\n%s", diff)
		}
		if again := gates.Notes(); again != nil {
			t.Errorf("the same is told again: %+v", again)
		}
	})
}

// What a vendor refuses for want of room costs no attempt: the call is made again,
// and if that takes too long its unit goes back as if a breaker were open.
func TestRefusalsForWantOfRoomCostNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := limited(&script{do: func(_ context.Context, n int) (*llm.Response, error) {
			if n <= 4 {
				return nil, failure(llm.RateLimited, 0)
			}
			return done(1, 1), nil
		}})
		start := time.Now()
		many(t, 1, l)
		if took := time.Since(start); took != 15*time.Second { // 1 + 2 + 4 + 8
			t.Errorf("a call that was refused four times took %v, want 15s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		l, _ := limited(&script{do: func(context.Context, int) (*llm.Response, error) {
			calls.Add(1)
			return nil, failure(llm.RateLimited, 25*time.Second)
		}})
		_, err := l.Complete(t.Context(), ask(nil))
		var open *agent.BreakerError
		if !errors.As(err, &open) || open.Name != shareName || open.OpenFor != 25*time.Second || !open.NoRoom || calls.Load() != 3 {
			t.Errorf("after %d calls: %v; want three, and to be told to wait", calls.Load(), err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // what one call was told, the next does not wait for
		var calls atomic.Int64
		l, _ := limited(&script{do: func(context.Context, int) (*llm.Response, error) {
			calls.Add(1)
			return nil, failure(llm.RateLimited, time.Hour)
		}})
		start := time.Now()
		for n := range 2 {
			_, err := l.Complete(t.Context(), ask(nil))
			var open *agent.BreakerError
			if !errors.As(err, &open) || open.OpenFor != time.Hour || !open.NoRoom || calls.Load() != 1 || time.Since(start) > 0 {
				t.Errorf("call %d: %v after %v and %d calls; want to be told to wait, at once and after one call", n, err, time.Since(start), calls.Load())
			}
		}
	})
	synctest.Test(t, func(t *testing.T) { // a quota that is used up is no want of room
		l, _ := limited(&script{do: func(context.Context, int) (*llm.Response, error) { return nil, failure(llm.Billing, 0) }})
		if _, err := l.Complete(t.Context(), ask(nil)); err == nil {
			t.Error("no error")
		}
	})
}
