package schedule

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// reported returns a turn state in which n reports wait, of units "0", "1", ….
func reported(n int) (t *turnState) {
	t = new(turnState)
	for i := range n {
		t.addReport(&protocol.Report{Unit: unitNumber(i)}, nil, 0)
	}
	return t
}

func unitNumber(i int) mapreduce.UnitID { return mapreduce.UnitID(rune('0' + i%10)) }

func unitsOf(all []pendingReport) (units string) {
	for _, p := range all {
		units += string(p.Report.Unit)
	}
	return units
}

// A turn that failed gives its reports back before those that came meanwhile, so that each
// is answered in its order.
func TestATurnThatFailedGivesItsReportsBackFirst(t *testing.T) {
	s := reported(3)
	s.ended = []queue.HeldID{{Claim: "a"}}
	sent, ended := s.take(), s.takeEnded()
	s.underWay++
	s.addReport(&protocol.Report{Unit: "new"}, nil, 0)

	if s.isIdle() || len(s.ended) > 0 {
		t.Errorf("%+v while a turn is under way", s)
	}
	s.undo(sent, ended)
	if units := unitsOf(s.reports); units != "012new" || len(s.ended) != 1 || s.underWay != 0 {
		t.Errorf("reports %s, %d claims to release, %d turns", units, len(s.ended), s.underWay)
	}

	// What was taken must not change with what comes later.
	s.addReport(&protocol.Report{Unit: "later"}, nil, 0)
	if units := unitsOf(sent); units != "012" {
		t.Errorf("the turn that failed has %s now", units)
	}
}

// Turns get smaller until the report is alone for which they fail, and grow again with each
// that was carried out.
func TestTurnsGetSmallerAndGrowAgain(t *testing.T) {
	s := reported(8)
	var sizes []int
	for members := 8; members > 1; members = s.size() {
		s.split(members)
		sizes = append(sizes, s.size())
	}
	if !slices.Equal(sizes, []int{4, 2, 1}) || len(s.take()) != 1 {
		t.Errorf("turns of %v", sizes)
	}

	for s.batch > 0 {
		last := s.size()
		s.underWay++
		if s.end(); s.size() <= last {
			t.Fatalf("a turn of %d after one of %d", s.size(), last)
		}
	}
	if s.size() != records.MaxBatch {
		t.Errorf("turns of %d, want of as many as go", s.size())
	}
}

// A report that cannot be stored is replaced by one that says so, and dropped if that cannot
// be stored either. Others of the same unit stay.
func TestAReportThatCannotBeStored(t *testing.T) {
	s := reported(3)
	old := s.reports[1].Report
	s.dropSpoilt(old.Unit)
	if len(s.reports) != 3 {
		t.Fatal("a report is dropped that was not tried alone")
	}

	instead := unstorable(old, errors.New("it is too large"))
	s.replace(old, instead)
	s.addReport(&protocol.Report{Unit: old.Unit}, nil, 0)
	if s.reports[1].Report != instead || !s.reports[1].spoilt {
		t.Errorf("the report is %+v", s.reports[1].Report)
	}

	if s.dropSpoilt(old.Unit); unitsOf(s.reports) != "021" {
		t.Errorf("what is left: %s", unitsOf(s.reports))
	}
}

// A job whose turns fail rests twice as long each time, up to a bound.
func TestAJobWhoseTurnsFailRests(t *testing.T) {
	now := time.Unix(1000, 0)
	var s turnState
	for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		s.delay(now, time.Second, 10*time.Second)
		if got := s.retryAt.Sub(now); got != want*time.Second {
			t.Errorf("it rests for %v, want %v", got, want*time.Second)
		}
	}

	s.end()
	if s.delay(now, time.Second, 10*time.Second); s.retryAt.Sub(now) != time.Second {
		t.Error("it rests as long after a turn that was carried out")
	}
}
