package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
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
			c := enginetest.NewCluster(t)
			var armed atomic.Bool
			c.Hook = func(p failpoint.Point) {
				if p == at && armed.CompareAndSwap(true, false) {
					panic("a mistake of the program")
				}
			}
			config, log := enginetest.Logged(enginetest.Quick(orchestrator.Config{Adopt: true}))
			n := c.Orchestrator(config)
			ended := make(chan struct{}) // before the job has failed, nothing is reduced, so that it cannot be complete
			isMap := func(task *agent.Task) bool { return task.Kind == mapreduce.KindMap }
			c.Worker(&enginetest.Sluice{Agent: &scripted.Agent{}, Pass: isMap, Open: ended}, worker.Config{Slots: 2}, n)
			armed.Store(true)
			end := n.End(n.Submit(enginetest.Script(nil), 4))
			close(ended)
			if end.State != mapreduce.JobFailed || !strings.Contains(end.Error, "internal error") {
				t.Errorf("the job ended %v: %q, want it failed with an internal error", end.State, end.Error)
			}
			n.WantEnd(n.Submit(enginetest.Script(nil), 4), mapreduce.JobComplete)
			if lines := log.Lines("a mistake of the program"); len(lines) == 0 || !strings.Contains(lines[0], "goroutine") {
				t.Errorf("the log has no stack: %q", lines)
			}
			if lines := log.Lines("goroutine "); len(lines) != 1 {
				t.Errorf("the log has %d stacks, want 1", len(lines))
			}
		})
	}
}

// TestAPanicEndsNoLoop: a loop that belongs to no job goes on after a panic, and the
// log says so.
func TestAPanicEndsNoLoop(t *testing.T) {
	testenv.Raced(t)

	c := enginetest.NewCluster(t)
	var left atomic.Int64
	passed := make(chan struct{}, 1)
	c.Hook = func(p failpoint.Point) {
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
	config, log := enginetest.Logged(enginetest.Quick(orchestrator.Config{Adopt: true}))
	n := c.Orchestrator(config)
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 2}, n)
	n.WantEnd(n.Submit(enginetest.Script(nil), 4), mapreduce.JobComplete)
	<-passed
	if lines := log.Lines("a mistake of the program"); len(lines) != 1 || !strings.Contains(lines[0], "goroutine") {
		t.Errorf("the log has %q, want one stack", lines)
	}
}

// The units that are at workers find out that no vendor takes a key. While the store takes
// its time to fail the job, its orchestrator hands out neither these nor others. A resume
// hands them all out.
func TestUnitsOfAJobThatIsAboutToFailAreNotHandedOut(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		var late atomic.Bool
		c.Hook = func(p failpoint.Point) {
			if p == failpoint.Fail.Before() && !late.Swap(true) {
				<-time.After(10 * time.Second)
			}
		}
		n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		refused := new(refusing)
		c.Worker(refused, worker.Config{Slots: 2}, n)
		id := n.Submit(enginetest.Script(nil), 20)
		if end := n.End(id); end.State != mapreduce.JobFailed || !strings.Contains(end.Error, "no such key") {
			t.Fatalf("the job ended %v: %q", end.State, end.Error)
		}
		if runs := refused.runs.Load(); runs != 2 {
			t.Errorf("units ran %d times, want the two that were at the worker once each", runs)
		}
		refused.paid.Store(true)
		if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
			t.Fatal(err)
		}
		n.WantEnd(id, mapreduce.JobComplete)
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
