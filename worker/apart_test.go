package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/apart"
	"github.com/coditect/mapreduce/worker/step"
)

// The tests of this file have units run apart. The processes are workers of this one, that
// end as if they were processes.

// annexes starts such processes.
type annexes struct {
	t       *testing.T
	run     runFunc
	cfg     worker.Config
	fails   error // why none can be started; nil if they can
	running sync.WaitGroup

	mu  sync.Mutex // guards the variables below
	all []*annex
	now int // that run
	top int // that ran at once at most
}

func newAnnexes(t *testing.T, run runFunc, cfg worker.Config) *annexes {
	return &annexes{t: t, run: run, cfg: cfg}
}

// An annex stands for a process.
type annex struct {
	all   *annexes
	pipe  *pipe
	stop  context.CancelFunc // of its worker
	once  sync.Once
	ended chan struct{}
	err   error // set before ended is closed
}

func (x *annex) Ended() <-chan struct{} { return x.ended }

func (x *annex) Err() error {
	select {
	case <-x.ended:
		return x.err
	default:
		return nil
	}
}

func (x *annex) Stop() { x.die(errors.New("stopped")) }

// die ends the process at once.
func (x *annex) die(how error) {
	x.once.Do(func() {
		x.pipe.cut()
		x.stop()
		x.all.count(nil, -1)
		x.err = how
		close(x.ended)
	})
}

// start is a apart.Start.
func (a *annexes) start(f protocol.Fleet) (apart.Process, error) {
	if a.fails != nil {
		return nil, a.fails
	}
	life, end := context.WithCancel(context.Background())
	x := &annex{all: a, pipe: newPipe(life, f), ended: make(chan struct{})}
	cfg := a.cfg
	cfg.Slots, cfg.Steps = 1, step.Serving("test", a.run)
	cfg.DrainTimeout = time.Millisecond // nobody waits for one that has ended
	connects := make(chan *pipe, 1)
	connects <- x.pipe
	cfg.Connect = []worker.Connect{func(ctx context.Context) (worker.Stream, error) {
		select {
		case p := <-connects:
			context.AfterFunc(ctx, p.cut)
			return near{p}, nil
		default:
			return nil, errBroken
		}
	}}
	w, err := worker.New(cfg)
	if err != nil {
		end()
		return nil, err
	}

	ctx, stop := context.WithCancel(context.Background())
	x.stop = stop
	a.count(x, 1)
	a.running.Go(func() {
		_ = f.Work(life, far{x.pipe}) // ends with the stream
		x.pipe.end()
	})
	a.running.Go(func() {
		_ = w.Run(ctx) // what it leaves behind is what processes leave that end
		end()
	})
	return x, nil
}

func (a *annexes) count(x *annex, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x != nil {
		a.all = append(a.all, x)
	}
	a.now += n
	a.top = max(a.top, a.now)
}

// last returns the process that was started last.
func (a *annexes) last() *annex {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.all) == 0 {
		a.t.Fatal("no process was started")
	}
	return a.all[len(a.all)-1]
}

// wait waits until nothing is left of all processes, which must have ended.
func (a *annexes) wait() { a.running.Wait() }

func aloneUnit(id mapreduce.UnitID) protocol.Assignment {
	u := unitOf(id)
	u.Alone = true
	return u
}

