package orchestrator_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/batching"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
)

// A progress is an agent that counts the units that it has begun, and those that it has ended, and says once that
// enough have.
type progress struct {
	agent.Agent
	enough int

	mu          sync.Mutex // guards the variables below
	begun, done int        // units
	told        chan int   // how many had been begun when enough had ended
}

// Run implements agent.Agent.
func (p *progress) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	p.mu.Lock()
	if task.Attempt == 1 {
		p.begun++
	}
	p.mu.Unlock()

	res, err := p.Agent.Run(ctx, task, calls)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		if p.done++; p.done == p.enough {
			p.told <- p.begun
		}
	}
	return res, err
}

// While the calls of a large job are put down, in real time, which does not wait for that: batches are made of those that
// were put down before, are asked for, and come back, and units that were answered go on before others are begun.
func TestBatchesComeBackWhileCallsArePutDown(t *testing.T) {
	testenv.Lengthy(t)

	// Putting all of them down takes a minute, and a batch some milliseconds from when it is made, which orchestrators do
	// every few seconds.
	const documents, slots, most = 2400, 4, 20
	f := newVendorFleet(t, 1, 1, most, nil, batches.Config{Takes: func(int) time.Duration { return 50 * time.Millisecond }})
	seen := &progress{Agent: slow{f.Counter.Agent, 100 * time.Millisecond}, enough: 3 * most, told: make(chan int, 1)}
	f.Counter.Agent = seen
	f.Join(worker.Config{Slots: slots, DrainTimeout: time.Second, Batches: batching.New(batching.Config{
		Names: []string{f.seller.name}, Ask: 100 * time.Millisecond, Poll: 50 * time.Millisecond, Slowest: time.Second,
		Vendor: func(o *protocol.BatchOrder) (batch.Vendor, error) { return f.agent.Batches(o) },
		Prices: func(o *protocol.BatchOrder) (*llm.Prices, error) { return f.agent.BatchPrices(o) },
	})})

	spec := batchedSpec()
	spec.Parallelism = slots
	id := f.Any().Submit(spec, documents)
	select {
	case begun := <-seen.told:
		t.Logf("%d units had ended when %d of %d were begun", seen.enough, begun, documents)
		if begun == documents {
			t.Errorf("no %d units had ended before all %d were begun", seen.enough, documents)
		}
	case <-t.Context().Done():
		t.Fatal(context.Cause(t.Context()))
	}

	// What is left of it is not waited for.
	if _, err := f.Any().CancelJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	f.Any().Sound()
}
