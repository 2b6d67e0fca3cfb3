package servertest

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// tenants are what the tenants of a Service have beside their jobs: answers of models, and
// certificates. In the zero tenants each has all of it.
type tenants struct {
	mu      sync.Mutex                  // guards the variables below
	forgot  map[mapreduce.TenantID]bool // whose answers were
	dropped map[mapreduce.TenantID]bool // whose certificate was
}

// AnswerCache implements mapreduce.Service. A tenant has an answer for each letter
// of its name, until they are forgotten.
func (ts *tenants) AnswerCache(ctx context.Context, _ mapreduce.Principal, t mapreduce.TenantID, forget bool) (*mapreduce.AnswerCache, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()

	c := &mapreduce.AnswerCache{MaxBytes: 1 << 20, MaxAge: time.Hour}
	if !ts.forgot[t] {
		c.Answers, c.Bytes, c.Oldest = int64(len(t)), 10*int64(len(t)), time.Unix(1_700_000_000, 0).UTC()
	}

	if forget {
		if ts.forgot == nil {
			ts.forgot = make(map[mapreduce.TenantID]bool)
		}
		ts.forgot[t] = true
	}
	return c, ctx.Err()
}

// SumCosts implements mapreduce.Service. One call was made, of what the query is about.
func (ts *tenants) SumCosts(ctx context.Context, _ mapreduce.Principal, q mapreduce.CostQuery) (*mapreduce.CostSums, error) {
	spent := mapreduce.Charge{Calls: 1, Tokens: mapreduce.Tokens{In: 20, Out: 3}, CostMicros: 45, Unpriced: 6}
	row := mapreduce.CostRow{Charge: spent}
	for _, d := range q.By {
		row.Group = append(row.Group, string(d)+" of "+string(q.Tenant))
	}
	return &mapreduce.CostSums{Rows: []mapreduce.CostRow{row}, Sum: spent}, ctx.Err()
}

// ListCertificates implements mapreduce.Service. Each tenant has one, until it is dropped.
func (ts *tenants) ListCertificates(ctx context.Context, _ mapreduce.Principal, t mapreduce.TenantID) ([]mapreduce.Certificate, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.dropped[t] {
		return nil, ctx.Err()
	}
	return []mapreduce.Certificate{{
		ID: mapreduce.CertificateID(strings.Repeat("c", 32)), Kind: "bills", Member: "rules", Oracle: "scripted/m", Target: 0.9, Confidence: 0.95, Schema: "ab",
		Job: "mr_20260101_a1b2c3", Made: time.Unix(1_700_000_000, 0).UTC(), Seed: 7, Units: 300, Labels: 40, Uses: 2, Used: time.Unix(1_700_000_100, 0).UTC(),
		Measures: []mapreduce.CertificateMeasure{{Field: "total", Floor: 0.5, Labels: 39, Right: 38, AuditLabels: 20, AuditedRight: 19}},
	}}, ctx.Err()
}

// DropCertificate implements mapreduce.Service.
func (ts *tenants) DropCertificate(ctx context.Context, by mapreduce.Principal, t mapreduce.TenantID, id mapreduce.CertificateID) error {
	list, err := ts.ListCertificates(ctx, by, t)
	if err != nil {
		return err
	}
	if len(list) == 0 || list[0].ID != id {
		return errs.New(errs.NotFound, "there is no certificate %q", id)
	}

	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.dropped == nil {
		ts.dropped = make(map[mapreduce.TenantID]bool)
	}
	ts.dropped[t] = true
	return ctx.Err()
}
