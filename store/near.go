package store

import (
	"bytes"
	"context"
	"slices"
)

// MinNear is how many keys there have to be for GetNear to read a range.
const MinNear = 8

// Near is what GetNear has read.
type Near struct {
	Values [][]byte // of the keys, in their order; nil for those that have none

	keys   [][]byte
	order  []int  // places in keys, by their bytes; nil if no range was read
	joined []bool // at n: no key lies between those of the places order[n-1] and order[n]
}

// GetApart reads what r.GetAll does, for keys that are likely to have others between them.
func GetApart(ctx context.Context, r Reader, keys [][]byte) (*Near, error) {
	near := &Near{keys: keys}
	return near, near.getAll(ctx, r)
}

// GetNear reads what r.GetAll does, for keys that are likely to be neighbours,
// with small values: a store answers one read of a range sooner than a read of each
// key in it. What else lies between them is read as well, up to as many pairs again
// as there are keys; what lies beyond is read by GetAll, one answer later. So r
// should be a snapshot, and keys that are to conflict be added to the transaction,
// by AddConflicts.
func GetNear(ctx context.Context, r Reader, keys [][]byte) (*Near, error) {
	if len(keys) < MinNear {
		return GetApart(ctx, r, keys)
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
		return GetApart(ctx, r, keys)
	}

	near := &Near{keys: keys, order: order}
	if rest := near.match(pairs, more); len(rest) > 0 {
		return near, near.getRest(ctx, r, rest)
	}
	return near, nil
}

// match takes the values of the keys from the pairs of their range, and returns the places
// of the keys that lie behind these pairs, if there are more of them.
func (near *Near) match(pairs []KeyValue, more bool) (rest []int) {
	near.Values, near.joined = make([][]byte, len(near.keys)), make([]bool, len(near.keys))

	var before []byte
	for n, i := range near.order {
		key, joined := near.keys[i], n > 0
		// The pair of the key before is passed over too; any other lies between the two.
		for len(pairs) > 0 && bytes.Compare(pairs[0].Key, key) < 0 {
			joined = joined && bytes.Equal(pairs[0].Key, before)
			pairs = pairs[1:]
		}

		if len(pairs) == 0 && more {
			return near.order[n:]
		}

		if len(pairs) > 0 && bytes.Equal(pairs[0].Key, key) {
			near.Values[i] = pairs[0].Value
		}

		near.joined[n], before = joined, key
	}
	return nil
}

// After returns what GetApart has read of the keys behind the first n.
func (near *Near) After(n int) *Near {
	return &Near{Values: near.Values[n:], keys: near.keys[n:]}
}

func (near *Near) getAll(ctx context.Context, r Reader) (err error) {
	near.Values, err = r.GetAll(ctx, near.keys)
	return err
}

// getRest reads the keys at some places.
func (near *Near) getRest(ctx context.Context, r Reader, places []int) error {
	rest := make([][]byte, len(places))
	for n, i := range places {
		rest[n] = near.keys[i]
	}

	got, err := r.GetAll(ctx, rest)
	if err != nil {
		return err
	}

	for n, i := range places {
		near.Values[i] = got[n]
	}

	return nil
}

// AddConflicts makes tx conflict with writes to the keys at the places that wanted accepts,
// as if it had read these serializably. Wanted keys that have no other between them make one
// range: most of what a commit costs the client and the cluster is the number of its ranges.
// So whoever writes a new key between two of them conflicts too. As AddReadConflict does, it
// leaves out what tx has written: it has to be called before the keys are.
func (near *Near) AddConflicts(tx Tx, wanted func(place int) bool) {
	if near.order == nil {
		for i, key := range near.keys {
			if wanted(i) {
				tx.AddReadConflict(Single(key))
			}
		}
		return
	}

	var first, last []byte // of the range that is being joined; nil if there is none
	end := func() {
		if first != nil {
			tx.AddReadConflict(Range{Begin: first, End: Single(last).End})
		}
		first = nil
	}

	for n, i := range near.order {
		if !near.joined[n] || !wanted(i) {
			end()
		}
		if wanted(i) {
			if last = near.keys[i]; first == nil {
				first = last
			}
		}
	}

	end()
}
