package check

import (
	"bytes"
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// checkInputs checks that the units of each level take all of the level that is their
// source: each unit of it once and in order, or each that is complete if they
// picked them. Units that work on an element of an output, or each on the whole
// source, only have to take units that there are.
func (k *jobCheck) checkInputs(ctx context.Context) error {
	for level := int64(1); level < records.CountLevels(k.before.ctl); level++ {
		c := &inputCheck{jobCheck: k, level: level, source: k.before.ctl.Levels[level].Source}
		if err := c.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// An inputCheck is that of one level.
type inputCheck struct {
	*jobCheck
	level  int64
	source int64 // the level that its units take from
	end    int64 // units of the source up to this one are taken
	picks  bool  // its units picked what they take
	items  bool  // its units work on elements, or on all, of the source
	moved  bool  // the job was planned anew meanwhile
	count  int64 // units of the level seen
	picked int64 // units of the level below that they picked
	digest uint64
}

func (c *inputCheck) run(ctx context.Context) error {
	for more := true; more; {
		var units []*storagev1.Unit
		next := *c
		err := c.Look(ctx, c.id, func(l *walk.Look) error {
			// The transaction may run again, from the same place.
			next = *c
			var err error
			if units, err = next.checkInputPage(ctx, l); err != nil || next.moved {
				return err
			}
			if len(units) > 0 || next.picks || next.items {
				return nil
			}
			return next.allTaken(ctx, l)
		})

		if err != nil || next.moved {
			return err
		}

		*c = next
		more = len(units) > 0
		for _, u := range units {
			if u.Inputs.GetPicked() == 0 {
				continue
			}
			if err := c.pickedBy(ctx, u); err != nil {
				return err
			}
		}
	}

	if c.picks {
		return c.comparePicked(ctx)
	}
	return nil
}

// checkInputPage checks what the next units of the level take.
func (c *inputCheck) checkInputPage(ctx context.Context, l *walk.Look) ([]*storagev1.Unit, error) {
	raw, err := l.Get(ctx, c.Keys.Job(c.id).Ctl())
	if err != nil || !bytes.Equal(raw, c.before.raw) {
		c.moved = true
		return nil, err
	}

	units, err := c.Units.From(ctx, l, c.id, c.level, c.count, l.PageLimit(walk.Page))
	if err != nil {
		return nil, err
	}

	for _, u := range units {
		c.count++
		in := u.Inputs
		if in.GetLevel() != c.source {
			l.Find(c.Keys.Job(c.id).Unit(mapreduce.UnitID(u.UnitId)), "unit %s takes outputs of level %d, but the plan says that its level takes those of level %d", u.UnitId, in.GetLevel(), c.source)
		}

		if u.Item != nil {
			c.items = true
			continue
		}
		if in.GetPicked() > 0 {
			c.picks = true
			continue
		}

		// Reduces have their indexes in a row; those of map units have gaps.
		if in.GetFirst() < c.end || (c.source > 0 && in.GetFirst() != c.end) || in.GetEnd() <= in.GetFirst() {
			l.Find(c.Keys.Job(c.id).Unit(mapreduce.UnitID(u.UnitId)), "unit %s takes units %d to %d of level %d, but the units before it take those up to %d: some are taken twice, or by none",
				u.UnitId, in.GetFirst(), in.GetEnd(), c.source, c.end)
		}

		c.end = in.GetEnd()
	}

	return units, nil
}

func (c *inputCheck) allTaken(ctx context.Context, l *walk.Look) error {
	below := records.UnitsOf(c.before.ctl, c.source)
	// Indexes of map units have gaps, so the last of them counts.
	if c.source == 0 {
		last, err := c.levels.LastMap(ctx, l, c.id)
		if err != nil {
			return err
		}
		below = last + 1
	}

	if c.end != below {
		l.Find(c.Keys.Job(c.id).Ctl(), "level %d takes the units up to %d of level %d, which has %d", c.level, c.end, c.source, below)
	}
	return nil
}

// pickedBy sums up what a reduce picked.
func (c *inputCheck) pickedBy(ctx context.Context, u *storagev1.Unit) error {
	from, count := int64(0), int64(0)
	first, last := int64(-1), int64(-1)

	for {
		var page []int64
		err := c.Look(ctx, c.id, func(l *walk.Look) (err error) {
			page, err = c.levels.PicksFrom(ctx, l, c.id, records.UnitFrom(u), from, l.PageLimit(lifecycle.PickChunk))
			return err
		})
		if err != nil {
			return err
		}

		for _, at := range page {
			// A sum: it does not matter in which order they are visited.
			c.digest += digestOf(at)
		}

		if len(page) == 0 {
			break
		}
		if first < 0 {
			first = page[0]
		}
		last = page[len(page)-1]
		from, count = last+1, count+int64(len(page))
	}

	c.picked += count
	in := u.Inputs
	if count == in.Picked && first == in.First && last+1 == in.End {
		return nil
	}

	return c.Look(ctx, c.id, func(l *walk.Look) error {
		l.Find(c.Keys.Plans(c.id).PicksOf(u.Level, u.Index).Begin, "unit %s says that it takes %d units, from %d to %d, but the list of what it takes has %d, from %d to %d",
			u.UnitId, in.Picked, in.First, in.End-1, count, first, last)
		return nil
	})
}

// comparePicked checks that the units that were picked are those of the level below
// that are complete. None can have become so since: the level had ended.
func (c *inputCheck) comparePicked(ctx context.Context) error {
	complete, digest := int64(0), uint64(0)
	for from, more := int64(0), true; more; {
		var units []*storagev1.Unit
		err := c.Look(ctx, c.id, func(l *walk.Look) (err error) {
			units, err = c.Units.From(ctx, l, c.id, c.source, from, l.PageLimit(walk.Page))
			return err
		})
		if err != nil {
			return err
		}

		more = len(units) > 0
		for _, u := range units {
			if from = u.Index + 1; mapreduce.UnitState(u.Status) == mapreduce.UnitComplete {
				complete++
				digest += digestOf(u.Index)
			}
		}
	}

	if complete == c.picked && digest == c.digest {
		return nil
	}
	return c.Look(ctx, c.id, func(l *walk.Look) error {
		// The job may have been planned anew meanwhile.
		raw, err := l.Get(ctx, c.Keys.Job(c.id).Ctl())
		if err != nil || !bytes.Equal(raw, c.before.raw) {
			return err
		}

		l.Find(c.Keys.Job(c.id).Ctl(), "the units of level %d take %d units of level %d, but must take exactly the %d that are complete",
			c.level, c.picked, c.source, complete)
		return nil
	})
}

// checkPicks checks that what was picked belongs to a unit that picked it.
func (k *jobCheck) checkPicks(ctx context.Context) error {
	return k.WalkRange(ctx, k.id, k.Keys.Plans(k.id).AllPicks(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		ctl, err := k.Jobs.Control(ctx, l, k.id)
		if err != nil {
			return err
		}

		plan := new(storagev1.Plan)
		if _, err := l.Load(ctx, k.Keys.Plans(k.id).Cursor(records.CountLevels(ctl)), plan); err != nil {
			return err
		}

		for _, kv := range page {
			_, rest, err := k.Keys.Last(kv.Key)
			if err != nil {
				return err
			}
			rest.Skip() // the job
			level, index, first := rest.Int(), rest.Int(), rest.Int()
			var m storagev1.Picks
			if !l.Decode(kv.Key, kv.Value, &m) {
				continue
			}

			planned := index < records.UnitsOf(ctl, level) || plan.Level == level && index <= plan.Planned
			if rest.Done() != nil || !planned || m.First != first {
				l.Find(kv.Key, "the inputs from %d on are of no unit; "+deleteRemoves, m.First)
			}
		}
		return nil
	}, nil)
}

// sumWaits sums up what the reduces of a tree wait for. That each waits as long as
// it has to was checked with its record.
func (k *jobCheck) sumWaits(ctx context.Context) error {
	part := make(map[int64]waitSum)
	return k.WalkRange(ctx, k.id, k.Keys.Queues(k.id).Waits(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		// An earlier run of the transaction may have added to it.
		clear(part)
		ctl, err := k.Jobs.Control(ctx, l, k.id)
		if err != nil {
			return err
		}

		for _, kv := range page {
			at, err := k.Units.WaitRef(kv.Key)
			if err != nil {
				return err
			}
			if ctl.Level >= 0 && at.Index >= records.UnitsOf(ctl, at.Level) || at.Level < 1 || len(kv.Value) != 8 {
				l.Find(kv.Key, "no reduce of level %d has the index %d; "+deleteRemoves, at.Level, at.Index)
				continue
			}

			w, sum := keys.Waiting(records.DecodeCount(kv.Value)), part[at.Level]
			part[at.Level] = waitSum{sum.reduces + 1, sum.left + w.Left(), sum.survivors + w.Survivors()}
		}
		return nil
	}, func() error {
		for level, p := range part {
			sum := k.sums.waiting[level]
			k.sums.waiting[level] = waitSum{sum.reduces + p.reduces, sum.left + p.left, sum.survivors + p.survivors}
		}
		return nil
	})
}
