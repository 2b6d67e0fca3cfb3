package lifecycle

import (
	"bytes"
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A direct unit takes all documents of a job. It is staged with those that are
// text already; if workers have to turn others into text first, it is known only
// then whether all of them fit. It is grown by these, or dissolved into a unit for
// each document.

// A Direct is the unit that takes all documents of a job.
type Direct struct {
	Unit       *records.Unit       // that is new
	Level      records.Level       // that it is
	Blobs      []records.BlobChunk // of its text
	Characters int64               // of documents that were parsed
}

// stagedBundle returns the unit of all documents that is staged, or nil.
func (rec LevelRecords) stagedBundle(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl) (*storagev1.Unit, error) {
	if !records.IsBundle(ctl) {
		return nil, nil
	}
	return rec.Units.Read(ctx, tx, id, mapreduce.UnitID(ctl.Levels[0].Unit))
}

// PlanDirect turns a job to mapping whose documents are parsed, with the direct
// unit alone. It may be called again, by whichever node, with the same unit.
func (l *Levels) PlanDirect(ctx context.Context, id mapreduce.JobID, epoch int64, d Direct) error {
	const most = store.TargetTxSize / store.ChunkSize
	for at := 0; at < len(d.Blobs); at += most {
		part := &records.Batch{Blobs: d.Blobs[at:min(at+most, len(d.Blobs))]}
		if _, err := l.insertBatch(ctx, id, epoch, part); err != nil {
			return err
		}
	}

	// The text is stored first: nobody must see the unit without it.
	return l.db.ChangeControl(ctx, failpoint.Map, id, func(tx store.Tx, ctl *storagev1.Ctl) (string, bool, error) {
		if ctl.Epoch != epoch || ctl.Level >= 0 || !mapreduce.JobState(ctl.State).Running() {
			return "", false, nil
		}

		staged, err := l.stagedBundle(ctx, tx, id, ctl)
		if err != nil {
			return "", false, err
		}

		if staged == nil {
			tx.Add(l.Keys.Job(id).Counter(keys.Inserted, 0, l.Node), 1)
		} else {
			l.removeStaged(tx, id, ctl, staged, d.Unit.Source.SHA256)
		}

		l.Units.Insert(tx, id, records.StoredUnit(d.Unit))
		tx.Add(l.Keys.Job(id).Counter(keys.CharactersParsed, 0, l.Node), d.Characters)

		d.Level.Units = 1
		ctl.Level, ctl.State, ctl.Levels = 0, uint32(d.Level.Phase), []*storagev1.Level{d.Level.ToStored()}
		return "level 0: all documents in one unit", true, nil
	})
}

// removeStaged removes the direct unit, which was never claimed, with its text if
// that is not the one to keep.
func (rec LevelRecords) removeStaged(tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, u *storagev1.Unit, keep []byte) {
	tx.Add(rec.Keys.Job(id).Counter(keys.UnitsWaiting, 0, rec.Node), -1)
	rec.Tenants.AddUse(tx, mapreduce.TenantID(ctl.Tenant), keys.UsedUnits, 0, -1)
	rec.Units.Dequeue(tx, id, u)
	tx.Clear(rec.Keys.Job(id).Unit(mapreduce.UnitID(u.UnitId)))
	tx.Clear(rec.Keys.Job(id).Order(u.Level, u.Index))
	if sum := u.Source.GetSha256(); !bytes.Equal(sum, keep) {
		tx.ClearRange(rec.Keys.Job(id).Blob(sum, 0, keys.MaxChunks))
	}
}

// removeDirect removes the staged direct unit, with its text unless that is to be kept.
func (rec LevelRecords) removeDirect(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, keepText bool) error {
	u, err := rec.stagedBundle(ctx, tx, id, ctl)
	if err != nil || u == nil {
		return err
	}

	var keep []byte
	if keepText {
		keep = u.Source.GetSha256()
	}

	rec.removeStaged(tx, id, ctl, u, keep)
	ctl.StagedUnits--
	return nil
}

// Insert inserts the units of documents that were submitted as text, in as many
// transactions as there are batches.
func (l *Levels) Insert(ctx context.Context, id mapreduce.JobID, epoch int64, batches []records.Batch) error {
	for i := range batches {
		if _, err := l.insertBatch(ctx, id, epoch, &batches[i]); err != nil {
			return err
		}
	}
	return nil
}
