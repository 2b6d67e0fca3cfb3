package review_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/review"
)

// A waitingWorld has a job whose units wait for decisions about two values each.
type waitingWorld struct {
	*jobstest.World
	id    mapreduce.JobID
	units []*records.Unit
}

const handle = "review/1"

// newWaiting returns a world of some nodes over a store, with a job of which so many units wait.
func newWaiting(t *testing.T, db store.Store, nodes, units int) *waitingWorld {
	w := &waitingWorld{World: jobstest.NewWorld(t, db, nodes)}
	j := w.Nodes[0]
	w.id = w.Submit(j, jobstest.Spec(), jobstest.Texts(units))
	w.units = w.Claim(j, w.id, w.Session(j), units)
	for _, u := range w.units {
		w.Report(j, jobstest.Parked(w.id, u, handle, 0))
	}
	return w
}

// decide decides about a value of the first record of a unit.
func (w *waitingWorld) decide(node int, u *records.Unit, field, request string) (*review.Decision, *records.Candidate, error) {
	of := review.Waiting{Unit: u.ID, Index: u.Index, Handle: handle, Answer: func(all []*review.Decision) ([]byte, error) {
		fields := make(map[string]bool)
		for _, d := range all {
			fields[d.Field] = true
		}
		if !fields["total"] || !fields["date"] {
			return nil, nil
		}
		return fmt.Append(nil, "after ", len(all)), nil
	}}
	return w.Nodes[node].Review.DecideWaiting(w.Ctx, w.id, of, jobstest.NewDecision(mapreduce.NewRecordID(u.Index, 0), field, mapreduce.ReviewAccept, request))
}

// The last decision wakes the unit, in the transaction that stores it; what comes behind it is refused.
func TestDecideWaiting(t *testing.T) {
	w := newWaiting(t, jobstest.Open(t), 1, 2)
	j, u := w.Nodes[0], w.units[0]

	for _, request := range []string{"r1", "r1", "r2"} { // sent again, and decided again
		if kept, woken, err := w.decide(0, u, "total", request); err != nil || woken != nil || kept.Number > 2 {
			t.Errorf("%s: %+v, woken %v: %v", request, kept, woken, err)
		}
	}
	if waiting := w.Waiting(j, w.id); len(waiting) > 0 {
		t.Errorf("units go on before all is decided: %v", waiting)
	}

	for range 2 { // also when it is sent again
		kept, woken, err := w.decide(0, u, "date", "r3")
		if err != nil || kept.Number != 1 || woken == nil || woken.Unit != u.ID {
			t.Fatalf("%+v, woken %v: %v", kept, woken, err)
		}
	}
	if waiting := w.Waiting(j, w.id); len(waiting) != 1 || waiting[0].Unit != u.ID {
		t.Errorf("units that go on: %v", waiting)
	}
	call, err := j.View.WakeCall(w.Ctx, w.id, u.ID)
	if want := (&protocol.WakeCall{Handle: handle, Answer: []byte("after 3")}); err != nil || !cmp.Equal(want, call) {
		t.Errorf("the unit is woken with %+v: %v", call, err)
	}

	if _, _, err := w.decide(0, u, "date", "r4"); errs.KindOf(err) != errs.Aborted {
		t.Errorf("when it waits no more: %v", err)
	}
	want := []string{"0.0 date 1 accept", "0.0 total 1 accept", "0.0 total 2 accept"}
	if diff := cmp.Diff(want, listed(w.World, w.id, "")); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	all, err := j.Review.OfUnit(w.Ctx, w.id, u.Index)
	if err != nil || len(all) != 3 {
		t.Errorf("%d decisions about the unit: %v", len(all), err)
	}

	parked, more, err := j.Review.Parked(w.Ctx, w.id, "", 10)
	if err != nil || more || len(parked) != 1 || parked[0] != (review.ParkedUnit{Unit: w.units[1].ID, Handle: handle}) {
		t.Errorf("units that wait: %v, more %v: %v", parked, more, err)
	}
	if parked, _, err = j.Review.Parked(w.Ctx, w.id, w.units[1].ID, 10); err != nil || len(parked) > 0 {
		t.Errorf("behind the last: %v: %v", parked, err)
	}
	w.Healthy()

	w.Must(j.Lifecycle.Cancel(w.Ctx, w.id))
	if _, _, err := w.decide(0, w.units[1], "date", "r5"); errs.KindOf(err) != errs.Precondition {
		t.Errorf("of a job that was cancelled: %v", err)
	}
	w.Healthy()
}

// A decision whose commit is in doubt is stored once, and its unit goes on.
func TestDecideWaitingInDoubt(t *testing.T) {
	f := fault.New(jobstest.Open(t), fault.Config{})
	w := newWaiting(t, f, 1, 1)
	if _, _, err := w.decide(0, w.units[0], "total", "r1"); err != nil {
		t.Fatal(err)
	}
	f.FailNext(fault.UnknownCommitted)
	kept, woken, err := w.decide(0, w.units[0], "date", "r2")
	if err != nil || kept.Number != 1 || woken == nil {
		t.Errorf("%+v, woken %v: %v", kept, woken, err)
	}
	if got := listed(w.World, w.id, ""); len(got) != 2 {
		t.Errorf("decisions %v", got)
	}
	w.Healthy()
}

