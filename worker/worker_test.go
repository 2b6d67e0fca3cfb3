package worker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

func TestNewRefuses(t *testing.T) {
	connect := []worker.Connect{newPeer(t).connect}
	steps := step.Serving("test", runFunc(okay))
	for name, tc := range map[string]struct {
		cfg  worker.Config
		want string
	}{
		"no address":     {worker.Config{Steps: steps}, "Connect"},
		"no step":        {worker.Config{Connect: connect}, "Steps"},
		"no provider":    {worker.Config{Connect: connect, Steps: step.NewRegistry()}, "Steps"},
		"negative slots": {worker.Config{Connect: connect, Steps: steps, Slots: -1}, "Slots"},
		"negative grace": {worker.Config{Connect: connect, Steps: steps, Grace: -1}, "Grace"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := worker.New(tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("New = %v; want an error that names %s", err, tc.want)
			}
		})
	}
}

func TestHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		r := launch(t, p, okay, worker.Config{Session: "s1", Version: "v1", Slots: 3, Prefetch: 2})
		got := p.accept(protocol.Welcome{})
		want := &protocol.FromWorker{Hello: &protocol.Hello{
			Session: "s1", Version: "v1", Slots: 3, Prefetch: 2, Offer: mapreduce.Offer{Providers: []string{"test"}, Dollars: true, Reviews: true, Deadlines: true}, Holding: []protocol.Held{},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("hello (-want +got):\n%s", diff)
		}
		r.finish()
	})
}

func TestOutcomes(t *testing.T) {
	const late = "deadline exceeded after 10m0s"
	long := strings.Repeat("ä", 1000)
	for name, tc := range map[string]struct {
		run  runFunc
		spec mapreduce.JobSpec
		cfg  worker.Config
		want protocol.Report
	}{
		"done": {run: okay, want: protocol.Report{Outcome: protocol.Done, Output: []byte("ok"), Size: 1, Confidence: 0.5}},
		"soft errors": {
			run: func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
				return &agent.Result{Confidence: math.NaN(), Size: -1, Errors: []string{"a\x00b\xff"}}, nil
			},
			want: protocol.Report{Outcome: protocol.Done, Errors: []string{"a\uFFFDb\uFFFD"}},
		},
		"money": {
			run: func(_ context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
				calls.Spent(mapreduce.Charge{Model: "a/m", Tier: "flex", Calls: 1, Tokens: mapreduce.Tokens{In: 10, Out: 3}, CostMicros: 7})
				calls.Spent(mapreduce.Charge{Model: "a/m", Tier: "standard", Calls: 1, Tokens: mapreduce.Tokens{In: 1, Out: 1}, CostMicros: 1})
				calls.Spent(mapreduce.Charge{Model: "a/m", Tier: "flex", CostMicros: 2})
				return nil, errors.New("broken")
			},
			want: protocol.Report{
				Outcome: protocol.Errored, Errors: []string{"broken"},
				Tokens: mapreduce.Tokens{In: 11, Out: 4}, CostMicros: 10,
				Charges: []mapreduce.Charge{
					{Model: "a/m", Tier: "flex", Calls: 1, Tokens: mapreduce.Tokens{In: 10, Out: 3}, CostMicros: 9},
					{Model: "a/m", Tier: "standard", Calls: 1, Tokens: mapreduce.Tokens{In: 1, Out: 1}, CostMicros: 1},
				},
			},
		},
		"retry after": {
			run:  fails(agent.Retry(errors.New("busy"), time.Minute)),
			want: protocol.Report{Outcome: protocol.Errored, RetryAfter: time.Minute, Errors: []string{"busy"}},
		},
		"permanent": {
			run:  fails(agent.Permanent(errors.New("no such language"))),
			want: protocol.Report{Outcome: protocol.Errored, Class: protocol.PermanentUnit, Errors: []string{"no such language"}},
		},
		"permanent for the job": {
			run:  fails(agent.PermanentJob(errors.New("key revoked"))),
			want: protocol.Report{Outcome: protocol.Errored, Class: protocol.PermanentJob, Errors: []string{"key revoked"}},
		},
		"long error": {
			run:  fails(errors.New(long)),
			want: protocol.Report{Outcome: protocol.Errored, Errors: []string{long[:1020] + "…"}},
		},
		"budget refused": {
			run:  fails(agent.ErrBudget),
			want: protocol.Report{Outcome: protocol.Returned, Errors: []string{"token budget refused"}},
		},
		"neither": {
			run:  func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) { return nil, nil },
			want: protocol.Report{Outcome: protocol.Errored, Errors: []string{"agent returned neither a result nor an error"}},
		},
		"panic": {
			run:  func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) { panic("oh\x00no") },
			want: protocol.Report{Outcome: protocol.Errored, Errors: []string{"agent panicked: oh\uFFFDno"}},
		},
		"goexit": {
			run: func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
				runtime.Goexit()
				return nil, nil
			},
			want: protocol.Report{Outcome: protocol.Errored, Errors: []string{"agent ended its goroutine instead of returning"}},
		},
		"unknown provider": {
			run: okay, spec: mapreduce.JobSpec{Provider: "x"},
			want: protocol.Report{
				Outcome: protocol.Errored, Class: protocol.PermanentJob,
				Errors: []string{`this worker has no provider named "x" (has: test)`},
			},
		},
		"output too large": {
			run: outputs(11), cfg: worker.Config{MaxOutput: 10},
			want: protocol.Report{
				Outcome: protocol.Errored, Class: protocol.PermanentUnit,
				Errors: []string{"output of 11 bytes; at most 10 are taken"},
			},
		},
		"deadline": {
			run: func(ctx context.Context, _ *agent.Task, _ agent.Calls) (*agent.Result, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			want: protocol.Report{Outcome: protocol.Errored, Errors: []string{late}, Elapsed: 10 * time.Minute},
		},
		"result after the deadline": {
			run: func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
				<-ctx.Done()
				return okay(ctx, task, calls)
			},
			want: protocol.Report{
				Outcome: protocol.Done, Output: []byte("ok"), Size: 1, Confidence: 0.5, Elapsed: 10 * time.Minute,
			},
		},
	} {
		for _, apart := range []bool{false, true} { // an attempt ends in the same way in a process of its own
			t.Run(fmt.Sprintf("%s, apart %v", name, apart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					u := unitOf("u")
					if apart {
						processes := newAnnexes(t, tc.run, tc.cfg)
						defer processes.wait()
						tc.cfg.StartApart, u.Alone = processes.start, true
					}
					r := start(t, tc.run, tc.cfg)
					s := tc.spec
					if s.Provider == "" {
						s = spec
					}
					r.assign(s, u)
					after(10 * time.Minute)
					tc.want.Job, tc.want.Unit, tc.want.Attempt = jobID, "u", 1
					got := r.report()
					if diff := cmp.Diff(tc.want, got); diff != "" {
						t.Errorf("report (-want +got):\n%s", diff)
					}
					r.verdicts(protocol.Accepted, got)
					r.finish()
				})
			})
		}
	}
}

