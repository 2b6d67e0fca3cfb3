package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

func budgeted() mapreduce.JobSpec {
	s := spec
	s.Budget = 1_000_000
	return s
}

func TestReserve(t *testing.T) {
	held := protocol.Held{Job: jobID, Unit: "u", Attempt: 1, Running: true}
	for name, tc := range map[string]struct {
		spec     mapreduce.JobSpec
		reserved int64
		grant    bool
		reserve  []int64 // a call each, which spends half
		asks     []int64
		refused  int // calls
	}{
		"no budget":              {spec: spec, reserve: []int64{1000, 1000}},
		"within the reservation": {spec: budgeted(), reserved: 100, reserve: []int64{50, 75}},
		"beyond it":              {spec: budgeted(), reserved: 100, grant: true, reserve: []int64{50, 80}, asks: []int64{105}},
		"none reserved":          {spec: budgeted(), grant: true, reserve: []int64{50, 50}, asks: []int64{50, 75}},
		"refused":                {spec: budgeted(), reserved: 10, reserve: []int64{50, 4}, asks: []int64{50}, refused: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refused := 0
				run := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
					for _, n := range tc.reserve {
						switch err := calls.Reserve(ctx, n, 0); {
						case errors.Is(err, agent.ErrBudget):
							refused++
						case err != nil:
							return nil, err
						default:
							calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: n / 2}})
						}
					}
					return &agent.Result{}, nil
				}
				r := start(t, run, worker.Config{})
				a := unitOf("u")
				a.Reserved = tc.reserved
				r.assign(tc.spec, a)
				var asks []int64
				got := r.take()
				for ; len(got.Reports) == 0; got = r.take() {
					if len(got.Reserve) != 1 || got.Reserve[0].Held != held {
						t.Fatalf("asked for %+v; want one question", got.Reserve)
					}
					asks = append(asks, got.Reserve[0].Tokens)
					r.send(&protocol.ToWorker{Reserved: []protocol.ReserveReply{{Held: held, Granted: tc.grant}}})
				}
				if diff := cmp.Diff(tc.asks, asks); diff != "" {
					t.Errorf("asked for reservations of (-want +got):\n%s", diff)
				}
				if refused != tc.refused {
					t.Errorf("refused %d calls; want %d", refused, tc.refused)
				}
				r.verdicts(protocol.Accepted, got.Reports...)
				r.finish()
			})
		})
	}
}

// In a job with a budget in dollars, what calls may cost is reserved, whatever their tokens are; and a call
// whose price nobody knows is not made.
func TestReserveInDollars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
			for _, call := range []struct{ most, cost int64 }{{300, 200}, {500, 450}, {250, 250}} {
				if err := calls.Reserve(ctx, 1_000_000, call.most); err != nil {
					return nil, err
				}
				calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 900_000}, CostMicros: call.cost})
			}
			return nil, calls.Reserve(ctx, 1, -1)
		}
		r := start(t, run, worker.Config{})
		a := unitOf("u")
		a.Reserved = 600
		inDollars := budgeted()
		inDollars.BudgetIn = mapreduce.InDollars
		r.assign(inDollars, a)

		var asks []int64
		got := r.take()
		for ; len(got.Reports) == 0; got = r.take() {
			asks = append(asks, got.Reserve[0].Tokens)
			r.send(&protocol.ToWorker{Reserved: []protocol.ReserveReply{{Held: got.Reserve[0].Held, Granted: true}}})
		}

		// 200 are spent of 600 when 500 more are wanted, and 650 of 700 when 250 more are.
		if diff := cmp.Diff([]int64{700, 900}, asks); diff != "" {
			t.Errorf("asked for reservations of (-want +got):\n%s", diff)
		}
		rep := got.Reports[0]
		if rep.Class != protocol.PermanentJob || !strings.Contains(rep.Errors[0], "knows no price") || rep.CostMicros != 900 {
			t.Errorf("report %+v, want one that ends the job, with what was spent", rep)
		}
		r.verdicts(protocol.Accepted, got.Reports...)
		r.finish()
	})
}

