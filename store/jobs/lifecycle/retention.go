package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// An Expired is a job whose time is over.
type Expired struct {
	Job    mapreduce.JobID
	Tenant mapreduce.TenantID
	Rule   string // that it has outlived, for people

	ended int64 // when it did, in microseconds since 1970
}

// expiredAtOnce is how many jobs Expired returns of one list.
const expiredAtOnce = 400

// Expired returns jobs that ended longer ago than they are kept, some of each tenant. The
// clock of this node decides: one that is fast deletes that much too early.
func (st *Store) Expired(ctx context.Context) ([]Expired, error) {
	now := st.NowMicros()
	all, err := st.ownExpired(ctx, now)
	if err != nil {
		return nil, err
	}

	next := st.Keys.AllTenants().Ended()
	for next.Begin != nil {
		var some []Expired
		err := st.db.View(ctx, func(tx store.Tx) (err error) {
			some, next.Begin, err = st.tenantExpired(ctx, tx.Snapshot(), next, now)
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}

	return all, nil
}

// ownExpired returns jobs that asked to be kept for a time that is over.
func (st *Store) ownExpired(ctx context.Context, now int64) (all []Expired, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		all = nil

		s := tx.Snapshot()
		pairs, _, err := s.GetRange(ctx, st.Keys.Expiry().Before(now), store.RangeOptions{Limit: expiredAtOnce})
		if err != nil {
			return err
		}

		for _, kv := range pairs {
			_, rest, err := st.Keys.Last(kv.Key)
			if err != nil {
				return err
			}

			at := rest.Int()
			id, ctl := mapreduce.JobID(rest.Text()), new(storagev1.Ctl)
			found, err := records.Read(ctx, s, st.Keys.Job(id).Ctl(), ctl)
			if err != nil {
				return err
			}

			if !found || ctl.KeepMicros == 0 || ctl.EndedMicros+ctl.KeepMicros != at {
				continue // the entry is wrong, and a check says so
			}
			all = append(all, Expired{
				Job: id, Tenant: mapreduce.TenantID(ctl.Tenant), ended: ctl.EndedMicros,
				Rule: fmt.Sprintf("the job was to be kept for %v", time.Duration(ctl.KeepMicros)*time.Microsecond),
			})
		}

		return nil
	})
	return all, err
}

// tenantExpired returns jobs of the first tenant of a range of the list of ended jobs, and
// where the next tenant begins; nil if there is none.
func (rec writer) tenantExpired(ctx context.Context, r store.Reader, from store.Range, now int64) (all []Expired, next []byte, err error) {
	first, _, err := r.GetRange(ctx, from, store.RangeOptions{Limit: 1})
	if err != nil || len(first) == 0 {
		return nil, nil, err
	}

	tenant, _, _, err := rec.Keys.AllTenants().EndedAt(first[0].Key)
	if err != nil {
		return nil, nil, err
	}

	next = rec.Keys.Tenant(tenant).AfterEnded()
	keep := rec.Tenants.RuleOf(tenant).Keep
	// Without a rule its jobs stay.
	if keep <= 0 {
		return nil, next, nil
	}

	pairs, _, err := r.GetRange(ctx, rec.Keys.Tenant(tenant).EndedBefore(now-keep.Microseconds()), store.RangeOptions{Limit: expiredAtOnce})
	if err != nil {
		return nil, nil, err
	}

	for _, kv := range pairs {
		_, ended, id, err := rec.Keys.AllTenants().EndedAt(kv.Key)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, Expired{
			Job: id, Tenant: tenant, ended: ended, Rule: fmt.Sprintf("jobs of the tenant are kept for %v", keep),
		})
	}

	return all, next, nil
}

// DeleteExpired removes jobs that Expired has returned, unless they have gone on since, in
// one
// transaction: what a commit waits for, and the end of the log of their tenant, are then looked
// for once. Of jobs that are gone nothing is said.
func (st *Store) DeleteExpired(ctx context.Context, some ...Expired) error {
	return st.db.Update(ctx, failpoint.Delete, func(tx store.Tx) error {
		var removed []removal
		for _, e := range some {
			ctl, err := st.Jobs.Control(ctx, tx, e.Job)
			switch {
			case isGone(err):
				continue
			case err != nil:
				return err
			case ctl.EndedMicros != e.ended:
				continue // it has gone on since
			}
			r, err := st.settleRemoval(ctx, tx, e.Job, ctl, e.Rule)
			if err != nil {
				return err
			}
			removed = append(removed, r)
		}

		// A read has to look through all ranges that its transaction has cleared, so there
		// are none until all is read.
		for _, r := range removed {
			st.clearJob(tx, r)
		}
		return nil
	})
}

// isGone reports whether an error says that there is no such job.
func isGone(err error) bool { return errs.KindOf(err) == errs.NotFound && err != nil }
