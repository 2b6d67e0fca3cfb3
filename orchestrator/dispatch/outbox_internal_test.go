package dispatch

import (
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
)

// The answers to reports of jobs that are not there must not count for others: a worker
// that sends as many of these as of attempts that it does not hold could go on for ever.
func TestAnswersOfJobsThatAreGoneCountForTheirOwnReports(t *testing.T) {
	s := &workerStream{Session: new(workers.Session), out: newOutbox(func() {})}
	s.out.noteReports(maxUnheld-1, maxUnheld-1)
	s.dropGone(&protocol.FromWorker{Reports: make([]protocol.Report, maxUnheld-1)}, map[mapreduce.JobID]bool{"": true})
	s.out.noteReports(maxUnheld-1, maxUnheld-1)
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	if !s.out.isCrowded() {
		t.Errorf("the worker is heard while %d of its reports are of attempts that it does not hold; at most %d may be", 2*(maxUnheld-1), maxUnheld)
	}
}
