package records

import (
	"bytes"
	"context"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// UnitRecords are the records of units, and the queues in which units wait.
type UnitRecords struct {
	keys *keys.Space
	node mapreduce.NodeID
	jobs *JobRecords
}

// Read returns a unit, or nil if it is not there.
func (rec *UnitRecords) Read(ctx context.Context, r store.Reader, id mapreduce.JobID, u mapreduce.UnitID) (*storagev1.Unit, error) {
	unit := new(storagev1.Unit)
	found, err := Read(ctx, r, rec.keys.Job(id).Unit(u), unit)
	if err != nil || !found {
		return nil, err
	}
	return unit, nil
}

// ReadUnits returns units in the order of their keys, nil for those that are not there.
// The reads are under way together: a session may hold thousands.
func ReadUnits(ctx context.Context, r store.Reader, ks [][]byte) ([]*storagev1.Unit, error) {
	values, err := r.GetAll(ctx, ks)
	if err != nil {
		return nil, err
	}
	return unitsOf(ks, values)
}

// unitsOf decodes the values of the keys of units, nil for those that are not there.
func unitsOf(ks, values [][]byte) ([]*storagev1.Unit, error) {
	found := make([]*storagev1.Unit, len(ks))
	for i, v := range values {
		if v == nil {
			continue
		}
		found[i] = new(storagev1.Unit)
		if err := Decode(ks[i], v, found[i]); err != nil {
			return nil, err
		}
	}

	return found, nil
}

// ClearJournal forgets what attempts at u have remembered. The caller writes u.
func (rec *UnitRecords) ClearJournal(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit) {
	if u.Journal == nil {
		return // as of most units: what is not there costs nothing
	}

	of, unit := rec.keys.Outputs(id), mapreduce.UnitID(u.UnitId)
	if n := u.Journal.Entries; n <= fewChunks && u.Journal.Bytes <= store.ChunkSize { // each entry is one chunk
		for i := range n {
			tx.Clear(of.JournalChunk(unit, i, 0))
		}
	} else {
		tx.ClearRange(of.Journal(unit))
	}

	u.Journal = nil
}

// ClearEvidence forgets what tools have brought to u. The caller writes u.
func (rec *UnitRecords) ClearEvidence(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit) {
	if u.Evidence == nil {
		return
	}
	tx.ClearRange(rec.keys.Outputs(id).EvidenceOf(mapreduce.UnitID(u.UnitId)))
	u.Evidence = nil
}

// ClearPartEvidence forgets evidence of u of which only a part is stored: nobody goes on
// with it. The caller writes u.
func (rec *UnitRecords) ClearPartEvidence(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit) {
	if u.Evidence.GetNext() == nil {
		return
	}
	tx.ClearRange(rec.keys.Outputs(id).EvidenceFrom(mapreduce.UnitID(u.UnitId), u.Evidence.Items))
	if u.Evidence.Next = nil; u.Evidence.Items == 0 {
		u.Evidence = nil
	}
}

// Set writes a unit.
func (rec *UnitRecords) Set(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit) {
	tx.Set(rec.keys.Job(id).Unit(mapreduce.UnitID(u.UnitId)), Encode(u))
}

// From reads up to limit units of a level from an index on, in order.
func (rec *UnitRecords) From(ctx context.Context, r store.Reader, id mapreduce.JobID, level, from int64, limit int) ([]*storagev1.Unit, error) {
	return rec.In(ctx, r, id, level, from, math.MaxInt64, limit)
}

// In reads up to limit units of a level with indexes in [from, end), in
// order.
func (rec *UnitRecords) In(ctx context.Context, r store.Reader, id mapreduce.JobID, level, from, end int64, limit int) ([]*storagev1.Unit, error) {
	ids, _, err := rec.placesIn(ctx, r, id, level, from, end, limit)
	if err != nil {
		return nil, err
	}

	ks := rec.keysOf(id, ids)
	values, err := readBeside(ctx, r, ks)
	if err != nil {
		return nil, err
	}
	found, err := unitsOf(ks, values)
	return slices.DeleteFunc(found, func(u *storagev1.Unit) bool { return u == nil }), err
}

// keysOf returns the keys of units.
func (rec *UnitRecords) keysOf(id mapreduce.JobID, ids []mapreduce.UnitID) [][]byte {
	ks := make([][]byte, len(ids))
	for i, u := range ids {
		ks[i] = rec.keys.Job(id).Unit(u)
	}
	return ks
}

// Named reads units, as far as they are there.
func (rec *UnitRecords) Named(ctx context.Context, r store.Reader, id mapreduce.JobID, ids []mapreduce.UnitID) ([]*storagev1.Unit, error) {
	found, err := ReadUnits(ctx, r, rec.keysOf(id, ids))
	return slices.DeleteFunc(found, func(u *storagev1.Unit) bool { return u == nil }), err
}

// placesIn returns the ids and indexes of up to limit units of a level with indexes in [from, end), in order.
func (rec *UnitRecords) placesIn(ctx context.Context, r store.Reader, id mapreduce.JobID, level, from, end int64, limit int) (ids []mapreduce.UnitID, indexes []int64, err error) {
	// The order has the ids of units up to level 0; those above follow from their index.
	if level <= 0 {
		span := store.Range{Begin: rec.keys.Job(id).Order(level, from), End: rec.keys.Job(id).Order(level, end)}
		pairs, _, err := r.GetRange(ctx, span, store.RangeOptions{Limit: limit})
		if err != nil {
			return nil, nil, err
		}

		ids, indexes = make([]mapreduce.UnitID, len(pairs)), make([]int64, len(pairs))
		for i, kv := range pairs {
			ids[i] = mapreduce.UnitID(kv.Value)
			if indexes[i], err = rec.keys.OrderIndex(kv.Key); err != nil {
				return nil, nil, err
			}
		}
		return ids, indexes, nil
	}

	ctl, err := rec.jobs.Control(ctx, r, id)
	if err != nil {
		return nil, nil, err
	}
	l := LevelAt(ctl, level)
	for i := from; i < min(l.GetUnits(), end) && len(ids) < limit; i++ {
		ids, indexes = append(ids, UnitAt(l, i)), append(indexes, i)
	}
	return ids, indexes, nil
}

// Whole reports whether the output that a report names is stored; stored is the
// unit's.
func Whole(stored *storagev1.Put, r *protocol.Report) bool {
	return stored != nil && isWhole(stored.Length, stored.Stored, stored.Sha256, r)
}

func isWhole(length, stored int64, sha []byte, r *protocol.Report) bool {
	return length == r.Length && stored == r.Length && bytes.Equal(sha, r.SHA256)
}

// Sound is Held for units of several jobs, none of which may suffer from what is
// wrong with another's: a record that is damaged is nil, with its error at the same place
// of damaged, which is nil if none is.
func (rec *UnitRecords) Sound(ctx context.Context, r store.Reader, held []*storagev1.HeldUnit) (units []*storagev1.Unit, damaged []error, err error) {
	ks := make([][]byte, len(held))
	for i, h := range held {
		ks[i] = rec.keys.Job(mapreduce.JobID(h.Job)).Unit(mapreduce.UnitID(h.Unit))
	}

	values, err := r.GetAll(ctx, ks)
	if err != nil {
		return nil, nil, err
	}

	units = make([]*storagev1.Unit, len(held))
	for i, v := range values {
		if v == nil {
			continue
		}

		u := new(storagev1.Unit)
		if err := Decode(ks[i], v, u); err != nil {
			if damaged == nil {
				damaged = make([]error, len(held))
			}
			damaged[i] = err
			continue
		}

		units[i] = u
	}

	return units, damaged, nil
}

// Held reads the units that claims name, nil for those that are not there.
func (rec *UnitRecords) Held(ctx context.Context, r store.Reader, held []*storagev1.HeldUnit) ([]*storagev1.Unit, error) {
	ks := make([][]byte, len(held))
	for i, h := range held {
		ks[i] = rec.keys.Job(mapreduce.JobID(h.Job)).Unit(mapreduce.UnitID(h.Unit))
	}
	return ReadUnits(ctx, r, ks)
}

// UnitsThatFit returns how many of units, from the first on, one transaction should write,
// as those of a list can have large items: at least one of them.
func UnitsThatFit(units []*storagev1.Unit) int {
	size := 0
	for i, u := range units {
		if size += proto.Size(u); size > store.TargetTxSize && i > 0 {
			return i
		}
	}
	return len(units)
}

// A Batch is a part of a submission: what one transaction stages. It should
// hold at most 500 units and store.TargetTxSize bytes.
type Batch struct {
	Units   []*Unit // that are new
	Blobs   []BlobChunk
	Skipped []SkippedAt
	Counted bool // the characters of its units were, when they were submitted
	// Known is how many characters of its units were counted then, if the others come
	// from documents that were parsed. All of its units are new, or none is.
	Known int64
}

// A BlobChunk is chunk Index of the text with the given hash; all but the last
// hold store.ChunkSize bytes.
type BlobChunk struct {
	SHA256 []byte
	Index  int64
	Data   []byte
}

// SkippedAt is the n-th document left out of a submission.
type SkippedAt struct {
	N int64
	mapreduce.SkippedDocument
}

// Insert writes a new unit with its place in the queue and in the order.
func (rec *UnitRecords) Insert(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit) {
	rec.Enqueue(tx, id, u, keys.ClassNew)
	rec.Set(tx, id, u)
	if u.Level <= 0 {
		tx.Set(rec.keys.Job(id).Order(u.Level, u.Index), []byte(u.UnitId))
	}
}

// AttemptStands reports whether a unit's attempt still stands, for writes made before
// its finish.
func AttemptStands(u *storagev1.Unit, attempt int) bool {
	return u != nil && u.Attempt == int64(attempt) && u.Session != "" &&
		!mapreduce.UnitState(u.Status).Ended()
}
