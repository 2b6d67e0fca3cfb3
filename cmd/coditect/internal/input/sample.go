package input

import (
	"bytes"
	"container/heap"
	"context"
	"slices"
)

// sample takes n of all documents: those whose ids have the smallest hashes, so
// that the choice is spread over the input and the same each time. It keeps n
// sources, of which only those from lines have been read.
func (r *reader) sample(ctx context.Context, n int, take func(source) error) error {
	var chosen draw
	at := 0
	err := r.sources(ctx, func(s source) error {
		heap.Push(&chosen, ticket{digestOf(s.id), at, s})
		if at++; len(chosen) > n {
			heap.Pop(&chosen)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(chosen, func(a, b ticket) int { return a.at - b.at })
	for _, t := range chosen {
		if err := take(t.source); err != nil {
			return err
		}
	}
	return nil
}

// A ticket is a document in a draw.
type ticket struct {
	digest digest
	at     int // in the order of the input
	source source
}

// A draw is a heap with the largest digest on top.
type draw []ticket

func (d draw) Len() int           { return len(d) }
func (d draw) Less(i, j int) bool { return bytes.Compare(d[i].digest[:], d[j].digest[:]) > 0 }
func (d draw) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *draw) Push(x any)        { *d = append(*d, x.(ticket)) }
func (d *draw) Pop() any {
	last := len(*d) - 1
	t := (*d)[last]
	(*d)[last] = ticket{}
	*d = (*d)[:last]
	return t
}
