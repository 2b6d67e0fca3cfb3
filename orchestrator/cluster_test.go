package orchestrator_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/storetest/driver"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, driver.Leaks()...) }

func TestOneJobFromEndToEnd(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 8, Prefetch: 4}, n)
	job := n.WantEnd(n.Submit(enginetest.Script(nil), 100), mapreduce.JobComplete)
	if job.CompletedUnits != job.TotalUnits || job.TotalUnits < 101 || job.FailedUnits != 0 || job.RunningUnits != 0 {
		t.Errorf("units: %d of %d complete, %d failed, %d running", job.CompletedUnits, job.TotalUnits, job.FailedUnits, job.RunningUnits)
	}
	if l := job.Coverage.Documents; l.Total != 100 || l.Mapped != 100 {
		t.Errorf("ledger of documents: %+v", l)
	}
}

// BenchmarkUnits measures units a second through the whole path.
func BenchmarkUnits(b *testing.B) {
	c := enginetest.NewCluster(b)
	c.Store = driver.OpenOnDisk(b) // commits cost what they cost in production
	n := c.Orchestrator(orchestrator.Config{Adopt: true, MaxCalls: 1000})
	spec := enginetest.Script(nil)
	spec.Parallelism = 64
	spec.ReduceContextLimit = 1 << 60
	c.Worker(enginetest.Nop{}, worker.Config{Slots: 64, Prefetch: 128}, n)
	id := n.Submit(spec, b.N)
	b.ResetTimer()
	n.WantEnd(id, mapreduce.JobComplete)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "units/s")
	b.ReportMetric(float64(n.Jobs.DB().Stats().Commits.Load())/float64(b.N), "commits/unit")
}
