// Package jobs is what the service keeps: each operation on jobs, units,
// sessions and checkpoints, written once over the port of package store. Every
// write transaction here reads the key whose change must stop it, and is safe
// to run again after an unknown commit result: identifiers come from outside,
// and its own earlier success is recognised.
//
// It imports the vocabulary, the port and the key space; no driver.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/keys"
)

// Steps bound what one transaction of a long sweep does.
const (
	stepUnits = 500 // units planned, swept or requeued in one transaction
	MaxBatch  = 64  // reports, and claims, in one turn
)

// Jobs keeps the service's records in a store, in parts. Its methods, and those of
// the parts, are safe for concurrent use.
type Jobs struct {
	*IngestPart
	*TurnsPart
	*LevelsPart
	*LifecyclePart
	*GrantsPart
	*NodesPart
	*SessionsPart
	*QueuesPart
	*AuditPart
	*AnswersPart
	*ContentPart
	*ViewPart
	*ChecksPart
	db *DB
}

// New returns the records kept in db under space, as written by node. The clock
// is for display alone: no decision rests on it.
func New(db *store.DB, space *keys.Space, node mapreduce.NodeID, now func() time.Time) *Jobs {
	r := NewRecords(space, node, now)
	d := NewDB(db, r)
	content, audit := NewContent(d, r), NewAudit(d, r)
	return &Jobs{
		IngestPart: NewIngest(d, r), TurnsPart: NewTurns(d, r), LevelsPart: NewLevels(d, r), LifecyclePart: NewLifecycle(d, r),
		GrantsPart: NewGrants(d, r), NodesPart: NewNodes(d, r), SessionsPart: NewSessions(d, r), QueuesPart: NewQueues(d, r),
		AuditPart: audit, AnswersPart: NewAnswers(d, r), ContentPart: content, ViewPart: NewView(d, r),
		ChecksPart: NewChecks(d, r, content, audit), db: d,
	}
}

// Node returns the orchestrator in whose name these records are written.
func (j *Jobs) Node() mapreduce.NodeID { return j.db.Node() }

// DB returns the database underneath, for its counters.
func (j *Jobs) DB() *store.DB { return j.db.Store() }

// SetHook has h told of every point that is passed. It is for tests that end the
// process there, and must be called before anything else.
func (j *Jobs) SetHook(h failpoint.Hook) { j.db.SetHook(h) }

// Around runs fn between the points of a step; see failpoint.Hook.
func (j *Jobs) Around(s failpoint.Step, fn func()) { j.db.Around(s, fn) }

// Records are how the service's records are kept: under which keys, by whom, and in
// what form. Its methods work inside a transaction that their caller began, and it
// has no means to begin one.
type Records struct {
	keys *keys.Space      // where each record is
	node mapreduce.NodeID // in whose name records are written
	now  func() time.Time
}

// NewRecords returns the records kept under space, as written by node. The clock is
// for display alone: no decision rests on it.
func NewRecords(space *keys.Space, node mapreduce.NodeID, now func() time.Time) *Records {
	return &Records{keys: space, node: node, now: now}
}

// A DB runs the transactions of operations on records, and passes their points. Its
// methods are safe for concurrent use.
type DB struct {
	db      *store.DB
	records *Records
	hook    failpoint.Hook // nil in production
}

// NewDB returns what runs transactions on records in db.
func NewDB(db *store.DB, r *Records) *DB { return &DB{db: db, records: r} }

// Records returns the records that are kept.
func (d *DB) Records() *Records { return d.records }

// Node returns the orchestrator in whose name records are written.
func (d *DB) Node() mapreduce.NodeID { return d.records.node }

// SetHook has h told of every point that is passed. It must be called before
// anything else.
func (d *DB) SetHook(h failpoint.Hook) { d.hook = h }

// Around runs fn between the points of a step; see failpoint.Hook.
func (d *DB) Around(s failpoint.Step, fn func()) { d.hook.Around(s, fn) }

// Watch returns a channel that closes when another orchestrator may have made
// work, or when ctx ends.
func (d *DB) Watch(ctx context.Context) (<-chan struct{}, error) {
	return d.db.Watch(ctx, d.records.keys.Wake())
}

// Store returns the database underneath, for its counters, and for what wants its
// errors as they are.
func (d *DB) Store() *store.DB { return d.db }

// update runs fn in a transaction until it commits, with the points of s before
// each commit and after the last.
func (d *DB) update(ctx context.Context, s failpoint.Step, fn func(tx store.Tx) error) error {
	if d.hook == nil {
		return d.updateQuietly(ctx, fn)
	}
	err := d.db.Update(ctx, func(tx store.Tx) error {
		err := fn(tx)
		if err == nil {
			d.hook(s.Before())
		}
		return err
	})
	if err == nil {
		d.hook(s.After())
	}
	return explainError(err)
}

// updateQuietly does the same, without points: for what nothing follows from.
func (d *DB) updateQuietly(ctx context.Context, fn func(tx store.Tx) error) error {
	return explainError(d.db.Update(ctx, fn))
}

// view runs fn in a transaction that only reads.
func (d *DB) view(ctx context.Context, fn func(tx store.Tx) error) error {
	return explainError(d.db.View(ctx, fn))
}