// Calls that overlap never spend more than was reserved at the time, whatever
// order they end in.
func TestReserveConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards the sums, and answers
		var underWay, spent, granted int64
		granted = 500
		call := func(ctx context.Context, calls agent.Calls, i int64) error {
			worst := 40 + i*37%200
			if err := calls.Reserve(ctx, worst, 0); err != nil {
				return err
			}
			mu.Lock()
			underWay += worst
			if underWay+spent > granted {
				t.Errorf("%d tokens spent and %d under way of %d reserved", spent, underWay, granted)
			}
			mu.Unlock()
			after(time.Duration(i*13%29) * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			underWay -= worst
			took := worst * (i % 5) / 4
			spent += took
			calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: took}})
			return nil
		}
		run := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
			var wg sync.WaitGroup
			for i := range int64(200) {
				wg.Go(func() {
					after(time.Duration(i) * time.Millisecond)
					if err := call(ctx, calls, i); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			return &agent.Result{}, nil
		}
		r := start(t, run, worker.Config{})
		a := unitOf("u")
		a.Reserved = granted
		r.assign(budgeted(), a)
		got := r.take()
		for ; len(got.Reports) == 0; got = r.take() {
			for _, q := range got.Reserve {
				mu.Lock()
				granted = q.Tokens
				mu.Unlock()
				r.send(&protocol.ToWorker{Reserved: []protocol.ReserveReply{{Held: q.Held, Granted: true}}})
			}
			after(time.Millisecond)
		}
		if total := got.Reports[0].Tokens.Total(); total != spent || total == 0 {
			t.Errorf("reported %d tokens; want %d", total, spent)
		}
		r.verdicts(protocol.Accepted, got.Reports...)
		r.finish()
	})
}

// An attempt that parks its unit is no failure. What it did is stored before its report,
// and its slot is free. It is parked even if its time is over meanwhile: what it waits
// for has begun.
func TestParks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
			switch task.Unit {
			case "late":
				<-ctx.Done()
			case "nameless":
				return nil, agent.Park("", 0, "")
			case "giant":
				return nil, agent.Park(strings.Repeat("h", mapreduce.MaxHandle+1), 0, "")
			case "past":
				return nil, agent.Park("h", -time.Second, "")
			case "woken":
				w := task.WakeCall
				return &agent.Result{Output: fmt.Appendf(nil, "%s: %s", w.Handle, w.Answer)}, nil
			}
			calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 10, Out: 5}, CostMicros: 7})
			if _, err := calls.Do(ctx, "submit", result("batch 7")); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("submitting: %w", agent.Park("batch 7", time.Hour, "a batch\x00 of one "+strings.Repeat("x", 1000)))
		}
		r := start(t, run, worker.Config{Slots: 1})
		late, woken := unitOf("late"), unitOf("woken")
		late.Timeout = time.Minute
		woken.WakeCall = &protocol.WakeCall{Handle: "batch 7", Answer: []byte("done")}
		r.assign(spec, unitOf("u"))
		after(time.Second)
		r.assign(spec, late)
		after(2 * time.Minute)
		for _, a := range []protocol.Assignment{unitOf("nameless"), unitOf("giant"), unitOf("past"), woken} {
			r.assign(spec, a)
			after(time.Second)
		}
		got := r.take()
		if len(got.Reports) != 6 {
			t.Fatalf("%d reports; want 6", len(got.Reports))
		}
		if diff := cmp.Diff([]string{"u 0: submit", "late 0: submit"}, r.appended()); diff != "" {
			t.Errorf("appends (-want +got):\n%s", diff)
		}
		for _, rep := range got.Reports[:2] {
			p := rep.Parking
			if rep.Outcome != protocol.Parked || len(rep.Errors) > 0 || rep.Tokens.Total() != 15 || rep.CostMicros != 7 || p == nil {
				t.Fatalf("reported %+v", rep)
			}
			if p.Handle != "batch 7" || p.WakeAfter != time.Hour || len(p.Note) > 256 || strings.Contains(p.Note, "\x00") || !strings.HasPrefix(p.Note, "a batch") {
				t.Errorf("parked as %+v", p)
			}
		}
		for _, rep := range got.Reports[2:5] {
			if rep.Outcome != protocol.Errored || rep.Class != protocol.PermanentUnit || rep.Parking != nil {
				t.Errorf("reported %+v of a unit that cannot be parked so", rep)
			}
		}
		if out := string(got.Reports[5].Output); out != "batch 7: done" {
			t.Errorf("the attempt after the call came to %q", out)
		}
		if st := r.worker.Stats(); st.Parked != 2 || st.Errored != 3 || st.Done != 1 {
			t.Errorf("counted %+v", st)
		}
		r.verdicts(protocol.Accepted, got.Reports...)
		r.finish()
	})
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
			calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 10, Out: 1}})
			calls.Progress("reading " + string(task.Unit))
			<-ctx.Done()
			return nil, ctx.Err()
		}
		p := newPeer(t)
		r := launch(t, p, run, worker.Config{Slots: 2, Prefetch: 1})
		p.accept(protocol.Welcome{Heartbeat: 7 * time.Second})
		r.assign(spec, unitOf("b"), unitOf("a"), unitOf("c"))
		r.take()
		after(7*time.Second - 1)
		if got := r.take().Heartbeat; got != nil {
			t.Errorf("heartbeat before its time: %+v", got)
		}
		after(1)
		want := &protocol.Heartbeat{}
		for _, id := range []mapreduce.UnitID{"a", "b"} {
			want.Progress = append(want.Progress, protocol.Progress{
				Held:   protocol.Held{Job: jobID, Unit: id, Attempt: 1, Running: true},
				Tokens: mapreduce.Tokens{In: 10, Out: 1}, Note: "reading " + string(id), Number: 1,
			})
		}
		if diff := cmp.Diff(want, r.take().Heartbeat); diff != "" {
			t.Errorf("heartbeat (-want +got):\n%s", diff)
		}
		r.stop()
		after(26 * time.Second)
		r.verdicts(protocol.Accepted, r.take().Reports...)
		r.finish()
	})
}

