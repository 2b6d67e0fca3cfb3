package loop_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/tool"
)

// BenchmarkAgents runs 1,000 agents of ten turns at once. The model takes 4 s for a turn and
// the tools 1 s, so that nine turns with tools and the answer take 49 s at least. It reports
// how much longer they took than that, and the memory of an agent in the midst of its work,
// with the scripted model's share.
func BenchmarkAgents(b *testing.B) {
	const agents, turns = 1000, 10
	const think, act = 4 * time.Second, time.Second
	for range b.N {
		r := newRig(b, "anthropic", itemsOutput, "{}", fakellm.Config{
			Piece: 400, Latency: func(fakellm.Call) time.Duration { return think },
			Model: func(c fakellm.Call) fakellm.Reply {
				if n := turnOf(c); n < turns-1 {
					return fetches(fmt.Sprintf("p%d", n), fmt.Sprintf("q%d", n))
				}
				return answer(c)
			},
		})
		r.web.call = func(ctx context.Context, name, q string) (*tool.Result, error) {
			t := time.NewTimer(act)
			defer t.Stop()
			select {
			case <-t.C:
				return servePage(name, q)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc + m.StackInuse
		}
		before := heap()
		start := time.Now()
		var during uint64
		timer := time.AfterFunc((turns/2)*(think+act), func() { during = heap() })
		var all sync.WaitGroup
		for range agents {
			all.Go(func() {
				ctx, kill := context.WithCancelCause(b.Context())
				defer kill(nil)
				a := &attempt{unitDisk: &unitDisk{}, kill: kill}
				var err error
				if a.journal, err = journal.Open(nil, 0, 1, a); err == nil {
					_, err = r.runner.Run(ctx, r.task(b), a)
				}
				if err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		timer.Stop()
		least := turns*think + (turns-1)*act
		b.ReportMetric(float64(time.Since(start))/float64(least), "×least")
		b.ReportMetric(float64(during-before)/agents/1024, "KiB/agent")
	}
}
