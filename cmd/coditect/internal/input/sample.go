package input

import (
	"bytes"
	"container/heap"
	"context"
	"slices"
)

// sampleSources chooses the n documents whose ids have the smallest hashes, so that
// the choice is spread over the input and the same each time. It keeps n sources. Of
// these only the ones from lines have been read.
func (r *reader) sampleSources(ctx context.Context, n int, take func(source) error) error {
	var chosen sampleHeap
	at := 0
	err := r.eachSource(ctx, func(s source) error {
		heap.Push(&chosen, sampleEntry{digestOf(s.id), at, s})
		// The document with the largest hash leaves.
		if at++; len(chosen) > n {
			heap.Pop(&chosen)
		}
		return nil
	})
	if err != nil {
		return err
	}

	slices.SortFunc(chosen, func(a, b sampleEntry) int { return a.at - b.at })
	for _, t := range chosen {
		if err := take(t.source); err != nil {
			return err
		}
	}
	return nil
}

// A sampleEntry is a document in a sampleHeap.
type sampleEntry struct {
	digest digest
	at     int // in the order of the input
	source source
}

// A sampleHeap is a heap with the largest digest on top.
type sampleHeap []sampleEntry

func (h sampleHeap) Len() int           { return len(h) }
func (h sampleHeap) Less(i, j int) bool { return bytes.Compare(h[i].digest[:], h[j].digest[:]) > 0 }
func (h sampleHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *sampleHeap) Push(x any)        { *h = append(*h, x.(sampleEntry)) }
func (h *sampleHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = sampleEntry{}
	*h = (*h)[:last]
	return t
}
