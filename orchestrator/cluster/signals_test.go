package cluster_test

import (
	"testing"

	"github.com/coditect/mapreduce/orchestrator/cluster"
)

// Turns may ask in any order for a job to be failed. A job that could not be failed now is not
// looked at again at once, or it would be again and again while the store is away. The reason
// is kept until it is cleared, and a newer one is not cleared with it.
func TestFailuresAreKept(t *testing.T) {
	var jobs cluster.Signals
	older, newer := cluster.Failure{Epoch: 1, Why: "older"}, cluster.Failure{Epoch: 2, Why: "newer"}
	pending := func(want cluster.Failure) {
		t.Helper()
		if f, ok := jobs.PendingFailure("j"); f != want || ok != (want.Epoch > 0) {
			t.Errorf("the failure is %+v (%t), want %+v", f, ok, want)
		}
	}
	jobs.RequestFailure("j", older)
	if due := jobs.TakeDue(); !due["j"] {
		t.Errorf("due are %v, want the job that is to be failed", due)
	}
	pending(older)
	pending(older)
	if due := jobs.TakeDue(); len(due) > 0 {
		t.Errorf("due are %v, want none", due)
	}
	jobs.RequestFailure("j", newer)
	jobs.RequestFailure("j", older)
	pending(newer)
	jobs.ClearFailure("j", older)
	pending(newer)
	jobs.ClearFailure("j", newer)
	pending(cluster.Failure{})
}
