package nodes

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// callShare is the part of what is left of a minute that one node takes at a time.
const callShare = 8

// TakeCalls takes some of the calls that a tenant may make in a minute, counted since 1970,
// of which it may make so many; 0 is returned when none are left. All that nodes take of
// one minute is never more than the limit. A transaction whose commit is unknown may have
// taken them for nobody.
func (st *Grants) TakeCalls(ctx context.Context, t mapreduce.TenantID, minute, limit int64) (n int64, err error) {
	err = st.db.Update(ctx, failpoint.Rate, func(tx store.Tx) error {
		var r storagev1.Rate
		if _, err := records.Read(ctx, tx, st.Keys.Tenant(t).Rate(), &r); err != nil {
			return err
		}

		if r.Minute < minute {
			r.Minute, r.Calls = minute, 0
		}

		n = 0
		if left := limit - r.Calls; r.Minute == minute && left > 0 { // else the clock of this node is behind
			n = max(1, left/callShare)
		}
		if n == 0 {
			return nil
		}

		r.Calls += n
		tx.Set(st.Keys.Tenant(t).Rate(), records.Encode(&r))
		return nil
	})
	return n, err
}