// A unit that ends its process has failed once, with what was seen; in a job with a budget it
// has spent all that was reserved for it. The worker goes on.
func TestApartEndsItsProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		budget int64
		want   mapreduce.Tokens
	}{
		"without a budget": {0, mapreduce.Tokens{In: 40, Out: 2}},
		"with a budget":    {1000, mapreduce.Tokens{In: 98, Out: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
					calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 40, Out: 2}})
					<-ctx.Done()
					return nil, ctx.Err()
				}
				processes := newAnnexes(t, run, worker.Config{})
				defer processes.wait()
				r := start(t, okay, worker.Config{Slots: 2, StartApart: processes.start})
				poor := spec
				poor.Budget = tc.budget
				u := aloneUnit("u")
				u.Reserved, u.Attempt = 100, 3
				r.assign(poor, u)
				after(3 * time.Second)
				if got := r.take(); len(got.Reports) > 0 || len(got.Started) != 1 || got.Heartbeat.Progress[0].Tokens.Total() != 42 {
					t.Errorf("while it runs the worker says %+v", got)
				}

				processes.last().die(errors.New("signal: killed"))
				got := r.report()
				want := "attempt 3 ended its process, in which nothing else ran, at 2000-01-01T00:00:03Z: signal: killed"
				if got.Outcome != protocol.Errored || got.Class != protocol.Retryable || len(got.Errors) != 1 || got.Errors[0] != want {
					t.Errorf("report %+v, want the error %q", got, want)
				}
				if diff := cmp.Diff(tc.want, got.Tokens); diff != "" {
					t.Errorf("tokens (-want +got):\n%s", diff)
				}

				r.verdicts(protocol.Accepted, got)
				r.assign(spec, unitOf("next"))
				next := r.report()
				if next.Outcome != protocol.Done {
					t.Errorf("the next unit ended as %+v", next)
				}
				r.verdicts(protocol.Accepted, next)
				r.finish()
			})
		})
	}
}

// What a unit asks of its orchestrator, it gets in a process of its own as well: tokens, its
// journal, a large output stored.
func TestApartReachesItsOrchestrator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := bytes.Repeat([]byte("x"), protocol.MaxInline+1)
		run := func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
			calls.Progress("reading")
			if _, err := calls.Do(ctx, "first", func(context.Context) ([]byte, error) { return []byte("one"), nil }); err != nil {
				return nil, err
			}
			if err := calls.Reserve(ctx, 500, 0); err != nil {
				return nil, err
			}
			calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 12_000}})
			if _, err := calls.DoOnce(ctx, "second", func(context.Context) ([]byte, error) { return []byte("two"), nil }); err != nil {
				return nil, err
			}
			return &agent.Result{Output: large}, nil
		}
		processes := newAnnexes(t, run, worker.Config{})
		defer processes.wait()
		r := start(t, okay, worker.Config{StartApart: processes.start})
		rich := spec
		rich.Budget = 100_000
		u := aloneUnit("u")
		u.Reserved = 100
		r.assign(rich, u)
		asked := r.take()
		if len(asked.Reserve) != 1 || asked.Reserve[0].Tokens != 500 || asked.Reserve[0].Unit != "u" {
			t.Fatalf("the worker asks for %+v, want 500 tokens for u", asked.Reserve)
		}
		r.send(&protocol.ToWorker{Reserved: []protocol.ReserveReply{{Held: asked.Reserve[0].Held, Granted: true}}})
		got := r.report()
		if got.Outcome != protocol.Done || got.Length != int64(len(large)) || got.Tokens.In != 12_000 {
			t.Errorf("report %+v", got)
		}
		if put := r.stored(protocol.BlobOutput, "u", 1); !bytes.Equal(put, large) {
			t.Errorf("%d bytes of the output are stored, want %d", len(put), len(large))
		}
		if kept := strings.Join(r.appended(), "; "); !strings.Contains(kept, "first") || !strings.Contains(kept, "second") {
			t.Errorf("of the journal is stored %q, want both entries", kept)
		}
		r.verdicts(protocol.Accepted, got)
		r.finish()
	})
}

