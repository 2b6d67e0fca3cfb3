package worker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// What runs goes on without a connection, and everything that has no answer is
// told to the next orchestrator.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
			switch task.Unit {
			case "asks":
				if err := calls.Reserve(ctx, 70, 0); err != nil {
					return nil, err
				}
				calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 70}})
			case "keeps":
				calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: agent.KeepEvery}})
				if _, err := calls.Do(ctx, "call", result("answer")); err != nil {
					return nil, err
				}
				after(time.Minute)
			case "slow":
				after(10 * time.Second)
			case "moved":
				<-ctx.Done()
				return nil, ctx.Err()
			case "large":
				return outputs(100<<10)(ctx, task, calls)
			}
			return &agent.Result{Output: []byte(task.Unit)}, nil
		}
		r := start(t, run, worker.Config{Slots: 4, Prefetch: 5})
		var as []protocol.Assignment
		for _, id := range []mapreduce.UnitID{"large", "done", "asks", "keeps", "slow", "moved", "waits"} {
			as = append(as, unitOf(id))
		}
		r.assign(budgeted(), as...)
		first := r.take()
		if len(first.Reports) != 2 || len(first.Reserve) != 1 || len(r.appended()) != 1 {
			t.Fatalf("before the break: %+v", first)
		}
		r.pipe.cut()
		after(20 * time.Second) // "slow" ends; "waits" gets its slot
		r.take()

		hello := r.accept(protocol.Welcome{Epoch: 2, Drop: []protocol.Held{{Job: jobID, Unit: "moved", Attempt: 1}}})
		var holding []string
		for _, h := range hello.Hello.Holding {
			holding = append(holding, string(h.Unit))
			if !h.Running {
				t.Errorf("%s is named as waiting", h.Unit)
			}
		}
		if diff := cmp.Diff([]string{"asks", "done", "keeps", "large", "moved", "slow", "waits"}, holding); diff != "" {
			t.Errorf("holding (-want +got):\n%s", diff)
		}
		got := r.take()
		var reports []string
		for _, rep := range got.Reports {
			reports = append(reports, string(rep.Unit))
		}
		slices.Sort(reports)
		if diff := cmp.Diff([]string{"done", "large", "moved", "slow", "waits"}, reports); diff != "" {
			t.Errorf("reports sent again (-want +got):\n%s", diff)
		}
		if puts := r.starts(protocol.BlobOutput); len(puts) != 1 {
			t.Errorf("the large output was put %d times, want once", len(puts))
		}
		if diff := cmp.Diff(first.Reserve, got.Reserve); diff != "" {
			t.Errorf("questions asked again (-want +got):\n%s", diff)
		}
		if again := r.appended(); again != nil {
			t.Errorf("stored again: %v", again)
		}
		r.verdicts(protocol.Accepted, got.Reports...)
		r.send(&protocol.ToWorker{Reserved: []protocol.ReserveReply{{Held: got.Reserve[0].Held, Granted: true}}})
		after(time.Minute)
		r.verdicts(protocol.Accepted, r.take().Reports...)
		r.finish()
	})
}

// What an orchestrator does not have the worker go on with is handed back with what it has remembered: it was
// paid for, and the unit may wait for whoever is next.
func TestWhatIsNotKeptIsHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
			calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 1}})
			if _, err := calls.Do(ctx, "call", result("answer")); err != nil {
				return nil, err
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		r := start(t, run, worker.Config{})
		r.assign(spec, unitOf("u"))
		r.take()
		if early := r.appended(); early != nil {
			t.Fatalf("stored before there was a need: %v", early)
		}

		r.pipe.cut()
		r.accept(protocol.Welcome{Epoch: 2, Drop: []protocol.Held{{Job: jobID, Unit: "u", Attempt: 1}}})
		rep := r.report()
		if diff := cmp.Diff([]string{"u 0: call"}, r.appended()); diff != "" || rep.Outcome != protocol.Returned {
			t.Errorf("report %+v; stored (-want +got):\n%s", rep, diff)
		}
		r.verdicts(protocol.Accepted, rep)
		r.finish()
	})
}

