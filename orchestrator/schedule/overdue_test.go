package schedule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
)

// idler is a worker that takes one unit and never does anything with it, but to say that
// it lives, and what the test has it say beside that.
type idler struct {
	n     *enginetest.Node
	raw   *enginetest.Raw
	held  protocol.Held
	ended chan struct{} // closed when the unit was taken from it, or the stream has ended
}

func newIdler(t *testing.T, n *enginetest.Node) *idler {
	t.Helper()
	i := &idler{n: n}
	i.raw, _ = enginetest.Hello(t, n, protocol.Hello{Session: "idler", Slots: 1, Prefetch: 1})
	return i
}

// hear has the idler note when its attempt is cancelled.
func (i *idler) hear() {
	ended, stream := make(chan struct{}), i.raw.Stream
	i.ended = ended
	go func() {
		defer close(ended)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			if slices.Contains(m.Cancel, i.held) {
				return
			}
		}
	}()
}

// TestAnIdleWorkerIsTimedOut: a worker that says that it lives, and nothing of its unit, or
// that the unit runs, or that connects anew all the time, holds the unit for no longer than
// the unit's timeout allows. The attempt counts as failed, and what the worker says of it
// later comes too late.
func TestAnIdleWorkerIsTimedOut(t *testing.T) {
	const timeout = time.Minute
	for name, tt := range map[string]struct {
		say  func(i *idler, t *testing.T, second int)
		most time.Duration
		why  string
	}{
		"only beats": {func(*idler, *testing.T, int) {}, 8*timeout + 10*time.Minute, "has held it for"},
		"says that it runs": {func(i *idler, _ *testing.T, _ int) {
			i.raw.Send(&protocol.FromWorker{Started: []protocol.Held{i.held}})
		}, 2*timeout + 2*time.Minute, "has run for"},
		"says so and connects anew": {func(i *idler, t *testing.T, second int) {
			if second%20 != 0 {
				return
			}
			running := i.held
			running.Running = true
			i.raw, _ = enginetest.Hello(t, i.n, protocol.Hello{Session: "idler", Slots: 1, Prefetch: 1, Holding: []protocol.Held{running}})
			i.raw.Send(&protocol.FromWorker{Drain: true})
			i.hear()
		}, 2*timeout + 2*time.Minute, "has run for"},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				f := enginetest.NewFleet(t, 0, 1, nil, enginetest.Steady())
				n := f.Any()
				i := newIdler(t, n)
				spec := enginetest.Script(nil)
				spec.UnitTimeout, spec.Budget = timeout, 1_000_000
				job := n.Submit(spec, 1)
				i.held = i.raw.Assigned()
				i.raw.Send(&protocol.FromWorker{Drain: true}) // it gets the unit once
				i.hear()
				begun := time.Now()
				for second := 1; n.Units(job)[i.held.Unit].Failures == 0; second++ {
					tt.say(i, t, second)
					i.raw.Send(&protocol.FromWorker{Heartbeat: &protocol.Heartbeat{Progress: []protocol.Progress{{Held: i.held, Note: "soon"}}}})
					<-time.After(time.Second)
					if took := time.Since(begun); took > tt.most {
						t.Fatalf("the unit is held for %v", took)
					}
				}
				if took := time.Since(begun); took < 2*timeout {
					t.Errorf("the unit was taken after %v, and an honest worker may have it for twice %v", took, timeout)
				}
				<-i.ended // it is told
				spent, err := n.GetJob(t.Context(), job)
				if err != nil || spent.TotalTokens.Total() == 0 {
					t.Errorf("the attempt counts as %v tokens (%v), want what was reserved", spent.TotalTokens, err)
				}
				stream, err := n.Connect(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				i.raw = &enginetest.Raw{T: t, Stream: stream}
				i.raw.Send(&protocol.FromWorker{Drain: true, Hello: &protocol.Hello{Session: "idler", Slots: 1}})
				if v := i.raw.Report(i.held, ""); v != protocol.Stale {
					t.Errorf("the verdict on a report that comes too late is %v", v)
				}
				f.Join(worker.Config{Slots: 1})
				n.WantEnd(job, mapreduce.JobComplete)
				u := n.Units(job)[i.held.Unit]
				if u.Attempts != 2 || u.Failures != 1 {
					t.Errorf("the unit took %d attempts, and %d failed", u.Attempts, u.Failures)
				}
				found, err := n.Jobs.View.Unit(t.Context(), job, i.held.Unit)
				if err != nil || len(found.Errors) > 0 && !strings.Contains(found.Errors[0], tt.why) {
					t.Errorf("the unit has the errors %q (%v)", found.Errors, err)
				}
			})
		})
	}
}

// TestASlowWorkerIsNotTimedOut: a unit that takes all the time that it may, and waits at
// its worker before, is not taken from it.
func TestASlowWorkerIsNotTimedOut(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f := enginetest.NewFleet(t, 0, 1, nil, enginetest.Steady())
		f.Join(worker.Config{Slots: 1, Prefetch: 4})
		spec := enginetest.Script(map[string]string{"script.latency": "55s"})
		spec.UnitTimeout = time.Minute
		n := f.Any()
		id := n.Submit(spec, 12)
		job := n.EndWithin(id, time.Hour)
		if job.State != mapreduce.JobComplete || f.Counter.Attempts() != 13 {
			t.Errorf("the job is %v with %d attempts at 13 units", job.State, f.Counter.Attempts())
		}
	})
}

