package access_test

import (
	"errors"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/access"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

// Two orchestrators on one store let through, of a tenant's calls, what its quota allows in
// a minute, and not one more; the next minute they begin anew. Tenants without a quota, and
// others' use, do not matter.
func TestCallsOfATenantAreSharedByOrchestrators(t *testing.T) {
	const limit = 20
	at := time.Unix(1_000*60+15, 0)
	now := func() time.Time { return at }
	shared := new(memory.Store)
	rateOf := func(node mapreduce.NodeID) *access.CallRate {
		j := jobs.New(store.NewDB(shared, store.Config{}), keys.New(), node, now)
		j.SetRules(func(of mapreduce.TenantID) (rule mapreduce.TenantRule) {
			if of != "free" {
				rule.Quota.RequestsPerMinute = limit
			}
			return rule
		})
		return access.NewCallRate(j, now)
	}
	both := []*access.CallRate{rateOf("one"), rateOf("two")}

	// admitted is how many of many calls, made at each in turn, are let through.
	admitted := func(of mapreduce.TenantID) (n int, last error) {
		for i := range 4 * limit {
			err := both[i%2].AdmitCall(t.Context(), of)
			if err == nil {
				n++
			} else {
				last = err
			}
		}
		return n, last
	}

	for minute := range 2 {
		n, err := admitted("a")
		var refused *errs.Error
		if !errors.As(err, &refused) || refused.Kind != errs.Exhausted || refused.Reason != mapreduce.QuotaExceeded || refused.RetryAfter != 45*time.Second {
			t.Errorf("minute %d: a call too many got %v, want a refusal for 45 s", minute, err)
		}
		if n != limit {
			t.Errorf("minute %d: %d calls were let through, want %d", minute, n, limit)
		}
		at = at.Add(time.Minute)
	}

	if n, err := admitted("b"); n != limit {
		t.Errorf("%d calls of another tenant were let through, want %d: %v", n, limit, err)
	}
	if n, err := admitted("free"); n != 4*limit || err != nil {
		t.Errorf("%d calls of a tenant without a quota were let through, want all: %v", n, err)
	}
}
