package jobs_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// BenchmarkRetention deletes jobs of one document whose time is over, so many in a transaction.
func BenchmarkRetention(b *testing.B) {
	for _, atOnce := range []int{1, 50, 200} {
		b.Run(fmt.Sprintf("%d at once", atOnce), func(b *testing.B) {
			w := newWorld(b, open(b), 1)
			j := w.nodes[0]
			for range b.N {
				id := w.submit(j, &mapreduce.JobSpec{Tenant: "a", Parallelism: 1, Keep: time.Microsecond}, texts(1))
				w.must(j.Lifecycle.Cancel(w.ctx, id))
			}
			b.ResetTimer()
			for deleted := 0; deleted < b.N; {
				expired, err := j.Lifecycle.Expired(w.ctx)
				w.must(err)
				for some := range slices.Chunk(expired, atOnce) {
					w.must(j.Lifecycle.DeleteExpired(w.ctx, some...))
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
	w := newWorld(b, open(b), 1)
	for range b.N {
		w.submit(w.nodes[0], &mapreduce.JobSpec{Tenant: "a", Parallelism: 1}, texts(1))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
