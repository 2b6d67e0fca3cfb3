package review_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/review"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

// How long it takes until units of one job go on whose time to wait is over, a unit.
func BenchmarkEndWaits(b *testing.B) {
	for _, at := range []int{1, review.MaxOverdue} {
		b.Run(fmt.Sprint(at), func(b *testing.B) {
			w := jobstest.NewWorld(b, driver.OpenOnDisk(b), 1)
			j := w.Nodes[0]
			id := w.Submit(j, jobstest.Spec(), jobstest.Texts(b.N))
			s := w.Session(j)
			var over []review.Overdue
			for len(over) < b.N {
				for _, u := range w.Claim(j, id, s, min(100, b.N-len(over))) {
					w.Report(j, jobstest.Parked(id, u, handle, 0))
					over = append(over, overdue(u))
				}
			}

			b.ResetTimer()
			for some := range slices.Chunk(over, at) {
				if woken, err := j.Review.EndWaits(w.Ctx, id, some); err != nil || len(woken) != len(some) {
					b.Fatalf("%d of %d go on: %v", len(woken), len(some), err)
				}
			}
		})
	}
}

// overdue returns a unit whose time is over, and about which nobody has decided.
func overdue(u *records.Unit) review.Overdue {
	return review.Overdue{Attempt: u.Attempt, Waiting: review.Waiting{Unit: u.ID, Index: u.Index, Handle: handle, Answer: func([]*review.Decision) ([]byte, error) {
		return []byte("over"), nil
	}}}
}