// TestTimesOfReportsAreBounded: no pause that a worker asks for lasts for longer than an
// hour, be it of its unit or of a model.
func TestTimesOfReportsAreBounded(t *testing.T) {
	const years = 290 * 365 * 24 * time.Hour
	enginetest.Virtually(t, func(t *testing.T) {
		config := unhurried()
		config.Stuck = 3 * time.Hour
		f := enginetest.NewFleet(t, 0, 1, nil, config)
		n := f.Any()
		liar, _ := enginetest.Hello(t, n, protocol.Hello{Session: "liar", Slots: 4})
		id := n.Submit(enginetest.Script(nil), 3)
		var held []protocol.Held
		for len(held) < 3 {
			for _, a := range liar.Recv().Assignments {
				held = append(held, protocol.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt})
			}
		}
		m := &protocol.FromWorker{
			Limits:    []protocol.LimitNote{{Name: "scripted/m", Refused: true, Pause: years, Successes: 1 << 62}},
			Heartbeat: &protocol.Heartbeat{Breakers: []protocol.BreakerState{{Name: "scripted/m", OpenFor: years}, {Name: "scripted/", OpenFor: years}}},
			Drain:     true,
		}
		for i, outcome := range []protocol.Outcome{protocol.Errored, protocol.Returned, protocol.Errored} {
			m.Reports = append(m.Reports, protocol.Report{
				Job: id, Unit: held[i].Unit, Attempt: 1, Outcome: outcome, RetryAfter: years, Latency: years, Elapsed: years, ToolTime: years,
				Savings: mapreduce.Savings{Answers: 1 << 62, AnswerMicros: 1 << 62, CacheRead: 1 << 62, CacheWrite: 1 << 62, PromptMicros: -1 << 62},
			})
		}
		liar.Send(m)
		f.Join(worker.Config{Slots: 1})
		job := n.EndWithin(id, 4*time.Hour)
		if s := job.Savings; job.State != mapreduce.JobComplete || s.AnswerMicros < 0 || s.CacheRead < 0 || s.Answers < 0 {
			t.Errorf("the job is %v, and saved %+v", job.State, s)
		}
	})
}

// TestCountsOfReportsAreBounded: what no attempt can spend is refused. What such an attempt
// has spent nobody knows, and it is charged what it had reserved.
func TestCountsOfReportsAreBounded(t *testing.T) {
	for name, lie := range map[string]func(*protocol.Report){
		"tokens":           func(r *protocol.Report) { r.Tokens.In = 1 << 62 },
		"tokens that wrap": func(r *protocol.Report) { r.Tokens = mapreduce.Tokens{In: 1<<63 - 1, Out: 1<<63 - 1} },
		"money":            func(r *protocol.Report) { r.CostMicros = 1 << 49 },
		"money that wraps": func(r *protocol.Report) { r.CostMicros = 1<<63 - 1 },
		"a size":           func(r *protocol.Report) { r.Size = 1 << 39 },
	} {
		for _, outcome := range []protocol.Outcome{protocol.Done, protocol.Returned, protocol.Errored} {
			t.Run(name+" "+[]string{"", "done", "errored", "returned"}[outcome], func(t *testing.T) {
				enginetest.Virtually(t, func(t *testing.T) {
					n := enginetest.NewFleet(t, 0, 1, nil, enginetest.Steady()).Any()
					w, _ := enginetest.Hello(t, n, protocol.Hello{Session: "liar", Slots: 1})
					id := n.Submit(enginetest.Script(nil), 1)
					h := w.Assigned()
					r := protocol.Report{Job: h.Job, Unit: h.Unit, Attempt: h.Attempt, Outcome: outcome}
					lie(&r)
					w.Send(&protocol.FromWorker{Drain: true, Reports: []protocol.Report{r}})
					for len(w.Recv().Verdicts) == 0 {
						continue
					}
					job, err := n.GetJob(t.Context(), id)
					var want mapreduce.Tokens
					if r.Size == 0 {
						want.In = 8214 // a prompt of some tokens and an answer of 8192
					}
					if err != nil || job.TotalTokens != want || job.CostMicros != 0 {
						t.Errorf("the job has spent %v and %d, %v", job.TotalTokens, job.CostMicros, err)
					}
					if u := n.Units(id)[h.Unit]; u.State != mapreduce.Pending || u.Failures != 1 {
						t.Errorf("the unit is %v with %d failures, want it to be tried again", u.State, u.Failures)
					}
				})
			})
		}
	}
}

// unhurried are settings for tests that last for hours of virtual time: what is done at
// intervals is done a hundred times as seldom as with steady.
func unhurried() orchestrator.Config {
	c := enginetest.Steady()
	c.Heartbeat, c.Beat, c.Lease, c.Grace = 20*time.Second, 20*time.Second, 5*time.Minute, 5*time.Minute
	c.Poll, c.Seal = 20*time.Second, 10*time.Second
	return c
}
