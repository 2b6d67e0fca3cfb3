package queue_test

import (
	"testing"

	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// BenchmarkTurns claims all units of a job and reports them, as many in a turn as one takes.
func BenchmarkTurns(b *testing.B) {
	w := jobstest.NewWorld(b, jobstest.Open(b), 1)
	j := w.Nodes[0]

	job := w.Submit(j, jobstest.Spec(), jobstest.Texts(b.N*records.MaxBatch))
	session, waiting := w.Session(j), w.Waiting(j, job)
	turn := &queue.Turn{Job: job}
	b.ResetTimer()

	for n := range b.N {
		turn.Claim = &queue.Claim{
			ID: w.Name("claim"), Workers: []queue.WorkerSlots{{Session: session.ID, Epoch: session.Epoch, Slots: records.MaxBatch}},
			Candidates: waiting[n*records.MaxBatch : (n+1)*records.MaxBatch],
		}

		claimed := w.Turn(j, turn).Claimed
		if len(claimed) != records.MaxBatch {
			b.Fatalf("turn %d claimed %d units", n, len(claimed))
		}

		// The next turn reports what this one claimed.
		turn = &queue.Turn{Job: job, Release: []queue.HeldID{{Session: session.ID, Claim: turn.Claim.ID}}}
		for _, c := range claimed {
			turn.Reports = append(turn.Reports, queue.Report{Report: jobstest.Done(job, c.Unit)})
		}
	}

	b.ReportMetric(float64(b.N*records.MaxBatch)/b.Elapsed().Seconds(), "units/s")
}
