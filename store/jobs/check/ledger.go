package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// checkLedger walks the checkpoints, the latest first, and checks that the result of
// each completion that still counts is there, with the hash that was recorded.
func (k *jobCheck) checkLedger(ctx context.Context) error {
	w := &ledgerWalk{jobCheck: k, keep: 1 << 62}
	err := w.run(ctx, func(o *storagev1.Outcome, times int) { k.sums.recorded.put(o.Unit, o.Attempt, times) })
	k.sums.decided = w.decided
	return err
}

// A ledgerWalk goes back through the checkpoints of a job. A resume dropped the
// units of the levels above the one it went on from: what was recorded of them
// before counts no more.
type ledgerWalk struct {
	*jobCheck
	keep  int64 // units of levels up to this one were not dropped later
	quiet bool  // says nothing

	decided decisionSum // of the events of decisions
}

func (w *ledgerWalk) run(ctx context.Context, counts func(o *storagev1.Outcome, times int)) error {
	var good, reopened []*storagev1.Outcome
	keep, read, resumes := w.keep, int64(0), false
	var decided decisionSum

	o := walk.PageOptions()
	o.Reverse = true
	return w.WalkRange(ctx, w.id, w.Keys.Job(w.id).Checkpoints(), o, func(l *walk.Look, page []store.KeyValue) error {
		good, reopened, keep, read, resumes = good[:0], reopened[:0], w.keep, int64(len(page)), false
		decided = decisionSum{}

		for _, kv := range page {
			c := new(storagev1.Checkpoint)
			if !l.Decode(kv.Key, kv.Value, c) {
				continue
			}
			if mapreduce.EventKind(c.Kind) == mapreduce.EventState && c.Message == records.Resumed {
				resumes = true
				keep = min(keep, lifecycle.LastKept(w.before.ctl, c.Level)) // a tree that was planned at once was not dropped
			}

			if mapreduce.EventKind(c.Kind) == mapreduce.EventDecided {
				decided.add(c.Decided)
			}

			for _, again := range c.ReopenedUnits {
				if again.Level <= keep {
					reopened = append(reopened, again)
				}
			}

			for _, done := range c.CompletedUnits {
				if done.Level <= keep {
					good = append(good, done)
				}
			}
		}

		if w.quiet {
			l.Forget()
			return nil
		}
		return w.checkOutcomes(ctx, l, good, resumes)
	}, func() error {
		// The page was read whole, so now it counts.
		w.keep = keep
		w.decided.join(decided)
		if !w.quiet {
			w.sums.checkpoints += read
			w.sums.resumed = w.sums.resumed || resumes
		}

		for _, done := range good {
			counts(done, 1)
		}
		for _, again := range reopened {
			counts(again, -1)
		}
		return nil
	})
}

func (w *ledgerWalk) checkOutcomes(ctx context.Context, l *walk.Look, done []*storagev1.Outcome, resumes bool) error {
	raw, err := l.Get(ctx, w.Keys.Job(w.id).Ctl())
	if err != nil || !bytes.Equal(raw, w.before.raw) {
		return err // a resume may be dropping units
	}
	if w.before.ctl.Resuming {
		return nil // and has not said so in the ledger yet
	}

	ks := make([][]byte, len(done))
	for i, o := range done {
		ks[i] = w.Keys.Job(w.id).Unit(mapreduce.UnitID(o.Unit))
	}
	values, err := l.GetAll(ctx, ks)
	if err != nil {
		return err
	}

	for i, o := range done {
		u := new(storagev1.Unit)
		if values[i] != nil && records.Decode(ks[i], values[i], u) != nil {
			continue // found before
		}
		if o.Level <= w.before.ctl.TreeTop && (w.sums.resumed || resumes) && o.Level > 0 && u.Attempt >= o.Attempt {
			continue // it may have been reopened since: the sums tell
		}

		if mapreduce.UnitState(u.Status) != mapreduce.UnitComplete || u.Result.GetAttempt() != o.Attempt || !bytes.Equal(u.Result.GetSha256(), o.Sha256) {
			l.Find(ks[i], "the ledger has it that unit %s was completed by attempt %d with result %x; it is %s, attempt %d, with result %x",
				o.Unit, o.Attempt, o.Sha256, mapreduce.UnitState(u.Status), u.Attempt, u.Result.GetSha256())
		}
	}
	return nil
}

