package check

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/tuple"
)

// An indexCheck checks the indexes of the units of a job: its queues, the lists of units
// that sleep or have failed, and the order of its documents.
type indexCheck struct{ *jobCheck }

// An indexEntry is a pair of an index, and the unit that it points at.
type indexEntry struct {
	key, value []byte
	rest       tuple.Reader // behind the job
	unit       mapreduce.UnitID
	record     *storagev1.Unit // nil if there is none
}

// checkIndex checks an index of the job: every entry has a unit, which agrees with
// it. name reads the unit's id out of a pair; agrees says whether the unit
// points back.
func (k *indexCheck) checkIndex(ctx context.Context, r store.Range,
	name func(kv store.KeyValue, rest tuple.Reader) mapreduce.UnitID, agrees func(e *indexEntry) bool,
) error {
	return k.WalkRange(ctx, k.id, r, walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		ctl, err := k.Jobs.Control(ctx, l, k.id)
		if err != nil || ctl.Sweeping {
			return err // the queues of a cancelled job are cleared last
		}
		return k.checkEntries(ctx, l, page, name, agrees)
	}, nil)
}

func (k *indexCheck) checkEntries(ctx context.Context, l *walk.Look, page []store.KeyValue,
	name func(kv store.KeyValue, rest tuple.Reader) mapreduce.UnitID, agrees func(e *indexEntry) bool,
) error {
	all := make([]indexEntry, len(page))
	ks := make([][]byte, len(page))
	for i, kv := range page {
		_, rest, err := k.Keys.Last(kv.Key)
		if err != nil {
			return err
		}
		rest.Skip() // the job
		all[i] = indexEntry{key: kv.Key, value: kv.Value, rest: rest, unit: name(kv, rest)}
		ks[i] = k.Keys.Job(k.id).Unit(all[i].unit)
	}

	values, err := l.GetAll(ctx, ks)
	if err != nil {
		return err
	}

	for i, v := range values {
		e := &all[i]
		if v == nil {
			l.Find(e.key, "the entry is of unit %q, which is not there; "+deleteRemoves, e.unit)
			continue
		}

		e.record = new(storagev1.Unit)
		if records.Decode(ks[i], v, e.record) == nil && !agrees(e) {
			l.Find(e.key, "nothing uses the entry any more: unit %s is %s, attempt %d, waiting at %v; "+deleteRemoves,
				e.unit, mapreduce.UnitState(e.record.Status), e.record.Attempt, e.record.Queue)
		}
	}
	return nil
}

func unitInValue(kv store.KeyValue, _ tuple.Reader) mapreduce.UnitID {
	return mapreduce.UnitID(kv.Value)
}

func unitFirst(_ store.KeyValue, rest tuple.Reader) mapreduce.UnitID {
	return mapreduce.UnitID(rest.Text())
}

func unitSecond(_ store.KeyValue, rest tuple.Reader) mapreduce.UnitID {
	rest.Skip()
	return mapreduce.UnitID(rest.Text())
}

// waitsIn reports whether the unit waits in a queue of a class.
func (e *indexEntry) waitsIn(class uint32) bool {
	q := e.record.Queue
	return mapreduce.UnitState(e.record.Status) == mapreduce.Pending && q != nil && q.Class == class
}

func (k *indexCheck) checkQueues(ctx context.Context) error {
	return k.checkIndex(ctx, k.Keys.Queues(k.id).AllReady(), unitInValue, func(e *indexEntry) bool {
		shard, class, seq := e.rest.Int(), uint32(e.rest.Int()), e.rest.Int()
		q := e.record.Queue
		return e.rest.Done() == nil && class < keys.ClassDelayed && e.waitsIn(class) && q.Shard == shard && q.Seq == seq
	})
}

func (k *indexCheck) checkDelayed(ctx context.Context) error {
	return k.checkIndex(ctx, k.Keys.Queues(k.id).AllDelayed(), unitFirst, func(e *indexEntry) bool {
		var d storagev1.Delay
		return e.waitsIn(keys.ClassDelayed) && records.Decode(e.key, e.value, &d) == nil && d.Micros >= 0
	})
}

func (k *indexCheck) checkParked(ctx context.Context) error {
	return k.checkIndex(ctx, k.Keys.Queues(k.id).AllParked(), unitFirst, func(e *indexEntry) bool {
		var p storagev1.Parked
		return e.waitsIn(keys.ClassParked) && records.Decode(e.key, e.value, &p) == nil &&
			p.Handle != "" && p.WakeMicros >= 0 && p.Attempt == e.record.Attempt
	})
}