func fails(err error) runFunc {
	return func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) { return nil, err }
}

func outputs(n int) runFunc {
	return func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
		out := make([]byte, n)
		for i := range out {
			out[i] = byte(i * 7 / 5)
		}
		return &agent.Result{Output: out}, nil
	}
}

// B15: the provider's count wins, 0 too, then the job's estimator, and then it is a
// quarter of the characters.
func TestOutputsAreCounted(t *testing.T) {
	text := strings.Repeat("word ", 8)
	for _, tt := range []struct {
		name, estimator string
		size, want      int64
	}{
		{"provider", "characters/2", 7, 7},
		{"provider, none", "characters/2", 0, 0},
		{"provider, more than there can be", "characters/2", math.MaxInt64, 1 << 34},
		{"estimator", "characters/2", token.Unknown, 20},
		{"tokenizer", "o200k_base", token.Unknown, 9},
		{"no estimator named", "", token.Unknown, 9},
		{"characters", "characters", token.Unknown, 10},
		{"of a later version", "o300k_base", token.Unknown, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
					return &agent.Result{Size: tt.size, Text: text}, nil
				}, worker.Config{})
				counted := spec
				counted.Estimator = tt.estimator
				r.assign(counted, unitOf("a"))
				rep := r.report()
				if rep.Size != tt.want {
					t.Errorf("the output has %d tokens, want %d", rep.Size, tt.want)
				}
				r.verdicts(protocol.Accepted, rep)
				r.finish()
			})
		})
	}
}

