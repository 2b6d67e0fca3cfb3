package view

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Log returns a page of the log of a tenant, oldest first: what became of its jobs that are
// gone. Each entry has a seal of its own. With Verify it computes the chain anew, and fails
// with errs.DataLoss at the first link that is broken.
func (st *Audit) Log(ctx context.Context, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	from, err := strconv.ParseInt(q.PageToken, 10, 64)
	if q.PageToken != "" && (err != nil || from < 1) {
		return nil, errs.Field("page_token", "is not one that a list returned")
	}

	if q.Verify && q.PageToken == "" {
		if err := st.VerifyLog(ctx, q.Tenant); err != nil {
			return nil, err
		}
	}

	var page *mapreduce.EventPage
	err = st.db.View(ctx, func(tx store.Tx) error {
		page = &mapreduce.EventPage{}
		r := st.Keys.Tenant(q.Tenant).Log()
		// The token of a page is the number of its first entry.
		if from > 0 {
			r.Begin = st.Keys.Tenant(q.Tenant).LogEntry(from)
		}

		pairs, more, err := tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: q.PageSize, Bytes: 4 * store.TargetTxSize})
		if err != nil {
			return err
		}

		for _, kv := range pairs {
			_, n, err := st.Keys.AllTenants().LogAt(kv.Key)
			if err != nil {
				return err
			}
			e, c, err := decodeLogEntry(kv, n)
			if err != nil {
				return err
			}

			if q.Proofs {
				c.Proof = mapreduce.Proof{Record: e.Checkpoint}
			}

			page.Checkpoints = append(page.Checkpoints, c)
			page.Seals = append(page.Seals, &mapreduce.Seal{Number: n, Count: 1, Last: c.ID, Hash: e.Hash})
			if more {
				page.NextPageToken = strconv.FormatInt(n+1, 10)
			}
		}
		return nil
	})
	return page, err
}

// logID returns the id of an entry of a log, which grows as those of checkpoints do.
func logID(n int64) string { return fmt.Sprintf("%020x", n) }

func decodeLogEntry(kv store.KeyValue, n int64) (*storagev1.LogEntry, *mapreduce.Checkpoint, error) {
	e := new(storagev1.LogEntry)
	if err := records.Decode(kv.Key, kv.Value, e); err != nil {
		return nil, nil, err
	}
	c, err := DecodeCheckpoint(e.Checkpoint)
	if err != nil {
		return nil, nil, records.CorruptError(kv.Key, "entry %d of a log: %v", n, err)
	}
	c.ID = logID(n)
	return e, c, nil
}

// VerifyLog computes the log of a tenant anew, and fails with errs.DataLoss at the first
// link that is not as it was.
func (st *Audit) VerifyLog(ctx context.Context, t mapreduce.TenantID) error {
	const pageSize = 500
	next, hash := int64(1), []byte(nil)
	for {
		var pairs []store.KeyValue
		var more bool
		err := st.db.View(ctx, func(tx store.Tx) (err error) {
			r := st.Keys.Tenant(t).Log()
			r.Begin = st.Keys.Tenant(t).LogEntry(next)
			pairs, more, err = tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: pageSize})
			return err
		})
		if err != nil {
			return err
		}

		for _, kv := range pairs {
			_, n, err := st.Keys.AllTenants().LogAt(kv.Key)
			if err != nil {
				return err
			}

			var e storagev1.LogEntry
			if err := records.Decode(kv.Key, kv.Value, &e); err != nil {
				return err
			}

			// Logs of earlier versions begin without the origin.
			if next == 1 && bytes.Equal(records.ChainLog(records.LogOrigin(t), e.Checkpoint), e.Hash) {
				hash = records.LogOrigin(t)
			}
			if hash = records.ChainLog(hash, e.Checkpoint); n != next || !bytes.Equal(hash, e.Hash) {
				return brokenChain("entry %d of the log of tenant %q does not follow on entry %d as it was written", n, t, next-1)
			}
			next++
		}

		if !more {
			return nil
		}
	}
}
