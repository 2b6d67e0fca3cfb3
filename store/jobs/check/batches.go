package check

import (
	"context"

	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/keys"
)

// checkBatchable checks that each unit that is listed as waiting for a batch does.
func (k *indexCheck) checkBatchable(ctx context.Context) error {
	return k.checkIndex(ctx, k.Keys.Batches(k.id).AllBatchable(), unitFirst, k.hasOpenLine)
}

// checkLines checks that each line of a batch is of a unit that waits for it.
func (k *indexCheck) checkLines(ctx context.Context) error {
	return k.checkIndex(ctx, k.Keys.Batches(k.id).AllLines(), unitInValue, k.hasOpenLine)
}

// hasOpenLine reports whether the unit of an entry has a line that is not answered, and counts it.
func (k *indexCheck) hasOpenLine(e *indexEntry) bool {
	k.sums.lines++
	return e.record.Line != nil && !e.record.Line.Answered
}

// checkBatches checks that each batch has a mark, is in a state that batches have, has as many lines as were not
// answered, and takes room of its account if its vendor may have it, and else none.
func (k *jobCheck) checkBatches(ctx context.Context) error {
	return k.WalkRange(ctx, k.id, k.Keys.Batches(k.id).All(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			b := new(storagev1.Batch)
			if !l.Decode(kv.Key, kv.Value, b) {
				continue
			}
			lines, _, err := l.GetRange(ctx, k.Keys.Batches(k.id).Lines(b.Number), store.RangeOptions{})
			if err != nil {
				return err
			}

			state := protocol.BatchState(b.State)
			if b.Mark == "" || state < protocol.BatchPlanned || state > protocol.BatchCreated || (state == protocol.BatchCreated) != (b.Id != "") {
				l.Find(kv.Key, "batch %d has the mark %q, is in state %d, and its vendor's id is %q", b.Number, b.Mark, b.State, b.Id)
			}
			if open := int64(len(lines)); open+b.Answered != b.Lines {
				l.Find(kv.Key, "batch %d has %d lines, of which %d are answered and %d are not", b.Number, b.Lines, b.Answered, open)
			}
			if err := k.checkRoom(ctx, l, kv.Key, b); err != nil {
				return err
			}
		}
		return nil
	}, nil)
}

// checkRoom checks what a batch takes of the limits of its account.
func (k *jobCheck) checkRoom(ctx context.Context, l *walk.Look, key []byte, b *storagev1.Batch) error {
	if b.Account == "" {
		return nil // it was begun where no limits are known
	}

	value, err := l.Get(ctx, k.Keys.Batches(k.id).Room(b.Account, b.Number))
	if err != nil {
		return err
	}

	if begun := protocol.BatchState(b.State) != protocol.BatchPlanned; !begun || value == nil {
		l.Find(key, "batch %d is in state %d of account %s, and it takes room there: %t", b.Number, b.State, b.Account, value != nil)
	}
	return nil
}

// checkRooms checks that what is taken of the limits of accounts is taken by batches that their vendors may have.
func (c *checker) checkRooms(ctx context.Context) error {
	return c.WalkRange(ctx, "", c.Keys.AllBatches().Rooms(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			account, id, number, err := c.Keys.AllBatches().RoomAt(kv.Key)
			if err != nil {
				l.Find(kv.Key, "this is no room of a batch; "+walk.WholeOnly)
				continue
			}

			b, orphan := new(storagev1.Batch), new(storagev1.Orphan)
			found, err := l.Load(ctx, c.Keys.Batches(id).Batch(number), b)
			if err == nil && !found {
				if found, err = l.Load(ctx, c.Keys.Batches(id).Orphan(number), orphan); found {
					b = orphan.Batch
				}
			}
			if err != nil {
				return err
			}
			if l.Job = id; !found || b.GetAccount() != account || protocol.BatchState(b.GetState()) == protocol.BatchPlanned {
				l.Find(kv.Key, "batch %d takes room of account %s, and its vendor does not have it: a server whose workers make batches gives the room back within minutes", number, account)
			}
		}
		return nil
	}, nil)
}

// compareLines holds how many units wait for a batch against the lists of those that do.
func (c *comparison) compareLines() {
	if c.before.ctl.Sweeping {
		return // the lists of a cancelled job are cleared with its units
	}

	open := int64(0)
	for at, n := range c.sums.counted {
		if at.Name == keys.LinesOpen {
			open += n
		}
	}
	if open != c.sums.lines {
		c.look.Find(c.Keys.Batches(c.id).AllBatchable().Begin, "%d units wait for a batch to answer them, and %d are listed or in one", open, c.sums.lines)
	}
}
