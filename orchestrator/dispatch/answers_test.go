package dispatch_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// A thinker makes an answer to each document, once: it shares it.
type thinker struct {
	made  atomic.Int64
	known atomic.Int64
}

func (a *thinker) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if task.Text == nil || !calls.Shares() {
		return &agent.Result{Size: 1}, nil
	}
	key := sha256.Sum256(task.Text.Content)
	had, err := calls.Answer(ctx, key[:])
	if err != nil {
		return nil, err
	}
	if string(had) == string(task.Text.Document) {
		a.known.Add(1)
		calls.Saved(mapreduce.Savings{Answers: 1, AnswerMicros: 7})
	} else {
		a.made.Add(1)
		calls.Share(key[:], []byte(task.Text.Document))
	}
	return &agent.Result{Size: 1}, nil
}

// counted returns how many answers were made, and how many known, since it was
// called last.
func (a *thinker) counted() string {
	return fmt.Sprintf("%d made, %d known", a.made.Swap(0), a.known.Swap(0))
}

// Any worker of the fleet finds what another had answered for a job of the same
// tenant, whichever orchestrator either reports to, and nobody else does.
func TestAnswersOfTheFleet(t *testing.T) {
	c := enginetest.NewCluster(t)
	config := enginetest.Quick(orchestrator.Config{Adopt: true})
	a, b := c.Orchestrator(config), c.Orchestrator(config)
	think := &thinker{}
	drain := c.Worker(think, worker.Config{Slots: 4, Prefetch: 4}, a)
	shared := func(tenant mapreduce.TenantID) mapreduce.JobSpec {
		spec := enginetest.Script(nil)
		spec.Tenant, spec.Cache = tenant, true
		return spec
	}
	steps := func(n *enginetest.Node, spec mapreduce.JobSpec, want string) *mapreduce.Job {
		t.Helper()
		job := n.WantEnd(n.Submit(spec, 20), mapreduce.JobComplete)
		if got := think.counted(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		return job
	}
	steps(a, enginetest.Script(nil), "0 made, 0 known")
	steps(a, shared("one"), "20 made, 0 known")
	steps(a, shared("two"), "20 made, 0 known")
	drain()
	c.Worker(think, worker.Config{Slots: 4, Prefetch: 4}, b)
	job := steps(b, shared("one"), "0 made, 20 known")
	if want := (mapreduce.Savings{Answers: 20, AnswerMicros: 140}); job.Savings != want {
		t.Errorf("the job saved %+v, want %+v", job.Savings, want)
	}
	before, err := b.AnswerCache(t.Context(), "one", true)
	if err != nil || before.Answers != 20 || before.MaxAge != 30*24*time.Hour {
		t.Errorf("%+v, %v", before, err)
	}
	steps(b, shared("one"), "20 made, 0 known")
	steps(b, shared("two"), "0 made, 20 known")
	b.Sound()
}

// What is kept is bounded: the oldest answers go first.
func TestAnswersAreBounded(t *testing.T) {
	c := enginetest.NewCluster(t)
	config := enginetest.Quick(orchestrator.Config{Adopt: true})
	config.AnswerBytes = 5 * int64(len("doc-0000000"))
	n, think := c.Orchestrator(config), &thinker{}
	c.Worker(think, worker.Config{Slots: 1}, n)
	spec := enginetest.Script(nil)
	spec.Cache, spec.Parallelism = true, 1
	n.WantEnd(n.Submit(spec, 20), mapreduce.JobComplete)
	kept, err := n.AnswerCache(t.Context(), "", false)
	if err != nil || kept.Answers != 5 || kept.Bytes != config.AnswerBytes {
		t.Errorf("%+v is kept (%v), want 5 answers", kept, err)
	}
}