// The worker comes back at once, to one address after the other, and then pauses before it tries them
// all again. Pauses grow and are bounded.
func TestReconnectPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type attempt struct {
			address int
			at      time.Duration
		}
		var attempts []attempt
		epoch := time.Now()
		p := newPeer(t)
		address := func(i int) worker.Connect {
			return func(ctx context.Context) (worker.Stream, error) {
				attempts = append(attempts, attempt{i, time.Since(epoch)})
				if len(attempts) == 1 {
					return p.connect(ctx)
				}
				return nil, errors.New("connection refused")
			}
		}
		r := launch(t, p, okay, worker.Config{Connect: []worker.Connect{address(0), address(1), address(2)}})
		p.accept(protocol.Welcome{})
		after(time.Minute)
		r.pipe.cut()
		after(10 * time.Minute)
		r.take()
		if got := attempts[1]; got != (attempt{1, time.Minute}) {
			t.Errorf("second attempt = %+v; want address 1 at once", got)
		}
		pauses := 0
		for i, a := range attempts {
			if a.address != i%3 {
				t.Errorf("attempt %d went to address %d", i, a.address)
			}
			if i < 2 {
				continue
			}
			pause := a.at - attempts[i-1].at
			if pause > 4*time.Second {
				t.Errorf("attempt %d came %v after the one before", i, pause)
			}
			if pause > 0 {
				pauses++
			}
			if (pause > 0) != (i%3 == 1) { // each address has been tried since the last pause
				t.Errorf("attempt %d, at address %d, came %v after the one before", i, a.address, pause)
			}
		}
		if pauses < 150 || pauses > 600 {
			t.Errorf("%d pauses in 10 minutes; want about one in 2 s", pauses)
		}
		r.finish()
	})
}

func TestNotLetIn(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		stop bool
	}{
		"unauthenticated": {errs.New(errs.Unauthenticated, "token expired"), true},
		"denied":          {errs.New(errs.Denied, "not a worker"), true},
		"unavailable":     {errs.New(errs.Unavailable, "starting"), false},
		"unknown":         {errors.New("reset"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				connect := func(context.Context) (worker.Stream, error) { return nil, tc.err }
				r := launch(t, newPeer(t), okay, worker.Config{Connect: []worker.Connect{connect}})
				after(time.Minute)
				select {
				case err := <-r.result:
					if !tc.stop || !errors.Is(err, tc.err) {
						t.Errorf("Run = %v", err)
					}
				default:
					if tc.stop {
						t.Error("the worker tries on")
					}
					r.finish()
				}
			})
		})
	}
}

// An orchestrator that never answers is given up.
func TestNoWelcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		r := launch(t, p, okay, worker.Config{})
		mute := <-p.conns
		if _, err := (far{mute}).Recv(); err != nil {
			t.Fatal(err)
		}
		after(10*time.Second + 101*time.Millisecond) // with the first pause, as there is no other address
		synctest.Wait()
		if len(p.conns) != 1 {
			t.Errorf("%d more connections after 10 s and a pause; want 1", len(p.conns))
		}
		if mute.ctx.Err() == nil {
			t.Error("the mute stream is kept")
		}
		p.accept(protocol.Welcome{})
		r.finish()
	})
}

// An orchestrator that says nothing for longer than it said it would be silent is
// left for another. One that says anything is not.
func TestMuteOrchestrator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		r := launch(t, p, func(ctx context.Context, _ *agent.Task, _ agent.Calls) (*agent.Result, error) {
			after(time.Minute) // past the silence, which begins after 38 s
			return &agent.Result{}, ctx.Err()
		}, worker.Config{})
		p.accept(protocol.Welcome{Silence: 2 * time.Second})
		r.assign(spec, unitOf("a"))
		for range 20 {
			after(1900 * time.Millisecond)
			r.send(&protocol.ToWorker{})
		}
		synctest.Wait()
		if n := len(p.conns); n != 0 {
			t.Fatalf("%d more connections while the orchestrator speaks; want none", n)
		}
		mute, quiet := r.pipe, time.Now()
		hello := r.accept(protocol.Welcome{Epoch: 2, Silence: time.Hour})
		if took := time.Since(quiet); took != 2*time.Second {
			t.Errorf("another connection after %v of silence; want 2 s", took)
		}
		if mute.ctx.Err() == nil {
			t.Error("the mute stream is kept")
		}
		if n := len(hello.Hello.Holding); n != 1 {
			t.Errorf("holds %d units; want the one that runs", n)
		}
		after(time.Minute)
		r.verdicts(protocol.Accepted, r.report())
		r.finish()
	})
}

func TestGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, okay, worker.Config{})
		r.assign(spec, unitOf("a"))
		rep := r.report()
		owes := make(chan struct{}) // the worker hangs up as soon as it hears the goodbye, and that must not end the stream yet
		r.mu.Lock()
		r.owes = owes
		r.mu.Unlock()
		r.send(&protocol.ToWorker{Goodbye: true})
		r.verdicts(protocol.Accepted, rep) // it still owes this
		close(owes)
		synctest.Wait()
		hello := r.accept(protocol.Welcome{Epoch: 2})
		if n := len(hello.Hello.Holding); n != 0 {
			t.Errorf("holds %d units; want none", n)
		}
		r.finish()
	})
}

func TestDrain(t *testing.T) {
	run := func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
		calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 1}})
		select {
		case <-time.After(task.Timeout / 2):
			return &agent.Result{}, nil
		case <-ctx.Done():
			if task.Unit == "deaf" {
				after(time.Hour)
			}
			return nil, ctx.Err()
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := start(t, run, worker.Config{Slots: 3, Prefetch: 1, DrainTimeout: 20 * time.Second, Grace: 2 * time.Second})
		short, long, deaf := unitOf("short"), unitOf("long"), unitOf("deaf")
		short.Timeout, long.Timeout, deaf.Timeout = 20*time.Second, time.Hour, time.Hour
		r.assign(spec, short, long, deaf, unitOf("waiting"))
		r.take()
		r.stop()
		want := func(what string, drain bool, outcomes map[mapreduce.UnitID]protocol.Outcome) {
			t.Helper()
			got := r.take()
			have := map[mapreduce.UnitID]protocol.Outcome{}
			for _, rep := range got.Reports {
				have[rep.Unit] = rep.Outcome
			}
			if diff := cmp.Diff(outcomes, have, cmpopts.EquateEmpty()); diff != "" || got.Drain != drain {
				t.Errorf("%s: drain = %v; outcomes (-want +got):\n%s", what, got.Drain, diff)
			}
			r.verdicts(protocol.Accepted, got.Reports...)
		}
		want("at once", true, map[mapreduce.UnitID]protocol.Outcome{"waiting": protocol.Returned})
		r.assign(spec, unitOf("late"))
		want("new work", false, map[mapreduce.UnitID]protocol.Outcome{"late": protocol.Returned})
		after(10 * time.Second)
		want("what runs may finish", false, map[mapreduce.UnitID]protocol.Outcome{"short": protocol.Done})
		after(10 * time.Second)
		want("until the time-out", false, map[mapreduce.UnitID]protocol.Outcome{"long": protocol.Returned})
		after(2 * time.Second)
		want("with grace", false, map[mapreduce.UnitID]protocol.Outcome{"deaf": protocol.Returned})
		if err := <-r.result; err != nil {
			t.Errorf("Run = %v", err)
		}
		after(time.Hour) // until the deaf one returns
	})
}

// A drain ends within its bounds even if nobody answers, and says what it left.
func TestDrainWithoutVerdicts(t *testing.T) {
	for name, cut := range map[string]bool{"connected": false, "not connected": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, okay, worker.Config{DrainTimeout: time.Second, Grace: time.Second})
				r.assign(spec, unitOf("a"), unitOf("b"))
				r.take()
				if cut {
					r.pipe.cut()
				}
				begin := time.Now()
				r.stop()
				err := <-r.result
				if err == nil || !strings.Contains(err.Error(), "2 units whose report has no verdict") {
					t.Errorf("Run = %v", err)
				}
				if d := time.Since(begin); d > 9*time.Second {
					t.Errorf("drain took %v", d)
				}
			})
		})
	}
}

