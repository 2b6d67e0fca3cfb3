package nodes

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Epoch returns the epoch of a session, 0 if there is none, and its node.
func (st *Store) Epoch(ctx context.Context, id mapreduce.SessionID) (int64, mapreduce.NodeID, error) {
	var sess storagev1.Session
	err := st.db.View(ctx, func(tx store.Tx) error {
		sess.Reset()
		_, err := records.Read(ctx, tx, st.Keys.Nodes().Session(id), &sess)
		return err
	})
	return sess.Epoch, mapreduce.NodeID(sess.Node), err
}

// A SessionRef names a session as it is bound.
type SessionRef struct {
	Session mapreduce.SessionID
	Node    mapreduce.NodeID
	Epoch   int64
	// Embedded workers died with their orchestrator.
	Embedded bool
}

// Expiring reports whether a session was declared dead and still holds units. Whoever
// put them back may have died of it, so they are anybody's to put back.
func (s SessionRef) Expiring() bool { return s.Node == "" }

// Sessions returns all sessions, a page at a time, beginning after one.
func (st *Store) Sessions(ctx context.Context, after mapreduce.SessionID, limit int) ([]SessionRef, bool, error) {
	var refs []SessionRef
	var more bool
	err := st.db.View(ctx, func(tx store.Tx) error {
		// An earlier run of the transaction may have filled it.
		refs = refs[:0]
		r := st.Keys.Nodes().Sessions()
		if after != "" {
			r.Begin = store.Single(st.Keys.Nodes().Session(after)).End
		}

		pairs, m, err := tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: limit})
		if err != nil {
			return err
		}
		more = m

		for _, kv := range pairs {
			var sess storagev1.Session
			if err := records.Decode(kv.Key, kv.Value, &sess); err != nil {
				return err
			}
			_, rest, err := st.Keys.Last(kv.Key)
			if err != nil {
				return err
			}
			refs = append(refs, SessionRef{mapreduce.SessionID(rest.Text()), mapreduce.NodeID(sess.Node), sess.Epoch, sess.Embedded})
		}

		return nil
	})
	return refs, more, err
}
