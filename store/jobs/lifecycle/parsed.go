package lifecycle

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A DocumentUnits returns the units of the document of a parse unit that is complete,
// none if the document has no text. It returns the same for the same unit, always.
type DocumentUnits func(ctx context.Context, u *records.Unit) ([]records.Batch, error)

// InsertParsed inserts the units of parsed documents, in the order of their parse units,
// until all are there.
func (l *Levels) InsertParsed(ctx context.Context, id mapreduce.JobID, epoch int64, units DocumentUnits) error {
	cursor := int64(0)
	for {
		parsed, err := l.db.OrderPage(ctx, id, -1, cursor, parsePage)
		if err != nil {
			return err
		}

		for _, u := range parsed {
			if _, err := l.insertDocument(ctx, id, epoch, u, units); err != nil {
				return err
			}
			cursor = u.Index + 1
		}

		if len(parsed) == 0 {
			return nil
		}
	}
}

// parsePage is how many parse units are read at once, and parseReach how far behind the
// first that has not ended InsertReady looks for others that have.
const (
	parsePage  = 64
	parseReach = 256
)

// Inserted is how far the units of a job's documents are inserted while other documents are
// still being parsed. Its zero value is of a job of which nothing is known. It only saves
// reads: a document whose units are there gets no others.
type Inserted struct {
	epoch int64          // of the job, to which the rest applies
	next  int64          // parse units with lower indexes need no more looks
	done  map[int64]bool // nor do these
}

// InsertReady inserts the units of documents that are parsed by now, and returns where they
// wait. It does not look far behind a document whose parsing takes its time.
func (l *Levels) InsertReady(ctx context.Context, id mapreduce.JobID, epoch int64, p *Inserted, units DocumentUnits) (waiting []records.Candidate, err error) {
	if p.epoch != epoch || p.done == nil {
		*p = Inserted{epoch: epoch, done: make(map[int64]bool)}
	}

	cursor, inRow := p.next, true
	for looked := 0; looked < parseReach; {
		parsed, err := l.db.OrderPage(ctx, id, -1, cursor, parsePage)
		if err != nil || len(parsed) == 0 {
			return waiting, err
		}

		for _, u := range parsed {
			cursor = u.Index + 1
			ended := p.done[u.Index] || mapreduce.UnitState(u.Status).Ended()
			// The bound counts from the first document that is not parsed yet.
			if inRow = inRow && ended; !inRow {
				looked++
			}

			if !ended {
				continue
			}
			if !p.done[u.Index] {
				found, err := l.insertDocument(ctx, id, epoch, u, units)
				waiting = append(waiting, found...)
				if err != nil {
					return waiting, err
				}
			}

			p.note(u.Index, inRow)
		}
	}

	return waiting, nil
}

// note notes that the units of the document of a parse unit are inserted. inRow says that
// those of all before it are.
func (p *Inserted) note(index int64, inRow bool) {
	if !inRow {
		p.done[index] = true
		return
	}
	delete(p.done, index)
	p.next = index + 1
}

// insertDocument inserts the units of the document of a parse unit, and returns where those
// wait that were not there.
func (l *Levels) insertDocument(ctx context.Context, id mapreduce.JobID, epoch int64, u *storagev1.Unit, units DocumentUnits) (waiting []records.Candidate, err error) {
	if mapreduce.UnitState(u.Status) != mapreduce.UnitComplete {
		return nil, nil
	}

	// An earlier call, or one of another node, may have been here.
	if there, err := l.isInserted(ctx, id, keys.Document(u.Index)); err != nil || there {
		return nil, err
	}

	batches, err := units(ctx, records.UnitFrom(u))
	if err != nil {
		return nil, err
	}

	for i := range batches {
		found, err := l.insertBatch(ctx, id, epoch, &batches[i])
		if err != nil {
			return waiting, err
		}
		waiting = append(waiting, found...)
	}

	return waiting, nil
}

// isInserted reports whether all units of the n-th document are there. They come in order,
// so the last one decides.
func (l *Levels) isInserted(ctx context.Context, id mapreduce.JobID, n int64) (there bool, err error) {
	of := store.Range{Begin: l.Keys.Job(id).Order(0, keys.MapIndex(n, 0)), End: l.Keys.Job(id).Order(0, keys.MapIndex(n+1, 0))}

	err = l.db.View(ctx, func(tx store.Tx) error {
		there = false
		pairs, _, err := tx.Snapshot().GetRange(ctx, of, store.RangeOptions{Limit: 1, Reverse: true})
		if err != nil || len(pairs) == 0 {
			return err
		}

		u, err := l.Units.Read(ctx, tx.Snapshot(), id, mapreduce.UnitID(pairs[0].Value))
		there = u != nil && u.Source != nil && u.Source.ChunkIndex+1 >= u.Source.Chunks && u.Source.Documents == 0
		return err
	})

	return there, err
}

// insertBatch inserts units, and returns where those wait that were not there.
func (l *Levels) insertBatch(ctx context.Context, id mapreduce.JobID, epoch int64, b *records.Batch) (waiting []records.Candidate, err error) {
	units := records.StoredUnits(b.Units)
	err = l.db.Update(ctx, failpoint.Insert, func(tx store.Tx) error {
		// An earlier run of the transaction may have filled it.
		waiting = waiting[:0]
		ctl, err := l.Jobs.Control(ctx, tx, id)
		if err != nil || ctl.Epoch != epoch {
			return err
		}

		for _, c := range b.Blobs {
			tx.Set(l.Keys.Job(id).BlobChunk(c.SHA256, c.Index), c.Data)
		}

		ks := make([][]byte, len(units))
		for i, u := range units {
			ks[i] = l.Keys.Job(id).Unit(mapreduce.UnitID(u.UnitId))
		}
		old, err := records.ReadPresent(ctx, tx, ks)
		if err != nil {
			return err
		}

		for i, u := range units {
			if old == nil || old[i] == nil { // else inserted before: by an earlier run, or before a resume
				if i == 0 {
					tx.Add(l.Keys.Job(id).Counter(keys.CharactersParsed, 0, l.Node), -b.Known)
				}
				l.Units.Insert(tx, id, u)
				waiting = append(waiting, *records.CandidateOf(u))
				tx.Add(l.Keys.Job(id).Counter(keys.Inserted, 0, l.Node), 1)
				if b.Counted {
					continue
				}
				tx.Add(l.Keys.Job(id).Counter(keys.CharactersParsed, 0, l.Node), u.Source.GetCharEnd()-u.Source.GetCharStart())
			}
		}

		return nil
	})
	return waiting, err
}