func (k *indexCheck) checkWoken(ctx context.Context) error {
	return k.checkIndex(ctx, k.Keys.Queues(k.id).AllWoken(), unitFirst, func(e *indexEntry) bool {
		var w storagev1.WakeCall
		state := mapreduce.UnitState(e.record.Status)
		return records.Decode(e.key, e.value, &w) == nil && w.Handle == e.record.Woken &&
			state != mapreduce.UnitComplete && state != mapreduce.UnitCancelled
	})
}

func (k *indexCheck) checkFailures(ctx context.Context) error {
	return k.checkIndex(ctx, k.Keys.Queues(k.id).AllFailed(), unitSecond, func(e *indexEntry) bool {
		return mapreduce.UnitState(e.record.Status) == mapreduce.UnitFailed && e.record.Level == e.rest.Int()
	})
}

func (k *indexCheck) checkOrder(ctx context.Context) error {
	return k.checkIndex(ctx, store.Range{
		Begin: k.Keys.Job(k.id).OrderFrom(-1, 0).Begin, End: k.Keys.Job(k.id).OrderFrom(0, 0).End,
	}, unitInValue, func(e *indexEntry) bool {
		level, index := e.rest.Int(), e.rest.Int()
		return e.record.Level == level && e.record.Index == index
	})
}

// visitHeads visits one key of each group of keys, a group being those with the same
// elements up to the last.
func (k *jobCheck) visitHeads(ctx context.Context, r store.Range, elements int, visit func(l *walk.Look, key []byte, rest tuple.Reader) error) error {
	for r.Begin != nil {
		next := []byte(nil)
		err := k.Look(ctx, k.id, func(l *walk.Look) error {
			next = nil
			at := r.Begin
			for range 50 { // values of 64 KiB
				pairs, _, err := l.GetRange(ctx, store.Range{Begin: at, End: r.End}, store.RangeOptions{Limit: 1})
				if err != nil || len(pairs) == 0 {
					next = nil
					return err
				}

				key := pairs[0].Key
				_, rest, err := k.Keys.Last(key)
				if err != nil {
					return err
				}
				rest.Skip() // the job

				if err := visit(l, key, rest); err != nil {
					return err
				}
				for range elements {
					rest.Skip()
				}
				at = append(key[:len(key)-len(rest.Rest()):len(key)-len(rest.Rest())], 0xff)
				next = at
			}
			return nil
		})
		if err != nil {
			return err
		}

		r.Begin = next
	}
	return nil
}

// checkResults finds chunks of results that belong to no attempt that may have any.
func (k *jobCheck) checkResults(ctx context.Context) error {
	return k.visitHeads(ctx, k.Keys.Outputs(k.id).AllResults(), 2, func(l *walk.Look, key []byte, rest tuple.Reader) error {
		name, attempt := mapreduce.UnitID(rest.Text()), rest.Int()
		u, err := k.Units.Read(ctx, l, k.id, name)
		if err != nil {
			return err
		}

		if u == nil {
			l.Find(key, "the chunk is of unit %q, which is not there; "+deleteRemoves, name)
			return nil
		}

		ok := attempt > 0 && attempt <= u.Attempt
		switch mapreduce.UnitState(u.Status) {
		case mapreduce.UnitComplete:
			ok = attempt == u.Result.GetAttempt() // beside a small result they are a whim of its worker
		case mapreduce.UnitFailed:
			ok = false
		}

		if !ok {
			l.Find(key, "nobody will read this chunk: it is of attempt %d, and unit %s is %s with attempt %d; "+deleteRemoves,
				attempt, name, mapreduce.UnitState(u.Status), u.Attempt)
		}
		return nil
	})
}

// maxTallied bounds the chunks of a document that are counted in one
// transaction.
const maxTallied = 20_000

// checkTallies compares the tally of each document that is cut with its chunks.
func (k *jobCheck) checkTallies(ctx context.Context) error {
	var docs []*storagev1.Tally
	return k.WalkRange(ctx, k.id, k.Keys.Job(k.id).Tallies(), store.RangeOptions{Limit: 16}, func(l *walk.Look, page []store.KeyValue) error {
		// A page that is read again begins anew.
		docs = docs[:0]
		for _, kv := range page {
			t := new(storagev1.Tally)
			if !l.Decode(kv.Key, kv.Value, t) {
				continue
			}
			docs = append(docs, t)

			_, rest, err := k.Keys.Last(kv.Key)
			if err != nil {
				return err
			}
			rest.Skip()
			if err := k.checkTally(ctx, l, kv.Key, mapreduce.DocumentID(rest.Text()), t); err != nil {
				return err
			}
		}
		return nil
	}, func() error {
		for _, t := range docs {
			k.sums.addTally(t)
		}
		return nil
	})
}

