package orchestrator_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// TestAPanicFailsItsJob: what goes wrong in this program for one job ends that job,
// with the reason, and no other; the stack is in the log once.
func TestAPanicFailsItsJob(t *testing.T) {
	for name, at := range map[string]failpoint.Point{
		"in a turn": failpoint.Turn.Before(), "while a level is planned": failpoint.Plan.Before(),
		"before units are sent": failpoint.Assign.Before(), "before verdicts are sent": failpoint.Answer.Before(),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			var armed atomic.Bool
			c.hook = func(p failpoint.Point) {
				if p == at && armed.CompareAndSwap(true, false) {
					panic("a mistake of the program")
				}
			}
			config, log := logged(quick(orchestrator.Config{Adopt: true}))
			n := c.orchestrator(config)
			ended := make(chan struct{}) // before the job has failed, nothing is reduced, so that it cannot be complete
			isMap := func(task *agent.Task) bool { return task.Kind == mapreduce.KindMap }
			c.worker(&sluice{Agent: &scripted.Agent{}, pass: isMap, open: ended}, worker.Config{Slots: 2}, n)
			armed.Store(true)
			end := n.end(n.submit(script(nil), 4))
			close(ended)
			if end.State != mapreduce.JobFailed || !strings.Contains(end.Error, "internal error") {
				t.Errorf("the job ended %v: %q, want it failed with an internal error", end.State, end.Error)
			}
			n.wantEnd(n.submit(script(nil), 4), mapreduce.JobComplete)
			if lines := log.lines("a mistake of the program"); len(lines) == 0 || !strings.Contains(lines[0], "goroutine") {
				t.Errorf("the log has no stack: %q", lines)
			}
			if lines := log.lines("goroutine "); len(lines) != 1 {
				t.Errorf("the log has %d stacks, want 1", len(lines))
			}
		})
	}
}

// TestAPanicEndsNoLoop: a loop that belongs to no job goes on after a panic, and the
// log says so.
func TestAPanicEndsNoLoop(t *testing.T) {
	c := newCluster(t)
	var left atomic.Int64
	passed := make(chan struct{}, 1)
	c.hook = func(p failpoint.Point) {
		if p != failpoint.Seal.Before() {
			return
		}
		if left.Add(-1) == 0 {
			panic("a mistake of the program")
		}
		select {
		case passed <- struct{}{}:
		default:
		}
	}
	left.Store(1)
	config, log := logged(quick(orchestrator.Config{Adopt: true}))
	n := c.orchestrator(config)
	c.worker(&scripted.Agent{}, worker.Config{Slots: 2}, n)
	n.wantEnd(n.submit(script(nil), 4), mapreduce.JobComplete)
	<-passed
	if lines := log.lines("a mistake of the program"); len(lines) != 1 || !strings.Contains(lines[0], "goroutine") {
		t.Errorf("the log has %q, want one stack", lines)
	}
}

// The units that are at workers find out that no vendor takes a key. While the store takes
// its time to fail the job, its orchestrator hands out neither these nor others. A resume
// hands them all out.
func TestUnitsOfAJobThatIsAboutToFailAreNotHandedOut(t *testing.T) {
	virtually(t, func(t *testing.T) {
		c := newCluster(t)
		var late atomic.Bool
		c.hook = func(p failpoint.Point) {
			if p == failpoint.Fail.Before() && !late.Swap(true) {
				<-time.After(10 * time.Second)
			}
		}
		n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
		refused := new(refusing)
		c.worker(refused, worker.Config{Slots: 2}, n)
		id := n.submit(script(nil), 20)
		if end := n.end(id); end.State != mapreduce.JobFailed || !strings.Contains(end.Error, "no such key") {
			t.Fatalf("the job ended %v: %q", end.State, end.Error)
		}
		if runs := refused.runs.Load(); runs != 2 {
			t.Errorf("units ran %d times, want the two that were at the worker once each", runs)
		}
		refused.paid.Store(true)
		if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
			t.Fatal(err)
		}
		n.wantEnd(id, mapreduce.JobComplete)
	})
}

// refusing is an agent whose vendor refuses its key until somebody has paid.
type refusing struct {
	scripted.Agent
	runs atomic.Int64
	paid atomic.Bool
}

func (r *refusing) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	r.runs.Add(1)
	if !r.paid.Load() {
		<-time.After(time.Second) // until the vendor answers
		return nil, agent.PermanentJob(errors.New("no such key"))
	}
	return r.Agent.Run(ctx, task, calls)
}