// Whatever an agent says in an error, what is reported is text of a bounded
// size that any store can hold.
func TestErrorTexts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := string(rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(rt, "text"))
		var got string
		synctest.Test(t, func(t *testing.T) {
			r := start(t, fails(errors.New(text)), worker.Config{})
			r.assign(spec, unitOf("u"))
			rep := r.report()
			got = rep.Errors[0]
			r.verdicts(protocol.Accepted, rep)
			r.finish()
		})
		if !utf8.ValidString(got) || strings.Contains(got, "\x00") || len(got) > 1024 {
			rt.Errorf("text = %q of %d bytes", got, len(got))
		}
		if utf8.ValidString(text) && !strings.Contains(text, "\x00") && len(text) <= 1024 && got != text {
			rt.Errorf("text = %q; want it as it was: %q", got, text)
		}
	})
}

// Outputs that are too large for their report are put before it.
func TestLargeOutputs(t *testing.T) {
	for name, n := range map[string]int{
		"inline":        protocol.MaxInline,
		"a byte more":   protocol.MaxInline + 1,
		"several parts": 3<<20 + 5,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, outputs(n), worker.Config{})
				r.assign(spec, unitOf("u"))
				rep := r.report()
				r.checkOutput(rep, n)
				r.verdicts(protocol.Accepted, rep)
				r.finish()
			})
		})
	}
}

// checkOutput checks that a report stands for an output of so many bytes.
func (r *running) checkOutput(rep protocol.Report, n int) {
	r.t.Helper()
	want, _ := outputs(n)(nil, nil, nil)
	got := rep.Output
	if n > protocol.MaxInline {
		got = r.stored(protocol.BlobOutput, rep.Unit, rep.Attempt)
		if sum := sha256.Sum256(want.Output); !bytes.Equal(rep.SHA256, sum[:]) || rep.Length != int64(n) || rep.Output != nil {
			r.t.Errorf("hash or length (%d) is wrong, or the report has the output too", rep.Length)
		}
	}
	if !bytes.Equal(got, want.Output) {
		r.t.Errorf("output of %d bytes differs; want %d", len(got), n)
	}
}

// An output whose transfer breaks off goes on from what is stored, over the next
// stream if need be, and its report waits.
func TestOutputsAreResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 3*protocol.PartSize + 7
		r := start(t, outputs(size), worker.Config{})
		away := make(chan struct{})
		broken := 0
		r.before = func(ctx context.Context, _ *protocol.BlobRequest, at int64) error {
			if broken++; broken == 2 {
				r.pipe.cut()
				<-away
				return errs.New(errs.Unavailable, "broken off at %d", at)
			}
			return nil
		}
		r.assign(spec, unitOf("u"))
		if got := r.take(); len(got.Reports) != 0 {
			t.Fatalf("reports before the output is stored: %+v", got.Reports)
		}
		close(away)
		r.accept(protocol.Welcome{Epoch: 2})
		after(time.Minute)
		rep := r.report()
		r.checkOutput(rep, size)
		if diff := cmp.Diff([]int64{0, 0, 2 * protocol.PartSize}, r.starts(protocol.BlobOutput)); diff != "" {
			t.Errorf("puts began at (-want +got):\n%s", diff)
		}
		r.pipe.cut() // what is stored is not put again
		r.accept(protocol.Welcome{Epoch: 3})
		if again := r.report(); !cmp.Equal(rep, again) || len(r.starts(protocol.BlobOutput)) != 3 {
			t.Errorf("sent again: %+v after %d puts", again, len(r.starts(protocol.BlobOutput)))
		}
		r.verdicts(protocol.Accepted, rep)
		r.finish()
	})
}

// What is under way over a connection that has gone silent goes over the next one, also when the worker
// leaves: what was paid for is handed over before it ends.
func TestOutputsLeaveSilentConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, silence = 3*protocol.PartSize + 7, 2 * time.Second
		p := newPeer(t)
		r := launch(t, p, outputs(size), worker.Config{DrainTimeout: 10 * time.Second})
		p.accept(protocol.Welcome{Epoch: 1, Silence: silence})
		var parts atomic.Int64
		r.before = func(ctx context.Context, _ *protocol.BlobRequest, _ int64) error {
			if parts.Add(1) == 2 { // nothing comes of it, and nobody says so
				<-ctx.Done()
				return errs.New(errs.Cancelled, "%w", context.Cause(ctx))
			}
			return nil
		}
		r.assign(spec, unitOf("u"))
		r.take()
		r.stop()

		after(silence)
		r.accept(protocol.Welcome{Epoch: 2, Silence: silence})
		after(time.Second)
		rep := r.report()
		r.checkOutput(rep, size)
		r.verdicts(protocol.Accepted, rep)
		r.finish()
	})
}

