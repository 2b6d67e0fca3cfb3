package lifecycle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/tuple"
)

// A Plan describes a level to plan. It must be the same on every orchestrator.
type Plan struct {
	Epoch         int64 // of the job as it was seen; planning stops if it has moved on
	Number        int64 // of the level; 1 is the first that can be planned
	records.Level       // what it is to be
	Kind          mapreduce.UnitKind
	Warnings      []string // for the job's owner
	Progress      string   // what begins with the level, for the trail of the job; may be empty

	// One of these says what each unit takes of the source level; if none is set, the
	// level's only unit takes all of it.
	Group int64     // so many units in a row
	Bins  [][]int64 // by unit, the indexes of those that it takes, which grow
	Items []Item    // by unit, an element of an output
	Each  [][]byte  // by unit, JSON of what it works on beside all of the outputs
}

// An Item is an element of the output of a unit.
type Item struct {
	Source int64  // index of that unit in its level
	Value  []byte // JSON
}

// MaxItem bounds the JSON that a unit works on, in bytes: the unit's record holds
// it.
const MaxItem = 32 << 10

// planDigest returns a digest of the plan, which shows whether a cursor belongs to it.
func (n *Plan) planDigest() []byte {
	h := sha256.New()
	b := records.Encode(n.ToStored())
	h.Write(binary.AppendVarint(b, n.Group))

	// Each list stands behind its length, so that two plans never give the same bytes.
	for _, bin := range n.Bins {
		b = binary.AppendVarint(b[:0], int64(len(bin)))
		for _, at := range bin {
			b = binary.AppendVarint(b, at)
		}
		h.Write(b)
	}

	for _, item := range n.Items {
		h.Write(binary.AppendVarint(binary.AppendVarint(b[:0], item.Source), int64(len(item.Value))))
		h.Write(item.Value)
	}

	for _, each := range n.Each {
		h.Write(binary.AppendVarint(b[:0], int64(len(each))))
		h.Write(each)
	}

	return h.Sum(nil)
}

// PlanStep plans a part of a level; its last step turns the job to it. It
// returns whether planning is done: by this call, by an earlier run, or by
// another node. Each step begins where the one before it, of whichever node,
// ended: from is Status.Next as the step found it.
func (l *Levels) PlanStep(ctx context.Context, id mapreduce.JobID, n Plan) (from int64, done bool, err error) {
	digest, tried := n.planDigest(), 0
	err = l.db.Update(ctx, failpoint.Plan, func(tx store.Tx) error {
		room := records.StepRoom(tried)
		tried++
		done = true

		ctl, err := l.Jobs.Control(ctx, tx, id)
		if err != nil {
			return err
		}

		if ctl.Epoch != n.Epoch || ctl.Level != n.Number-1 || !mapreduce.JobState(ctl.State).Running() {
			return nil
		}

		p := &planner{LevelRecords: l.LevelRecords, tx: tx, id: id, ctl: ctl, next: n, room: room}
		if err := p.readCursor(ctx, digest); err != nil {
			return err
		}

		before := [2]int64{p.cursor.Planned, p.cursor.Picked}
		from = plannedSoFar(p.cursor)
		if err := p.planStep(ctx); err != nil {
			return err
		}

		// A step that planned nothing would be repeated for ever.
		if before == [2]int64{p.cursor.Planned, p.cursor.Picked} {
			return records.CorruptError(l.Keys.Job(id).Ctl(), "level %d of %s is to have %d units, and has inputs for %d",
				n.Number, id, n.Units, p.cursor.Planned)
		}

		if done = p.cursor.Planned >= n.Units; done {
			return p.beginLevel(ctx)
		}

		tx.Set(l.Keys.Plans(id).Cursor(n.Number), records.Encode(p.cursor))
		return nil
	})
	return from, done, err
}

// plannedSoFar returns a number that grows with each step under a cursor.
func plannedSoFar(p *storagev1.Plan) int64 {
	n := p.Planned + p.Picked
	for _, l := range p.Levels {
		n += l.Units
	}
	return n
}

type planner struct {
	LevelRecords
	tx     store.Tx
	id     mapreduce.JobID
	ctl    *storagev1.Ctl
	next   Plan
	cursor *storagev1.Plan
	room   int // units that a step may plan; of a tree, that it may yet
}

// readCursor reads how far the level is planned. What was planned of another plan for
// it, as an earlier version of this program may have made, is dropped.
func (p *planner) readCursor(ctx context.Context, digest []byte) error {
	p.cursor = new(storagev1.Plan)
	found, err := records.Read(ctx, p.tx, p.Keys.Plans(p.id).Cursor(p.next.Number), p.cursor)
	if err != nil || found && bytes.Equal(p.cursor.Digest, digest) {
		return err
	}
	if found { // none of its units can have been claimed yet
		p.Units.DropLevel(p.tx, p.id, p.next.Number, p.cursor.Plan, p.ctl.Shards)
	}
	p.cursor = &storagev1.Plan{Level: p.next.Number, Plan: p.next.ToStored(), Digest: digest}
	return nil
}

