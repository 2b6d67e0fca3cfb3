package tenants

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
)

// checkEnded checks that every job in the lists of those that have ended has.
func (c *checker) checkEnded(ctx context.Context) error {
	err := c.WalkRange(ctx, "", c.Keys.AllTenants().Ended(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			t, ended, id, err := c.Keys.AllTenants().EndedAt(kv.Key)
			if err != nil {
				return err
			}

			ctl := new(storagev1.Ctl)
			found, err := l.Load(ctx, c.Keys.Job(id).Ctl(), ctl)
			if err != nil {
				return err
			}

			if l.Job = id; !found || ctl.EndedMicros != ended || ctl.Tenant != string(t) {
				l.Find(kv.Key, "the list has a job of tenant %q that ended at that time, and it is not there; nothing but the deletion of old jobs reads the entry, and passes over it", t)
			}
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}

	// Some jobs are kept until a time of their own.
	return c.WalkRange(ctx, "", c.Keys.Expiry().All(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			_, rest, err := c.Keys.Last(kv.Key)
			if err != nil {
				return err
			}

			at, id := rest.Int(), mapreduce.JobID(rest.Text())
			ctl := new(storagev1.Ctl)
			found, err := l.Load(ctx, c.Keys.Job(id).Ctl(), ctl)
			if err != nil {
				return err
			}

			l.Job = id
			switch {
			case !found:
				l.Find(kv.Key, "the list has a job that is kept until that time, and it is not there; nothing but the deletion of old jobs reads the entry, and passes over it")
			case ctl.EndedMicros+ctl.KeepMicros != at || ctl.KeepMicros == 0:
				l.Find(kv.Key, "the job is listed as one that is kept until that time, and is not; nothing but the deletion of old jobs reads the entry, and passes over it")
			}
		}
		return nil
	}, nil)
}

// checkLogs checks the chains of the logs of all tenants.
func (c *checker) checkLogs(ctx context.Context) error {
	seen := make(map[mapreduce.TenantID]bool)
	next := c.Keys.AllTenants().Logs()
	for {
		var tenant mapreduce.TenantID
		var found bool

		err := c.db.View(ctx, func(tx store.Tx) error {
			pairs, _, err := tx.Snapshot().GetRange(ctx, next, store.RangeOptions{Limit: 1})
			if found = len(pairs) > 0; err != nil || !found {
				return err
			}
			tenant, _, err = c.Keys.AllTenants().LogAt(pairs[0].Key)
			return err
		})

		// A log that comes again would be visited for ever.
		if err != nil || !found || seen[tenant] {
			return err
		}

		seen[tenant] = true
		next.Begin = c.Keys.Tenant(tenant).Log().End

		if err := c.audit.VerifyLog(ctx, tenant); err != nil {
			if err := c.Emit(mapreduce.Finding{Severity: mapreduce.Wrong, Key: walk.KeyName(c.Keys.Tenant(tenant).LogEntry(1)), Message: err.Error()}); err != nil {
				return err
			}
		}
	}
}
