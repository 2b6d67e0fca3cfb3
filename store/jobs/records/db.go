package records

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
)

// ChangeControl turns the switch of a job: it runs fn on it in a transaction, and if
// fn returns true writes it with its epoch raised, the record for display, and
// the event.
func (d *DB) ChangeControl(ctx context.Context, s failpoint.Step, id mapreduce.JobID, fn func(tx store.Tx, ctl *storagev1.Ctl) (message string, changed bool, err error)) error {
	return d.Update(ctx, s, func(tx store.Tx) error {
		ctl, err := d.records.Jobs.Control(ctx, tx, id)
		if err != nil {
			return err
		}

		message, changed, err := fn(tx, ctl)
		if err != nil || !changed {
			return err
		}
		return d.records.Jobs.WriteControl(ctx, tx, id, ctl, message)
	})
}

// Steps bound what one transaction of a long sweep does.
const (
	StepUnits = 500 // units planned, swept or requeued in one transaction
	MaxBatch  = 64  // reports, and claims, in one turn
)

// A DB runs the transactions of operations on records, and passes their points. Its
// methods are safe for concurrent use.
type DB struct {
	db      *store.DB
	records *Records
	hook    failpoint.Hook // nil in production
	full    atomic.Bool    // the last write found no room
}

// NewDB returns what runs transactions on records in db.
func NewDB(db *store.DB, r *Records) *DB { return &DB{db: db, records: r} }

// Records returns the records that are kept.
func (d *DB) Records() *Records { return d.records }

// Node returns the orchestrator in whose name records are written.
func (d *DB) Node() mapreduce.NodeID { return d.records.Node }

// SetHook has h called at every point that is passed. It must be set before
// anything else.
func (d *DB) SetHook(h failpoint.Hook) { d.hook = h }

// Around runs fn between the points of a step; see failpoint.Hook.
func (d *DB) Around(s failpoint.Step, fn func()) { d.hook.Around(s, fn) }

// Watch returns a channel that closes when another orchestrator may have made
// work, or when ctx ends.
func (d *DB) Watch(ctx context.Context) (<-chan struct{}, error) {
	return d.db.Watch(ctx, d.records.Keys.Wake())
}

// Store returns the database underneath, for its counters, and for what wants its
// errors as they are.
func (d *DB) Store() *store.DB { return d.db }

// Update runs fn in a transaction until it commits, with the points of s before
// each commit and after the last.
func (d *DB) Update(ctx context.Context, s failpoint.Step, fn func(tx store.Tx) error) error {
	if d.hook == nil {
		return d.UpdateQuietly(ctx, fn)
	}

	err := d.db.Update(ctx, func(tx store.Tx) error {
		err := fn(tx)
		if err == nil {
			d.hook(s.Before())
		}
		return err
	})

	d.noteSpace(err)
	if err == nil {
		d.hook(s.After())
	}

	return explainError(err)
}

// UpdateQuietly is Update without points, for transactions from which nothing follows.
func (d *DB) UpdateQuietly(ctx context.Context, fn func(tx store.Tx) error) error {
	err := d.db.Update(ctx, fn)
	d.noteSpace(err)
	return explainError(err)
}

// noteSpace notes whether the last write found the disk full.
func (d *DB) noteSpace(err error) {
	if full := errors.Is(err, store.ErrNoSpace); full || err == nil {
		d.full.Store(full)
	}
}

// IsFull reports whether the store had no room for the last write of this process.
func (d *DB) IsFull() bool { return d.full.Load() }

// View runs fn in a transaction that only reads.
func (d *DB) View(ctx context.Context, fn func(tx store.Tx) error) error {
	return explainError(d.db.View(ctx, fn))
}

// explainError gives errors of the store that people can do something about a kind and
// a text that says so. Their causes stay in the chain.
func explainError(err error) error {
	var kind errs.Kind
	var what, reason string

	switch {
	case errors.Is(err, store.ErrNoSpace):
		kind, reason, what = errs.Exhausted, errs.StoreFull, "the disk of the store is nearly full, and nothing new is stored; nothing is lost; free some space"
	case errors.Is(err, store.ErrCorrupt):
		kind, what = errs.DataLoss, "the store is damaged; restore it from a copy"
	case errors.Is(err, store.ErrClosed):
		kind, what = errs.Unavailable, "the store is closed"
	case store.Retryable(err): // and was tried often enough
		kind, what, reason = errs.Unavailable, "the store does not carry out what it is asked; it may be locked, or overloaded", errs.StoreAway
	default:
		return err
	}

	return &errs.Error{Kind: kind, Reason: reason, Message: what + ": " + err.Error(), Err: err}
}

// OrderPage reads units of level -1 or 0 from an index on, in order. There may be
// fewer than limit, but only at the end there are none.
func (d *DB) OrderPage(ctx context.Context, id mapreduce.JobID, level, from int64, limit int) ([]*storagev1.Unit, error) {
	return d.ReadFitting(ctx, limit, func(r store.Reader, most int) ([]*storagev1.Unit, error) {
		return d.records.Units.From(ctx, r, id, level, from, most)
	})
}

// LeastPage is how many units a page has room for at least.
const LeastPage = 16

// ReadFitting reads up to limit units in one transaction.
func (d *DB) ReadFitting(ctx context.Context, limit int, page func(r store.Reader, most int) ([]*storagev1.Unit, error)) ([]*storagev1.Unit, error) {
	var units []*storagev1.Unit
	failed := 0
	err := d.View(ctx, func(tx store.Tx) (err error) {
		units, err = page(tx.Snapshot(), ShrinkLimit(limit, LeastPage, failed))
		failed++ // should it run again
		return err
	})
	return units, err
}

// ShrinkLimit returns how many of n things a transaction should read that failed so
// often: half as many each time, as a store that is slow, or lags behind, has no
// time for more. It asks for least of them at least.
func ShrinkLimit(n, least, failed int) int { return min(n, max(least, n>>min(failed, 30))) }

// StepRoom returns how many units a step may plan, or try again, whose transaction
// failed so often.
func StepRoom(failed int) int { return ShrinkLimit(StepUnits/2, LeastPage, failed) }

// ChunksOf returns how many chunks so many bytes take.
func ChunksOf(length int64) int64 { return (length + store.ChunkSize - 1) / store.ChunkSize }

// VisitChunks visits the values of a range in order, and reads some at a time.
func (d *DB) VisitChunks(ctx context.Context, r store.Range, visit func(value []byte) error) error {
	for {
		// A long value takes longer to read than a transaction may last, so each page has
		// its own.
		var pairs []store.KeyValue
		var more bool
		err := d.View(ctx, func(tx store.Tx) (err error) {
			pairs, more, err = tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: chunksAtOnce})
			return err
		})
		if err != nil {
			return err
		}

		for _, kv := range pairs {
			if err := visit(kv.Value); err != nil {
				return err
			}
		}

		if !more {
			return nil
		}
		r.Begin = store.Single(pairs[len(pairs)-1].Key).End
	}
}

// chunksAtOnce is how many chunks are read, and held, at a time: 512 KiB.
const chunksAtOnce = 8
