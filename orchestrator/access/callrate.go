package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs"
)

// A CallRate holds the calls that this orchestrator may let through in the present minute,
// by tenant. It takes them from the store some at a time, so that all orchestrators
// together let no more through than the tenant may make. What one that dies had taken is
// lost until the minute is over.
type CallRate struct {
	jobs *jobs.Jobs
	now  func() time.Time

	mu      sync.Mutex // guards the variable below
	tenants map[mapreduce.TenantID]*tenantCalls
}

// tenantCalls are the calls of one tenant.
type tenantCalls struct {
	mu     sync.Mutex // held while the store is asked: guards the variables below
	minute int64
	left   int64
	spent  bool // nothing was left of the minute when the store was asked
}

// NewCallRate returns the rate of calls on a store. It has taken none yet.
func NewCallRate(j *jobs.Jobs, now func() time.Time) *CallRate {
	return &CallRate{jobs: j, now: now, tenants: make(map[mapreduce.TenantID]*tenantCalls)}
}

// AdmitCall lets a call of a tenant through, or refuses it as errs.Exhausted if the tenant has
// made as many in this minute as its quota allows.
func (r *CallRate) AdmitCall(ctx context.Context, t mapreduce.TenantID) error {
	limit := r.jobs.RuleOf(t).Quota.RequestsPerMinute
	if limit == 0 {
		return nil
	}

	c := r.of(t)
	c.mu.Lock()
	defer c.mu.Unlock()

	now := r.now()
	if minute := now.Unix() / 60; c.minute != minute {
		c.minute, c.left, c.spent = minute, 0, false
	}

	// Other calls of the tenant wait for the lock meanwhile, so that the store is asked
	// once.
	if c.left == 0 && !c.spent {
		n, err := r.jobs.Grants.TakeCalls(ctx, t, c.minute, limit)
		if err != nil {
			return err
		}
		c.left, c.spent = n, n == 0
	}

	if c.left == 0 {
		return &errs.Error{
			Kind: errs.Exhausted, Reason: mapreduce.QuotaExceeded, RetryAfter: time.Unix((c.minute+1)*60, 0).Sub(now),
			Message: fmt.Sprintf("tenant %q has a quota (requests_per_minute) of %d, and has made as many: wait for the next minute", t, limit),
		}
	}
	c.left--
	return nil
}

func (r *CallRate) of(t mapreduce.TenantID) *tenantCalls {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.tenants[t]
	if c == nil {
		c = new(tenantCalls)
		r.tenants[t] = c
	}
	return c
}