// An output that is refused for good makes its attempt a failure, and one whose
// attempt is over leaves the verdict to the report. Where the store is damaged, no other
// attempt is to try the same.
func TestOutputsAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		want  protocol.Outcome
		class protocol.FailureClass
	}{
		"for good":             {errs.Field("blob.size_bytes", "is too much"), protocol.Errored, protocol.Retryable},
		"the attempt is over":  {errs.New(errs.Precondition, "does not hold"), protocol.Done, 0},
		"the store is damaged": {errs.New(errs.DataLoss, "is too much damaged"), protocol.Errored, protocol.PermanentUnit},
		"again and again":      {errs.New(errs.Internal, "input/output error: is too much"), protocol.Errored, protocol.PermanentUnit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, outputs(protocol.MaxInline+1), worker.Config{})
				r.before = func(_ context.Context, q *protocol.BlobRequest, _ int64) error {
					r.lose(q)
					return tt.err
				}
				r.assign(spec, unitOf("u"))
				after(time.Minute)
				rep := r.report()
				if rep.Outcome != tt.want || rep.Class != tt.class || tt.want == protocol.Errored && !strings.Contains(rep.Errors[0], "is too much") {
					t.Errorf("report = %+v", rep)
				}
				r.verdicts(protocol.Stale, rep)
				r.finish()
			})
		})
	}
}

// Units run in order of arrival, no more at once than there are slots, and what
// must run alone does.
func TestSlots(t *testing.T) {
	for name, tc := range map[string]struct {
		slots int
		alone string
		want  string // upper case begins, lower case ends
	}{
		"one":             {1, "", "AaBbCcDd"},
		"two":             {2, "", "ABabCDcd"},
		"alone":           {2, "B", "AaBbCDcd"},
		"alone at first":  {3, "A", "AaBCDbcd"},
		"alone at last":   {3, "D", "ABCabcDd"},
		"two alone":       {4, "BC", "AaBbCcDd"},
		"alone, one slot": {1, "BC", "AaBbCcDd"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := make(chan string, 8)
				run := func(_ context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
					// Units that run at once are told apart by a moment.
					after(time.Duration(task.Index) * time.Millisecond)
					log <- string(task.Unit)
					after(time.Second)
					log <- strings.ToLower(string(task.Unit))
					return &agent.Result{}, nil
				}
				r := start(t, run, worker.Config{Slots: tc.slots, Prefetch: 4})
				var as []protocol.Assignment
				for i, id := range strings.Split("ABCD", "") {
					a := unitOf(mapreduce.UnitID(id))
					a.Index, a.Alone = int64(i), strings.Contains(tc.alone, id)
					as = append(as, a)
				}
				r.assign(spec, as...)
				after(10 * time.Second)
				r.verdicts(protocol.Accepted, r.take().Reports...)
				r.finish()
				close(log)
				var got strings.Builder
				for s := range log {
					got.WriteString(s)
				}
				if got.String() != tc.want {
					t.Errorf("order = %s; want %s", got.String(), tc.want)
				}
			})
		})
	}
}

func TestStartedBeforeRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began time.Time
		run := func(ctx context.Context, _ *agent.Task, _ agent.Calls) (*agent.Result, error) {
			began = time.Now()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		p := newPeer(t)
		r := launch(t, p, run, worker.Config{})
		p.accept(protocol.Welcome{})
		a := unitOf("u")
		a.Attempt = 2
		r.assign(spec, a)
		want := []protocol.Held{{Job: jobID, Unit: "u", Attempt: 2, Running: true}}
		if diff := cmp.Diff(want, r.take().Started); diff != "" {
			t.Errorf("started (-want +got):\n%s", diff)
		}
		if began.IsZero() {
			t.Error("the attempt did not begin though its start was told")
		}
		r.send(&protocol.ToWorker{Cancel: want})
		r.finish()
	})
}

