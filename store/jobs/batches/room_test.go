package batches_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/batches"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// begin has a batch begun to be created by an account with so much room.
func (w *waiter) begin(b protocol.Batch, most protocol.BatchRoom) error {
	w.Helper()
	if !w.take(b, w.s) {
		w.Fatalf("the batch %d cannot be had", b.Number)
	}
	_, err := w.j.Batches.Report(w.Ctx, w.id, b.Number, w.s.ID, batches.Account{Name: "vendor", Most: most}, &protocol.BatchReport{Mark: b.Mark, State: protocol.BatchCreating})
	return err
}

// A batch is begun only if it has room beside those that the vendor may have, of whatever limit it is; and what ends,
// or was not made, gives its room back.
func TestBatchesKeepToTheRoom(t *testing.T) {
	for name, c := range map[string]struct {
		most  protocol.BatchRoom
		lacks string // of the second batch; the first always goes
	}{
		"none that is known": {protocol.BatchRoom{}, ""},
		"calls":              {protocol.BatchRoom{Lines: 3}, "room for 3 calls"},
		"calls for both":     {protocol.BatchRoom{Lines: 4}, ""},
		"tokens":             {protocol.BatchRoom{Tokens: 39}, "room for 39 tokens of m"},
		"tokens for both":    {protocol.BatchRoom{Tokens: 40}, ""},
		"batches":            {protocol.BatchRoom{Batches: 1}, "room for 1 batches"},
		"creations":          {protocol.BatchRoom{Creates: 1}, "1 batches may be made"},
		"too little for any": {protocol.BatchRoom{Lines: 1, Tokens: 1}, "room for 1 calls"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiter(t, 4)
			units := w.Claim(w.j, w.id, w.s, 4)
			for _, u := range units[:2] {
				w.park(u)
			}
			one := w.plan()
			w.Must(w.begin(one, c.most))
			for _, u := range units[2:] {
				w.park(u)
			}
			other := w.plan()

			err := w.begin(other, c.most)
			if c.lacks == "" {
				w.Must(err)
				return
			}
			if errs.ReasonOf(err) != errs.NoBatchRoom || !strings.Contains(err.Error(), c.lacks) {
				t.Fatalf("a batch without room: %v, want %q", err, c.lacks)
			}
			use, err := w.j.Batches.UseOf(w.Ctx, "vendor")
			w.Must(err)
			if lack := use.Lack(other, c.most); !strings.Contains(lack, c.lacks) {
				t.Errorf("of the same batch it is said that %q", lack)
			}
			w.Healthy()

			// It says why it waits, and goes once the first one was not made after all.
			_, err = w.report(other, w.s, protocol.BatchReport{State: protocol.BatchPlanned, Trouble: "there is no room"})
			w.Must(err)
			_, err = w.report(one, w.s, protocol.BatchReport{State: protocol.BatchPlanned, Trouble: "refused"})
			w.Must(err)
			if all, err := w.j.Batches.Now(w.Ctx, w.id); err != nil || all[1].Trouble != "there is no room" || all[1].Tries != 0 {
				t.Errorf("the batch that waits is %+v: %v", all[1], err)
			}
			if c.most.Creates == 0 { // that one was begun within the hour stays so
				w.Must(w.begin(other, c.most))
			}
		})
	}
}

// A batch that is over leaves its room, and so does one whose job is gone.
func TestRoomIsGivenBack(t *testing.T) {
	most := protocol.BatchRoom{Batches: 1}
	for name, end := range map[string]func(w *waiter, b protocol.Batch) error{
		"over": func(w *waiter, b protocol.Batch) error {
			_, err := w.report(b, w.s, protocol.BatchReport{Over: true})
			return err
		},
		"without a job": func(w *waiter, b protocol.Batch) error {
			w.Must(w.j.Lifecycle.Cancel(w.Ctx, w.id))
			w.Expire(w.j, w.s)
			w.Must(w.j.Lifecycle.Delete(w.Ctx, w.id))
			s := w.Session(w.j)
			if _, taken, err := w.j.Batches.Take(w.Ctx, w.id, b.Number, s.ID, s.Epoch); err != nil || !taken {
				w.Fatalf("the batch of a job that is gone cannot be had: %v", err)
			}
			_, err := w.report(b, s, protocol.BatchReport{Over: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiter(t, 1)
			w.park(w.Claim(w.j, w.id, w.s, 1)[0])
			b := w.plan()
			w.Must(w.begin(b, most))
			if use, err := w.j.Batches.UseOf(w.Ctx, "vendor"); err != nil || use.Lack(b, most) == "" {
				t.Fatalf("a batch that was begun takes no room: %v", err)
			}
			w.Must(end(w, b))
			if use, err := w.j.Batches.UseOf(w.Ctx, "vendor"); err != nil || use.Lack(b, most) != "" {
				t.Errorf("after its end: %q, %v", use.Lack(b, most), err)
			}
		})
	}
}

// Room that a server of an earlier version has left, which ends batches and knows no rooms, is found, and given back; what is
// taken is not.
func TestRoomThatWasLeft(t *testing.T) {
	w := newWaiter(t, 3)
	units := w.Claim(w.j, w.id, w.s, 3)
	w.park(units[0])
	made := w.plan()
	w.Must(w.begin(made, protocol.BatchRoom{}))
	w.park(units[1])
	planned := w.plan()

	of := w.Space.Batches(w.id)
	w.Write(func(tx store.Tx) {
		for _, key := range [][]byte{
			of.Room("vendor", 77),                                 // of a batch that is over
			of.Room("vendor at elsewhere", made.Number),           // that it had in another account
			of.Room("vendor", planned.Number),                     // of one that was put back, and is not begun again
			w.Space.Batches("mr_gone").Room("vendor", 1),          // of a job that is gone
			w.Space.Batches("mr_gone").Room("vendor at there", 1), // likewise
		} {
			tx.Set(key, records.Encode(&storagev1.BatchRoom{Model: "m", Lines: 5, Tokens: 50}))
		}
	})
	most := protocol.BatchRoom{Batches: 2}
	if use, err := w.j.Batches.UseOf(w.Ctx, "vendor"); err != nil || use.Lack(planned, most) == "" {
		t.Fatalf("nothing is taken: %v", err)
	}
	found := 0
	for _, f := range w.Findings() {
		if strings.Contains(f.Message, "its vendor does not have it") {
			found++
		}
	}
	if found != 5 {
		t.Errorf("%d findings about rooms: %+v", found, w.Findings())
	}

	for _, want := range []int{5, 0} {
		if freed, err := w.Nodes[1].Batches.FreeRooms(w.Ctx); err != nil || freed != want {
			t.Errorf("%d rooms were given back, want %d: %v", freed, want, err)
		}
	}
	if use, err := w.j.Batches.UseOf(w.Ctx, "vendor"); err != nil || use.Lack(planned, most) != "" || use.Lack(planned, protocol.BatchRoom{Batches: 1}) == "" {
		t.Errorf("what is taken then: %+v, %v", use, err)
	}
	w.Healthy()
}
