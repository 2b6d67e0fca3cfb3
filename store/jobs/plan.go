package jobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/tuple"
)

// A Next is a level of reduction to be planned.
type Next struct {
	Epoch int64 // of the job as it was seen; planning stops if it has moved on
	Level int64 // 1 is the first
	Group int64 // inputs of one reduce; 0 means one reduce takes all
	Units int64 // of the level
	// Bins, if not nil, are the inputs of each unit: indexes of the level below,
	// which grow. They have to be the same whoever plans the level.
	Bins     [][]int64
	Warnings []string // for the job's owner
}

// digest tells plans of a level apart whose bins differ.
func (n *Next) digest() []byte {
	if n.Bins == nil {
		return nil
	}
	h := sha256.New()
	var b []byte
	for _, bin := range n.Bins {
		b = binary.AppendVarint(b[:0], int64(len(bin)))
		for _, at := range bin {
			b = binary.AppendVarint(b, at)
		}
		h.Write(b)
	}
	return h.Sum(nil)
}

// PlanStep plans a part of a level; its last step turns the job to it. It
// returns whether planning is done: by this call, by an earlier run, or by
// another node. Each step begins where the one before it, of whichever node,
// ended.
func (j *Jobs) PlanStep(ctx context.Context, id mapreduce.JobID, n Next) (done bool, err error) {
	digest, tried := n.digest(), 0
	err = j.update(ctx, failpoint.Plan, func(tx store.Tx) error {
		room := stepRoom(tried)
		tried++
		done = true
		ctl, err := j.ctl(ctx, tx, id)
		if err != nil {
			return err
		}
		if ctl.Epoch != n.Epoch || ctl.Level != n.Level-1 || !mapreduce.JobState(ctl.State).Running() {
			return nil
		}
		p := &planner{Jobs: j, tx: tx, id: id, ctl: ctl, next: n, room: room}
		if err := p.begin(ctx, digest); err != nil {
			return err
		}
		before := [2]int64{p.cursor.Planned, p.cursor.Picked}
		if err := p.step(ctx); err != nil {
			return err
		}
		if before == [2]int64{p.cursor.Planned, p.cursor.Picked} {
			return corrupt(j.keys.Ctl(id), "level %d of %s is to have %d units, and has inputs for %d",
				n.Level, id, n.Units, p.cursor.Planned)
		}
		if done = p.cursor.Planned >= n.Units; done {
			return p.turn(ctx)
		}
		tx.Set(j.keys.Plan(id, n.Level), encode(p.cursor))
		return nil
	})
	return done, err
}

type planner struct {
	*Jobs
	tx     store.Tx
	id     mapreduce.JobID
	ctl    *storagev1.Ctl
	next   Next
	cursor *storagev1.Plan
	room   int // units that a step may plan; of a tree, that it may yet
}

// stepRoom returns how many units a step may plan, or try again, whose transaction
// failed so often.
func stepRoom(failed int) int { return fewer(stepUnits/2, leastPage, failed) }

// begin reads how far the level is planned. What was planned of another plan for
// it, as an earlier version of this program may have made, is dropped.
func (p *planner) begin(ctx context.Context, digest []byte) error {
	p.cursor = new(storagev1.Plan)
	found, err := read(ctx, p.tx, p.keys.Plan(p.id, p.next.Level), p.cursor)
	if err != nil || found && bytes.Equal(p.cursor.Digest, digest) {
		return err
	}
	if found { // none of its units can have been claimed yet
		p.dropLevel(p.tx, p.id, p.next.Level, false, p.ctl.Shards)
	}
	p.cursor = &storagev1.Plan{Level: p.next.Level, Units: p.next.Units, Digest: digest}
	return nil
}

// turn turns the job to the level, which is planned.
func (p *planner) turn(ctx context.Context) error {
	n := p.next
	p.tx.Clear(p.keys.Plan(p.id, n.Level))
	p.ctl.Level, p.ctl.State = n.Level, uint32(mapreduce.Reducing)
	p.ctl.Final = n.Group == 0 && n.Bins == nil
	p.ctl.LevelUnits = append(p.ctl.LevelUnits[:n.Level], n.Units)
	message := fmt.Sprintf("level %d: %d units", n.Level, n.Units) + warned(n.Warnings)
	if err := p.turnCtl(ctx, p.tx, p.id, p.ctl, clip(message)); err != nil {
		return err
	}
	return p.warn(ctx, p.tx, p.id, n.Level, n.Warnings)
}