// An attempt after the first does not begin while its start cannot be told.
func TestRetryWaitsForItsAnnouncement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan time.Duration, 1)
		epoch := time.Now()
		run := func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
			began <- time.Since(epoch)
			return &agent.Result{}, nil
		}
		p := newPeer(t)
		r := launch(t, p, run, worker.Config{Heartbeat: time.Hour})
		p.pipe = <-p.conns
		if _, err := (far{p.pipe}).Recv(); err != nil {
			t.Fatal(err)
		}
		a := unitOf("u")
		a.Attempt = 2
		p.send(&protocol.ToWorker{
			Welcome: &protocol.Welcome{}, Jobs: []protocol.JobInfo{{Job: jobID, Spec: spec}},
			Assignments: []protocol.Assignment{a},
		})
		after(300 * time.Millisecond) // nobody reads what the worker sends
		select {
		case d := <-began:
			t.Errorf("began after %v, before its start was told", d)
		default:
		}
		go p.collect(p.pipe)
		rep := p.report()
		if d := <-began; d != 300*time.Millisecond {
			t.Errorf("began after %v; want 300ms, when its start was told", d)
		}
		p.verdicts(protocol.Accepted, rep)
		r.finish()
	})
}

// An attempt that is cancelled before it began is not begun.
func TestCancelBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
			t.Error("the attempt was begun")
			return &agent.Result{}, nil
		}
		p := newPeer(t)
		r := launch(t, p, run, worker.Config{})
		p.pipe = <-p.conns
		if _, err := (far{p.pipe}).Recv(); err != nil {
			t.Fatal(err)
		}
		a := unitOf("u")
		a.Attempt = 2
		p.send(&protocol.ToWorker{
			Welcome: &protocol.Welcome{}, Jobs: []protocol.JobInfo{{Job: jobID, Spec: spec}},
			Assignments: []protocol.Assignment{a},
		})
		p.send(&protocol.ToWorker{Cancel: []protocol.Held{{Job: jobID, Unit: "u", Attempt: 2}}})
		synctest.Wait()
		if st := r.worker.Stats(); st.Running+st.Held != 0 {
			t.Errorf("stats = %+v; want nothing held", st)
		}
		go p.collect(p.pipe)
		if got := p.take().Reports; len(got) != 0 {
			t.Errorf("reports = %+v; want none", got)
		}
		r.finish()
	})
}

func TestAbandonedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		run := func(_ context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
			if task.Unit == "stuck" {
				<-release
			}
			return &agent.Result{}, nil
		}
		r := start(t, run, worker.Config{Slots: 1, Prefetch: 1, Grace: 2 * time.Second})
		stuck := unitOf("stuck")
		stuck.Timeout = time.Minute
		r.assign(spec, stuck, unitOf("next"))
		after(time.Minute + time.Second)
		if got := r.take().Reports; len(got) != 0 {
			t.Errorf("reports within the grace period: %+v", got)
		}
		after(time.Second)
		got := r.take().Reports
		want := []protocol.Report{
			{Job: jobID, Unit: "stuck", Attempt: 1, Outcome: protocol.Errored, Errors: []string{"deadline exceeded after 1m0s"}},
			{Job: jobID, Unit: "next", Attempt: 1, Outcome: protocol.Done},
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(protocol.Report{}, "Elapsed")); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		if n := r.worker.Stats().Abandoned; n != 1 {
			t.Errorf("abandoned = %d; want 1", n)
		}
		close(release)
		if got := r.take().Reports; len(got) != 0 {
			t.Errorf("an abandoned attempt reported again: %+v", got)
		}
		if n := r.worker.Stats().Abandoned; n != 0 {
			t.Errorf("abandoned = %d after it returned; want 0", n)
		}
		r.verdicts(protocol.Accepted, got...)
		r.finish()
	})
}

// TestNoUnitStopsAWorker: a worker all of whose agents do not return, over and over,
// goes on with other units.
func TestNoUnitStopsAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		run := func(_ context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
			if strings.HasPrefix(string(task.Unit), "stuck") {
				<-release
				runtime.Goexit() // the worst that can still come
			}
			return &agent.Result{}, nil
		}
		r := start(t, run, worker.Config{Slots: 2, Prefetch: 8})
		var as []protocol.Assignment
		for i := range 6 {
			u := unitOf(mapreduce.UnitID("stuck " + strconv.Itoa(i)))
			u.Timeout = time.Minute
			as = append(as, u)
		}
		r.assign(spec, append(as, unitOf("last"))...)
		after(3 * (time.Minute + 6*time.Second))
		got := r.take()
		if got.Drain {
			t.Error("the worker stops taking units")
		}
		outcomes := map[protocol.Outcome]int{}
		for _, report := range got.Reports {
			outcomes[report.Outcome]++
		}
		if diff := cmp.Diff(map[protocol.Outcome]int{protocol.Errored: 6, protocol.Done: 1}, outcomes); diff != "" {
			t.Errorf("outcomes of six stuck units and one more (-want +got):\n%s", diff)
		}
		close(release)
		r.verdicts(protocol.Accepted, got.Reports...)
		r.finish()
	})
}

