// Package pack divides items by their sizes under a budget: outputs into the bins of
// a level of reduction, and the input of one unit into calls of a model; and it cuts the
// text of a document into pieces that fit a unit of work. The cores of the pieces, joined,
// are the document. Around its core each piece holds a little of its neighbours as context.
//
// It is pure and imports nothing of the project. Sizes and budgets are in tokens. A
// negative size counts as 0, a budget below 1 as 1. Whatever the sizes, no item is
// dropped or shortened.
package pack

import (
	"cmp"
	"math"
	"slices"
)

// A Bin is a group of items that one unit reads together.
type Bin struct {
	Items []int // positions in the sizes that were packed, in the order of packing
	Size  int64 // of all of them
	Over  bool  // a single item, larger than the budget
}

// Sum adds sizes. It returns the largest int64 if the sum is larger.
func Sum(sizes ...int64) int64 {
	total := int64(0)
	for _, s := range sizes {
		if s = max(0, s); s > math.MaxInt64-total {
			return math.MaxInt64
		}
		total += s
	}
	return total
}

// Decreasing packs by first-fit decreasing: the largest item first, each into the
// first bin with room. It uses few bins, at most 11/9 of the fewest and one more
// (Johnson 1973), and loses the order of the items. Items of equal size are packed
// in order. An item larger than the budget has a bin of its own. It takes n log n
// steps.
func Decreasing(sizes []int64, budget int64) []Bin {
	budget = max(1, budget)
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })

	var bins []Bin
	free := newFreeSpace(len(sizes), budget)
	for _, i := range order {
		size := max(0, sizes[i])
		if size > budget {
			// The largest come first, so all bins so far hold such items.
			free.reduceSpace(len(bins), budget+1)
			bins = append(bins, Bin{Items: []int{i}, Size: size, Over: true})
			continue
		}

		at := free.firstFit(size)
		if at == len(bins) {
			bins = append(bins, Bin{})
		}
		free.reduceSpace(at, size)
		bins[at].Items = append(bins[at].Items, i)
		bins[at].Size += size
	}
	return bins
}

// InOrder packs runs of neighbours: each item goes into the bin of the item before
// it if there is room, and otherwise begins the next. No packing that keeps the
// order uses fewer bins. An item larger than the budget has a bin of its own.
func InOrder(sizes []int64, budget int64) []Bin {
	budget = max(1, budget)

	var bins []Bin
	for i, size := range sizes {
		size = max(0, size)
		if n := len(bins) - 1; n >= 0 && !bins[n].Over && size <= budget-bins[n].Size {
			bins[n].Items = append(bins[n].Items, i)
			bins[n].Size += size
			continue
		}
		bins = append(bins, Bin{Items: []int{i}, Size: size, Over: size > budget})
	}
	return bins
}

// freeSpace holds the free space of each bin, and finds the first bin with enough. It
// is a binary tree in an array. Each node is the greatest free space below it.
type freeSpace struct {
	leaves int // a power of two; the leaves are most[leaves:]
	most   []int64
}

// newFreeSpace returns the rooms of n bins, all of them empty.
func newFreeSpace(n int, budget int64) freeSpace {
	leaves := 1
	for leaves < n {
		leaves *= 2
	}
	f := freeSpace{leaves: leaves, most: make([]int64, 2*leaves)}
	for i := range f.most {
		f.most[i] = budget
	}
	return f
}

// firstFit returns the first bin with room for size. There always is one, because
// there are as many bins as items.
func (f freeSpace) firstFit(size int64) int {
	at := 1
	for at < f.leaves {
		if at *= 2; f.most[at] < size {
			at++
		}
	}
	return at - f.leaves
}

func (f freeSpace) reduceSpace(bin int, size int64) {
	at := f.leaves + bin
	f.most[at] -= size
	for at /= 2; at > 0; at /= 2 {
		f.most[at] = max(f.most[2*at], f.most[2*at+1])
	}
}