// warned is what a message says of warnings.
func warned(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return "; warning: " + strings.Join(texts, "; warning: ")
}

// warn notes in the job's record what its owner should know of a level, in the
// place of what was noted of this level and those above it.
func (j *Jobs) warn(ctx context.Context, tx store.Tx, id mapreduce.JobID, level int64, texts []string) error {
	job := new(storagev1.Job)
	if _, err := read(ctx, tx, j.keys.Job(id), job); err != nil {
		return err
	}
	before := len(job.Warnings)
	job.Warnings = slices.DeleteFunc(job.Warnings, func(w *storagev1.Warning) bool { return w.Level >= level })
	for _, text := range texts {
		job.Warnings = append(job.Warnings, &storagev1.Warning{Level: level, Text: clip(text)})
	}
	if before > 0 || len(texts) > 0 {
		tx.Set(j.keys.Job(id), encode(job))
	}
	return nil
}

func (p *planner) step(ctx context.Context) error {
	switch {
	case p.next.Bins != nil:
		return p.bins(ctx)
	case p.next.Level == 1 && p.next.Group == 0:
		last, err := p.lastMap(ctx, p.tx)
		if err != nil {
			return err
		}
		p.plant(mapreduce.FinalUnit, mapreduce.KindFinal, &storagev1.Inputs{End: last + 1, MapEnd: last + 1})
		return nil
	case p.next.Level == 1:
		return p.groupMaps(ctx)
	}
	below := unitsOf(p.ctl, p.next.Level-1)
	if p.next.Group == 0 {
		all, err := p.groups(ctx, 1, below, below)
		for _, in := range all {
			p.plant(mapreduce.FinalUnit, mapreduce.KindFinal, in)
		}
		return err
	}
	all, err := p.groups(ctx, p.next.Units, p.next.Group, below)
	p.plantReduces(all)
	return err
}

// groups returns what the next of a level's units take, as far as there is room:
// each so many in a row of those below, themselves reduces.
func (p *planner) groups(ctx context.Context, units, group, below int64) ([]*storagev1.Inputs, error) {
	var all []*storagev1.Inputs
	for i := p.cursor.Planned; i < units && len(all) < p.room; i++ {
		all = append(all, &storagev1.Inputs{First: i * group, End: min((i+1)*group, below)})
	}
	return all, p.mapped(ctx, all...)
}

const (
	pickChunk = 4096   // indexes in one value: a gap of map units takes three bytes or four
	stepPicks = 65_536 // in one transaction
)

// bins plans reduces over units that were picked. A bin may hold any number of
// them, so their indexes stand under keys of their own, which may take several
// steps; the unit comes with the last of them.
func (p *planner) bins(ctx context.Context) error {
	c, left := p.cursor, stepPicks
	var full []*storagev1.Inputs
	for len(full) < p.room && left > 0 {
		at := c.Planned + int64(len(full))
		if at == p.next.Units {
			break
		}
		bin := p.next.Bins[at]
		for c.Picked < int64(len(bin)) && left > 0 {
			part := bin[c.Picked:min(int(c.Picked)+min(pickChunk, left), len(bin))]
			p.tx.Set(p.keys.Picks(p.id, p.next.Level, at, part[0]), encode(picks(part)))
			c.Picked += int64(len(part))
			left -= len(part)
		}
		if c.Picked == int64(len(bin)) {
			first, end := bin[0], bin[len(bin)-1]+1
			full = append(full, &storagev1.Inputs{First: first, End: end, MapFirst: first, MapEnd: end, Picked: c.Picked})
			c.Picked = 0
		}
	}
	if p.next.Level > 1 {
		if err := p.mapped(ctx, full...); err != nil {
			return err
		}
	}
	p.plantReduces(full)
	return nil
}

