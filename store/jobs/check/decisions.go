package check

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/review"
)

// A decisionSum is a digest of a set of decisions by their hashes: two of the same decisions are
// equal, and others almost never. Its memory does not grow with them.
type decisionSum struct {
	count int64
	xor   [32]byte
}

func (d *decisionSum) add(sum []byte) {
	d.count++
	for i := range min(len(sum), len(d.xor)) {
		d.xor[i] ^= sum[i]
	}
}

func (d *decisionSum) join(o decisionSum) {
	d.count += o.count
	for i := range d.xor {
		d.xor[i] ^= o.xor[i]
	}
}

// checkDecisions checks that the events of the job are of exactly the decisions about its values: so
// the audit chain holds these as well, and none was lost, added or changed.
func (k *dataCheck) checkDecisions(ctx context.Context) error {
	before, err := k.sumDecisions(ctx)
	if err != nil || k.Torn || before == k.sums.decided {
		return err // what cannot be read is found by itself
	}

	// The ledger was walked before the decisions, and there may be more by now.
	w := &ledgerWalk{jobCheck: k.jobCheck, keep: 1 << 62, quiet: true}
	if err := w.run(ctx, func(*storagev1.Outcome, int) {}); err != nil || w.decided == before {
		return err
	}

	// Somebody may have decided between the two walks.
	if after, err := k.sumDecisions(ctx); err != nil || after != before {
		return err
	}
	return k.Look(ctx, k.id, func(l *walk.Look) error {
		l.Find(k.Keys.Decisions(k.id).Prefix(), "the job has %d decisions about values, and its events are of %d, or of others: a decision was lost, added or changed; restore the store from a backup",
			before.count, w.decided.count)
		return nil
	})
}

// sumDecisions walks the decisions of the job.
func (k *dataCheck) sumDecisions(ctx context.Context) (all decisionSum, err error) {
	var page decisionSum

	err = k.WalkRange(ctx, k.id, k.Keys.Decisions(k.id).All(), walk.PageOptions(), func(l *walk.Look, pairs []store.KeyValue) error {
		page = decisionSum{}
		for _, kv := range pairs {
			at, err := k.Keys.Decisions(k.id).At(kv.Key)
			if err != nil {
				l.Find(kv.Key, "no decision has this key; "+deleteRemoves)
				continue
			}

			if d := new(storagev1.Decision); l.Decode(kv.Key, kv.Value, d) && (d.Verdict == 0 || d.Verdict > uint32(mapreduce.ReviewWithdraw)) {
				l.Find(kv.Key, "no verdict has the number %d", d.Verdict)
			}

			page.add(review.SumOf(at, kv.Value))
		}
		return nil
	}, func() error {
		all.join(page)
		return nil
	})
	return all, err
}

// checkReviewing checks who is about to review records of the job: each record is one, and somebody's for a time.
func (k *dataCheck) checkReviewing(ctx context.Context) error {
	of := k.Keys.Decisions(k.id)
	return k.WalkRange(ctx, k.id, of.AllReviewing(), walk.PageOptions(), func(l *walk.Look, pairs []store.KeyValue) error {
		for _, kv := range pairs {
			c := new(storagev1.Reviewing)
			if !l.Decode(kv.Key, kv.Value, c) {
				continue
			}
			if _, err := of.ReviewingAt(kv.Key); err != nil || c.EndMicros <= 0 {
				l.Find(kv.Key, "no record is reviewed by %q until %d", c.Principal, c.EndMicros)
			}
		}
		return nil
	}, nil)
}