// No more units run apart at once than may, and others overtake those that wait.
func TestApartUnitsStallNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
			after(time.Minute)
			return okay(ctx, task, calls)
		}
		processes := newAnnexes(t, slow, worker.Config{})
		defer processes.wait()
		const alone, others, most = 20, 100, 8
		r := start(t, okay, worker.Config{Slots: 10, Prefetch: alone + others, StartApart: processes.start})
		var units []protocol.Assignment
		for i := range alone {
			units = append(units, aloneUnit(mapreduce.UnitID(fmt.Sprintf("alone-%d", i))))
		}
		for i := range others {
			units = append(units, unitOf(mapreduce.UnitID(fmt.Sprintf("other-%d", i))))
		}
		r.assign(spec, units...)
		before := r.take().Reports
		if len(before) != others {
			t.Errorf("%d units have ended before those that run apart, want all %d others", len(before), others)
		}
		after(3 * time.Minute)
		rest := r.take().Reports
		if len(rest) != alone {
			t.Errorf("%d units have run apart, want %d", len(rest), alone)
		}
		if processes.top != most {
			t.Errorf("%d processes ran at once, want %d", processes.top, most)
		}
		r.verdicts(protocol.Accepted, append(before, rest...)...)
		r.finish()
	})
}

// An attempt in a process of its own ends as one in this process does when it is cancelled,
// when the worker drains, and when it does not keep to its time; and nothing is left of the
// process.
func TestApartIsInterrupted(t *testing.T) {
	for name, tc := range map[string]struct {
		obeys bool // the process
		how   func(*running)
		want  string // the error of the report; empty if there is none
		class protocol.Outcome
	}{
		"cancelled": {obeys: true, how: func(r *running) {
			r.send(&protocol.ToWorker{Cancel: []protocol.Held{{Job: jobID, Unit: "u", Attempt: 1}}})
		}},
		"cancelled, and goes on": {how: func(r *running) {
			r.send(&protocol.ToWorker{Cancel: []protocol.Held{{Job: jobID, Unit: "u", Attempt: 1}}})
		}},
		"drained":                  {obeys: true, how: func(r *running) { r.stop() }, want: "worker is draining", class: protocol.Returned},
		"drained, and goes on":     {how: func(r *running) { r.stop() }, want: "worker is draining", class: protocol.Returned},
		"out of time, and goes on": {how: func(*running) { after(21 * time.Minute) }, want: "deadline exceeded after 10m0s", class: protocol.Errored},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				run := func(ctx context.Context, _ *agent.Task, _ agent.Calls) (*agent.Result, error) {
					if tc.obeys {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					<-release
					return nil, errors.New("too late")
				}
				processes := newAnnexes(t, run, worker.Config{Grace: time.Hour}) // the process abandons nothing
				r := start(t, okay, worker.Config{StartApart: processes.start, DrainTimeout: time.Second})
				r.assign(spec, aloneUnit("u"))
				r.take()
				tc.how(r)
				after(10 * time.Second)
				got := r.take().Reports
				switch {
				case tc.want == "" && len(got) > 0:
					t.Errorf("reports %+v, want none", got)
				case tc.want != "" && (len(got) != 1 || got[0].Outcome != tc.class || !strings.Contains(strings.Join(got[0].Errors, ""), tc.want)):
					t.Errorf("reports %+v, want one that says %q", got, tc.want)
				}
				select {
				case <-processes.last().Ended():
				default:
					t.Error("the process lives")
				}
				if len(got) > 0 {
					r.verdicts(protocol.Accepted, got...)
				}
				close(release)
				r.finish()
				processes.wait()
			})
		})
	}
}

// Where no process can be started, the unit goes back, and costs nothing.
func TestApartThatCannotBeStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		processes := newAnnexes(t, okay, worker.Config{})
		processes.fails = errors.New("too many processes")
		r := start(t, okay, worker.Config{StartApart: processes.start})
		r.assign(spec, aloneUnit("u"))
		got := r.report()
		if got.Outcome != protocol.Returned || !strings.Contains(strings.Join(got.Errors, ""), "too many processes") {
			t.Errorf("report %+v, want the unit handed back, and why", got)
		}
		r.verdicts(protocol.Accepted, got)
		r.finish()
	})
}
