package jobs

import (
	"context"
	"iter"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
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
func (j *NodesPart) Doubt(ctx context.Context, node mapreduce.NodeID, count int64, id string) (*Doubt, error) {
	var d *Doubt
	err := j.db.update(ctx, failpoint.Doubt, func(tx store.Tx) error {
		d = nil
		var beat storagev1.Beat
		found, err := read(ctx, tx, j.keys.Beat(node), &beat)
		if err != nil || !found || beat.Count != count {
			return err
		}
		var stands storagev1.Doubt
		if found, err = read(ctx, tx, j.keys.Doubt(node), &stands); err != nil {
			return err
		}
		if !found {
			stands.Id = id
			tx.Set(j.keys.Doubt(node), encode(&stands))
		}
		d = &Doubt{ID: stands.Id, Held: make(map[mapreduce.JobID]int64)}
		return nil
	})
	if err != nil || d == nil {
		return nil, err
	}
	return d, j.countInUse(ctx, node, d)
}

// countInUse counts what a doubted node's sessions hold. It takes as many
// transactions as it needs: a unit that is missed because its session has moved
// on took its slot along.
func (j *NodesPart) countInUse(ctx context.Context, node mapreduce.NodeID, d *Doubt) error {
	for after, more := mapreduce.SessionID(""), true; more; {
		var page []SessionRef
		var err error
		if page, more, err = j.Sessions(ctx, after, stepUnits); err != nil {
			return err
		}
		for _, s := range page {
			after = s.Session
			if s.Node != node {
				continue
			}
			if err := j.addHeldBy(ctx, s.Session, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// addHeldBy adds the units that a session holds.
func (j *NodesPart) addHeldBy(ctx context.Context, id mapreduce.SessionID, d *Doubt) error {
	count := make(map[mapreduce.JobID]int64)
	err := j.db.view(ctx, func(tx store.Tx) error {
		clear(count)
		pairs, _, err := tx.GetRange(ctx, j.keys.HeldBy(id), store.RangeOptions{})
		if err != nil {
			return err
		}
		var all []*storagev1.HeldUnit
		for _, kv := range pairs {
			var held storagev1.Held
			if err := decode(kv.Key, kv.Value, &held); err != nil {
				return err
			}
			all = append(all, held.Units...)
		}
		units, err := j.heldUnits(ctx, tx, all)
		if err != nil {
			return err
		}
		for i, h := range all {
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
func (j nodeRecords) isDoubted(ctx context.Context, r store.Reader, node mapreduce.NodeID, d *Doubt) (bool, error) {
	var stands storagev1.Doubt
	found, err := read(ctx, r, j.keys.Doubt(node), &stands)
	return found && d != nil && stands.Id == d.ID, err
}

// endDoubt says, in a transaction of this node that takes up a session, that it is
// not dead: a doubt ends, and a node that was forgotten is there again.
func (j nodeRecords) endDoubt(ctx context.Context, tx store.Tx) error {
	values, err := tx.GetAll(ctx, [][]byte{j.keys.Doubt(j.node)})
	if err != nil {
		return err
	}
	if values[0] != nil {
		tx.Clear(j.keys.Doubt(j.node))
	}
	// Nobody is forgotten but in doubt, so whoever forgets this node meanwhile
	// changes what was read above.
	beat, err := tx.Snapshot().Get(ctx, j.keys.Beat(j.node))
	if err == nil && beat == nil {
		tx.Set(j.keys.Beat(j.node), encode(&storagev1.Beat{}))
	}
	return err
}

// readSigns reads the signs of life of some nodes, but this one. By snapshot, as they
// change all the time; only that there is none must not change.
func (j nodeRecords) readSigns(ctx context.Context, tx store.Tx, some iter.Seq[mapreduce.NodeID]) (nodes []mapreduce.NodeID, values [][]byte, err error) {
	var beats [][]byte
	for node := range some {
		if node != j.node {
			nodes, beats = append(nodes, node), append(beats, j.keys.Beat(node))
		}
	}
	values, err = tx.Snapshot().GetAll(ctx, beats)
	return nodes, values, err
}

// readIdle returns what some nodes use of their grants, whose rest others may have:
// those that are doubted, and those that are forgotten, for these use nothing.
func (j nodeRecords) readIdle(ctx context.Context, tx store.Tx, some iter.Seq[mapreduce.NodeID], doubts map[mapreduce.NodeID]*Doubt) (map[mapreduce.NodeID]*Doubt, error) {
	nodes, values, err := j.readSigns(ctx, tx, some)
	if err != nil {
		return nil, err
	}
	idle := make(map[mapreduce.NodeID]*Doubt)
	for i, node := range nodes {
		if known := doubts[node]; known != nil {
			stands, err := j.isDoubted(ctx, tx, node, known)
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
		beat, err := tx.Get(ctx, j.keys.Beat(node))
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
func (j *NodesPart) Forget(ctx context.Context, node mapreduce.NodeID, count int64, d *Doubt) error {
	return j.db.update(ctx, failpoint.Forget, func(tx store.Tx) error {
		var b storagev1.Beat
		found, err := read(ctx, tx, j.keys.Beat(node), &b)
		if err != nil || !found || b.Count != count {
			return err
		}
		stands, err := j.isDoubted(ctx, tx, node, d)
		if err != nil || (d != nil && !stands) {
			return err
		}
		tx.Clear(j.keys.Beat(node))
		tx.Clear(j.keys.Doubt(node))
		return nil
	})
}
