package grants

import (
	"context"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
)

// The value of the warm key of a job whose prompts begin alike: warmOpen once the first unit
// has ended, or warmNode and the id of the node that may run the first unit.
const (
	warmOpen = "open"
	warmNode = "node "
)

// Warm asks to run the first unit of a job alone, so that the beginning of its
// prompts is in the vendor's cache when the others ask. These things might happen:
//  1. open: some unit has ended, here or elsewhere, and all may run;
//  2. first: this node may run one unit at a time, until Warmed. It is the only
//     one, unless it was taken for dead;
//  3. neither: another node may, and is not known to be dead.
func (st *Store) Warm(ctx context.Context, id mapreduce.JobID, dead []mapreduce.NodeID) (first, open bool, err error) {
	err = st.db.Update(ctx, failpoint.Grant, func(tx store.Tx) error {
		if _, err := st.ReadControl(ctx, tx, id); err != nil {
			return err
		}
		value, err := tx.Get(ctx, st.Keys.Warm(id))
		if err != nil {
			return err
		}
		holder := mapreduce.NodeID(strings.TrimPrefix(string(value), warmNode))
		open = string(value) == warmOpen
		first = !open && holder == st.Node
		if open || first || value != nil && !slices.Contains(dead, holder) {
			return nil
		}
		first = true
		tx.Set(st.Keys.Warm(id), []byte(warmNode+string(st.Node)))
		return nil
	})
	return first, open, err
}

// Warmed lets all units of a job run, and tells the other nodes.
func (st *Store) Warmed(ctx context.Context, id mapreduce.JobID) error {
	return st.db.Update(ctx, failpoint.Grant, func(tx store.Tx) error {
		if _, err := st.ReadControl(ctx, tx, id); err != nil {
			return err
		}
		tx.Set(st.Keys.Warm(id), []byte(warmOpen))
		st.WakeOthers(tx)
		return nil
	})
}