// plantReduces plans the next reduces, with what each takes.
func (p *planner) plantReduces(all []*storagev1.Inputs) {
	for _, in := range all {
		p.plant(mapreduce.ReduceUnit(int(p.next.Level), int(p.cursor.Planned)), mapreduce.KindReduce, in)
	}
}

func picks(indexes []int64) *storagev1.Picks {
	m := &storagev1.Picks{First: indexes[0]}
	for i := 1; i < len(indexes); i++ {
		m.Gaps = append(m.Gaps, indexes[i]-indexes[i-1])
	}
	return m
}

func (p *planner) lastMap(ctx context.Context, r store.Reader) (int64, error) {
	pairs, _, err := r.GetRange(ctx, p.keys.OrderFrom(p.id, 0, 0), store.RangeOptions{Limit: 1, Reverse: true})
	if err != nil || len(pairs) == 0 {
		return 0, err
	}
	return p.index(pairs[0].Key)
}

func (p *planner) index(key []byte) (int64, error) {
	_, rest, err := p.keys.Last(key)
	if err != nil {
		return 0, err
	}
	return lastInt(rest)
}

func lastInt(rest tuple.Reader) (int64, error) {
	rest.Skip()
	rest.Skip()
	n := rest.Int()
	return n, rest.Err()
}

// groupMaps plans reduces over runs of Group map units in order. The order does
// not change any more, so a snapshot of it will do.
// A group is planned in one step, however large it is.
func (p *planner) groupMaps(ctx context.Context) error {
	r := p.keys.OrderFrom(p.id, 0, p.cursor.Cursor)
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
			if last, err = p.index(kv.Key); err != nil {
				return err
			}
			if size++; size == 1 {
				first = last
			}
			if size < p.next.Group {
				continue
			}
			p.plantMaps(first, last)
			if size, planned = 0, planned+1; planned == p.room {
				return nil
			}
		}
		if more {
			r.Begin = store.Single(pairs[len(pairs)-1].Key).End
		}
	}
	if size > 0 {
		p.plantMaps(first, last)
	}
	return nil
}

// plantMaps plans the next reduce over the map units with indexes from first to
// last.
func (p *planner) plantMaps(first, last int64) {
	unit := mapreduce.ReduceUnit(1, int(p.cursor.Planned))
	p.plant(unit, mapreduce.KindReduce, &storagev1.Inputs{First: first, End: last + 1, MapFirst: first, MapEnd: last + 1})
	p.cursor.Cursor = last + 1
}

// mapped tells inputs that are reduces which map units these stand for: from the
// first of their first to the last of their last, read all together.
func (p *planner) mapped(ctx context.Context, all ...*storagev1.Inputs) error {
	below := int(p.next.Level - 1)
	ids := make([]mapreduce.UnitID, 0, 2*len(all))
	for _, in := range all {
		ids = append(ids, mapreduce.ReduceUnit(below, int(in.First)), mapreduce.ReduceUnit(below, int(in.End-1)))
	}
	ends, err := p.unitsNamed(ctx, p.tx.Snapshot(), p.id, ids)
	if err != nil {
		return err
	}
	if len(ends) < len(ids) {
		return corrupt(p.keys.Unit(p.id, ids[0]), "level %d of %s lacks some of units %d to %d", below, p.id, all[0].First, all[len(all)-1].End-1)
	}
	for i, in := range all {
		in.MapFirst, in.MapEnd = ends[2*i].Inputs.GetMapFirst(), ends[2*i+1].Inputs.GetMapEnd()
	}
	return nil
}

func (p *planner) plant(unit mapreduce.UnitID, kind mapreduce.UnitKind, in *storagev1.Inputs) {
	shards := max(1, p.ctl.Shards)
	p.Jobs.plant(p.tx, p.id, &storagev1.Unit{
		UnitId: string(unit), Kind: uint32(kind), Level: p.next.Level, Index: p.cursor.Planned,
		Inputs: in, Queue: &storagev1.Queue{Shard: p.cursor.Planned % shards},
	})
	p.cursor.Planned++
}
