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
	"github.com/coditect/mapreduce/api/protocol"
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
		state []protocol.BreakerState
	}{
		{
			"by failures",
			func(t *testing.T, _ *breaker.Set, b *breaker.Breaker) { fail(t, b) },
			[]string{"vendor/m for 1m0s: failure 2"},
			[]protocol.BreakerState{{Name: "vendor/m", OpenFor: time.Minute + time.Millisecond}},
		},
		{"by order", func(_ *testing.T, s *breaker.Set, _ *breaker.Breaker) { s.Order("vendor/m", job.BreakerTimeout, false) }, nil, nil},
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
		set.Order("vendor/m", 10*time.Second, false)
		wantOpen(t, before, 10*time.Second, "ordered")
		wantOpen(t, set.Of(&patient, ""), 10*time.Second, "a breaker made after the order")
		wantOpen(t, set.Of(&job, "vendor/other"), 0, "another model")
		set.Order("vendor/m", 5*time.Second, false)
		wantOpen(t, before, 5*time.Second, "ordered again, for less")
		set.Order("vendor/m", 0, false)
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
		set.Order("vendor/m", 0, false)
		wantOpen(t, b, own, "without an order")
		set.Order("vendor/m", 10*time.Second, false)
		untold(0, "ordered")
		if len(set.Open()) != 1 {
			t.Errorf("%v are open, want one", set.Open())
		}
		wantOpen(t, b, own, "ordered for less than its own time")
		set.Order("vendor/m", time.Hour, false)
		wantOpen(t, b, time.Hour, "ordered for more than its own time")
		set.Order("vendor/m", 0, false)
		untold(0, "the order taken back")
		wantOpen(t, b, 0, "the order taken back")
		fail(t, b)
		untold(1, "opened by failures again")
	})
}

// TestCallsThatEndUnderAnOrder: a call that began before the fleet has stopped them, and fails
// after, opens no breaker; nor does one that ends after the order was taken back.
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
		set.Order("vendor/m", time.Hour, false)
		for range job.BreakerThreshold {
			end <- errors.New("too late")
		}
		synctest.Wait()
		set.Order("vendor/m", 0, false)
		for range job.BreakerThreshold {
			end <- errors.New("too late")
		}
		synctest.Wait()
		if opened > 0 || len(set.Open()) > 0 {
			t.Errorf("calls that began before the order opened %d breakers, %v", opened, set.Open())
		}
	})
}

// TestCallsThatShowWhetherTheyWork: where the fleet probes, and where its order has run out, one
// call at once is made of a name, whichever breakers they are under, until the vendor answers one.
// When the fleet says that calls work, all begin.
func TestCallsThatShowWhetherTheyWork(t *testing.T) {
	failed, noRoom := errors.New("it failed"), &agent.BreakerError{Name: "vendor/m", OpenFor: time.Second, NoRoom: true}
	for name, tt := range map[string]struct {
		begin    func(*breaker.Set)
		outcomes []error // of calls that are made one after the other
		end      func(*breaker.Set)
	}{
		"a probe":                {func(s *breaker.Set) { s.Order("vendor/m", 0, true) }, []error{failed, nil}, nil},
		"a probe after an order": {func(s *breaker.Set) { s.Order("vendor/m", time.Hour, false); s.Order("vendor/m", 0, true) }, []error{failed, nil}, nil},
		"an order that ran out": {
			func(s *breaker.Set) {
				s.Order("vendor/m", time.Minute, false)
				time.Sleep(time.Minute) //nolint:forbidigo // in a synctest bubble
			}, []error{failed, nil}, nil,
		},
		"no room":                      {func(s *breaker.Set) { s.Order("vendor/m", 0, true) }, []error{failed, noRoom}, nil},
		"the fleet says that it works": {func(s *breaker.Set) { s.Order("vendor/m", 0, true) }, []error{failed}, func(s *breaker.Set) { s.Order("vendor/m", 0, false) }},
		"told twice":                   {func(s *breaker.Set) { s.Order("vendor/m", 0, true) }, []error{failed, failed, nil}, func(s *breaker.Set) { s.Order("vendor/m", 0, true) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := breaker.NewSet(func(string, time.Duration, error) {})
				begun, end := atomic.Int64{}, make(chan error)
				tt.begin(set)
				var done sync.WaitGroup
				const calls = 6
				for i := range calls {
					spec := job
					spec.BreakerThreshold = 20 + i%2
					done.Go(func() {
						_ = set.Of(&spec, "").Run(t.Context(), func(context.Context) error { begun.Add(1); return <-end })
					})
				}
				synctest.Wait()
				for i, outcome := range tt.outcomes {
					if n := begun.Load(); n != int64(i+1) {
						t.Errorf("%d calls began before %d have ended, none of which worked", n, i)
					}
					if i == 1 && tt.end != nil {
						tt.end(set)
					}
					end <- outcome
					synctest.Wait()
				}
				if len(tt.outcomes) == 1 {
					tt.end(set)
					synctest.Wait()
				}
				if n := begun.Load(); n != calls {
					t.Errorf("%d calls began when one had worked, want all %d", n, calls)
				}
				for range calls - len(tt.outcomes) {
					end <- nil
				}
				done.Wait()
			})
		})
	}
}

// TestACallThatIsCalledOffShowsNothing: the next one does, and nobody waits for ever.
func TestACallThatIsCalledOffShowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := breaker.NewSet(func(string, time.Duration, error) {})
		b := set.Of(&job, "")
		set.Order("vendor/m", 0, true)
		first, cancel := context.WithCancel(t.Context())
		waiting, leave := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() {
			_ = b.Run(first, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		})
		synctest.Wait()
		begun, end := atomic.Int64{}, make(chan struct{})
		run := func(ctx context.Context) {
			done.Go(func() { _ = b.Run(ctx, func(context.Context) error { begun.Add(1); <-end; return nil }) })
		}
		run(waiting)
		synctest.Wait()
		leave()
		run(t.Context())
		run(t.Context())
		synctest.Wait()
		if n := begun.Load(); n != 0 {
			t.Errorf("%d calls began beside the first", n)
		}
		cancel()
		synctest.Wait()
		if n := begun.Load(); n != 1 {
			t.Errorf("%d calls began when the first was called off, want one", n)
		}
		close(end)
		done.Wait()
	})
}

// TestACallThatPanicsShowsNothing: the next one shows whether calls work.
func TestACallThatPanicsShowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := breaker.NewSet(func(string, time.Duration, error) {})
		b := set.Of(&job, "")
		set.Order("vendor/m", 0, true)
		func() {
			defer func() { _ = recover() }()
			_ = b.Run(t.Context(), func(context.Context) error { panic("a call") })
		}()
		begun, end := atomic.Int64{}, make(chan struct{})
		var done sync.WaitGroup
		for range 3 {
			done.Go(func() {
				_ = b.Run(t.Context(), func(context.Context) error { begun.Add(1); <-end; return nil })
			})
		}
		synctest.Wait()
		if n := begun.Load(); n != 1 {
			t.Errorf("%d calls began after one that panicked, want one", n)
		}
		close(end)
		done.Wait()
	})
}
