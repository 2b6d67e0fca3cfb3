package review

import (
	"cmp"
	"slices"
	"strings"
)

// leastRoom is how many items are kept before any is forgotten.
const leastRoom = 8 * MaxItems

// gainOfMissing is how likely a value of a field is wrong that a record lacks: the more so, the more others have one.
func (b *Builder) gainOfMissing(field string) float64 {
	if b.records == 0 {
		return 0
	}
	return wrongMissing * float64(b.has[field]) / float64(b.records)
}

// forget forgets the items that are in no queue, however the result goes on: all but those that were decided about, those
// that chance may choose, and of each kind as many as a queue has. What is missing is of a kind by its field, as all of
// it is worth the same.
func (b *Builder) forget() {
	byChance := make([]uint64, len(b.items))
	for i := range b.items {
		byChance[i] = b.items[i].order
	}
	slices.Sort(byChance)
	chosen := min(b.choice.Sample, len(byChance))

	// They are in the order of a queue.
	order := make([]int, len(b.items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(b.items[y].Gain, b.items[x].Gain), strings.Compare(b.items[x].Why, b.items[y].Why))
	})

	keep, worthy, missing := make([]bool, len(b.items)), 0, make(map[string]int)
	for _, i := range order {
		item := &b.items[i]
		sampled := chosen > 0 && item.order <= byChance[chosen-1]
		keep[i] = sampled || item.Verdict != ""
		switch {
		case item.Why == Missing:
			missing[item.Field]++
			keep[i] = keep[i] || missing[item.Field] <= MaxItems
		case item.Gain >= worthwhile:
			worthy++
			keep[i] = keep[i] || worthy <= MaxItems
		}
	}

	kept := b.items[:0]
	for i, item := range b.items {
		switch {
		case keep[i]:
			kept = append(kept, item)
			continue
		case item.Why == Missing:
			b.missing[item.Field]++
		case item.Gain >= worthwhile:
			b.worthy++
		}
		b.forgotten++
	}
	clear(b.items[len(kept):]) // what they named is free
	b.items = kept
	b.room = max(leastRoom, 2*len(kept))
}