func TestCancel(t *testing.T) {
	for name, tc := range map[string]struct {
		spent int64
		want  []protocol.Report
	}{
		"nothing spent": {0, nil},
		"tokens spent": {5, []protocol.Report{{
			Job: jobID, Unit: "u", Attempt: 1, Outcome: protocol.Returned, Tokens: mapreduce.Tokens{In: 5},
			Errors: []string{"cancelled by the orchestrator"}, Elapsed: time.Second,
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
					calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: tc.spent}})
					<-ctx.Done()
					return nil, ctx.Err()
				}
				r := start(t, run, worker.Config{Slots: 1, Prefetch: 1})
				r.assign(spec, unitOf("u"), unitOf("waiting"))
				after(time.Second)
				r.take()
				r.send(&protocol.ToWorker{Cancel: []protocol.Held{
					{Job: jobID, Unit: "u", Attempt: 1}, {Job: jobID, Unit: "waiting", Attempt: 1},
				}})
				got := r.take()
				if diff := cmp.Diff(tc.want, got.Reports); diff != "" {
					t.Errorf("reports (-want +got):\n%s", diff)
				}
				if st := r.worker.Stats(); st.Running+st.Waiting+st.Held != 0 {
					t.Errorf("stats = %+v; want nothing held", st)
				}
				r.finish()
			})
		})
	}
}

func TestVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, okay, worker.Config{})
		r.assign(spec, unitOf("a"), unitOf("b"), unitOf("c"), unitOf("d"))
		got := r.take().Reports
		r.verdicts(protocol.Accepted, got[0])
		r.verdicts(protocol.Stale, got[1])
		r.verdicts(protocol.Gone, got[2])
		r.verdicts(protocol.Accepted, got[0]) // again
		r.verdicts(protocol.VerdictUnknown, got[3])
		synctest.Wait()
		st := r.worker.Stats()
		if st.Accepted != 1 || st.Refused != 2 || st.Unknown != 2 || st.Held != 1 {
			t.Errorf("stats = %+v; want 1 accepted, 2 refused, 2 unknown, 1 held", st)
		}
		r.verdicts(protocol.Accepted, got[3])
		r.finish()
	})
}

// An attempt is run once however often it is assigned, and a later attempt
// takes the place of an earlier one.
func TestDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs []int
		run := func(ctx context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
			runs = append(runs, task.Attempt)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		r := start(t, run, worker.Config{Slots: 1, Prefetch: 3})
		first, second := unitOf("u"), unitOf("u")
		first.Attempt, second.Attempt = 2, 3
		r.assign(spec, first, first)
		r.take()
		r.assign(spec, second)
		r.take()
		r.assign(spec, first, second)
		got := r.take().Reports
		if diff := cmp.Diff([]int{2, 3}, runs); diff != "" {
			t.Errorf("attempts run (-want +got):\n%s", diff)
		}
		if st := r.worker.Stats(); st.Duplicates != 3 || st.Held != 1 || len(got) != 0 {
			t.Errorf("stats = %+v, reports = %+v; want 3 duplicates, 1 held, no report", st, got)
		}
		r.send(&protocol.ToWorker{Cancel: []protocol.Held{{Job: jobID, Unit: "u", Attempt: 3}}})
		r.finish()
	})
}

func TestHandsBackWhatItCannotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		run := func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
			<-block
			return &agent.Result{}, nil
		}
		r := start(t, run, worker.Config{Slots: 1})
		r.send(&protocol.ToWorker{Assignments: []protocol.Assignment{unitOf("unknown job")}})
		rep := r.report()
		if rep.Outcome != protocol.Returned {
			t.Errorf("report = %+v; want it handed back", rep)
		}
		r.verdicts(protocol.Accepted, rep)
		r.assign(spec, unitOf("a"), unitOf("b"), unitOf("c"))
		rep = r.report()
		if rep.Outcome != protocol.Returned || rep.Unit != "c" {
			t.Errorf("report = %+v; want c handed back", rep)
		}
		r.verdicts(protocol.Accepted, rep)
		close(block)
		r.verdicts(protocol.Accepted, r.take().Reports...)
		r.finish()
	})
}
