package tenants

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/label"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A use is something of which a tenant uses some.
type use struct {
	tenant mapreduce.TenantID
	what   keys.Used
	day    int64
}

// spent returns as what of a tenant's use it is counted here what its jobs have spent. It is under day 0.
func spent(what keys.Spent) keys.Used { return -keys.Used(what) }

// correctionOf returns the counter that is corrected where that of u is by so much above what it counts, and what
// is added to it.
//
// What was spent is counted in the transaction that counts it in its job, so there is more of it than jobs have
// only where a job was removed by a version that does not note what it had spent: that is noted then, and what was
// spent stays. Where there is less, such a version has settled it: nobody knows when and by what, so it is put down
// to the present day, and to jobs without labels.
func (c *checker) correctionOf(u use, more int64) (key []byte, add int64) {
	costs := c.Keys.Costs(u.tenant)
	switch {
	case u.what > 0:
		return c.Keys.Tenant(u.tenant).Use(u.what, u.day), -more
	case more > 0:
		return costs.Gone(keys.Spent(-u.what)), more
	}
	return costs.Spent(keys.CostAt{Day: c.Tenants.Today(), Labels: records.LabelsID(nil), What: keys.Spent(-u.what)}), -more
}

// uses are amounts of it.
type uses map[use]int64

// recounts is how often what tenants use is counted anew until it stands still.
const recounts = 3

// checkUses compares the counters of what tenants use with what their jobs and submissions
// come to.
func (c *checker) checkUses(ctx context.Context) error {
	wrong, err := c.wrongUses(ctx)
	if err != nil {
		return err
	}

	return c.Look(ctx, "", func(l *walk.Look) error {
		for _, u := range slices.SortedFunc(maps.Keys(wrong), compareUses) {
			key, _ := c.correctionOf(u, wrong[u])
			l.Find(key, "tenant %q uses %s by the counter, which is %d more than its jobs and submissions come to; doctor --repair-counters corrects it",
				u.tenant, useName(u.what), wrong[u])
		}
		return nil
	})
}

// Repair corrects the counters of what tenants use, and calls found with each that it
// has corrected. The service may go on meanwhile.
func (st *Store) Repair(ctx context.Context, found func(mapreduce.Finding) error) error {
	c := &checker{Store: st, Walker: walk.New(st.db, found)}
	wrong, err := c.wrongUses(ctx)
	if err == nil && c.Wrongs > 0 {
		err = errs.New(errs.DataLoss, "what tenants use cannot be counted anew, for something of the store cannot be read: %w", store.ErrCorrupt)
	}

	if err != nil {
		return err
	}

	for _, u := range slices.SortedFunc(maps.Keys(wrong), compareUses) {
		key, add := c.correctionOf(u, wrong[u])
		var first *int64 // what a run before this one found, which may have committed
		err := st.db.UpdateQuietly(ctx, func(tx store.Tx) error {
			v, err := tx.Get(ctx, key)
			if err != nil {
				return err
			}

			n := records.DecodeCount(v)
			if first != nil && n == *first+add {
				return nil
			}

			first = &n
			tx.Add(key, add)
			if u.what < 0 && wrong[u] < 0 {
				c.Tenants.SetLabels(tx, &storagev1.Ctl{Tenant: string(u.tenant)}, nil)
			}
			return nil
		})
		if err != nil {
			return err
		}
		text := fmt.Sprintf("corrected by %d: what tenant %q uses: %s", add, u.tenant, useName(u.what))
		if u.what < 0 && wrong[u] > 0 {
			text = fmt.Sprintf("%d noted as spent by jobs of tenant %q that are gone: %s", add, u.tenant, spentName(keys.Spent(-u.what)))
		}
		if err := found(mapreduce.Finding{Key: walk.KeyName(key), Message: text}); err != nil {
			return err
		}
	}
	return nil
}

func compareUses(a, b use) int {
	return slices.Compare([]string{string(a.tenant), useName(a.what)}, []string{string(b.tenant), useName(b.what)})
}

func useName(what keys.Used) string {
	if what < 0 {
		return "what its jobs have spent: " + spentName(keys.Spent(-what))
	}
	names := [...]string{"", "jobs", "jobs that have not ended", "units", "bytes", "units that run", "tokens", "tokens of jobs that are gone"}
	if what < 1 || int(what) >= len(names) {
		return "an unknown thing"
	}
	return names[what]
}

func spentName(what keys.Spent) string {
	return [...]string{keys.SpentIn: "tokens of prompts", keys.SpentOut: "tokens of answers", keys.SpentMicros: "millionths of a dollar"}[what]
}

// wrongUses returns by how much counters are above what they count, those that are right
// left out. While things move it counts again, and returns nothing if they do not rest.
func (c *checker) wrongUses(ctx context.Context) (uses, error) {
	wrongs := c.Wrongs
	before, err := c.readUses(ctx)
	if err != nil {
		return nil, err
	}

	var last uses
	for range recounts {
		counted, err := c.countUses(ctx)
		if err != nil {
			return nil, err
		}

		after, err := c.readUses(ctx)
		if err != nil {
			return nil, err
		}

		if c.Wrongs > wrongs {
			return nil, nil // something cannot be read, so nothing can be compared
		}

		wrong := differUses(after, counted)
		// A job that began and ended while the jobs were walked over leaves the counters as
		// they were. The same difference twice is no chance.
		if maps.Equal(before, after) && (len(wrong) == 0 || maps.Equal(wrong, last)) {
			return wrong, nil
		}

		before, last = after, wrong
	}
	return nil, nil
}