// checkSeals checks the seals over the checkpoints.
func (k *jobCheck) checkSeals(ctx context.Context) error {
	err := k.audit.Verify(ctx, k.id)
	if errs.KindOf(err) == errs.DataLoss && !errors.Is(err, store.ErrCorrupt) {
		return k.Emit(mapreduce.Finding{
			Severity: mapreduce.Wrong, Job: k.id, Key: walk.KeyName(k.Keys.Job(k.id).Seals().Begin),
			Message: fmt.Sprintf("%v; compare with the chain's head printed in the job's result", err),
		})
	}
	if err != nil {
		return err
	}

	return k.Look(ctx, k.id, func(l *walk.Look) error {
		head, err := k.Jobs.LastSeal(ctx, l, k.id)
		k.sums.seals = head.GetNumber()
		return err
	})
}

// checkSubmitted compares what the job's record says of its submission with what the first
// checkpoint has of it, which the audit chain holds.
func (k *jobCheck) checkSubmitted(ctx context.Context) error {
	return k.Look(ctx, k.id, func(l *walk.Look) error {
		pairs, _, err := l.GetRange(ctx, k.Keys.Job(k.id).Checkpoints(), store.RangeOptions{Limit: 1})
		if err != nil || len(pairs) == 0 {
			return err
		}

		first := new(storagev1.Checkpoint)
		if records.Decode(pairs[0].Key, pairs[0].Value, first) != nil || len(first.Submitted) == 0 {
			return nil // found before, or of a job of before it was kept
		}

		if sum := records.SubmittedSum(k.before.rec); !bytes.Equal(sum, first.Submitted) {
			l.Find(k.Keys.Job(k.id).Record(), "the record is not that of the job which was submitted: the SHA-256 of its specification and its documents is %x, and was %x; restore it from a backup, or delete the job",
				sum, first.Submitted)
		}
		return nil
	})
}

// findUnrecorded finds units that are complete and not once in the ledger, when the
// sums say that there are some.
func (k *jobCheck) findUnrecorded(ctx context.Context) error {
	if k.before.ctl.Resuming {
		return nil
	}

	buckets := k.sums.complete.diffBuckets(k.sums.recorded, 16)
	if len(buckets) == 0 {
		return nil
	}

	times := make(map[string]int) // completions in the ledger, of those buckets
	w := &ledgerWalk{jobCheck: k, keep: 1 << 62, quiet: true}
	err := w.run(ctx, func(o *storagev1.Outcome, n int) {
		if buckets[bucketOf(o.Unit)] {
			times[o.Unit] += n
		}
	})
	if err != nil {
		return err
	}

	return k.WalkRange(ctx, k.id, k.Keys.Job(k.id).Units(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			u := new(storagev1.Unit)
			if records.Decode(kv.Key, kv.Value, u) != nil || mapreduce.UnitState(u.Status) != mapreduce.UnitComplete || !buckets[bucketOf(u.UnitId)] {
				continue
			}
			if n := times[u.UnitId]; n != 1 {
				l.Find(kv.Key, "unit %s is complete, and the ledger has %d completions of it; it has to have one", u.UnitId, n)
			}
		}
		return nil
	}, nil)
}

// A multiset is a digest of a multiset of completions, in buckets by unit: two
// with the same members are equal, and others almost never.
type multiset [1024]struct{ count, sum uint64 }

var seed = maphash.MakeSeed()

// digestOf returns what an index adds to the digest of a set of them.
func digestOf(index int64) uint64 { return maphash.Comparable(seed, index) }

func bucketOf(unit string) int { return int(maphash.String(seed, unit) % uint64(len(multiset{}))) }

func (m *multiset) put(unit string, attempt int64, times int) {
	b := &m[bucketOf(unit)]
	b.count += uint64(times) // modulo 2^64, so that -1 takes one out
	b.sum += uint64(times) * maphash.String(seed, unit+"\x00"+strconv.FormatInt(attempt, 10))
}

// diffBuckets returns buckets in which m and o differ, at most so many.
func (m *multiset) diffBuckets(o *multiset, most int) map[int]bool {
	buckets := make(map[int]bool)
	for i := range m {
		if m[i] != o[i] && len(buckets) < most {
			buckets[i] = true
		}
	}
	return buckets
}