// Two people who decide about the last two values of a unit at once wake it: neither sees the other's
// decision for missing.
func TestDecideWaitingAtOnce(t *testing.T) {
	const units = 20
	w := newWaiting(t, jobstest.Open(t), 2, units)
	var all sync.WaitGroup
	for node, field := range []string{"total", "date"} {
		all.Go(func() {
			for _, u := range w.units {
				if _, _, err := w.decide(node, u, field, field); err != nil {
					t.Errorf("%s of %s: %v", field, u.ID, err)
				}
			}
		})
	}
	all.Wait()

	if waiting := w.Waiting(w.Nodes[0], w.id); len(waiting) != units {
		t.Errorf("%d of %d units go on", len(waiting), units)
	}
	if got := listed(w.World, w.id, ""); len(got) != 2*units {
		t.Errorf("%d decisions", len(got))
	}
	w.Healthy()
}

// A unit whose time to wait is over goes on once, with what was decided until then. One that waits again, or for
// whose job nothing is run any more, does not.
func TestEndWaits(t *testing.T) {
	f := fault.New(jobstest.Open(t), fault.Config{})
	w := newWaiting(t, f, 2, 3)
	if _, _, err := w.decide(0, w.units[0], "total", "r1"); err != nil {
		t.Fatal(err)
	}
	end := func(node int, u *records.Unit, attempt int64) *records.Candidate {
		t.Helper()
		of := review.Waiting{Unit: u.ID, Index: u.Index, Handle: handle, Answer: func(all []*review.Decision) ([]byte, error) {
			return fmt.Append(nil, "over after ", len(all)), nil
		}}
		woken, err := w.Nodes[node].Review.EndWaits(w.Ctx, w.id, []review.Overdue{{Waiting: of, Attempt: attempt}})
		w.Must(err)
		if len(woken) == 0 {
			return nil
		}
		return &woken[0]
	}

	u := w.units[0]
	if woken := end(0, u, u.Attempt+1); woken != nil {
		t.Errorf("a timer of another attempt wakes %v", woken)
	}
	f.FailNext(fault.UnknownCommitted)
	for node := range 2 { // each orchestrator times it
		if woken := end(node, u, u.Attempt); woken == nil || woken.Unit != u.ID {
			t.Errorf("woken %v", woken)
		}
	}
	if waiting := w.Waiting(w.Nodes[0], w.id); len(waiting) != 1 || waiting[0].Unit != u.ID {
		t.Errorf("units that go on: %v", waiting)
	}
	call, err := w.Nodes[0].View.WakeCall(w.Ctx, w.id, u.ID)
	if want := (&protocol.WakeCall{Handle: handle, Answer: []byte("over after 1")}); err != nil || !cmp.Equal(want, call) {
		t.Errorf("the unit is woken with %+v: %v", call, err)
	}
	if _, _, err := w.decide(0, u, "date", "r2"); errs.KindOf(err) != errs.Aborted {
		t.Errorf("decided when it is over: %v", err)
	}

	// Somebody has decided about all before.
	u = w.units[1]
	for _, field := range []string{"total", "date"} {
		if _, _, err := w.decide(0, u, field, field); err != nil {
			t.Fatal(err)
		}
	}
	end(0, u, u.Attempt)
	if call, err := w.Nodes[0].View.WakeCall(w.Ctx, w.id, u.ID); err != nil || string(call.Answer) != "after 2" {
		t.Errorf("the unit is woken with %+v: %v", call, err)
	}
	w.Healthy()

	w.Must(w.Nodes[0].Lifecycle.Cancel(w.Ctx, w.id))
	if woken := end(0, w.units[2], w.units[2].Attempt); woken != nil {
		t.Errorf("a unit of a job that was cancelled goes on: %v", woken)
	}
	w.Healthy()
}

// Units whose time is over go on together, each with what was decided about it, and once, whatever becomes of the commit; those
// that wait for something else do not.
func TestEndWaitsAtOnce(t *testing.T) {
	f := fault.New(jobstest.Open(t), fault.Config{})
	w := newWaiting(t, f, 1, 5)
	for _, field := range []string{"total", "date"} { // which wakes it
		if _, _, err := w.decide(0, w.units[1], field, field); err != nil {
			t.Fatal(err)
		}
	}

	var over []review.Overdue
	for _, u := range w.units {
		over = append(over, overdue(u))
	}
	over[2].Attempt++ // a timer of an attempt that parked it before
	over[3].Handle = "review/2"

	f.FailNext(fault.UnknownCommitted)
	woken, err := w.Nodes[0].Review.EndWaits(w.Ctx, w.id, over)
	w.Must(err)
	var names []mapreduce.UnitID
	for _, c := range woken {
		names = append(names, c.Unit)
	}
	want := []mapreduce.UnitID{w.units[0].ID, w.units[1].ID, w.units[4].ID}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("units that go on (-want +got):\n%s", diff)
	}
	for i, answer := range map[int]string{0: "over", 1: "after 2", 4: "over"} {
		if call, err := w.Nodes[0].View.WakeCall(w.Ctx, w.id, w.units[i].ID); err != nil || string(call.Answer) != answer {
			t.Errorf("unit %d is woken with %+v, want %q: %v", i, call, answer, err)
		}
	}
	if waiting := w.Waiting(w.Nodes[0], w.id); len(waiting) != 3 {
		t.Errorf("%d units wait to be claimed", len(waiting))
	}
	w.Healthy()
}