// A provider fails three times in a row: its breaker opens, what meets it is
// handed back and the orchestrator told at once; after a minute one call probes
// while others wait for what it finds.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		var made atomic.Int32
		run := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
			err := calls.Call(ctx, "", func(context.Context) error {
				made.Add(1)
				after(time.Second)
				if !up.Load() {
					return errors.New("503")
				}
				return nil
			})
			return &agent.Result{}, err
		}
		r := start(t, run, worker.Config{Slots: 5})
		outcomes := func(ids ...mapreduce.UnitID) (got []string) {
			var as []protocol.Assignment
			for _, id := range ids {
				as = append(as, unitOf(id))
			}
			r.assign(spec, as...)
			after(2 * time.Second)
			reps := r.take().Reports
			r.verdicts(protocol.Accepted, reps...)
			for _, rep := range reps {
				got = append(got, fmt.Sprintf("%d %s %v", rep.Outcome, rep.Breaker, rep.RetryAfter))
			}
			slices.Sort(got)
			return got
		}
		check := func(what string, want, got []string) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		check("failures", []string{"2  0s", "2  0s"}, outcomes("a", "b"))
		r.assign(spec, unitOf("c"))
		after(time.Second)
		got := r.take()
		// Whether its call is still under way as that is told is as it comes.
		want := []protocol.BreakerState{{Name: "test/m", OpenFor: time.Minute + time.Millisecond}}
		if got.Heartbeat == nil {
			t.Fatal("no heartbeat as the breaker opens")
		}
		if diff := cmp.Diff(want, got.Heartbeat.Breakers); diff != "" {
			t.Errorf("breakers as one opens (-want +got):\n%s", diff)
		}
		r.verdicts(protocol.Accepted, got.Reports...)
		made.Store(0)
		check("open", []string{"3 test/m 1m0.001s"}, outcomes("d"))
		after(59 * time.Second)
		check("probe fails", []string{"2  0s", "3 test/m 1m0.001s"}, outcomes("e", "f"))
		after(60 * time.Second)
		up.Store(true)
		check("probe succeeds", []string{"1  0s", "1  0s", "1  0s"}, outcomes("g", "h", "i"))
		if n := made.Load(); n != 4 { // either of e and f; g, h, i
			t.Errorf("%d calls were made; want the probe alone of e and f, and 3", n)
		}
		r.finish()
	})
}

