package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
)

// BenchmarkRetention deletes jobs of one document whose time is over, so many in a transaction.
func BenchmarkRetention(b *testing.B) {
	for _, atOnce := range []int{1, 50, 200} {
		b.Run(fmt.Sprintf("%d at once", atOnce), func(b *testing.B) {
			w := jobstest.NewWorld(b, jobstest.Open(b), 1)
			j := w.Nodes[0]
			for range b.N {
				id := w.Submit(j, &mapreduce.JobSpec{Tenant: "a", Parallelism: 1, Keep: time.Microsecond}, jobstest.Texts(1))
				w.Must(j.Lifecycle.Cancel(w.Ctx, id))
			}
			b.ResetTimer()
			for deleted := 0; deleted < b.N; {
				expired, err := j.Lifecycle.Expired(w.Ctx)
				w.Must(err)
				for some := range slices.Chunk(expired, atOnce) {
					w.Must(j.Lifecycle.DeleteExpired(w.Ctx, some...))
				}
				if deleted += len(expired); len(expired) == 0 {
					b.Fatalf("%d of %d jobs are found", deleted, b.N)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkSubmit submits jobs of one document, one after the other.
func BenchmarkSubmit(b *testing.B) {
	w := jobstest.NewWorld(b, jobstest.Open(b), 1)
	for range b.N {
		w.Submit(w.Nodes[0], &mapreduce.JobSpec{Tenant: "a", Parallelism: 1}, jobstest.Texts(1))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
