package records

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// The use of a tenant's jobs is counted in the transactions that change it, by additions
// to one key for each thing. Additions do not conflict. A transaction that uses more of
// something writes the conflict range of that thing; if there is a quota of it, the
// transaction also reads that range. So of two that use more at the same time the later
// runs again and sees the use of the other. One that uses less conflicts with nothing:
// who has not seen it sees too much in use, never too little.

// Tenants are what tenants use, and how much of it they may use. Like those of Records,
// their methods work inside a transaction that their caller began.
type Tenants struct {
	keys  *keys.Space
	node  mapreduce.NodeID
	clock *Clock
	jobs  *JobRecords
	rules func(mapreduce.TenantID) mapreduce.TenantRule // nil: no tenant has any
}

// SetRules sets where the rules of tenants come from. It must be called before anything
// else; without it no tenant has any.
func (t *Tenants) SetRules(rules func(mapreduce.TenantID) mapreduce.TenantRule) { t.rules = rules }

// RuleOf returns what is set for a tenant.
func (t *Tenants) RuleOf(tenant mapreduce.TenantID) mapreduce.TenantRule {
	if t.rules == nil {
		return mapreduce.TenantRule{}
	}
	return t.rules(tenant)
}

// quotas are the quotas by what they bound. A pause says how long a caller should wait
// before it tries again; 0 if waiting does not help.
var quotas = map[keys.Used]struct {
	name   string
	limit  func(mapreduce.Quota) int64
	pause  time.Duration
	advice string
}{
	keys.UsedJobs: {
		name: "jobs", limit: func(q mapreduce.Quota) int64 { return q.Jobs },
		advice: "delete jobs that are no longer needed",
	},
	keys.UsedUnended: {
		name: "unended_jobs", limit: func(q mapreduce.Quota) int64 { return q.UnendedJobs },
		pause: 10 * time.Second, advice: "wait until one of the jobs has ended, or cancel one",
	},
	keys.UsedUnits: {
		name: "waiting_units", limit: func(q mapreduce.Quota) int64 { return q.WaitingUnits },
		pause: 5 * time.Second, advice: "wait until units have ended",
	},
	keys.UsedBytes: {
		name: "stored_bytes", limit: func(q mapreduce.Quota) int64 { return q.StoredBytes },
		advice: "delete jobs that are no longer needed",
	},
	keys.UsedTokens: {
		name: "tokens_per_day", limit: func(q mapreduce.Quota) int64 { return q.TokensPerDay },
		advice: "set a smaller budget, or wait for the next day",
	},
}

// Day is the length of the days whose tokens are counted.
const Day = 24 * time.Hour

// Today returns the present day in UTC, counted from 1970.
func (t *Tenants) Today() int64 { return t.clock.NowMicros() / Day.Microseconds() }

// AddUse adds to what a tenant uses. Nothing is refused: see TakeUse.
func (t *Tenants) AddUse(tx store.Tx, tenant mapreduce.TenantID, what keys.Used, day, n int64) {
	if n == 0 {
		return
	}
	tx.Add(t.keys.Tenant(tenant).Use(what, day), n)
	if n > 0 {
		tx.AddWriteConflict(store.Single(t.keys.Tenant(tenant).UseDraw(what)))
	}
}

// TakeUse adds n to what a tenant uses, unless that would be more than its quota. Then it
// returns errs.Exhausted.
func (t *Tenants) TakeUse(ctx context.Context, tx store.Tx, tenant mapreduce.TenantID, what keys.Used, day, n int64) error {
	err := t.CheckUse(ctx, tx, tenant, what, day, n)
	if err == nil {
		t.AddUse(tx, tenant, what, day, n)
	}
	return err
}

// CheckUse refuses n more of something as TakeUse does. The caller adds them.
func (t *Tenants) CheckUse(ctx context.Context, tx store.Tx, tenant mapreduce.TenantID, what keys.Used, day, n int64) error {
	of := quotas[what]
	limit := of.limit(t.RuleOf(tenant).Quota)
	if n <= 0 || limit <= 0 {
		return nil
	}

	used, err := t.ReadUse(ctx, tx, tenant, what, day)
	if err != nil || used+n <= limit {
		return err
	}

	pause := of.pause
	switch {
	case n > limit:
		pause = 0 // it will never be allowed
	case what == keys.UsedTokens:
		pause = time.Duration((day+1)*Day.Microseconds()-t.clock.NowMicros()) * time.Microsecond
	}

	return &errs.Error{
		Kind: errs.Exhausted, Reason: mapreduce.QuotaExceeded, RetryAfter: pause,
		Message: fmt.Sprintf("tenant %q has a quota (%s) of %d, uses %d, and asks for %d more: %s", tenant, of.name, limit, used, n, of.advice),
	}
}

// ReadUse returns what a tenant uses. The transaction runs again if another uses more
// meanwhile.
func (t *Tenants) ReadUse(ctx context.Context, tx store.Tx, tenant mapreduce.TenantID, what keys.Used, day int64) (int64, error) {
	tx.AddReadConflict(store.Single(t.keys.Tenant(tenant).UseDraw(what)))
	v, err := tx.Snapshot().Get(ctx, t.keys.Tenant(tenant).Use(what, day))
	return DecodeCount(v), err
}