// A vendor that has no room is no reason to skip a unit, whatever the job says of open
// breakers.
func TestNoRoomSkipsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
			return nil, &agent.BreakerError{Name: "other/model", OpenFor: time.Minute, NoRoom: true}
		}
		r := start(t, run, worker.Config{})
		s := spec
		s.OnBreaker = mapreduce.BreakerSkip
		r.assign(s, unitOf("a"))
		got := r.take().Reports
		if len(got) != 1 || got[0].Outcome != protocol.Returned || got[0].RetryAfter != time.Minute || got[0].Breaker != "" {
			t.Errorf("reports %+v, want that the unit is returned for a minute, and no breaker is to blame", got)
		}
		r.verdicts(protocol.Accepted, got...)
		r.finish()
	})
}

func TestBreakerSkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
			return nil, calls.Call(ctx, "other/model", func(context.Context) error { return errors.New("503") })
		}
		var log bytes.Buffer
		r := start(t, run, worker.Config{Slots: 1, Prefetch: 4, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s := spec
		s.OnBreaker, s.BreakerThreshold = mapreduce.BreakerSkip, 1
		r.assign(s, unitOf("a"), unitOf("b"))
		got := r.take().Reports
		want := []protocol.Report{
			{Job: jobID, Unit: "a", Attempt: 1, Calls: 1, Outcome: protocol.Errored, Errors: []string{"503"}},
			{
				// Its call was never made, so it does not count.
				Job: jobID, Unit: "b", Attempt: 1, Outcome: protocol.Errored, Class: protocol.PermanentUnit,
				Errors: []string{"Circuit breaker open - skipped"},
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		r.verdicts(protocol.Accepted, got...)
		r.finish()
		if says := `msg="circuit breaker opened" breaker=other/model for=1m0s cause=503`; !strings.Contains(log.String(), says) {
			t.Errorf("the log does not say %q:\n%s", says, &log)
		}
	})
}

// What says nothing of the provider's health leaves its breaker alone.
func TestBreakerExclusions(t *testing.T) {
	for name, tc := range map[string]struct {
		call func(context.Context) error
		open bool
	}{
		"retryable":      {func(context.Context) error { return errors.New("503") }, true},
		"permanent":      {func(context.Context) error { return agent.Permanent(errors.New("400")) }, false},
		"job":            {func(context.Context) error { return agent.PermanentJob(errors.New("401")) }, false},
		"cancelled":      {func(context.Context) error { return fmt.Errorf("call: %w", context.Canceled) }, false},
		"took too long":  {func(context.Context) error { return context.DeadlineExceeded }, true},
		"panic":          {func(context.Context) error { panic("bug") }, false},
		"unit was ended": {func(ctx context.Context) error { <-ctx.Done(); return errors.New("broken pipe") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
					return nil, calls.Call(ctx, "", tc.call)
				}
				r := start(t, run, worker.Config{Slots: 1, Prefetch: 9, Heartbeat: time.Hour})
				var as []protocol.Assignment
				for i := range 3 {
					as = append(as, unitOf(mapreduce.UnitID(fmt.Sprint(i))))
				}
				r.assign(spec, as...)
				after(31 * time.Minute) // beyond the deadlines
				got := r.take()
				if open := len(got.Heartbeat.Breakers) > 0; open != tc.open {
					t.Errorf("open = %v after 3 of them; want %v", open, tc.open)
				}
				r.verdicts(protocol.Accepted, got.Reports...)
				r.finish()
			})
		})
	}
}
