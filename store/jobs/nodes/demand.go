package nodes

import (
	"context"
	"math"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A Demand says how many units of a job run and how many more could.
type Demand struct {
	Running int64 // held by workers
	Ready   int64 // in the queue; at most as many as were asked for
	// Paid is how many of the waiting units the tokens pay for that are left of the job's
	// budget, at what the first of them is estimated to need; math.MaxInt64 without a budget.
	Paid int64
}

// countedAtOnce is how many entries of a queue one read returns.
const countedAtOnce = 1000

// Waiting counts the units of a job that run, and up to most of those that wait in its
// queue. It reads one snapshot and changes nothing. A job that may not run has none.
func (st *Grants) Waiting(ctx context.Context, id mapreduce.JobID, most int64) (w Demand, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		r := tx.Snapshot()
		// Without a budget nothing bounds what is paid for.
		w = Demand{Paid: math.MaxInt64}
		ctl, err := st.Jobs.Control(ctx, r, id)
		if err != nil || !mapreduce.JobState(ctl.State).Running() {
			return err
		}

		c, err := st.Jobs.Counters(ctx, r, id)
		if err != nil {
			return err
		}
		w.Running = max(0, c.SumLevels(keys.Running))

		first, err := st.countReady(ctx, r, id, most, &w.Ready)
		if err != nil || ctl.Budget == 0 || w.Ready == 0 {
			return err
		}
		w.Paid, err = st.paidUnits(ctx, r, id, ctl, c, first)
		return err
	})
	return w, err
}

// countReady counts up to most entries of a job's queue, and returns the first unit.
func (st *Grants) countReady(ctx context.Context, r store.Reader, id mapreduce.JobID, most int64, n *int64) (first mapreduce.UnitID, err error) {
	rest := st.Keys.Queues(id).AllReady()
	for *n < most {
		pairs, more, err := r.GetRange(ctx, rest, store.RangeOptions{Limit: int(min(most-*n, countedAtOnce))})
		if err != nil {
			return "", err
		}
		if *n == 0 && len(pairs) > 0 {
			first = mapreduce.UnitID(pairs[0].Value)
		}

		*n += int64(len(pairs))
		if !more || len(pairs) == 0 {
			break
		}
		rest.Begin = append(pairs[len(pairs)-1].Key, 0)
	}

	return first, nil
}

// paidUnits returns how many units like the given one the rest of a job's budget pays for.
func (st *Grants) paidUnits(ctx context.Context, r store.Reader, id mapreduce.JobID, ctl *storagev1.Ctl, c records.Counters, first mapreduce.UnitID) (int64, error) {
	left := spendableTokens(ctl)
	for _, name := range records.BudgetCounters(records.CurrencyOf(ctl)) {
		left -= c.SumLevels(name)
	}
	if left <= 0 {
		return 0, nil
	}

	u, err := st.Units.Read(ctx, r, id, first)
	if err != nil || u.GetEstimate() <= 0 {
		return math.MaxInt64, err
	}

	return left / u.Estimate, nil
}