// differUses returns by how much counters are above what was counted. Tokens are compared
// of the last day alone: those of earlier days are being forgotten.
func differUses(counters, counted uses) uses {
	last := make(map[mapreduce.TenantID]int64)
	for u := range counters {
		last[u.tenant] = max(last[u.tenant], u.day)
	}

	all := maps.Clone(counted)
	maps.Copy(all, counters)

	wrong := make(uses)
	for u := range all {
		more := counters[u] - counted[u]
		switch {
		case u.what == keys.UsedTokensDropped:
			continue
		case u.what == keys.UsedTokens && u.day != last[u.tenant]:
			continue
		case u.what == keys.UsedTokens:
			// No job accounts for these any more, and they are still used.
			more -= counters[use{u.tenant, keys.UsedTokensDropped, u.day}]
		}

		if more != 0 {
			wrong[u] = more
		}
	}
	return wrong
}

// readUses returns the counters.
func (c *checker) readUses(ctx context.Context) (uses, error) {
	all := make(uses)
	err := c.WalkRange(ctx, "", c.Keys.AllTenants().Uses(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			t, what, day, err := c.Keys.AllTenants().UseAt(kv.Key)
			if err != nil || len(kv.Value) != 8 {
				l.Find(kv.Key, "this is no counter of what a tenant uses; "+walk.WholeOnly)
				continue
			}

			all[use{t, what, day}] = records.DecodeCount(kv.Value)
		}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return all, c.readCosts(ctx, all)
}

// readCosts adds what the counters of costs come to, without what is of jobs that are gone.
func (c *checker) readCosts(ctx context.Context, all uses) error {
	of := records.SpentCounters()
	err := c.WalkRange(ctx, "", c.Keys.AllTenants().Costs(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			t, at, err := c.Keys.AllTenants().CostAt(kv.Key)
			if err != nil || len(kv.Value) != 8 {
				l.Find(kv.Key, "this is no counter of what a tenant has spent; "+walk.WholeOnly)
				continue
			}
			if _, compared := of[at.What]; compared {
				all[use{t, spent(at.What), 0}] += records.DecodeCount(kv.Value)
			}
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}

	return c.WalkRange(ctx, "", c.Keys.AllTenants().CostsGone(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			t, what, err := c.Keys.AllTenants().CostGoneAt(kv.Key)
			if _, compared := of[what]; err != nil || !compared || len(kv.Value) != 8 {
				l.Find(kv.Key, "this is no counter of what jobs had spent that are gone; "+walk.WholeOnly)
				continue
			}
			all[use{t, spent(what), 0}] -= records.DecodeCount(kv.Value)
		}
		return nil
	}, nil)
}

// checkCosts checks that the labels are there under which costs are counted.
func (c *checker) checkCosts(ctx context.Context) error {
	return c.WalkRange(ctx, "", c.Keys.AllTenants().Costs(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		seen := make(map[string]bool) // of this page
		for _, kv := range page {
			t, at, err := c.Keys.AllTenants().CostAt(kv.Key)
			if err != nil {
				continue // found above
			}

			key := c.Keys.Costs(t).Labels(at.Labels)
			if seen[string(key)] {
				continue
			}
			seen[string(key)] = true
			set := new(storagev1.LabelSet)
			found, err := l.Load(ctx, key, set)
			if err != nil {
				return err
			}
			labels, err := label.Parse(set.Texts)
			if !found || err != nil || records.LabelsID(labels) != at.Labels {
				l.Find(key, "what tenant %q has spent is counted under these labels, and they are not there: cost counts it as that of jobs without labels", t)
			}
		}
		return nil
	}, nil)
}

// countUses adds up what jobs and submissions use.
func (c *checker) countUses(ctx context.Context) (uses, error) {
	all := make(uses)
	count := func(ctx context.Context, id mapreduce.JobID) error { return c.countUse(ctx, id, all) }
	if err := c.EachJob(ctx, c.Keys.Jobs(), count); err != nil {
		return nil, err
	}
	err := c.EachJob(ctx, c.Keys.Ingests(), count)
	return all, err
}

// countUse adds what one job, or submission, uses.
func (c *checker) countUse(ctx context.Context, id mapreduce.JobID, all uses) error {
	var own uses
	err := c.db.View(ctx, func(tx store.Tx) error {
		own = make(uses)
		s := tx.Snapshot()
		var ctl storagev1.Ctl
		var in storagev1.Ingest

		isJob, err := records.Read(ctx, s, c.Keys.Job(id).Ctl(), &ctl)
		if err != nil {
			return err
		}

		tenant, used := ctl.Tenant, ctl.Use
		if !isJob {
			isSubmission, err := records.Read(ctx, s, c.Keys.Job(id).Ingest(), &in)
			if err != nil || !isSubmission {
				return err
			}
			tenant, used = in.Tenant, in.Use
		}

		counters, err := c.Jobs.Counters(ctx, s, id)
		if err != nil {
			return err
		}

		add := func(what keys.Used, day, n int64) {
			if n != 0 {
				own[use{mapreduce.TenantID(tenant), what, day}] += n
			}
		}

		if isJob || !used.GetEnded() { // a submission takes its places when it becomes a job
			add(keys.UsedJobs, 0, 1)
		}
		if !used.GetEnded() {
			add(keys.UsedUnended, 0, 1)
		}

		add(keys.UsedUnits, 0, counters.SumLevels(keys.UnitsWaiting))
		add(keys.UsedCalls, 0, counters.SumLevels(keys.Running))
		add(keys.UsedBytes, 0, used.GetBytes())
		add(keys.UsedTokens, used.GetDay(), used.GetTokens())
		if ctl.LabelsId != "" {
			for what, counter := range records.SpentCounters() {
				add(spent(what), 0, counters.SumLevels(counter))
			}
		}
		return nil
	})

	for u, n := range own {
		all[u] += n
	}
	return err
}
