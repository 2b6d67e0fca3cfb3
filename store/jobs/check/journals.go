package check

import (
	"context"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// checkJournal checks that a unit which has a journal may have it, and that its
// entries are those that were stored, in their order.
func (k *dataCheck) checkJournal(ctx context.Context, u *storagev1.Unit) error {
	if u.Journal == nil {
		return nil
	}
	entries, err := k.content.ReadJournal(ctx, k.id, records.UnitFrom(u))
	if err != nil {
		return err
	}

	say := faultOfJournal(u, entries)
	return k.Look(ctx, k.id, func(l *walk.Look) error {
		now, err := k.Units.Read(ctx, l, k.id, mapreduce.UnitID(u.UnitId))
		if err != nil || now.GetJournal() == nil || now.Attempt != u.Attempt || now.Status != u.Status {
			return err // it has moved on
		}

		all := k.Keys.Outputs(k.id).JournalEntries(mapreduce.UnitID(u.UnitId), now.Journal.Entries, math.MaxInt64)
		pairs, _, err := l.GetRange(ctx, all, store.RangeOptions{Limit: 1})
		if err != nil {
			return err
		}

		if len(pairs) > 0 {
			l.Find(pairs[0].Key, "the journal of unit %s has %d entries, and this is another; "+deleteRemoves, u.UnitId, now.Journal.Entries)
		}
		if say != "" {
			l.Find(k.Keys.Job(k.id).Unit(mapreduce.UnitID(u.UnitId)), "the journal of unit %s: %s", u.UnitId, say)
		}
		return nil
	})
}

// faultOfJournal returns what is wrong with the journal of u, or "".
func faultOfJournal(u *storagev1.Unit, entries [][]byte) string {
	if !content.WholeJournal(records.UnitFrom(u).Journal, entries) {
		return "its entries are not those that were stored: one is missing, or the hash over them differs; delete the job and submit it again"
	}

	state := mapreduce.UnitState(u.Status)
	if state == mapreduce.UnitCancelled || state == mapreduce.Blocked || state == mapreduce.UnitComplete && !u.Journal.Kept {
		return "the unit is " + state.String() + ", and should have none any more"
	}

	size, attempt := int64(0), int64(1)
	for _, raw := range entries {
		var e storagev1.JournalEntry
		if proto.Unmarshal(raw, &e) != nil || e.Key == "" || e.Attempt < attempt || e.Attempt > u.Attempt {
			return "an entry cannot be decoded, or is of an attempt that comes before that of the entry before, or has not been made"
		}
		attempt = e.Attempt
		size += int64(len(raw))
	}

	if size != u.Journal.Bytes {
		return "the record counts other bytes than its entries have"
	}
	return ""
}
