package store

import (
	"bytes"
	"context"
	"slices"
)

// MinNear is how many keys there have to be for GetNear to read a range.
const MinNear = 8

// GetNear returns what r.GetAll does, for keys that are likely to be neighbours,
// with small values: a store answers one read of a range sooner than a read of each
// key in it. What else lies between them is read as well, up to as many pairs again
// as there are keys; what lies beyond is read by GetAll, one answer later. So r
// should be a snapshot, and keys that are to conflict be added to the transaction.
func GetNear(ctx context.Context, r Reader, keys [][]byte) ([][]byte, error) {
	if len(keys) < MinNear {
		return r.GetAll(ctx, keys)
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	first, last := keys[order[0]], keys[order[len(order)-1]]
	span := Range{Begin: first, End: Single(last).End}
	pairs, more, err := r.GetRange(ctx, span, RangeOptions{Limit: 2 * len(keys)})
	switch {
	case Retryable(err):
		return nil, err
	case err != nil: // of what may be a neighbour
		return r.GetAll(ctx, keys)
	}
	values := make([][]byte, len(keys))
	for n, i := range order {
		for len(pairs) > 0 && bytes.Compare(pairs[0].Key, keys[i]) < 0 {
			pairs = pairs[1:]
		}
		if len(pairs) == 0 {
			if more {
				return values, getRest(ctx, r, keys, order[n:], values)
			}
			break
		}
		if bytes.Equal(pairs[0].Key, keys[i]) {
			values[i] = pairs[0].Value
		}
	}
	return values, nil
}

// getRest reads the keys at some places.
func getRest(ctx context.Context, r Reader, keys [][]byte, places []int, values [][]byte) error {
	rest := make([][]byte, len(places))
	for n, i := range places {
		rest[n] = keys[i]
	}
	got, err := r.GetAll(ctx, rest)
	if err != nil {
		return err
	}
	for n, i := range places {
		values[i] = got[n]
	}
	return nil
}