func (k *jobCheck) checkTally(ctx context.Context, l *walk.Look, key []byte, d mapreduce.DocumentID, t *storagev1.Tally) error {
	if t.Chunks > maxTallied {
		return nil // it is in the sums
	}

	complete, failed := int64(0), int64(0)
	for at := int64(0); at < t.Chunks; at += walk.Page {
		var ks [][]byte
		for i := at; i < min(t.Chunks, at+walk.Page); i++ {
			ks = append(ks, k.Keys.Job(k.id).Unit(queue.TalliedUnit(t, d, i)))
		}

		values, err := l.GetAll(ctx, ks)
		if err != nil {
			return err
		}

		for i, v := range values {
			u := new(storagev1.Unit)
			if v == nil || records.Decode(ks[i], v, u) != nil {
				continue
			}
			switch mapreduce.UnitState(u.Status) {
			case mapreduce.UnitComplete:
				complete++
			case mapreduce.UnitFailed:
				failed++
			}
		}
	}

	if complete != t.Complete || failed != t.Failed {
		l.Find(key, "the tally of document %q says %d chunks complete and %d failed, its units %d and %d",
			d, t.Complete, t.Failed, complete, failed)
	}
	return nil
}

// countSkipped counts the documents that were left out.
func (k *jobCheck) countSkipped(ctx context.Context) error {
	total, part := int64(0), int64(0)
	err := k.WalkRange(ctx, k.id, k.Keys.Job(k.id).SkippedDocuments(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		part = int64(len(page))
		for _, kv := range page {
			l.Decode(kv.Key, kv.Value, new(storagev1.Skipped))
		}
		return nil
	}, func() error {
		total += part
		part = 0
		return nil
	})

	want := k.before.rec.SkippedDocuments
	for at, n := range k.before.stripes {
		if at.Name == keys.DocumentsSkipped {
			want += n
		}
	}
	if err != nil || total == want || total > want && !k.before.isFinished() { // a document was skipped meanwhile
		return err
	}

	return k.Look(ctx, k.id, func(l *walk.Look) error {
		l.Find(k.Keys.Job(k.id).Record(), "%d documents are listed as skipped, the record and the counter say %d", total, want)
		return nil
	})
}

// checkPlans checks the cursors of planning.
func (k *jobCheck) checkPlans(ctx context.Context) error {
	return k.WalkRange(ctx, k.id, k.Keys.Plans(k.id).Cursors(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		ctl, err := k.Jobs.Control(ctx, l, k.id)
		if err != nil {
			return err
		}

		for _, kv := range page {
			var p storagev1.Plan
			if !l.Decode(kv.Key, kv.Value, &p) {
				continue
			}

			level := records.CountLevels(ctl)
			if p.Level != level && len(p.Levels) == 0 || string(kv.Key) != string(k.Keys.Plans(k.id).Cursor(level)) || p.Planned >= p.Plan.GetUnits() {
				l.Find(kv.Key, "the cursor is at %d of %d units of level %d, and %d levels are planned; "+deleteRemoves,
					p.Planned, p.Plan.GetUnits(), p.Level, level)
			}
		}
		return nil
	}, nil)
}

// checkGrants compares what nodes were granted with what there is.
func (k *jobCheck) checkGrants(ctx context.Context) error {
	return k.Look(ctx, k.id, func(l *walk.Look) error {
		ctl, err := k.Jobs.Control(ctx, l, k.id)
		if err != nil {
			return err
		}

		rec := new(storagev1.Job)
		if _, err := l.Load(ctx, k.Keys.Job(k.id).Record(), rec); err != nil {
			return err
		}

		pairs, _, err := l.GetRange(ctx, k.Keys.Nodes().Grants(mapreduce.JobScope(k.id)), store.RangeOptions{})
		if err != nil {
			return err
		}

		tokens, slots := int64(0), int64(0)
		for _, kv := range pairs {
			var g storagev1.Grant
			if !l.Decode(kv.Key, kv.Value, &g) {
				continue
			}

			if g.Tokens < 0 || g.Slots < 0 {
				l.Find(kv.Key, "%d tokens and %d slots are granted: neither can be negative", g.Tokens, g.Slots)
			}

			tokens += g.Tokens
			slots += g.Slots
		}

		// The sum is compared with the budget at the end, if nothing has moved.
		k.sums.granted = tokens
		if p := rec.Config.GetParallelism(); p > 0 && slots > p {
			l.Find(k.Keys.Nodes().Grants(mapreduce.JobScope(k.id)).Begin, "%d slots are granted, of %d", slots, p)
		}
		if ctl.Budget == 0 && tokens > 0 {
			l.Find(k.Keys.Nodes().Grants(mapreduce.JobScope(k.id)).Begin, "%d tokens are granted, and no budget is set", tokens)
		}
		return nil
	})
}
