package jobstest

import (
	"testing"

	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

// Expire has a node put back all units of a lost session, and returns how many it says
// those were.
func (w *World) Expire(j *jobs.Jobs, s Binding) (back int) {
	w.Helper()
	for {
		loss, err := j.Sessions.Expire(w.Ctx, s.ID, j.Node(), s.Epoch, nil)
		w.Must(err)
		if back += loss.Units; loss.Done {
			return back
		}
	}
}

// WentBack checks how many units were said to have been put back. On a cluster a step
// whose commit was not seen counts only what its next try did.
func WentBack(t *testing.T, n, want int) {
	t.Helper()
	if _, cluster := driver.Cluster(t); n > want || n < want && !cluster {
		t.Errorf("%d units are said to have gone back, want %d", n, want)
	}
}
