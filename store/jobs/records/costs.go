package records

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/coditect/mapreduce/api/label"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// What jobs spend is counted in the transactions that settle it, by additions to keys that no transaction
// reads to change them: so nothing conflicts, and nothing counts twice. The counters stay when jobs are gone.
//
//   - The counters of a tenant's tokens and cost add up to what the counters of its jobs have, and
//     to what those had that are gone.
//   - An id of labels that a counter has is that of labels that are stored.

// LabelsID returns under which id what jobs with these labels spend is counted. It is never empty.
func LabelsID(labels map[string]string) string {
	sum := sha256.Sum256([]byte(strings.Join(label.Texts(labels), "\n")))
	return hex.EncodeToString(sum[:8])
}

// SetLabels stores the labels of a job under their id, which ctl has from then on.
func (t *Tenants) SetLabels(tx store.Tx, ctl *storagev1.Ctl, labels map[string]string) {
	ctl.LabelsId = LabelsID(labels)
	key := t.keys.Costs(mapreduce.TenantID(ctl.Tenant)).Labels(ctl.LabelsId)
	tx.Set(key, Encode(&storagev1.LabelSet{Texts: label.Texts(labels)})) // the same as is there, if anything is
}

// AddCharges counts what calls of a job took, on the present day.
func (t *Tenants) AddCharges(tx store.Tx, ctl *storagev1.Ctl, charges []mapreduce.Charge) {
	if ctl.GetLabelsId() == "" {
		return
	}

	of, today := t.keys.Costs(mapreduce.TenantID(ctl.Tenant)), t.Today()
	for _, c := range charges {
		at := keys.CostAt{Day: today, Labels: ctl.LabelsId, Model: c.Model, Tier: c.Tier}
		for what, n := range spentOf(c) {
			if at.What = keys.Spent(what); n != 0 {
				tx.Add(of.Spent(at), n)
			}
		}
	}
}

// spentOf returns the numbers of a charge by what they count.
func spentOf(c mapreduce.Charge) [keys.LastSpent + 1]int64 {
	return [...]int64{
		keys.SpentCalls: c.Calls, keys.SpentIn: c.Tokens.In, keys.SpentOut: c.Tokens.Out, keys.SpentMicros: c.CostMicros, keys.SpentUnpriced: c.Unpriced,
	}
}

// AddSpent adds n of what a counter counts to a charge.
func AddSpent(c *mapreduce.Charge, what keys.Spent, n int64) {
	switch what {
	case keys.SpentCalls:
		c.Calls += n
	case keys.SpentIn:
		c.Tokens.In += n
	case keys.SpentOut:
		c.Tokens.Out += n
	case keys.SpentMicros:
		c.CostMicros += n
	case keys.SpentUnpriced:
		c.Unpriced += n
	}
}

// SpentCounters are the counters of a job that have what its tenant's counters of costs add up to.
func SpentCounters() map[keys.Spent]keys.Counter {
	return map[keys.Spent]keys.Counter{keys.SpentIn: keys.TokensIn, keys.SpentOut: keys.TokensOut, keys.SpentMicros: keys.Cost}
}

// KeepCosts notes what a job has spent that is removed in this transaction. Its counters are read before
// they are.
func (t *Tenants) KeepCosts(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl) error {
	if ctl.LabelsId == "" {
		return nil
	}

	c, err := t.jobs.Counters(ctx, tx, id)
	if err != nil {
		return err
	}
	for what, counter := range SpentCounters() {
		if n := c.SumLevels(counter); n != 0 {
			tx.Add(t.keys.Costs(mapreduce.TenantID(ctl.Tenant)).Gone(what), n)
		}
	}
	return nil
}