// beginLevel turns the job to the level, which is planned.
func (p *planner) beginLevel(ctx context.Context) error {
	n := p.next
	p.tx.Clear(p.Keys.Plans(p.id).Cursor(n.Number))
	p.ctl.Level, p.ctl.State = n.Number, uint32(n.Phase)
	p.ctl.Levels = append(p.ctl.Levels[:n.Number], n.ToStored())

	message := fmt.Sprintf("level %d: %s", n.Number, plural.Count(n.Units, "unit"))
	if n.Progress != "" {
		message = n.Progress + ", " + message
	}
	message += records.WarningSuffix(n.Warnings)

	if err := p.Jobs.WriteControl(ctx, p.tx, p.id, p.ctl, records.ClipText(message)); err != nil {
		return err
	}
	return p.Jobs.RecordWarnings(ctx, p.tx, p.id, n.Number, n.Warnings)
}

func (p *planner) planStep(ctx context.Context) error {
	n := &p.next
	switch {
	case n.Items != nil:
		p.planItems()
		return nil
	case n.Bins != nil:
		return p.planBins(ctx)
	case n.Group == 0:
		return p.wholeLevel(ctx)
	case n.Source == 0:
		return p.groupMaps(ctx)
	}

	all, err := p.groupInputs(ctx, n.Units, n.Group, records.UnitsOf(p.ctl, n.Source))
	p.insertUnits(all)
	return err
}

// wholeLevel plans units each of which takes the whole source level.
func (p *planner) wholeLevel(ctx context.Context) error {
	whole, err := p.wholeSource(ctx)
	if err != nil {
		return err
	}

	var all []*storagev1.Inputs
	for int64(len(all)) < min(p.next.Units-p.cursor.Planned, int64(p.room)) {
		all = append(all, proto.CloneOf(whole))
	}

	if err := p.setMapRanges(ctx, all...); err != nil {
		return err
	}
	p.insertUnits(all)
	return nil
}

// wholeSource returns inputs that are the whole source level.
func (p *planner) wholeSource(ctx context.Context) (*storagev1.Inputs, error) {
	end := records.UnitsOf(p.ctl, p.next.Source)
	if p.next.Source == 0 {
		last, err := p.LastMap(ctx, p.tx, p.id)
		if err != nil {
			return nil, err
		}
		end = last + 1
	}
	return p.inputRange(0, end), nil
}

// inputRange returns inputs that are all units of the source level with indexes in
// [first, end).
func (p *planner) inputRange(first, end int64) *storagev1.Inputs {
	return &storagev1.Inputs{Level: p.next.Source, First: first, End: end, MapFirst: first, MapEnd: end}
}

// planItems plans units that work on an element of an output each, as many as suit
// one transaction.
func (p *planner) planItems() {
	for size, n := 0, 0; p.cursor.Planned < p.next.Units && n < p.room && size < store.TargetTxSize; n++ {
		item := p.next.Items[p.cursor.Planned]
		size += len(item.Value) + 300
		p.insertUnit(p.inputRange(item.Source, item.Source+1), item.Value)
	}
}

// groupInputs returns what the next of a level's units take, as far as there is room:
// each so many in a row of those below, themselves reduces.
func (p *planner) groupInputs(ctx context.Context, units, group, below int64) ([]*storagev1.Inputs, error) {
	var all []*storagev1.Inputs
	for i := p.cursor.Planned; i < units && len(all) < p.room; i++ {
		all = append(all, p.inputRange(i*group, min((i+1)*group, below)))
	}
	return all, p.setMapRanges(ctx, all...)
}

// Bounds of picks. PickChunk is how many indexes one value holds at most.
const (
	PickChunk = 4096   // indexes in one value: a gap of map units takes three bytes or four
	stepPicks = 65_536 // in one transaction
)

// planBins plans reduces over units that were picked. A bin may hold any number of
// them, so their indexes stand under keys of their own, which may take several
// steps; the unit comes with the last of them.
func (p *planner) planBins(ctx context.Context) error {
	c, left := p.cursor, stepPicks
	var full []*storagev1.Inputs

	for len(full) < p.room && left > 0 {
		at := c.Planned + int64(len(full))
		if at == p.next.Units {
			break
		}

		bin := p.next.Bins[at]
		for c.Picked < int64(len(bin)) && left > 0 {
			part := bin[c.Picked:min(int(c.Picked)+min(PickChunk, left), len(bin))]
			p.tx.Set(p.Keys.Plans(p.id).Picks(p.next.Number, at, part[0]), records.Encode(newPicks(part)))
			c.Picked += int64(len(part))
			left -= len(part)
		}

		// The whole bin is stored: its unit can be planned.
		if c.Picked == int64(len(bin)) {
			inputs := p.inputRange(bin[0], bin[len(bin)-1]+1)
			inputs.Picked, c.Picked = c.Picked, 0
			full = append(full, inputs)
		}
	}

	if err := p.setMapRanges(ctx, full...); err != nil {
		return err
	}
	p.insertUnits(full)
	return nil
}

