package schedule

import (
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A turnState is what a job's next turns are made of, and how the latest ended.
type turnState struct {
	reports  []pendingReport // waiting for a turn
	ended    []queue.HeldID  // claims all of whose units have ended, which are to be released
	underWay int
	retryAt  time.Time // no turn before: the last one failed
	retries  int       // turns that failed in a row
	batch    int       // most members of a turn, since one failed for one of its members; 0: as many as go
}

// A pendingReport is a report that waits for its turn, or is in one.
type pendingReport struct {
	Report  *protocol.Report
	Session *workers.Session
	jitter  float64
	broke   bool // the unit broke the session's stream when it was handed out
	overdue bool // the worker did not report in time
	spoilt  bool // the worker's report could not be stored: this one says so instead
}

// size bounds the reports of a turn, and the units that it claims.
func (t *turnState) size() int {
	if t.batch > 0 {
		return t.batch
	}
	return records.MaxBatch
}

// isIdle reports whether no turn is under way, and no report waits for one.
func (t *turnState) isIdle() bool { return t.underWay == 0 && len(t.reports) == 0 }

// addReport has a report wait for a turn.
func (t *turnState) addReport(rep *protocol.Report, session *workers.Session, jitter float64) {
	t.reports = append(t.reports, pendingReport{Report: rep, Session: session, jitter: jitter})
}

// lastReport returns the report that was added last.
func (t *turnState) lastReport() *pendingReport { return &t.reports[len(t.reports)-1] }

// take takes as many reports as a turn may have.
func (t *turnState) take() (taken []pendingReport) {
	n := min(len(t.reports), t.size())
	taken = slices.Clone(t.reports[:n])
	if t.reports = t.reports[n:]; len(t.reports) == 0 {
		t.reports = nil
	}
	return taken
}

// takeEnded takes the claims that are to be released.
func (t *turnState) takeEnded() (ended []queue.HeldID) {
	ended, t.ended = t.ended, nil
	return ended
}

// undo takes back a turn that failed, with what it had taken.
func (t *turnState) undo(sent []pendingReport, ended []queue.HeldID) {
	t.underWay--
	t.reports = append(sent, t.reports...)
	t.ended = append(t.ended, ended...)
}

// end notes that a turn was carried out. Later ones may be larger again.
func (t *turnState) end() {
	t.underWay--
	t.retries = 0
	if t.batch *= 2; t.batch >= records.MaxBatch {
		t.batch = 0
	}
}

// split has the members of a turn that failed for one of so many be tried in smaller turns.
func (t *turnState) split(members int) { t.batch = min(t.size(), max(1, members/2)) }

// replace puts another report in the place of one that cannot be stored.
func (t *turnState) replace(old, with *protocol.Report) {
	for i := range t.reports {
		if p := &t.reports[i]; p.Report == old {
			p.Report, p.spoilt = with, true
			return
		}
	}
}

// dropSpoilt forgets the report of a unit that can never be stored.
func (t *turnState) dropSpoilt(unit mapreduce.UnitID) {
	t.reports = slices.DeleteFunc(t.reports, func(p pendingReport) bool { return p.Report.Unit == unit && p.spoilt })
}

// delay lets the job rest as its turn failed, twice as long each time.
func (t *turnState) delay(now time.Time, first, longest time.Duration) {
	t.retryAt = now.Add(min(longest, first<<min(t.retries, 10)))
	t.retries++
}
