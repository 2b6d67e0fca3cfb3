package render

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"
)

// A Span is when a unit ran, as far as it is known.
type Span struct {
	Ended time.Time // at the latest: outcomes are stored some time after their units end
	Took  time.Duration
}

// FitLanes moves ends of spans back in time until at most n of the spans overlap. The
// outcomes of units that ran one after another are stored together, so that without
// this they would seem to have run at once. No span ends later than before, and none
// moves further than the spans behind it need. The order of spans stays.
func FitLanes(spans []Span, n int) {
	lanes := make(laneHeap, max(n, 1))
	for i := range lanes {
		lanes[i] = math.MaxInt64
	}

	order := make([]int, len(spans))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(spans[b].Ended.UnixMicro(), spans[a].Ended.UnixMicro()) })

	for _, i := range order {
		if spans[i].Took <= 0 {
			continue // it overlaps nothing
		}

		// The span goes to the lane that is free until latest, and ends before that lane is
		// in use.
		end := min(spans[i].Ended.UnixMicro(), lanes[0])
		spans[i].Ended = time.UnixMicro(end)
		lanes[0] = end - (spans[i].Took + time.Microsecond - 1).Microseconds()
		heap.Fix(&lanes, 0)
	}
}

// A laneHeap holds for each lane from when on it is in use, in microseconds since 1970,
// the latest first.
type laneHeap []int64

// Len implements sort.Interface.
func (h laneHeap) Len() int { return len(h) }

// Less implements sort.Interface.
func (h laneHeap) Less(i, j int) bool { return h[i] > h[j] }

// Swap implements sort.Interface.
func (h laneHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *laneHeap) Push(x any) { *h = append(*h, x.(int64)) } //nolint:forcetypeassert // only lanes are pushed

// Pop implements heap.Interface.
func (h *laneHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
