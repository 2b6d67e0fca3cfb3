package pebble

import (
	"bytes"
	"context"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/coditect/mapreduce/store"
)

// A merge walks the pairs that are stored and those that a transaction has
// written, both in one order.
type merge struct {
	writes  *writes
	own     []string // keys that the writes touch and that are still to come, ascending
	iter    *pebbledb.Iterator
	reverse bool
	arena   arena
}

// pollEvery is how many stored pairs are read between looks at the context.
const pollEvery = 1024

// collect reads pairs until a bound of o.
func (m *merge) collect(ctx context.Context, o store.RangeOptions) (pairs []store.KeyValue, more bool, err error) {
	size := 0
	m.first()
	for n := 1; ; n++ {
		if n%pollEvery == 0 && ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		pair, some, err := m.next()
		if err != nil || !some {
			return pairs, false, err
		}
		if pair.Key == nil {
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

func (m *merge) first() {
	if m.reverse {
		m.iter.Last()
	} else {
		m.iter.First()
	}
	m.skipCleared()
}

// step moves on to the next stored pair that the writes have not cleared.
func (m *merge) step() {
	if m.reverse {
		m.iter.Prev()
	} else {
		m.iter.Next()
	}
	m.skipCleared()
}

func (m *merge) skipCleared() {
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
func (m *merge) next() (pair store.KeyValue, some bool, err error) {
	stored := m.iter.Valid()
	if err := m.iter.Error(); err != nil {
		return pair, false, readError(err)
	}
	if len(m.own) == 0 && !stored {
		return pair, false, nil
	}
	if order := m.compare(stored); order < 0 {
		return m.stored()
	} else if order > 0 {
		return m.written(nil), true, nil
	}
	base, err := m.iter.ValueAndErr()
	if err != nil {
		return pair, false, readError(err)
	}
	pair = m.written(base)
	m.step()
	return pair, true, nil
}

// compare returns below zero when the stored pair comes first, above zero when
// the written one does, and zero when they are of the same key.
func (m *merge) compare(stored bool) int {
	switch {
	case len(m.own) == 0:
		return -1
	case !stored:
		return 1
	}
	order := bytes.Compare(m.iter.Key(), []byte(m.upcoming()))
	if m.reverse {
		return -order
	}
	return order
}

// upcoming returns the next of own.
func (m *merge) upcoming() string {
	if m.reverse {
		return m.own[len(m.own)-1]
	}
	return m.own[0]
}

func (m *merge) stored() (pair store.KeyValue, some bool, err error) {
	value, err := m.iter.ValueAndErr()
	if err != nil {
		return pair, false, readError(err)
	}
	pair = store.KeyValue{Key: m.arena.copy(m.iter.Key()), Value: m.arena.copy(value)}
	m.step()
	return pair, true, nil
}

// written takes the next of own and returns what the writes make of base.
func (m *merge) written(base []byte) (pair store.KeyValue) {
	key := m.upcoming()
	if m.reverse {
		m.own = m.own[:len(m.own)-1]
	} else {
		m.own = m.own[1:]
	}
	if value := m.writes.points[key].over(base); value != nil {
		pair = store.KeyValue{Key: m.arena.copy([]byte(key)), Value: m.arena.copy(value)}
	}
	return pair
}
