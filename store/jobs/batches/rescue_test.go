package batches_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// rescue has no more than most lines wait. It returns how many units went back to their queue.
func (w *waiter) rescue(most int64) (woken int) {
	w.Helper()
	for {
		res, err := w.j.Batches.Rescue(w.Ctx, w.id, most)
		w.Must(err)
		if woken += len(res.Woken); !res.Changed {
			return woken
		}
	}
}

// outcome is what became of the line of a unit.
func (w *waiter) outcome(u *records.Unit) protocol.LineOutcome {
	w.Helper()
	var reply protocol.LineReply
	data, err := w.j.Batches.Reply(w.Ctx, protocol.Held{Job: w.id, Unit: u.ID, Attempt: int(u.Attempt)}, key(u.ID))
	w.Must(err)
	w.Must(json.Unmarshal(data, &reply))
	return reply.Outcome
}

// Lines that are in no batch are answered at once, and what they reserved is free; those of a batch wait until it
// has ended, and it is answered once.
func TestRescueEndsWaiting(t *testing.T) {
	w := newWaiter(t, 5)
	units := w.Claim(w.j, w.id, w.s, 5)
	for _, u := range units[:3] {
		w.park(u)
	}
	b := w.plan()
	w.create(b)
	for _, u := range units[3:] {
		w.park(u)
	}
	if open, err := w.j.Batches.Open(w.Ctx, w.id); err != nil || open != 5 {
		t.Fatalf("%d lines are open (%v), want 5", open, err)
	}

	// Four may wait: one of those that are in no batch may not.
	if woken := w.rescue(4); woken != 1 {
		t.Errorf("%d units were woken, want 1", woken)
	}
	if got := w.look(); got.Open != 4 || got.Batches[0].Ending {
		t.Errorf("with room for four: %+v", got)
	}

	// None may: the other goes, and the batch is to end.
	if woken := w.rescue(0); woken != 1 {
		t.Errorf("%d units were woken, want 1", woken)
	}
	got := w.look()
	if got.Open != 0 || got.Waiting != 0 || !got.Batches[0].Ending {
		t.Errorf("with room for none: %+v", got)
	}
	if n := w.reserved(); n != 3*kept {
		t.Errorf("%d are reserved, want those of the three lines whose vendor may still charge them", n)
	}
	if woken := w.rescue(0); woken != 0 {
		t.Errorf("%d units were woken a second time", woken)
	}

	// What the vendor had done is kept, and the rest is asked in real time.
	_, err := w.report(b, w.s, protocol.BatchReport{Replies: []protocol.LineReply{answered(1)}})
	w.Must(err)
	res, err := w.report(b, w.s, protocol.BatchReport{Over: true, Rest: protocol.LineCancelled})
	w.Must(err)
	if len(res.Woken) != 2 || w.reserved() != 0 {
		t.Errorf("the end of the batch woke %d units, and %d are reserved", len(res.Woken), w.reserved())
	}

	if took, err := w.j.Batches.Turnarounds(w.Ctx, "scripted/m"); err != nil || len(took) > 0 {
		t.Errorf("a batch that was ended took %v (%v)", took, err)
	}
	outcomes := make(map[protocol.LineOutcome]int)
	for _, u := range w.Claim(w.j, w.id, w.s, 5) {
		outcomes[w.outcome(u)]++
	}
	want := map[protocol.LineOutcome]int{protocol.LineExpired: 2, protocol.LineSucceeded: 1, protocol.LineCancelled: 2}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("what became of lines (-want +got):\n%s", diff)
	}
}

// A batch that is to end gets no more lines, the last is ended first, and no more of them than have to be.
func TestRescueEndsTheLastBatchFirst(t *testing.T) {
	w := newWaiter(t, 6)
	units := w.Claim(w.j, w.id, w.s, 6)
	for i := range 3 {
		w.park(units[2*i])
		w.park(units[2*i+1])
		w.plan()
	}
	w.rescue(3)
	var ending []int64
	for _, b := range w.look().Batches {
		if b.Ending {
			ending = append(ending, b.Number)
		}
		if b.Ending && b.Filling {
			t.Errorf("batch %d is to end, and takes lines", b.Number)
		}
	}
	if diff := cmp.Diff([]int64{2, 3}, ending); diff != "" {
		t.Errorf("batches that end where three of six lines may wait (-want +got):\n%s", diff)
	}
}

// A batch that has to end is told so at once, however many lines are yet to be answered that are in none: its vendor takes
// minutes for it.
func TestRescueEndsBatchesAtOnce(t *testing.T) {
	const lines = protocol.MaxReplies + 6
	w := newWaiter(t, lines)
	for _, u := range w.Claim(w.j, w.id, w.s, 3) {
		w.park(u)
	}
	w.create(w.plan())
	for parked := 3; parked < lines; {
		units := w.Claim(w.j, w.id, w.s, lines-parked)
		for _, u := range units {
			w.park(u)
		}
		parked += len(units)
	}

	res, err := w.j.Batches.Rescue(w.Ctx, w.id, 0)
	w.Must(err)
	if got := w.look(); !res.Changed || len(res.Woken) != protocol.MaxReplies || !got.Batches[0].Ending || got.Open != 3 {
		t.Errorf("one step woke %d units, and then it was %+v", len(res.Woken), got)
	}
	if woken := w.rescue(0); woken != 3 {
		t.Errorf("the rest was %d units, want 3", woken)
	}
	w.Healthy()
}

// A job that does not run has nothing asked.
func TestRescueLeavesAJobThatDoesNotRun(t *testing.T) {
	w := newWaiter(t, 1)
	w.park(w.Claim(w.j, w.id, w.s, 1)[0])
	w.Must(w.j.Lifecycle.Cancel(w.Ctx, w.id))
	if res, err := w.j.Batches.Rescue(w.Ctx, w.id, 0); err != nil || res.Changed {
		t.Errorf("of a cancelled job: %+v, %v", res, err)
	}
	if _, err := w.j.Batches.Rescue(w.Ctx, "mr_20260101_ffffff", 0); errs.KindOf(err) != errs.NotFound {
		t.Errorf("of no job: %v", err)
	}
}

// How long batches took is kept of those that ended by themselves, of the last of them, and for a day.
func TestTurnarounds(t *testing.T) {
	w := newWaiter(t, 40)
	units := w.Claim(w.j, w.id, w.s, 40)
	for i, u := range units {
		w.park(u)
		b := w.plan()
		w.create(b)
		if i == len(units)-1 {
			w.rescue(0)
		}
		_, err := w.report(b, w.s, protocol.BatchReport{Replies: []protocol.LineReply{answered(0)}, Over: true})
		w.Must(err)

		took, err := w.j.Batches.Turnarounds(w.Ctx, "scripted/m")
		w.Must(err)
		if want := min(i+1, 32); len(took) != want || took[len(took)-1] <= 0 {
			t.Errorf("after batch %d there are %v, want %d of them", i, took, want)
		}
	}
	w.Healthy()

	// A day later they tell nothing any more.
	atomic.AddInt64(&w.Micro, (24 * time.Hour).Microseconds())
	if took, err := w.j.Batches.Turnarounds(w.Ctx, "scripted/m"); err != nil || len(took) > 0 {
		t.Errorf("a day later: %v, %v", took, err)
	}
	if took, err := w.j.Batches.Turnarounds(w.Ctx, "scripted/other"); err != nil || len(took) > 0 {
		t.Errorf("of another model: %v, %v", took, err)
	}
}
