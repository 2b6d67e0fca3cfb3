package orchestrator_test

import (
	"context"
	"flag"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/batching"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
)

// By hand: make batch-week.
var weekLines = flag.Int("batch.week", 3000, "calls of a job that go by batch, of which a fifth may wait at a time")

// A job of many times as many calls as may wait at its vendor, which takes a day for each batch, is put to it in
// batches as large as they may be, as soon as there is room and never before: the vendor refuses none.
func TestAWeekOfBatches(t *testing.T) {
	testenv.Lengthy(t)

	real := time.Now()
	enginetest.Virtually(t, func(t *testing.T) {
		lines, random := *weekLines, newDie(1)
		room := max(lines/5, 10)
		f := newFleetOf(t, sellers[1], 1, 1, max(room/2, 5), nil, batches.Config{
			Lean:   true,
			Takes:  func(int) time.Duration { return 20*time.Hour + time.Duration(random.IntN(180))*time.Minute },
			Limits: batches.Limits{Lines: 100_000, Bytes: 256_000_000, Waiting: room, Window: 24 * time.Hour, Kept: 29 * 24 * time.Hour},
		})

		// Nobody beats often: a week has many seconds.
		f.Stop(0, false)
		f.Config.Heartbeat, f.Config.Beat, f.Config.Lease, f.Config.Poll, f.Config.Seal = time.Minute, time.Minute, 5*time.Minute, 5*time.Minute, time.Minute
		f.Config.BatchLinger, f.Config.BatchWait = 5*time.Minute, 30*time.Minute
		f.Counter.Agent, f.Counter.Lean = slow{f.Counter.Agent, attemptTime}, true
		f.Start(0)
		f.Join(worker.Config{Slots: 64, Prefetch: 64, DrainTimeout: time.Minute, Batches: batching.New(batching.Config{
			Names: []string{f.seller.name}, Ask: time.Minute, Poll: 5 * time.Minute, Slowest: 15 * time.Minute,
			Vendor: func(o *protocol.BatchOrder) (batch.Vendor, error) { return f.agent.Batches(o) },
			Prices: func(o *protocol.BatchOrder) (*llm.Prices, error) { return f.agent.BatchPrices(o) },
		})})

		spec := specOf(f.seller)
		spec.Parallelism, spec.ReduceBatchSize, spec.ReduceContextLimit = 64, 1000, 1<<30
		begun := time.Now()
		watch := watchMemory()
		id := f.Any().Submit(spec, lines)
		job := f.lookUntilEnd(id, 20*24*time.Hour)
		peak := watch()
		if job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
			t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
		}

		refused, waited := f.server.Crowds()
		if refused > 0 || waited > room {
			t.Errorf("%d batches were refused, and %d calls waited at a time; %d may", refused, waited, room)
		}
		f.verifyMoney(id, lines)
		stats, n := f.Any().Jobs.DB().Stats(), float64(lines)
		t.Logf("%d calls in %d batches, at most %d at a time, took %.1f days of virtual time; memory was %d MiB at most; %.2f commits a call, and %.2f transactions that only read",
			lines, f.server.Made(), waited, time.Since(begun).Hours()/24, peak>>20, float64(stats.Commits.Load())/n, float64(stats.Reads.Load())/n)
	})
	t.Logf("all of it took %v of real time", time.Since(real).Round(time.Second))
}

// attemptTime is how long an attempt takes: so a million calls are put down within a day.
const attemptTime = 5 * time.Second

// A slow agent takes some time for each attempt, as agents do. In virtual time that lets others have theirs: it stands
// still while anybody works, and until it goes on the timers that were stopped are kept, with all that they name.
type slow struct {
	agent.Agent
	takes time.Duration
}

// Run implements agent.Agent.
func (s slow) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	select {
	case <-time.After(s.takes):
		return s.Agent.Run(ctx, task, calls)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lookUntilEnd looks at a job every half hour until it does not run: whoever watches one looks far more often.
func (f *vendorFleet) lookUntilEnd(id mapreduce.JobID, most time.Duration) *mapreduce.Job {
	f.T.Helper()
	for begun := time.Now(); ; {
		job, err := f.Any().GetJob(f.T.Context(), id)
		if err != nil {
			f.T.Fatal(err)
		}
		if !job.State.Running() {
			return job
		}
		if time.Since(begun) > most {
			f.T.Fatalf("the job has not ended: %+v", job)
		}
		<-time.After(30 * time.Minute)
	}
}

// watchMemory looks now and then at how much memory is in use, until the function is called that it returns, which
// says the most.
func watchMemory() (stop func() uint64) {
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		var stats runtime.MemStats
		peak, tick := uint64(0), time.NewTicker(10*time.Minute)
		defer tick.Stop()
		for {
			runtime.ReadMemStats(&stats)
			peak = max(peak, stats.HeapInuse+stats.StackInuse)
			select {
			case <-tick.C:
			case <-done:
				most <- peak
				return
			}
		}
	}()
	return func() uint64 {
		close(done)
		synctest.Wait()
		return <-most
	}
}
