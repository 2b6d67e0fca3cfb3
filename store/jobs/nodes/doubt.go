package nodes

import (
	"context"
	"iter"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Doubt says that a node may be dead, and how much of what it was granted is
// in use. It stands until the node makes a claim, takes up a session, or is
// forgotten: as long as it does, what is in use can only become less, and others
// may have the rest. Whether it was right to doubt is only a matter of speed. A
// node that lives, and claims, ends the doubt by that; a claim that comes after
// its slots went to others is refused.
type Doubt struct {
	ID   string
	Held map[mapreduce.JobID]int64 // units that its sessions hold, at most
	All  int64                     // of all jobs together
}

// Doubt records that a node may be dead whose sign of life is still count, and
// returns nil if it has given another or is forgotten. The id is drawn by the
// caller; a doubt that stands already keeps its own.
func (st *Store) Doubt(ctx context.Context, node mapreduce.NodeID, count int64, id string) (*Doubt, error) {
	var d *Doubt
	err := st.db.Update(ctx, failpoint.Doubt, func(tx store.Tx) error {
		d = nil
		var beat storagev1.Beat
		found, err := records.Read(ctx, tx, st.Keys.Nodes().Beat(node), &beat)
		if err != nil || !found || beat.Count != count {
			// The node has given another sign of life, or is forgotten.
			return err
		}

		var stands storagev1.Doubt
		if found, err = records.Read(ctx, tx, st.Keys.Nodes().Doubt(node), &stands); err != nil {
			return err
		}

		if !found {
			stands.Id = id
			tx.Set(st.Keys.Nodes().Doubt(node), records.Encode(&stands))
		}

		d = &Doubt{ID: stands.Id, Held: make(map[mapreduce.JobID]int64)}
		return nil
	})

	if err != nil || d == nil {
		return nil, err
	}
	return d, st.countInUse(ctx, node, d)
}

// countInUse counts what a doubted node's sessions hold. It takes as many
// transactions as it needs: a unit that is missed because its session has moved
// on took its slot along.
func (st *Store) countInUse(ctx context.Context, node mapreduce.NodeID, d *Doubt) error {
	for after, more := mapreduce.SessionID(""), true; more; {
		var page []SessionRef
		var err error
		if page, more, err = st.Sessions(ctx, after, records.StepUnits); err != nil {
			return err
		}

		for _, s := range page {
			after = s.Session
			if s.Node != node {
				continue
			}
			if err := st.addHeldBy(ctx, s.Session, d); err != nil {
				return err
			}
		}
	}

	return nil
}

// addHeldBy adds the units that a session holds.
func (st *Store) addHeldBy(ctx context.Context, id mapreduce.SessionID, d *Doubt) error {
	count := make(map[mapreduce.JobID]int64)
	err := st.db.View(ctx, func(tx store.Tx) error {
		clear(count)
		pairs, _, err := tx.GetRange(ctx, st.Keys.Nodes().HeldBy(id), store.RangeOptions{})
		if err != nil {
			return err
		}

		var all []*storagev1.HeldUnit
		for _, kv := range pairs {
			var held storagev1.Held
			if err := records.Decode(kv.Key, kv.Value, &held); err != nil {
				return err
			}
			all = append(all, held.Units...)
		}

		units, _, err := st.Units.Sound(ctx, tx, all)
		if err != nil {
			return err
		}

		for i, h := range all {
			// A claim may name attempts that are no longer its own.
			if u := units[i]; u != nil && u.Attempt == h.Attempt && mapreduce.UnitState(u.Status) == mapreduce.Processing {
				count[mapreduce.JobID(h.Job)]++
			}
		}
		return nil
	})

	for job, n := range count {
		d.Held[job] += n
		d.All += n
	}
	return err
}

// isDoubted reports whether a doubt stands.
func (rec Records) isDoubted(ctx context.Context, r store.Reader, node mapreduce.NodeID, d *Doubt) (bool, error) {
	var stands storagev1.Doubt
	found, err := records.Read(ctx, r, rec.Keys.Nodes().Doubt(node), &stands)
	return found && d != nil && stands.Id == d.ID, err
}

// EndDoubt says, in a transaction of this node that takes up a session, that it is
// not dead: a doubt ends, and a node that was forgotten is there again.
func (rec Records) EndDoubt(ctx context.Context, tx store.Tx) error {
	values, err := tx.GetAll(ctx, [][]byte{rec.Keys.Nodes().Doubt(rec.Node)})
	if err != nil {
		return err
	}

	if values[0] != nil {
		tx.Clear(rec.Keys.Nodes().Doubt(rec.Node))
	}

	// Only a node in doubt is forgotten, so a transaction that forgets this node meanwhile
	// changes what was read above.
	beat, err := tx.Snapshot().Get(ctx, rec.Keys.Nodes().Beat(rec.Node))
	if err == nil && beat == nil {
		tx.Set(rec.Keys.Nodes().Beat(rec.Node), records.Encode(&storagev1.Beat{}))
	}
	return err
}

// ReadSigns reads the signs of life of some nodes, but this one. By snapshot, as they
// change all the time; only that there is none must not change.
func (rec Records) ReadSigns(ctx context.Context, tx store.Tx, some iter.Seq[mapreduce.NodeID]) (nodes []mapreduce.NodeID, values [][]byte, err error) {
	var beats [][]byte
	for node := range some {
		if node != rec.Node {
			nodes, beats = append(nodes, node), append(beats, rec.Keys.Nodes().Beat(node))
		}
	}
	values, err = tx.Snapshot().GetAll(ctx, beats)
	return nodes, values, err
}

// ReadIdle returns what some nodes use of their grants, whose rest others may have:
// those that are doubted, and those that are forgotten, for these use nothing.
func (rec Records) ReadIdle(ctx context.Context, tx store.Tx, some iter.Seq[mapreduce.NodeID], doubts map[mapreduce.NodeID]*Doubt) (map[mapreduce.NodeID]*Doubt, error) {
	nodes, values, err := rec.ReadSigns(ctx, tx, some)
	if err != nil {
		return nil, err
	}

	idle := make(map[mapreduce.NodeID]*Doubt)
	for i, node := range nodes {
		if known := doubts[node]; known != nil {
			stands, err := rec.isDoubted(ctx, tx, node, known)
			if err != nil {
				return nil, err
			}
			if stands {
				idle[node] = known
			}
		}

		if values[i] != nil || idle[node] != nil {
			continue
		}

		// That there is no sign of life must not change: the node may come back.
		beat, err := tx.Get(ctx, rec.Keys.Nodes().Beat(node))
		if err != nil {
			return nil, err
		}
		if beat == nil {
			idle[node] = &Doubt{}
		}
	}

	return idle, nil
}

// Forget removes the sign of life of a node that is dead and holds nothing: its
// doubt still stands, so it has taken up no session since its last ones were
// expired. A nil doubt is of the node itself.
func (st *Store) Forget(ctx context.Context, node mapreduce.NodeID, count int64, d *Doubt) error {
	return st.db.Update(ctx, failpoint.Forget, func(tx store.Tx) error {
		var b storagev1.Beat
		found, err := records.Read(ctx, tx, st.Keys.Nodes().Beat(node), &b)
		if err != nil || !found || b.Count != count {
			return err
		}

		stands, err := st.isDoubted(ctx, tx, node, d)
		if err != nil || (d != nil && !stands) {
			return err
		}

		tx.Clear(st.Keys.Nodes().Beat(node))
		tx.Clear(st.Keys.Nodes().Doubt(node))
		return nil
	})
}
