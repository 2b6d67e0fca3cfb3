package pebble

import (
	"bytes"
	"context"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/coditect/mapreduce/store"
)

// A mergeIterator walks the pairs that are stored and those that a transaction has
// written, both in one order.
type mergeIterator struct {
	writes  *writes
	ownKeys []string // keys of the writes that are not yet visited, ascending
	iter    *pebbledb.Iterator
	reverse bool
	arena   arena
}

// pollEvery is how many pairs are read between two checks of the context.
const pollEvery = 1024

// collectPairs reads pairs until a bound of o is reached.
func (m *mergeIterator) collectPairs(ctx context.Context, o store.RangeOptions) (pairs []store.KeyValue, more bool, err error) {
	size := 0
	m.seekFirst()
	for n := 1; ; n++ {
		if n%pollEvery == 0 && ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}

		pair, some, err := m.next()
		if err != nil || !some {
			return pairs, false, err
		}
		if pair.Key == nil {
			// The transaction has removed the key.
			continue
		}

		if pairs == nil {
			pairs = make([]store.KeyValue, 0, min(max(o.Limit, 1), 256))
		}
		pairs = append(pairs, pair)
		size += len(pair.Key) + len(pair.Value)

		if len(pairs) == o.Limit || o.Bytes > 0 && size >= o.Bytes {
			return pairs, true, nil
		}
	}
}

func (m *mergeIterator) seekFirst() {
	if m.reverse {
		m.iter.Last()
	} else {
		m.iter.First()
	}
	m.skipCleared()
}

// nextStored moves to the next stored pair that the writes have not cleared.
func (m *mergeIterator) nextStored() {
	if m.reverse {
		m.iter.Prev()
	} else {
		m.iter.Next()
	}
	m.skipCleared()
}

func (m *mergeIterator) skipCleared() {
	cleared := m.writes.cleared
	for len(cleared) > 0 && m.iter.Valid() {
		i := clearedAfter(cleared, m.iter.Key())
		if i == len(cleared) || bytes.Compare(cleared[i].Begin, m.iter.Key()) > 0 {
			return
		}

		if m.reverse {
			m.iter.SeekLT(cleared[i].Begin)
		} else {
			m.iter.SeekGE(cleared[i].End)
		}
	}
}

// next returns the next pair, with a nil key if the writes removed it, and
// whether there was one.
func (m *mergeIterator) next() (pair store.KeyValue, some bool, err error) {
	stored := m.iter.Valid()
	if err := m.iter.Error(); err != nil {
		return pair, false, readError(err)
	}
	if len(m.ownKeys) == 0 && !stored {
		return pair, false, nil
	}

	if order := m.compareNext(stored); order < 0 {
		return m.takeStored()
	} else if order > 0 {
		return m.takeWritten(nil), true, nil
	}

	// Both have the key: the writes apply to the stored value.
	base, err := m.iter.ValueAndErr()
	if err != nil {
		return pair, false, readError(err)
	}

	pair = m.takeWritten(base)
	m.nextStored()
	return pair, true, nil
}

// compareNext returns a negative number if the stored pair comes first, a positive
// one if the written pair does, and zero if both have the same key.
func (m *mergeIterator) compareNext(stored bool) int {
	switch {
	case len(m.ownKeys) == 0:
		return -1
	case !stored:
		return 1
	}

	order := bytes.Compare(m.iter.Key(), []byte(m.nextOwnKey()))
	if m.reverse {
		return -order
	}
	return order
}

// nextOwnKey returns the next of ownKeys.
func (m *mergeIterator) nextOwnKey() string {
	if m.reverse {
		return m.ownKeys[len(m.ownKeys)-1]
	}
	return m.ownKeys[0]
}

func (m *mergeIterator) takeStored() (pair store.KeyValue, some bool, err error) {
	value, err := m.iter.ValueAndErr()
	if err != nil {
		return pair, false, readError(err)
	}
	pair = store.KeyValue{Key: m.arena.copyBytes(m.iter.Key()), Value: m.arena.copyBytes(value)}
	m.nextStored()
	return pair, true, nil
}

// takeWritten removes the next of ownKeys and applies its writes to base, the
// stored value.
func (m *mergeIterator) takeWritten(base []byte) (pair store.KeyValue) {
	key := m.nextOwnKey()
	if m.reverse {
		m.ownKeys = m.ownKeys[:len(m.ownKeys)-1]
	} else {
		m.ownKeys = m.ownKeys[1:]
	}
	if value := m.writes.points[key].applyTo(base); value != nil {
		pair = store.KeyValue{Key: m.arena.copyBytes([]byte(key)), Value: m.arena.copyBytes(value)}
	}
	return pair
}
