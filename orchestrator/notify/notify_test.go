package notify_test

import (
	"testing"

	"github.com/coditect/mapreduce/orchestrator/notify"
)

// A job that could not be failed now is not looked at again at once, or it would be again and
// again while the store is away; and the reason is kept, unless there is a newer one.
func TestFailuresThatArePutBack(t *testing.T) {
	var jobs notify.Jobs
	first, newer := notify.Failure{Epoch: 1, Why: "first"}, notify.Failure{Epoch: 2, Why: "newer"}
	jobs.RequestFailure("j", first)
	if due := jobs.TakeDue(); !due["j"] {
		t.Errorf("due are %v, want the job that is to be failed", due)
	}
	take := func(want notify.Failure) {
		t.Helper()
		if f, ok := jobs.TakeFailure("j"); f != want || !ok {
			t.Errorf("the failure is %+v (%t), want %+v", f, ok, want)
		}
	}
	take(first)
	jobs.PutBackFailure("j", first)
	if due := jobs.TakeDue(); len(due) > 0 {
		t.Errorf("due are %v, want none", due)
	}
	take(first)
	jobs.RequestFailure("j", newer)
	jobs.PutBackFailure("j", first)
	take(newer)
	if f, ok := jobs.TakeFailure("j"); ok {
		t.Errorf("%+v is left", f)
	}
}