// TakeTokens takes what a budget has more than is covered from the tokens of the present
// day.
func (t *Tenants) TakeTokens(ctx context.Context, tx store.Tx, tenant mapreduce.TenantID, use *storagev1.Use, budget int64) error {
	more := budget - use.Covered
	if more <= 0 {
		return nil
	}

	today := t.Today()
	if err := t.TakeUse(ctx, tx, tenant, keys.UsedTokens, today, more); err != nil {
		return err
	}

	for _, what := range []keys.Used{keys.UsedTokens, keys.UsedTokensDropped} {
		tx.ClearRange(t.keys.Tenant(tenant).UseDays(what, 0, today-1)) // which nobody asks for any more
	}

	// The tokens of an earlier day stay used on that day.
	if use.Day != today {
		t.dropTokens(tx, tenant, use)
		use.Day, use.Tokens = today, 0
	}

	use.Tokens += more
	use.Covered = budget
	return nil
}

// dropTokens notes that no job accounts for tokens any more that stay used.
func (t *Tenants) dropTokens(tx store.Tx, tenant mapreduce.TenantID, use *storagev1.Use) {
	if use.Tokens != 0 && use.Day >= t.Today()-1 {
		tx.Add(t.keys.Tenant(tenant).Use(keys.UsedTokensDropped, use.Day), use.Tokens)
	}
	use.Tokens = 0
}

// returnTokens gives back what a job that has ended did not spend of its budget, if it was
// taken from the present day. All attempts that may yet spend count as if they had: the
// transaction runs again if one reserves more meanwhile.
func (t *Tenants) returnTokens(ctx context.Context, tx store.Tx, id mapreduce.JobID, tenant mapreduce.TenantID, use *storagev1.Use) error {
	if use.Tokens == 0 || use.Day != t.Today() {
		return nil
	}

	tx.AddReadConflict(t.keys.Draws(id))
	c, err := t.jobs.Counters(ctx, tx.Snapshot(), id)
	if err != nil {
		return err
	}

	spent := c.SumLevels(keys.TokensIn) + c.SumLevels(keys.TokensOut) + c.SumLevels(keys.Charged) + c.SumLevels(keys.Reserved)
	back := min(max(0, use.Covered-spent), use.Tokens)

	t.AddUse(tx, tenant, keys.UsedTokens, use.Day, -back)
	use.Tokens -= back
	use.Covered -= back
	return nil
}

// ChargeState brings what a job uses in line with its state: one that has ended uses less,
// and one that goes on may be refused. It also lists the job by its end, and notes that in
// ctl, which the caller writes.
func (t *Tenants) ChargeState(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl) error {
	tenant, ended := mapreduce.TenantID(ctl.Tenant), mapreduce.JobState(ctl.State).Ended()
	if ctl.Use == nil {
		ctl.Use = new(storagev1.Use)
	}

	switch use := ctl.Use; {
	case ended && !use.Ended:
		t.AddUse(tx, tenant, keys.UsedUnended, 0, -1)
		if err := t.returnTokens(ctx, tx, id, tenant, use); err != nil {
			return err
		}
		use.Ended, ctl.EndedMicros = true, ctl.UpdatedAtMicros
		t.jobs.listEnd(tx, id, ctl)
	case !ended && use.Ended:
		if err := t.TakeUse(ctx, tx, tenant, keys.UsedUnended, 0, 1); err != nil {
			return err
		}
		t.jobs.UnlistEnd(tx, id, ctl)
		use.Ended, ctl.EndedMicros = false, 0
	}

	if ended {
		return nil
	}

	// A job that goes on may have a larger budget than is covered.
	if CurrencyOf(ctl) != mapreduce.InTokens {
		return nil
	}
	return t.TakeTokens(ctx, tx, tenant, ctl.Use, ctl.Budget)
}

// ReturnUse gives back what a submission or a job uses that is removed in this transaction.
// Its counters are read before they are.
func (t *Tenants) ReturnUse(ctx context.Context, tx store.Tx, id mapreduce.JobID, tenant mapreduce.TenantID, use *storagev1.Use) error {
	c, err := t.jobs.Counters(ctx, tx, id)
	if err != nil {
		return err
	}

	t.AddUse(tx, tenant, keys.UsedJobs, 0, -1)
	// A job that has ended has given this back before.
	if !use.GetEnded() {
		t.AddUse(tx, tenant, keys.UsedUnended, 0, -1)
	}

	t.AddUse(tx, tenant, keys.UsedUnits, 0, -c.SumLevels(keys.UnitsWaiting))
	t.AddUse(tx, tenant, keys.UsedCalls, 0, -c.SumLevels(keys.Running))
	t.AddUse(tx, tenant, keys.UsedBytes, 0, -use.GetBytes())

	if use == nil {
		return nil
	}
	if !use.Ended {
		if err := t.returnTokens(ctx, tx, id, tenant, use); err != nil {
			return err
		}
	}

	t.dropTokens(tx, tenant, use)
	return nil
}
