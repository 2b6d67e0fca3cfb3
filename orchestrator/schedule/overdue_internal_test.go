package schedule

import (
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Documents that take all the time they may, in all slots of a worker with one processor, are
// parsed one after the other. None is overdue while it waits for its turn, though the last waits
// for hours; one that has had its turn, and its time, is, and so is a unit that takes no turns.
func TestUnitsThatWaitForTheirTurnToParseAreNotOverdue(t *testing.T) {
	const slots, timeout, slack = 200, 10 * time.Minute, time.Minute
	s := testScheduler()
	session := newSession("w", "p")
	session.Slots = slots
	s.workers.Bind(session, nil, s.node, s.now())
	s.PutJob("j", &records.Control{Tenant: "t", Epoch: 1}, &mapreduce.JobSpec{Provider: "p", UnitTimeout: timeout}, jobspec.Stages{}, true, 0, nil)
	unit := func(i int) mapreduce.UnitID { return mapreduce.ParseUnit(mapreduce.DocumentID(fmt.Sprint(i))) }
	begin := func(id mapreduce.UnitID) {
		session.Hold("j", &records.Unit{ID: id, Attempt: 1}, &workers.Claim{Left: slots}, false)
		session.NoteStarted([]protocol.Held{{Job: "j", Unit: id, Attempt: 1}})
	}
	end := func(id mapreduce.UnitID) { session.Forget(protocol.Held{Job: "j", Unit: id, Attempt: 1}) }
	for i := range slots {
		begin(unit(i))
	}
	overdue := func(now time.Duration) []Overdue {
		return s.Sessions.Overdue(now, func(*workers.Session) time.Duration { return slack })
	}

	now := time.Duration(0)
	overdue(now)
	for i := range slots - 1 { // the last is left
		now += timeout
		if late := overdue(now); len(late) > 0 {
			t.Fatalf("after %v, in which %d documents were parsed, %d units are overdue: %v", now, i, len(late), late[0].Report.Errors)
		}
		end(unit(i))
	}
	now += timeout
	if late := overdue(now); len(late) > 0 {
		t.Errorf("after %v, at the end of its turn, the last unit is overdue: %v", now, late[0].Report.Errors)
	}
	now += 2*timeout + slack
	if late := overdue(now); len(late) != 1 {
		t.Errorf("after %v, %d units are overdue, want the one that has had its turn", now, len(late))
	}

	begin("d")
	end(unit(slots - 1))
	overdue(now)
	if late := overdue(now + 2*timeout + slack); len(late) != 1 {
		t.Errorf("%d units are overdue, want the one that takes no turns", len(late))
	}
}
