package lifecycle_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// A lingering agent holds the first attempt at one unit until it is let go.
type lingering struct {
	agent.Agent
	unit   mapreduce.UnitID
	begun  chan struct{}
	let    chan struct{}
	lasted atomic.Bool
}

// Run implements agent.Agent.
func (a *lingering) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if task.Unit == a.unit && a.lasted.CompareAndSwap(false, true) {
		close(a.begun)
		select {
		case <-a.let:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return a.Agent.Run(ctx, task, calls)
}

// TestResumeWithAReduceInTheWay: a reduce of a static tree runs on, above a unit
// that failed, while its job is paused and resumed. The resume waits for it, and if
// who asked does not, it is made when the reduce has ended, but not if the job was
// paused again meanwhile.
func TestResumeWithAReduceInTheWay(t *testing.T) {
	testenv.Raced(t)

	for _, tt := range []struct {
		name   string
		waits  time.Duration // of who asks
		paused bool          // again
	}{
		{"who asks waits", time.Hour, false},
		{"who asks does not wait", 300 * time.Millisecond, false},
		{"paused again", 300 * time.Millisecond, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) { resumeInTheWay(t, tt.waits, tt.paused) })
		})
	}
}

func resumeInTheWay(t *testing.T, waits time.Duration, paused bool) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(orchestrator.Config{Adopt: true}) // as users have it: minutes pass
	var healed atomic.Bool
	a := &lingering{
		Agent: enginetest.Collector{Size: func(*agent.Task, []string) int64 { return 50 }, Fail: func(task *agent.Task) error {
			if task.Unit == "doc-0000001" && !healed.Load() {
				return agent.Permanent(fmt.Errorf("%s is broken", task.Unit))
			}
			return nil
		}},
		unit: "reduce_L1_0", begun: make(chan struct{}), let: make(chan struct{}),
	}
	c.Worker(a, worker.Config{Slots: 4}, n)
	id := n.Submit(enginetest.Asking(enginetest.Static(2)), 4)
	<-a.begun
	if _, err := n.PauseJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	healed.Store(true)
	go func() { // ends by itself: it only waits
		<-time.After(5 * time.Second)
		close(a.let)
	}()
	ctx, stop := context.WithTimeout(t.Context(), waits)
	defer stop()
	_, err := n.ResumeJob(ctx, id, mapreduce.Resume{})
	if wait := waits == time.Hour; (err == nil) != wait {
		t.Fatalf("resume: %v", err)
	}
	if paused {
		if _, err := n.PauseJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(time.Minute)
	if paused {
		if job, err := n.GetJob(t.Context(), id); err != nil || job.State != mapreduce.JobPaused || job.RunningUnits > 0 {
			t.Errorf("after a pause: %+v, %v", job, err)
		}
		return
	}
	if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != 0 || job.CompletedUnits != job.TotalUnits {
		t.Errorf("after the resume: %+v", job)
	}
	n.Healthy()
}
