package lifecycle_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// Units that failed for one cause are tried again, at whatever level they are, and those that failed for
// others stay as they are, until the whole job is resumed.
func TestResumeOfOneCause(t *testing.T) {
	for name, tt := range map[string]struct {
		ask    func(*mapreduce.JobSpec)
		failed int64
	}{
		"adaptive":               {func(*mapreduce.JobSpec) {}, 5},
		"a tree planned at once": {enginetest.Static(2), 6}, // with the reduce of two of them
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) { resumeOneCause(t, tt.ask, tt.failed) })
		})
	}
}

func resumeOneCause(t *testing.T, ask func(*mapreduce.JobSpec), first int64) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(orchestrator.Config{Adopt: true})
	var healed atomic.Bool
	away, broken := []mapreduce.UnitID{"doc-0000001", "doc-0000004", "doc-0000007"}, []mapreduce.UnitID{"doc-0000002", "doc-0000005"}
	c.Worker(enginetest.Collector{Size: func(*agent.Task, []string) int64 { return 50 }, Fail: func(task *agent.Task) error {
		switch {
		case healed.Load():
		case slices.Contains(away, task.Unit):
			return agent.Permanent(fmt.Errorf("host %d of %q is away", len(task.Unit)+int(task.Unit[10]), task.Unit))
		case slices.Contains(broken, task.Unit):
			return agent.Permanent(errors.New("the page is broken"))
		}
		return nil
	}}, worker.Config{Slots: 4}, n)

	id := n.Submit(enginetest.Asking(ask), 9)
	if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != first {
		t.Fatalf("%d units failed, want %d", job.FailedUnits, first)
	}
	failed := n.Units(id)
	cause := mapreduce.CauseOfAll(failed[away[0]].Errors)
	if cause == "" || cause != mapreduce.CauseOfAll(failed[away[2]].Errors) || cause == mapreduce.CauseOfAll(failed[broken[0]].Errors) {
		t.Fatalf("the causes are %q", cause)
	}

	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Cause: "nobody's"}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("a cause that no unit has: %v", err)
	}
	healed.Store(true)
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Cause: cause}); err != nil {
		t.Fatal(err)
	}
	if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != 2 {
		t.Errorf("%d units are failed, want the 2 that failed for another cause", job.FailedUnits)
	}
	now := n.Units(id)
	for _, u := range away {
		if now[u].State != mapreduce.UnitComplete {
			t.Errorf("%s is %s", u, now[u].State)
		}
	}
	for _, u := range broken {
		if now[u].State != mapreduce.UnitFailed || now[u].Attempts != failed[u].Attempts {
			t.Errorf("%s is %s after %d attempts", u, now[u].State, now[u].Attempts)
		}
	}
	n.Healthy()

	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Cause: cause}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("a cause that no unit has any more: %v", err)
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != 0 || job.CompletedUnits != job.TotalUnits {
		t.Errorf("after a resume of all, %d units are failed", job.FailedUnits)
	}
	n.Healthy()
}
