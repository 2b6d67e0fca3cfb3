package queue

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// RetryUnits puts units that failed back into their queue. failed are entries of the list of
// failed units of one level. It stops when the records of the units are as much as a
// transaction should write, as they can have large items, and says whether it left any.
func (changes *Changes) RetryUnits(ctx context.Context, failed []store.KeyValue) (rest bool, err error) {
	ks := make([][]byte, len(failed))
	for i, kv := range failed {
		_, name, err := changes.Keys.Last(kv.Key)
		if err != nil {
			return false, err
		}
		name.Skip()
		name.Skip()
		ks[i] = changes.Keys.Job(changes.Job).Unit(mapreduce.UnitID(name.Text()))
	}

	units, err := records.ReadUnits(ctx, changes.Tx, ks) // of one level, so that none is another's reduce
	if err != nil {
		return false, err
	}

	fit := records.UnitsThatFit(units)
	for i, u := range units[:fit] {
		changes.Tx.Clear(failed[i].Key)
		if u == nil || mapreduce.UnitState(u.Status) != mapreduce.UnitFailed {
			continue
		}

		if err := ledgerOf(changes).unaccountUnit(ctx, u); err != nil {
			return false, err
		}
		if err := changes.waitAnew(ctx, u); err != nil {
			return false, err
		}
		changes.Add(keys.Failed, u.Level, -1)
		changes.addWaiting(u, 1)

		// Kills stays: a unit that was set aside is tried again in a process of its own.
		u.Failures, u.Returns, u.Parks, u.Started, u.Lasting = 0, 0, 0, false, false
		changes.Units.Enqueue(changes.Tx, changes.Job, u, keys.ClassRequeued)
		changes.Units.Set(changes.Tx, changes.Job, u)

		if err := treeOf(changes).reopenReduce(ctx, u, 0); err != nil {
			return false, err
		}
	}

	if err := changes.Tenants.CheckUse(ctx, changes.Tx, mapreduce.TenantID(changes.Ctl.Tenant), keys.UsedUnits, 0, changes.Counted(keys.UnitsWaiting)); err != nil {
		return false, err
	}

	changes.Record()
	return fit < len(units), nil
}

// waitAnew forgets that the time was over in which a unit waited: it is to have as much once more. What it waits with is
// in its journal, so it waits again for the same, and nothing that came before that is done anew.
func (changes *Changes) waitAnew(ctx context.Context, u *storagev1.Unit) error {
	if u.Woken == "" {
		return nil
	}

	key := changes.Keys.Queues(changes.Job).Woken(mapreduce.UnitID(u.UnitId))
	var call storagev1.WakeCall
	if _, err := records.Read(ctx, changes.Tx, key, &call); err != nil || !call.Over {
		return err
	}

	if u.Journal.GetEntries() > 0 {
		changes.Tx.Set(key, records.Encode(&storagev1.WakeCall{Handle: call.Handle})) // which answers nothing
		return nil
	}

	changes.Tx.Clear(key)
	u.Woken = ""
	return nil
}

// unaccountUnit takes a failed unit out of the ledger of documents and characters.
func (l ledger) unaccountUnit(ctx context.Context, u *storagev1.Unit) error {
	switch {
	case u.Level > 0:
		return nil
	case u.Level < 0:
		l.Add(keys.DocumentsFailed, 0, -1)
		l.Add(keys.BytesFailed, 0, -u.Source.GetLength())
		return nil
	}

	l.Add(keys.CharactersFailed, 0, u.Source.GetCharStart()-u.Source.GetCharEnd())
	if u.Source.GetChunks() <= 1 {
		l.Add(keys.DocumentsFailed, 0, -DocumentsOf(u))
		return nil
	}

	key := l.Keys.Job(l.Job).Tally(tallyName(u))
	tally := new(storagev1.Tally)
	if _, err := records.Read(ctx, l.Tx, key, tally); err != nil {
		return err
	}

	// Only a document whose chunks have all ended had been counted.
	if tally.Complete+tally.Failed == tally.Chunks {
		l.Add(keys.DocumentsFailed, 0, -DocumentsOf(u))
	}

	tally.Failed--
	l.Tx.Set(key, records.Encode(tally))
	return nil
}
