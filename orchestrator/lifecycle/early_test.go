package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/checked"
)

// A patient agent parses one document only once units of all others are mapped.
type patient struct {
	agent.Agent
	slow  mapreduce.UnitID
	first int // units that are to be mapped before

	mu     sync.Mutex // guards the variables below
	mapped map[mapreduce.UnitID]int
	enough chan struct{} // closed once enough are mapped
	hold   chan struct{} // if there is one, the slow document waits until it is closed, too
	fail   bool          // the slow document cannot be parsed
}

func (p *patient) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if task.Unit == p.slow {
		select {
		case <-p.enough:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(30 * time.Second):
			return nil, agent.Permanent(errors.New("the others wait for this document"))
		}
		if p.hold != nil {
			select {
			case <-p.hold:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if p.fail {
			return nil, agent.Permanent(errors.New("it cannot be parsed"))
		}
	}
	res, err := p.Agent.Run(ctx, task, calls)
	if task.Kind == mapreduce.KindMap {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.mapped[task.Unit]++; len(p.mapped) == p.first {
			close(p.enough)
		}
	}
	return res, err
}

// TestMappingNeedNotWaitForTheLastParse: 30 pages are mapped, with text that was there
// from the start, while one is still parsed. The result is that of a job in which nothing
// is slow, no unit runs twice, and the store is sound meanwhile and after.
func TestMappingNeedNotWaitForTheLastParse(t *testing.T) {
	testenv.Raced(t)

	docs, order := make(map[string]string), []string(nil)
	for i := range 31 {
		name := fmt.Sprintf("p%02d.html", i)
		docs[name] = fmt.Sprintf("<html><body><p>ORDER: K-%d</p><p>TOTAL: %d.50</p></body></html>", i, i)
		order = append(order, name)
	}
	docs["a.txt"], order = "ORDER: T-1\nTOTAL: 9.50\n", append(order, "a.txt")
	_, want := enginetest.Ruled(t).Run(enginetest.Extracting(t, enginetest.Orders), enginetest.Texts(docs, order...))
	for _, nodes := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			p := &patient{Agent: checked.New(enginetest.ByRules()), slow: "parse_p03.html", first: len(docs) - 1, mapped: make(map[mapreduce.UnitID]int), enough: make(chan struct{}), hold: make(chan struct{})}
			goOn := sync.OnceFunc(func() { close(p.hold) })
			defer goOn()
			c := enginetest.NewCluster(t)
			var all []*enginetest.Node
			for range nodes {
				all = append(all, c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true})))
			}
			c.WorkerFor("rules", p, worker.Config{Slots: 4}, all...)
			n := all[0]
			job, err := n.SubmitJob(t.Context(), enginetest.Extracting(t, enginetest.Orders), enginetest.Texts(docs, order...))
			if err != nil {
				t.Fatal(err)
			}
			<-p.enough
			during, err := n.GetJob(t.Context(), job.ID)
			if err != nil {
				t.Fatal(err)
			}
			if during.State != mapreduce.Decomposition || during.TotalUnits < during.CompletedUnits || during.TotalUnits != int64(2*len(docs)-2) {
				t.Errorf("while one document is parsed, the job is %s with %d of %d units complete", during.State, during.CompletedUnits, during.TotalUnits)
			}
			n.Sound()
			goOn()
			n.WantEnd(job.ID, mapreduce.JobComplete)
			if diff := cmp.Diff(bare(want), bare(n.Result(job.ID))); diff != "" {
				t.Errorf("records (-in order, +at once):\n%s", diff)
			}
			for unit, times := range p.mapped {
				if times != 1 {
					t.Errorf("unit %s ran %d times", unit, times)
				}
			}
			n.Sound()
		})
	}
}

// TestPageThatFailsWhileOthersAreMapped: a document that cannot be parsed is tried again
// by a resume; what was mapped before it failed is not run again.
func TestPageThatFailsWhileOthersAreMapped(t *testing.T) {
	docs, order := ordersOf(9, true)
	p := &patient{
		Agent: checked.New(enginetest.ByRules()), slow: mapreduce.ParseUnit(mapreduce.DocumentID(order[1])), first: 8, fail: true,
		mapped: make(map[mapreduce.UnitID]int), enough: make(chan struct{}),
	}
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.WorkerFor("rules", p, worker.Config{Slots: 4}, n)
	id, first := n.Run(enginetest.Extracting(t, enginetest.Orders), enginetest.Texts(docs, order...))
	if len(first.Records) != 8 {
		t.Fatalf("%d records, want 8", len(first.Records))
	}
	n.Sound()
	p.fail = false
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	n.WantEnd(id, mapreduce.JobComplete)
	if got := n.Result(id); len(got.Records) != 9 || len(p.mapped) != 9 {
		t.Errorf("%d records of %d units after the resume, want 9", len(got.Records), len(p.mapped))
	}
	for unit, times := range p.mapped {
		if times != 1 {
			t.Errorf("unit %s ran %d times", unit, times)
		}
	}
	n.Sound()
}
