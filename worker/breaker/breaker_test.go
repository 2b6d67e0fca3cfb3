package breaker_test

import (
	"context"
	"errors"
	"fmt"
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
	failing := func(b *breaker.Breaker) {
		for i := range job.BreakerThreshold {
			_ = b.Run(t.Context(), func(context.Context) error { return fmt.Errorf("failure %d", i+1) })
		}
	}
	for _, tt := range []struct {
		name  string
		open  func(*breaker.Set, *breaker.Breaker)
		told  []string
		state []mapreduce.BreakerState
	}{
		{
			"by failures",
			func(_ *breaker.Set, b *breaker.Breaker) { failing(b) },
			[]string{"vendor/m for 1m0s: failure 2"},
			[]mapreduce.BreakerState{{Name: "vendor/m", OpenFor: time.Minute + time.Millisecond}},
		},
		{"by order", func(s *breaker.Set, _ *breaker.Breaker) { s.Order("vendor/m", job.BreakerTimeout) }, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				set := breaker.NewSet(func(name string, d time.Duration, cause error) {
					told = append(told, fmt.Sprintf("%s for %v: %v", name, d, cause))
				})
				b := set.Of(&job, "")
				tt.open(set, b)
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

// TestOrders: the fleet stops the calls to a name for as long as it says, whichever breakers
// they are under and whenever these are made; a later order replaces an earlier one; and what
// the fleet ends, a breaker that failures opened goes on with.
func TestOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := breaker.NewSet(func(string, time.Duration, error) {})
		patient := job
		patient.BreakerThreshold = 20
		before := set.Of(&job, "")
		other := set.Of(&job, "vendor/other")
		want := func(b *breaker.Breaker, d time.Duration, when string) {
			t.Helper()
			err := b.Run(t.Context(), func(context.Context) error { return nil })
			open, _ := errors.AsType[*agent.BreakerError](err)
			if (open != nil) != (d > 0) || open != nil && open.OpenFor != d || (b.CheckOpen() != nil) != (d > 0) {
				t.Errorf("%s: %v, want it open for %v", when, err, d)
			}
		}
		set.Order("vendor/m", 10*time.Second)
		want(before, 10*time.Second, "ordered")
		want(set.Of(&patient, ""), 10*time.Second, "a breaker made after the order")
		want(other, 0, "another model")
		set.Order("vendor/m", 5*time.Second)
		want(before, 5*time.Second, "ordered again, for less")
		set.Order("vendor/m", 0)
		want(before, 0, "the order taken back")
		for range job.BreakerThreshold {
			_ = before.Run(t.Context(), func(context.Context) error { return errors.New("it failed") })
		}
		set.Order("vendor/m", 0)
		want(before, job.BreakerTimeout+time.Millisecond, "opened by failures, and no order")
	})
}
