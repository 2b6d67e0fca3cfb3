package lifecycle

import (
	"context"
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A TreePlan is a tree of reduces over the units of level 0, all of which is
// planned before any of these is claimed.
type TreePlan struct {
	Epoch int64         // of the job as it was seen; planning stops if it has moved on
	First records.Level // level 0, but for the number of its units
	Stage int           // whose tree it is
	Name  string
	Root  mapreduce.UnitID // of the tree
	Phase mapreduce.JobState
	Group int64 // units of a level that one reduce takes
}

// treeLevel returns a level of the tree. That of the root has one unit.
func (p *TreePlan) treeLevel(depth, units int64) *storagev1.Level {
	l := records.Level{Units: units, Stage: p.Stage, Depth: int(depth), Source: depth - 1, Phase: p.Phase}
	if units == 1 {
		l.Unit = p.Root
	} else {
		l.Prefix = mapreduce.TreePrefix(p.Name, int(depth))
	}
	return l.ToStored()
}

// PlanTree plans a tree; its last step turns the job to level 0. Each step begins
// where the one before it, of whichever node, ended.
func (l *Levels) PlanTree(ctx context.Context, id mapreduce.JobID, t TreePlan) error {
	for done := false; !done; {
		var err error
		if done, err = l.TreeStep(ctx, id, t); err != nil {
			return err
		}
	}
	return nil
}

// TreeStep is one step of PlanTree. It returns whether planning is done.
func (l *Levels) TreeStep(ctx context.Context, id mapreduce.JobID, t TreePlan) (done bool, err error) {
	tried := 0
	err = l.db.Update(ctx, failpoint.Plan, func(tx store.Tx) error {
		room := records.StepRoom(tried)
		tried++
		done = true

		ctl, err := l.Jobs.Control(ctx, tx, id)
		if err != nil {
			return err
		}
		if ctl.Epoch != t.Epoch || ctl.Level >= 0 || !mapreduce.JobState(ctl.State).Running() {
			return nil
		}

		p := &treePlanner{planner: planner{LevelRecords: l.LevelRecords, tx: tx, id: id, ctl: ctl, cursor: &storagev1.Plan{Level: 1}, room: room}, tree: t}
		// The tree stands on units that were staged with the job and on those of parsed
		// documents.
		if p.maps, err = l.Jobs.Counter(ctx, tx.Snapshot(), id, keys.Inserted, 0); err != nil {
			return err
		}
		p.maps += ctl.StagedUnits

		if _, err := records.Read(ctx, tx, l.Keys.Plans(id).Cursor(1), p.cursor); err != nil {
			return err
		}

		if done, err = p.planLevels(ctx); err != nil {
			return err
		}

		if done {
			return p.beginMapping(ctx)
		}

		tx.Set(l.Keys.Plans(id).Cursor(1), records.Encode(p.cursor))
		return nil
	})
	return done, err
}

// A treePlanner is one step of planning a tree.
type treePlanner struct {
	planner
	tree TreePlan
	maps int64
}

// unitsBelow returns how many units the level has on which the next one is planned.
func (p *treePlanner) unitsBelow() int64 {
	if n := len(p.cursor.Levels); n > 0 {
		return p.cursor.Levels[n-1].Units
	}
	return p.maps
}

// planLevels plans as many units as there is room for, and reports whether that was
// all: the level with the final unit is the last.
func (p *treePlanner) planLevels(ctx context.Context) (bool, error) {
	for {
		c, below := p.cursor, p.unitsBelow()
		if below == 0 || below == 1 && c.Level > 1 {
			return true, nil
		}

		c.Plan = p.tree.treeLevel(c.Level, (below-1)/p.tree.Group+1)
		p.next = Plan{Number: c.Level, Level: records.LevelFrom(c.Plan)}

		var err error
		if c.Level == 1 {
			err = p.groupMaps(ctx)
		} else {
			err = p.planReduces(ctx, below)
		}

		// Without room for the whole level, the next step goes on where the cursor stands.
		if err != nil || c.Planned < c.Plan.Units {
			return false, err
		}

		c.Levels = append(c.Levels, c.Plan)
		c.Level, c.Planned, c.Plan = c.Level+1, 0, nil
	}
}

func (p *treePlanner) planReduces(ctx context.Context, below int64) error {
	c := p.cursor
	all, err := p.groupInputs(ctx, c.Plan.Units, p.tree.Group, below)
	if err != nil {
		return err
	}
	for _, in := range all {
		p.tx.Add(p.Keys.Queues(p.id).Wait(c.Level, c.Planned), int64(keys.OneLeft)*(in.End-in.First))
		p.planReduce(in)
	}
	return nil
}

// planReduce plans the next unit, which waits for its inputs.
func (p *treePlanner) planReduce(in *storagev1.Inputs) {
	c := p.cursor
	u := &storagev1.Unit{
		UnitId: string(records.UnitAt(c.Plan, c.Planned)), Kind: uint32(mapreduce.KindReduce),
		Level: c.Level, Stage: int64(p.tree.Stage), Index: c.Planned, Status: uint32(mapreduce.Blocked), Inputs: in,
		Queue: &storagev1.Queue{Shard: c.Planned % max(1, p.ctl.Shards)}, Parent: 1 + c.Planned/p.tree.Group,
	}

	if c.Plan.Units == 1 {
		u.Kind, u.Parent = uint32(mapreduce.KindFinal), 0
	}

	p.Units.Set(p.tx, p.id, u)
	c.Planned++
	p.room--
}

// Pages of map units that one step goes through: by their places in the order
// alone, or with their records.
const (
	orderPage  = 5000
	recordPage = 200
)

// groupMaps plans reduces over groups of map units in order. A group may take
// several steps: what its reduce waits for is added up as they go.
func (p *treePlanner) groupMaps(ctx context.Context) error {
	limit := orderPage
	// With parsed documents, each unit's record is read and written too.
	if p.ctl.ParseUnits > 0 {
		limit = min(recordPage, p.room)
	}

	for p.room > 0 {
		pairs, _, err := p.tx.Snapshot().GetRange(ctx, p.Keys.Job(p.id).OrderFrom(0, p.cursor.Cursor), store.RangeOptions{Limit: limit})
		if err != nil {
			return err
		}

		dealt, err := p.dealGroups(ctx, pairs)
		switch {
		case err != nil:
			return err
		case dealt == len(pairs) && dealt < limit:
			return p.lastGroup()
		case p.ctl.ParseUnits > 0:
			return nil
		}
	}

	return nil
}

// dealGroups deals map units to groups until there is no room for more reduces, and
// returns how many it dealt.
func (p *treePlanner) dealGroups(ctx context.Context, pairs []store.KeyValue) (dealt int, err error) {
	children, err := p.readChildren(ctx, pairs)
	if err != nil {
		return 0, err
	}

	waits := make(map[int64]keys.Waiting)
	for ; dealt < len(pairs) && p.room > 0; dealt++ {
		index, err := p.decodeIndex(pairs[dealt].Key)
		if err != nil {
			return dealt, err
		}

		c := p.cursor
		waits[c.Planned] += p.setParent(children, dealt)
		if c.Taken++; c.Taken == 1 {
			c.First = index
		}
		c.Last, c.Cursor = index, index+1
		if c.Taken == p.tree.Group {
			p.blockMaps()
		}
	}

	// One addition for each group, however many of its units were dealt.
	for group, n := range waits {
		p.tx.Add(p.Keys.Queues(p.id).Wait(1, group), int64(n))
	}

	return dealt, nil
}

// readChildren reads the map units with places in the order, if they have to know
// the reduce that waits for them. Units of a job that was all text were staged with
// it, and none can have been claimed. Else those of parsed documents came in
// between; and when a parse that had failed is tried again, units of the first time
// may have ended, or end now.
func (p *treePlanner) readChildren(ctx context.Context, places []store.KeyValue) ([]*storagev1.Unit, error) {
	if p.ctl.ParseUnits == 0 {
		return nil, nil
	}

	ids := make([]mapreduce.UnitID, len(places))
	for i, kv := range places {
		ids[i] = mapreduce.UnitID(kv.Value)
	}

	units, err := p.Units.Named(ctx, p.tx, p.id, ids)
	if err == nil && len(units) < len(ids) {
		err = records.CorruptError(p.Keys.Job(p.id).Unit(ids[0]), "a unit of %s, from %s to %s, has a place in the order, and is not there",
			p.id, ids[0], ids[len(ids)-1])
	}

	return units, err
}

// setParent has the map unit at a place know the reduce that is planned next, and
// returns what that has to wait for.
func (p *treePlanner) setParent(children []*storagev1.Unit, at int) keys.Waiting {
	if children == nil {
		// No unit of such a job can have been claimed yet.
		return keys.OneLeft
	}

	u := children[at]
	if parent := p.cursor.Planned + 1; u.Parent != parent {
		u.Parent = parent
		p.Units.Set(p.tx, p.id, u)
	}

	switch mapreduce.UnitState(u.Status) {
	case mapreduce.UnitComplete:
		return keys.OneSurvivor
	case mapreduce.UnitFailed:
		return 0
	}

	return keys.OneLeft
}

// lastGroup plans the reduce over what is left when all map units are dealt.
func (p *treePlanner) lastGroup() error {
	c := p.cursor
	if c.Taken > 0 {
		p.blockMaps()
	}
	if c.Planned != c.Plan.Units {
		return records.CorruptError(p.Keys.Job(p.id).Ctl(), "%s is to have %d map units, and has those of %d reduces instead of %d",
			p.id, p.maps, c.Planned, c.Plan.Units)
	}
	return nil
}

func (p *treePlanner) blockMaps() {
	c := p.cursor
	p.planReduce(p.inputRange(c.First, c.Last+1))
	c.Taken = 0
}

// beginMapping turns the job to mapping.
func (p *treePlanner) beginMapping(ctx context.Context) error {
	p.tx.Clear(p.Keys.Plans(p.id).Cursor(1))

	c, reduces := p.cursor, int64(0)
	for _, l := range c.Levels {
		reduces += l.Units
	}

	first := p.tree.First
	first.Units = p.maps
	p.ctl.Level, p.ctl.State = 0, uint32(first.Phase)
	p.ctl.Levels = append([]*storagev1.Level{first.ToStored()}, c.Levels...)
	p.ctl.TreeTop = int64(len(c.Levels))

	return p.Jobs.WriteControl(ctx, p.tx, p.id, p.ctl, fmt.Sprintf("level 0: %s; %s above it: %s", plural.Count(p.maps, "unit"), plural.Count(len(c.Levels), "level"), plural.Count(reduces, "unit")))
}

// Ascend turns a job to the lowest level of its tree that has not ended.
func (l *Levels) Ascend(ctx context.Context, id mapreduce.JobID, epoch int64) error {
	return l.db.ChangeControl(ctx, failpoint.Ascend, id, func(tx store.Tx, ctl *storagev1.Ctl) (string, bool, error) {
		if ctl.Epoch != epoch || ctl.TreeTop == 0 || ctl.Level < 0 || !mapreduce.JobState(ctl.State).Running() {
			return "", false, nil
		}

		from := ctl.Level
		for ctl.Level < ctl.TreeTop {
			completed, err := l.Jobs.Counter(ctx, tx.Snapshot(), id, keys.Completed, ctl.Level)
			if err != nil {
				return "", false, err
			}
			failed, err := l.Jobs.Counter(ctx, tx.Snapshot(), id, keys.Failed, ctl.Level)
			if err != nil {
				return "", false, err
			}

			if completed == 0 || completed+failed < records.UnitsOf(ctl, ctl.Level) {
				break // without any output, the job fails at this level
			}
			ctl.Level++
		}

		ctl.State = records.LevelAt(ctl, ctl.Level).GetPhase()
		return fmt.Sprintf("level %d: %s", ctl.Level, plural.Count(records.UnitsOf(ctl, ctl.Level), "unit")), ctl.Level > from, nil
	})
}
