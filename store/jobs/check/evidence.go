package check

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// checkEvidence checks that a unit which has evidence may have it, and that its items and
// their texts are those that were stored.
func (k *dataCheck) checkEvidence(ctx context.Context, u *storagev1.Unit) error {
	if u.Evidence == nil {
		return nil
	}

	unit := records.UnitFrom(u)
	items, err := k.content.ReadEvidence(ctx, k.id, unit)
	if err != nil {
		return err
	}

	say := faultOfEvidence(u, items)
	for i, raw := range items {
		e := new(storagev1.Evidence)
		if say != "" || proto.Unmarshal(raw, e) != nil {
			break
		}
		if err := k.checkHash(ctx, u, k.Keys.Outputs(k.id).EvidenceText(unit.ID, int64(i)), e.Bytes, e.Sha256, "text"); err != nil {
			return err
		}
	}

	return k.viewUnchanged(ctx, u, func(l *walk.Look) error {
		if now, err := k.Units.Read(ctx, l, k.id, unit.ID); err != nil || !proto.Equal(now.GetEvidence(), u.Evidence) {
			return err // there is more of it now
		}

		if say != "" {
			l.Find(k.Keys.Job(k.id).Unit(unit.ID), "the evidence of unit %s: %s", u.UnitId, say)
		}
		if u.Evidence.Next != nil {
			return nil // a part of the next is there
		}

		pairs, _, err := l.GetRange(ctx, k.Keys.Outputs(k.id).EvidenceFrom(unit.ID, u.Evidence.Items), store.RangeOptions{Limit: 1})
		if err == nil && len(pairs) > 0 {
			l.Find(pairs[0].Key, "unit %s has %d items of evidence, and this is of another; "+deleteRemoves, u.UnitId, u.Evidence.Items)
		}
		return err
	})
}

// faultOfEvidence returns what is wrong with the items of the evidence of u, or "".
func faultOfEvidence(u *storagev1.Unit, items [][]byte) string {
	if !content.WholeEvidence(records.UnitFrom(u).Evidence, items) {
		return "its items are not those that were stored: one is missing, or the hash over them differs; delete the job and submit it again"
	}

	state := mapreduce.UnitState(u.Status)
	if state == mapreduce.UnitCancelled || state == mapreduce.Blocked || state.Ended() && u.Evidence.Next != nil {
		return "the unit is " + state.String() + ", and should have none any more, or none of which a part is stored"
	}

	size := int64(0)
	for i, raw := range items {
		stored := new(storagev1.Evidence)
		if proto.Unmarshal(raw, stored) != nil {
			return fmt.Sprintf("item %d cannot be decoded", i)
		}
		e := records.EvidenceFrom(stored)
		if err := e.Check(); err != nil {
			return fmt.Sprintf("item %d: %v", i, err)
		}
		size += e.Bytes
	}

	if size != u.Evidence.Bytes {
		return "the record counts other bytes than its items have"
	}
	return ""
}