// insertUnits plans the next units, with what each takes.
func (p *planner) insertUnits(all []*storagev1.Inputs) {
	for _, in := range all {
		var item []byte
		if p.next.Each != nil {
			item = p.next.Each[p.cursor.Planned]
		}
		p.insertUnit(in, item)
	}
}

func newPicks(indexes []int64) *storagev1.Picks {
	m := &storagev1.Picks{First: indexes[0]}
	for i := 1; i < len(indexes); i++ {
		m.Gaps = append(m.Gaps, indexes[i]-indexes[i-1])
	}
	return m
}

// LastMap returns the highest index of the units of level 0; 0 if there is none.
func (rec LevelRecords) LastMap(ctx context.Context, r store.Reader, id mapreduce.JobID) (int64, error) {
	pairs, _, err := r.GetRange(ctx, rec.Keys.Job(id).OrderFrom(0, 0), store.RangeOptions{Limit: 1, Reverse: true})
	if err != nil || len(pairs) == 0 {
		return 0, err
	}
	return rec.decodeIndex(pairs[0].Key)
}

// decodeIndex returns the index that a key of the order of units ends with.
func (rec LevelRecords) decodeIndex(key []byte) (int64, error) {
	_, rest, err := rec.Keys.Last(key)
	if err != nil {
		return 0, err
	}
	return lastInt(rest)
}

// lastInt returns the third element of a key.
func lastInt(rest tuple.Reader) (int64, error) {
	rest.Skip()
	rest.Skip()
	n := rest.Int()
	return n, rest.Err()
}

// groupMaps plans reduces over runs of Group map units in order. The order does not change
// any more, so a snapshot of it will do. A group is planned in one step, however large it
// is.
func (p *planner) groupMaps(ctx context.Context) error {
	r := p.Keys.Job(p.id).OrderFrom(0, p.cursor.Cursor)
	var first, last, size int64
	planned := 0

	for more := true; more; {
		var pairs []store.KeyValue
		var err error
		pairs, more, err = p.tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: 5000, Bytes: 4 * store.TargetTxSize})
		if err != nil {
			return err
		}

		for _, kv := range pairs {
			if last, err = p.decodeIndex(kv.Key); err != nil {
				return err
			}
			if size++; size == 1 {
				first = last
			}
			if size < p.next.Group {
				continue
			}
			p.takeMaps(first, last)
			if size, planned = 0, planned+1; planned == p.room {
				return nil
			}
		}

		if more {
			r.Begin = store.Single(pairs[len(pairs)-1].Key).End
		}
	}

	// What is left over is a smaller group.
	if size > 0 {
		p.takeMaps(first, last)
	}

	return nil
}

// takeMaps plans the next unit over the units of level 0 with indexes from first
// to last.
func (p *planner) takeMaps(first, last int64) {
	p.insertUnits([]*storagev1.Inputs{p.inputRange(first, last+1)})
	p.cursor.Cursor = last + 1
}

// setMapRanges notes for inputs that are reduces of the same tree which map units these
// stand
// for: from the first of their first to the last of their last, read all together.
func (p *planner) setMapRanges(ctx context.Context, all ...*storagev1.Inputs) error {
	if p.next.Depth <= 1 || len(all) == 0 {
		return nil
	}

	source := p.sourceLevel()
	ids := make([]mapreduce.UnitID, 0, 2*len(all))
	for _, in := range all {
		ids = append(ids, records.UnitAt(source, in.First), records.UnitAt(source, in.End-1))
	}

	ends, err := p.Units.Named(ctx, p.tx.Snapshot(), p.id, ids)
	if err != nil {
		return err
	}
	if len(ends) < len(ids) {
		return records.CorruptError(p.Keys.Job(p.id).Unit(ids[0]), "level %d of %s lacks some of units %d to %d", p.next.Source, p.id, all[0].First, all[len(all)-1].End-1)
	}

	for i, in := range all {
		in.MapFirst, in.MapEnd = ends[2*i].Inputs.GetMapFirst(), ends[2*i+1].Inputs.GetMapEnd()
	}

	return nil
}

// sourceLevel returns the level whose outputs the units take: one that is planned,
// or one of a tree that is being planned.
func (p *planner) sourceLevel() *storagev1.Level {
	if n := p.next.Source - records.CountLevels(p.ctl); n >= 0 && n < int64(len(p.cursor.Levels)) {
		return p.cursor.Levels[n]
	}
	return records.LevelAt(p.ctl, p.next.Source)
}

// insertUnit plans the next unit of the level.
func (p *planner) insertUnit(in *storagev1.Inputs, item []byte) {
	at := p.cursor.Planned
	p.Units.Insert(p.tx, p.id, &storagev1.Unit{
		UnitId: string(records.UnitAt(p.cursor.Plan, at)), Kind: uint32(p.next.Kind), Level: p.next.Number, Stage: int64(p.next.Stage), Index: at,
		Inputs: in, Item: item, Queue: &storagev1.Queue{Shard: at % max(1, p.ctl.Shards)},
	})
	p.cursor.Planned++
}