// A drain without a connection waits for one, and hands everything back.
// TestDrainAfterServer stops a worker whose orchestrators are gone: once nothing
// runs any more it waits for one to come back, but not as long as units may run.
func TestDrainAfterServer(t *testing.T) {
	for _, test := range []struct {
		name string
		runs time.Duration // a unit, after the worker was told to stop
		want time.Duration // from then on
	}{
		{"nothing runs", 0, 5 * time.Second},
		{"a unit runs", 10 * time.Second, 15 * time.Second},
		{"a unit runs too long", time.Hour, 25 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gone atomic.Bool
				p := newPeer(t)
				run := func(ctx context.Context, _ *agent.Task, _ agent.Calls) (*agent.Result, error) {
					select {
					case <-time.After(time.Minute + test.runs): // a minute before it is told to stop
						return &agent.Result{Output: []byte("ok")}, nil
					case <-ctx.Done():
						return nil, context.Cause(ctx)
					}
				}
				r := launch(t, p, run, worker.Config{DrainTimeout: 20 * time.Second, Connect: []worker.Connect{
					func(ctx context.Context) (worker.Stream, error) {
						if gone.Load() {
							return nil, errBroken
						}
						return p.connect(ctx)
					},
				}})
				p.accept(protocol.Welcome{Node: "n1", Epoch: 1})
				r.assign(spec, unitOf("a"))
				r.take()
				gone.Store(true)
				r.pipe.cut()
				after(time.Minute)
				synctest.Wait()
				begin := time.Now()
				r.stop()
				err := <-r.result
				if took := time.Since(begin); took < test.want-time.Second || took > test.want+5*time.Second {
					t.Errorf("stopped after %v; want about %v", took, test.want)
				}
				if err == nil && test.runs < time.Hour {
					t.Error("Run = nil; want the report that has no verdict")
				}
			})
		})
	}
}

func TestDrainReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		stopped := make(chan struct{})
		close(stopped)
		connect := func(ctx context.Context) (worker.Stream, error) {
			<-stopped // the second attempt comes after the worker was told to stop
			return p.connect(ctx)
		}
		r := launch(t, p, okay, worker.Config{Connect: []worker.Connect{connect}})
		p.accept(protocol.Welcome{})
		r.assign(spec, unitOf("a"))
		r.take()
		stopped = make(chan struct{})
		r.pipe.cut()
		r.stop()
		synctest.Wait()
		close(stopped)
		hello := r.accept(protocol.Welcome{Epoch: 2})
		if !hello.Drain {
			t.Error("hello does not say that the worker drains")
		}
		r.verdicts(protocol.Accepted, r.take().Reports...)
		r.finish()
	})
}

func TestRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, okay, worker.Config{})
		if err := r.worker.Run(t.Context()); err == nil {
			t.Error("Run = nil the second time")
		}
		r.finish()
	})
}

// A job that the worker was told to forget goes on where it has begun, and has to
// be introduced again.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, okay, worker.Config{})
		r.assign(spec, unitOf("before"))
		r.send(&protocol.ToWorker{Forget: []mapreduce.JobID{jobID}})
		before := r.take().Reports
		if len(before) != 1 || before[0].Outcome != protocol.Done {
			t.Errorf("of a unit begun before: %+v", before)
		}
		r.verdicts(protocol.Accepted, before...)
		r.send(&protocol.ToWorker{Assignments: []protocol.Assignment{unitOf("unknown")}})
		unknown := r.take().Reports
		if len(unknown) != 1 || unknown[0].Outcome == protocol.Done {
			t.Errorf("of a unit of a job that is forgotten: %+v", unknown)
		}
		r.verdicts(protocol.Accepted, unknown...)
		r.assign(spec, unitOf("after"))
		last := r.take().Reports
		if len(last) != 1 || last[0].Outcome != protocol.Done {
			t.Errorf("of a unit of the job introduced again: %+v", last)
		}
		r.verdicts(protocol.Accepted, last...)
		r.finish()
	})
}
