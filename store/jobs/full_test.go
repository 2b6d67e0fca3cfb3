package jobs_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A fullStore refuses commits while it is full, as a driver does whose disk is.
type fullStore struct {
	store.Store
	full bool
}

func (s *fullStore) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := s.Store.Begin(ctx)
	return &fullTx{tx, s}, err
}

type fullTx struct {
	store.Tx
	of *fullStore
}

func (tx *fullTx) Commit(ctx context.Context) error {
	if tx.of.full {
		tx.Discard()
		return fmt.Errorf("%w: 1 MiB is free", store.ErrNoSpace)
	}
	return tx.Tx.Commit(ctx)
}

// TestFullDisk says that the disk is full while it is, with a reason for programs.
func TestFullDisk(t *testing.T) {
	s := &fullStore{Store: jobstest.Open(t)}
	w := jobstest.NewWorld(t, s, 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
	if j.IsFull() {
		t.Error("the store is full before it is")
	}
	s.full = true
	err := j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "asked for")
	if errs.KindOf(err) != errs.Exhausted || errs.ReasonOf(err) != errs.StoreFull || !j.IsFull() {
		t.Errorf("got %v, full %t", err, j.IsFull())
	}
	if _, err := j.View.Job(w.Ctx, id); err != nil || !j.IsFull() { // reading changes nothing
		t.Errorf("error %v, full %t", err, j.IsFull())
	}
	s.full = false
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "asked for"))
	if j.IsFull() {
		t.Error("the store is full although it wrote")
	}
}

// TestUpdatedMoves shows each change of a running job in its time.
func TestUpdatedMoves(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2))
	before := w.Job(id)
	u := w.Claim(j, id, w.Session(j), 1)[0]
	w.Report(j, jobstest.Done(id, u))
	after := w.Job(id)
	if after.State != before.State || !after.Updated.After(before.Updated) {
		t.Errorf("state %s, updated at %s, and at %s before", after.State, after.Updated, before.Updated)
	}
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "asked for"))
	if paused := w.Job(id); paused.State != mapreduce.JobPaused || paused.Updated.Before(after.Updated) {
		t.Errorf("paused: %s, updated at %s", paused.State, paused.Updated)
	}
}
