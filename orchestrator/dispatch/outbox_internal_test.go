package dispatch

import (
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/schedule"
)

// The answers to reports of jobs that are not there must not count for others: a worker
// that sends as many of these as of attempts that it does not hold could go on for ever.
func TestAnswersOfJobsThatAreGoneCountForTheirOwnReports(t *testing.T) {
	s := &workerStream{Session: new(schedule.Session), out: newOutbox(func() {})}
	s.out.noteReports(maxStrays-1, maxStrays-1)
	s.sendGone(&mapreduce.ToWorker{Verdicts: make([]mapreduce.VerdictOn, maxStrays-1)})
	s.out.noteReports(maxStrays-1, maxStrays-1)
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	if !s.out.isCrowded() {
		t.Errorf("the worker is heard while %d of its reports are of attempts that it does not hold; at most %d may be", 2*(maxStrays-1), maxStrays)
	}
}
