package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/breaker"
)

var job = mapreduce.JobSpec{Provider: "vendor", Model: "m", BreakerThreshold: 2, BreakerTimeout: time.Minute}

// TestBreakersAreOfASetting: jobs with one setting share the breaker of a name.
func TestBreakersAreOfASetting(t *testing.T) {
	set := breaker.NewSet(func(string, time.Duration, error) {})
	patient := job
	patient.BreakerThreshold = 20
	for _, tt := range []struct {
		name string
		spec mapreduce.JobSpec
		of   string
		same bool
	}{
		{"the same job", job, "", true},
		{"its own name", job, "vendor/m", true},
		{"another model", job, "vendor/other", false},
		{"another setting", patient, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if same := set.Of(&job, "") == set.Of(&tt.spec, tt.of); same != tt.same {
				t.Errorf("the same breaker: %v, want %v", same, tt.same)
			}
		})
	}
}

// TestOpening: a breaker that failures open is reported once, with the last of them, and
// what the fleet orders is not; either refuses calls until its time is over.
func TestOpening(t *testing.T) {
	for _, tt := range []struct {
		name  string
		open  func(*testing.T, *breaker.Set, *breaker.Breaker)
		told  []string
		state []mapreduce.BreakerState
	}{
		{
			"by failures",
			func(t *testing.T, _ *breaker.Set, b *breaker.Breaker) { fail(t, b) },
			[]string{"vendor/m for 1m0s: failure 2"},
			[]mapreduce.BreakerState{{Name: "vendor/m", OpenFor: time.Minute + time.Millisecond}},
		},
		{"by order", func(_ *testing.T, s *breaker.Set, _ *breaker.Breaker) { s.Order("vendor/m", job.BreakerTimeout) }, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				set := breaker.NewSet(func(name string, d time.Duration, cause error) {
					told = append(told, fmt.Sprintf("%s for %v: %v", name, d, cause))
				})
				b := set.Of(&job, "")
				tt.open(t, set, b)
				if diff := cmp.Diff(tt.told, told); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.state, set.Open()); diff != "" {
					t.Errorf("open (-want +got):\n%s", diff)
				}
				made := 0
				call := func(context.Context) error { made++; return nil }
				if _, refused := errors.AsType[*agent.BreakerError](b.Run(t.Context(), call)); !refused || b.CheckOpen() == nil || made > 0 {
					t.Errorf("an open breaker let %d calls through", made)
				}
				time.Sleep(job.BreakerTimeout + time.Millisecond) //nolint:forbidigo // in a synctest bubble
				if err := b.Run(t.Context(), call); err != nil || b.CheckOpen() != nil || made != 1 {
					t.Errorf("after its time: %v, and %d calls were made", err, made)
				}
			})
		})
	}
}

// fail has calls fail until b opens.
func fail(t *testing.T, b *breaker.Breaker) {
	for i := range job.BreakerThreshold {
		_ = b.Run(t.Context(), func(context.Context) error { return fmt.Errorf("failure %d", i+1) })
	}
}

// wantOpen checks for how long no call may be made; 0 is that calls are made.
func wantOpen(t *testing.T, b *breaker.Breaker, d time.Duration, when string) {
	t.Helper()
	err := b.Run(t.Context(), func(context.Context) error { return nil })
	open, _ := errors.AsType[*agent.BreakerError](err)
	if (open != nil) != (d > 0) || open != nil && open.OpenFor != d || (b.CheckOpen() != nil) != (d > 0) {
		t.Errorf("%s: %v, want it open for %v", when, err, d)
	}
}

// TestOrders: the fleet stops the calls to a name for as long as it says, whichever breakers
// they are under and whenever these are made; a later order replaces an earlier one.
func TestOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := breaker.NewSet(func(string, time.Duration, error) {})
		patient := job
		patient.BreakerThreshold = 20
		before := set.Of(&job, "")
		set.Order("vendor/m", 10*time.Second)
		wantOpen(t, before, 10*time.Second, "ordered")
		wantOpen(t, set.Of(&patient, ""), 10*time.Second, "a breaker made after the order")
		wantOpen(t, set.Of(&job, "vendor/other"), 0, "another model")
		set.Order("vendor/m", 5*time.Second)
		wantOpen(t, before, 5*time.Second, "ordered again, for less")
		set.Order("vendor/m", 0)
		wantOpen(t, before, 0, "the order taken back")
	})
}

// TestOrdersOverFailures: a breaker that failures opened is told of once, until the fleet has
// ordered that nobody calls. It stays open for the longer of the two, and begins anew when the
// order is taken back: but not before there was one.
func TestOrdersOverFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const own = time.Minute + time.Millisecond
		set := breaker.NewSet(func(string, time.Duration, error) {})
		b := set.Of(&job, "")
		untold := func(want int, when string) {
			t.Helper()
			if got := set.Untold(); len(got) != want {
				t.Errorf("%s: %v are to be told of, want %d", when, got, want)
			}
		}
		fail(t, b)
		untold(1, "opened by failures")
		set.Order("vendor/m", 0)
		wantOpen(t, b, own, "without an order")
		set.Order("vendor/m", 10*time.Second)
		untold(0, "ordered")
		if len(set.Open()) != 1 {
			t.Errorf("%v are open, want one", set.Open())
		}
		wantOpen(t, b, own, "ordered for less than its own time")
		set.Order("vendor/m", time.Hour)
		wantOpen(t, b, time.Hour, "ordered for more than its own time")
		set.Order("vendor/m", 0)
		untold(0, "the order taken back")
		wantOpen(t, b, 0, "the order taken back")
		fail(t, b)
		untold(1, "opened by failures again")
	})
}

// TestCallsThatEndUnderAnOrder: a call that began before the fleet has stopped them, and fails
// after, opens no breaker; nor does one that ends after the order was taken back. Then one call
// at once is made until one works, and the others begin.
func TestCallsThatEndUnderAnOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, begun := 0, atomic.Int64{}
		set := breaker.NewSet(func(string, time.Duration, error) { opened++ })
		b := set.Of(&job, "")
		end := make(chan error)
		call := func(context.Context) error { begun.Add(1); return <-end }
		for range 2 * job.BreakerThreshold {
			go func() { _ = b.Run(t.Context(), call) }()
		}
		synctest.Wait()
		set.Order("vendor/m", time.Hour)
		for range job.BreakerThreshold {
			end <- errors.New("too late")
		}
		synctest.Wait()
		set.Order("vendor/m", 0)
		for range job.BreakerThreshold {
			end <- errors.New("too late")
		}
		synctest.Wait()
		if opened > 0 || len(set.Open()) > 0 {
			t.Errorf("calls that began before the order opened %d breakers, %v", opened, set.Open())
		}
		begun.Store(0)
		var done sync.WaitGroup
		for range 4 {
			done.Go(func() { _ = b.Run(t.Context(), call) })
		}
		synctest.Wait()
		for i, outcome := range []error{errors.New("not yet"), nil} {
			if n := begun.Load(); n != int64(i+1) {
				t.Errorf("%d calls began before %d have ended, none of which worked", n, i)
			}
			end <- outcome
			synctest.Wait()
		}
		if n := begun.Load(); n != 4 {
			t.Errorf("%d calls began when one had worked, want all 4", n)
		}
		for range 2 {
			end <- nil
		}
		done.Wait()
	})
}
