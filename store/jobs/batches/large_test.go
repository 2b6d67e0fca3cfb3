package batches_test

import (
	"fmt"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/batches"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// parkAll parks all units of the job.
func (w *waiter) parkAll(units int) {
	w.Helper()
	for left := units; left > 0; {
		some := w.Claim(w.j, w.id, w.s, min(left, 50))
		if len(some) == 0 {
			w.Fatalf("%d units cannot be claimed", left)
		}
		for _, u := range some {
			w.park(u)
		}
		left -= len(some)
	}
}

// look returns how the batches of the job stand.
func (w *waiter) look() *batches.Standing {
	w.Helper()
	s, err := w.j.Batches.Look(w.Ctx, w.id)
	w.Must(err)
	return s
}

// A batch that has more lines than one transaction moves is filled by several, and is given to nobody before
// it has all of them; each line has a place of its own.
func TestLargeBatchIsFilledInParts(t *testing.T) {
	const units = 1200
	w := newWaiter(t, units)
	w.parkAll(units)

	res, err := w.j.Batches.Plan(w.Ctx, w.id, "mark000000000000001", false, nil)
	w.Must(err)
	s := w.look()
	if !res.Changed || len(s.Batches) != 1 || !s.Batches[0].Filling || s.Batches[0].Lines != 1000 || s.Waiting != units {
		t.Fatalf("after the first step: %+v, %+v", res, s)
	}
	w.Healthy()
	if res, err = w.j.Batches.Plan(w.Ctx, w.id, "mark000000000000002", false, nil); err != nil || res.Changed {
		t.Errorf("lines that more may follow: %+v, %v", res, err)
	}

	for i := range 3 {
		if res, err = w.j.Batches.Plan(w.Ctx, w.id, fmt.Sprintf("mark00000000000001%d", i), true, nil); err != nil {
			t.Fatal(err)
		}
	}
	s = w.look()
	if len(s.Batches) != 1 || s.Batches[0].Filling || s.Batches[0].Lines != units || s.Waiting != 0 || res.Changed {
		t.Fatalf("in the end: %+v, %+v", res, s)
	}
	w.Healthy()

	w.create(s.Batches[0].Batch)
	seen := make(map[int64]bool)
	w.Must(w.j.Batches.Lines(w.Ctx, w.id, 1, w.s.ID, func(l protocol.BatchLine) error { seen[l.Number] = true; return nil }))
	if len(seen) != units {
		t.Errorf("the batch has %d lines, want %d", len(seen), units)
	}

	// No transaction reads all of them: a session that loses the batch meanwhile has no more than those of one.
	clear(seen)
	other := w.Session(w.j)
	err = w.j.Batches.Lines(w.Ctx, w.id, 1, w.s.ID, func(l protocol.BatchLine) error {
		if len(seen) == 0 {
			w.Expire(w.j, w.s)
			w.take(s.Batches[0].Batch, other)
		}
		seen[l.Number] = true
		return nil
	})
	if errs.KindOf(err) != errs.Precondition || len(seen) == 0 || len(seen) > 1000 {
		t.Errorf("a session read %d lines of a batch that it does not see to any more: %v", len(seen), err)
	}
}

// A version that fills no batches leaves the mark of one that is being filled when it gives it to a session: nothing
// is added to it any more, as its vendor may have it, and another session may have it when that one is dead.
func TestNothingIsAddedToABatchOfAnEarlierVersion(t *testing.T) {
	const units = 1100
	for _, state := range []protocol.BatchState{protocol.BatchPlanned, protocol.BatchCreated} {
		w := newWaiter(t, units)
		w.parkAll(units)
		_, err := w.j.Batches.Plan(w.Ctx, w.id, "mark000000000000001", false, nil)
		w.Must(err)
		key := keys.New().Batches(w.id).Batch(1)
		b := new(storagev1.Batch)
		w.Must(records.Decode(key, w.Get(key), b))
		if !b.Filling {
			t.Fatalf("the batch is %v", b)
		}
		b.Holder, b.State = string(w.s.ID), uint32(state)
		if state == protocol.BatchCreated {
			b.Id = "b_1"
		}
		w.Write(func(tx store.Tx) { tx.Set(key, records.Encode(b)) })

		_, err = w.j.Batches.Plan(w.Ctx, w.id, "mark000000000000002", true, nil)
		w.Must(err)
		s := w.look()
		if len(s.Batches) != 2 || s.Batches[0].Filling || s.Batches[0].Lines != 1000 || s.Batches[1].Lines != units-1000 || s.Waiting != 0 {
			t.Errorf("beside a batch in state %d: %+v", state, s)
		}
		w.Healthy()
	}
}

// A batch that is being filled when its job is cancelled is given to a session, which ends it.
func TestFillingBatchOfCancelledJob(t *testing.T) {
	const units = 1100
	w := newWaiter(t, units)
	w.parkAll(units)
	_, err := w.j.Batches.Plan(w.Ctx, w.id, "mark000000000000001", false, nil)
	w.Must(err)
	w.Must(w.j.Lifecycle.Cancel(w.Ctx, w.id))
	b := w.look().Batches[0]
	if !w.take(b.Batch, w.s) || w.look().Batches[0].Filling {
		t.Fatal("the batch cannot be had, or takes more lines")
	}
	_, err = w.report(b.Batch, w.s, protocol.BatchReport{Over: true, Rest: protocol.LineCancelled})
	w.Must(err)
	if s := w.look(); len(s.Batches) > 0 {
		t.Errorf("what is left: %+v", s)
	}
}

// Lines of a batch that was not begun go in another one, but for those of which something is known.
func TestLinesGoInAnotherBatch(t *testing.T) {
	w := newWaiter(t, 3)
	w.parkAll(3)
	b := w.plan()
	w.take(b, w.s)
	res, err := w.report(b, w.s, protocol.BatchReport{Replies: []protocol.LineReply{{Number: 1, Outcome: protocol.LineErrored, Error: "it cannot be read"}}})
	w.Must(err)
	if len(res.Woken) != 1 {
		t.Errorf("%d units were woken, want 1", len(res.Woken))
	}
	_, err = w.report(b, w.s, protocol.BatchReport{Over: true, Rest: protocol.LineAgain})
	w.Must(err)
	w.Healthy()
	if s := w.look(); s.Waiting != 2 || len(s.Batches) != 0 {
		t.Fatalf("what waits: %+v", s)
	}

	next := w.plan()
	if next.Lines != 2 || next.Mark == b.Mark {
		t.Errorf("the next batch is %+v", next)
	}
	w.create(next)
	if _, err := w.report(next, w.s, protocol.BatchReport{Over: true, Rest: protocol.LineAgain}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("lines that the vendor may have go in another batch: %v", err)
	}
	w.Healthy()
}

// A batch that its vendor may have is left behind by a job that is removed, and is gone once a session has
// seen it end.
func TestRemovedJobLeavesItsBatch(t *testing.T) {
	w := newWaiter(t, 2)
	w.parkAll(2)
	b := w.plan()
	w.create(b)
	w.Must(w.j.Lifecycle.Cancel(w.Ctx, w.id))
	w.Expire(w.j, w.s)
	w.Must(w.j.Lifecycle.Delete(w.Ctx, w.id))

	all, err := w.j.Batches.Orphans(w.Ctx)
	w.Must(err)
	if len(all) != 1 || all[0].Vendor != "b_1" || all[0].Job != w.id || all[0].Session != "" || all[0].Lines != 2 {
		t.Fatalf("the batches without a job are %+v", all)
	}

	next := w.Session(w.j)
	if _, taken, err := w.j.Batches.Take(w.Ctx, w.id, b.Number, next.ID, next.Epoch); err != nil || !taken {
		t.Fatalf("the batch cannot be had: %t, %v", taken, err)
	}
	w.s = next
	if _, err := w.report(b, next, protocol.BatchReport{Done: 1}); err != nil {
		t.Error(err)
	}
	for range 2 { // the answer to the first may be lost
		_, err = w.report(b, next, protocol.BatchReport{Replies: []protocol.LineReply{answered(0)}})
		w.Must(err)
	}
	_, err = w.report(b, next, protocol.BatchReport{Over: true, Rest: protocol.LineCancelled})
	w.Must(err)
	if all, err = w.j.Batches.Orphans(w.Ctx); err != nil || len(all) > 0 {
		t.Errorf("batches without a job: %+v, %v", all, err)
	}
	if _, err := w.report(b, next, protocol.BatchReport{Over: true}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("another report of it: %v", err)
	}
	for _, kv := range w.All() {
		if name, _, _ := keys.New().Last(kv.Key); name == "orphan" || name == "batch" {
			t.Errorf("the key %x is left", kv.Key)
		}
	}
}