// explainError gives errors of the store that people can do something about a kind and
// a text that says so. Their causes stay in the chain.
func explainError(err error) error {
	var kind errs.Kind
	var what, reason string
	switch {
	case errors.Is(err, store.ErrNoSpace):
		kind, what = errs.Exhausted, "the disk of the store is nearly full, and nothing new is stored; nothing is lost: free some space, and it goes on by itself"
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

// nowMicros returns the time for display, in microseconds since 1970.
func (j *Records) nowMicros() int64 { return j.now().UnixMicro() }

// read decodes the value of key into m and reports whether there is one.
func read(ctx context.Context, r store.Reader, key []byte, m proto.Message) (bool, error) {
	value, err := r.Get(ctx, key)
	if err != nil || value == nil {
		return false, err
	}
	return true, decode(key, value, m)
}

// decode decodes a value into m. The error names the key.
func decode(key, value []byte, m proto.Message) error {
	if err := proto.Unmarshal(value, m); err != nil {
		return fmt.Errorf("jobs: value of %x: %w: %w", key, store.ErrCorrupt, err)
	}
	return nil
}

// corruptError returns the error of a value that is not as it was written, or is not
// there: what is wrong, and under which key one has to look.
func corruptError(key []byte, format string, args ...any) error {
	return fmt.Errorf("jobs: key %x: %s: %w", key, fmt.Sprintf(format, args...), store.ErrCorrupt)
}

// encode returns the stored form of m. It is deterministic within one version
// of this program, which the audit chain does not rely on: it hashes what was
// stored.
func encode(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic("jobs: message cannot be encoded: " + err.Error()) // invalid UTF-8 is stopped at the edges
	}
	return b
}

// readControl returns the control record of a job, or errs.NotFound.
func (j *Records) readControl(ctx context.Context, r store.Reader, id mapreduce.JobID) (*storagev1.Ctl, error) {
	ctl := new(storagev1.Ctl)
	found, err := read(ctx, r, j.keys.Ctl(id), ctl)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, notFound(id)
	}
	return ctl, nil
}

// notFound returns the error of a job that is not there.
func notFound(id mapreduce.JobID) error {
	return &errs.Error{
		Kind: errs.NotFound, Reason: "JOB_NOT_FOUND",
		Message: fmt.Sprintf("no job has the id %q; `coditect mapreduce list` shows those there are", id),
	}
}

// readUnit returns a unit, or nil if it is not there.
func (j *Records) readUnit(ctx context.Context, r store.Reader, id mapreduce.JobID, u mapreduce.UnitID) (*storagev1.Unit, error) {
	unit := new(storagev1.Unit)
	found, err := read(ctx, r, j.keys.Unit(id, u), unit)
	if err != nil || !found {
		return nil, err
	}
	return unit, nil
}

// readUnits returns units in the order of their keys, nil for those that are not there.
// The reads are under way together: a session may hold thousands.
func readUnits(ctx context.Context, r store.Reader, ks [][]byte) ([]*storagev1.Unit, error) {
	values, err := r.GetAll(ctx, ks)
	if err != nil {
		return nil, err
	}
	found := make([]*storagev1.Unit, len(ks))
	for i, v := range values {
		if v == nil {
			continue
		}
		found[i] = new(storagev1.Unit)
		if err := decode(ks[i], v, found[i]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// setUnit writes a unit.
func (j *Records) setUnit(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit) {
	tx.Set(j.keys.Unit(id, mapreduce.UnitID(u.UnitId)), encode(u))
}

// wakeOthers tells other orchestrators that there is something to see.
func (j *Records) wakeOthers(tx store.Tx) { tx.Add(j.keys.Wake(), 1) }

// Watch returns a channel that closes when another orchestrator may have made
// work, or when ctx ends.
func (j *Jobs) Watch(ctx context.Context) (<-chan struct{}, error) {
	return j.db.Watch(ctx)
}

// addCheckpoint records a change of the job in its ledger.
func (j *Records) addCheckpoint(tx store.Tx, id mapreduce.JobID, c *storagev1.Checkpoint) {
	c.TimestampMicros = j.nowMicros()
	c.Node = string(j.node)
	key, offset := j.keys.NextCheckpoint(id)
	tx.SetVersionstampedKey(key, offset, encode(c))
}

// enqueueUnit makes u wait in its queue, at the place it names.
func (j *Records) enqueueUnit(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit, class uint32) {
	seq := keys.Seq(u.Level, u.Index)
	shard := int64(0)
	if u.Queue != nil {
		shard = u.Queue.Shard
	}
	u.Status = uint32(mapreduce.Pending)
	u.Queue = &storagev1.Queue{Class: class, Seq: seq, Shard: shard}
	tx.Set(j.keys.Ready(id, shard, class, seq), []byte(u.UnitId))
}

// dequeueUnit takes u off whichever queue it waits in. The shard is kept for when
// it comes back.
func (j *Records) dequeueUnit(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit) {
	q := u.Queue
	if q == nil {
		return
	}
	switch q.Class {
	case keys.ClassDelayed:
		tx.Clear(j.keys.Delayed(id, mapreduce.UnitID(u.UnitId)))
	case keys.ClassParked:
		tx.Clear(j.keys.Parked(id, mapreduce.UnitID(u.UnitId)))
		tx.Add(j.keys.Counter(id, keys.UnitsParked, u.Level, j.node), -1)
	default:
		tx.Clear(j.keys.Ready(id, q.Shard, q.Class, q.Seq))
	}
}
