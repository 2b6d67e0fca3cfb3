package view

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// Use returns what a tenant uses of each thing that a quota can bound.
func (st *Store) Use(ctx context.Context, t mapreduce.TenantID) (use *mapreduce.TenantUse, err error) {
	rule := st.Tenants.RuleOf(t)
	limits := []struct {
		name  string
		what  keys.Used
		limit int64
	}{
		{"jobs", keys.UsedJobs, rule.Quota.Jobs},
		{"unended_jobs", keys.UsedUnended, rule.Quota.UnendedJobs},
		{"waiting_units", keys.UsedUnits, rule.Quota.WaitingUnits},
		{"stored_bytes", keys.UsedBytes, rule.Quota.StoredBytes},
		{"tokens_per_day", keys.UsedTokens, rule.Quota.TokensPerDay},
		{"calls", keys.UsedCalls, rule.Quota.Calls},
	}

	err = st.db.View(ctx, func(tx store.Tx) error {
		use = &mapreduce.TenantUse{Tenant: t, Keep: rule.Keep}
		for _, l := range limits {
			day := int64(0)
			// Tokens alone are counted by the day.
			if l.what == keys.UsedTokens {
				day = st.Tenants.Today()
			}

			v, err := tx.Snapshot().Get(ctx, st.Keys.Tenant(t).Use(l.what, day))
			if err != nil {
				return err
			}
			use.Quotas = append(use.Quotas, mapreduce.QuotaUse{Name: l.name, Used: max(0, records.DecodeCount(v)), Limit: l.limit})
		}

		var rate storagev1.Rate
		if _, err := records.Read(ctx, tx.Snapshot(), st.Keys.Tenant(t).Rate(), &rate); err != nil {
			return err
		}

		requests := mapreduce.QuotaUse{Name: "requests_per_minute", Limit: rule.Quota.RequestsPerMinute}
		if rate.Minute == st.NowMicros()/time.Minute.Microseconds() {
			requests.Used = rate.Calls
		}

		use.Quotas = append(use.Quotas, requests)
		return nil
	})
	return use, err
}
