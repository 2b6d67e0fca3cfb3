package simulation

import (
	"context"
	"encoding/binary"
	"hash"
	"hash/fnv"

	"github.com/coditect/mapreduce/store"
)

// A witness is a store that adds to a trace what is committed.
type witness struct {
	store.Store
	trace *trace
}

// Begin implements store.Store.
func (w witness) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := w.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &witnessed{Tx: tx, trace: w.trace, written: fnv.New64a()}, nil
}

// A witnessed transaction remembers what it writes, as a hash.
type witnessed struct {
	store.Tx
	trace   *trace
	written hash.Hash64
	writes  int
}

// add remembers one write.
func (w *witnessed) add(op byte, parts ...[]byte) {
	w.writes++
	_, _ = w.written.Write([]byte{op}) // a hash never fails
	for _, p := range parts {
		_, _ = w.written.Write(binary.AppendUvarint(nil, uint64(len(p))))
		_, _ = w.written.Write(p)
	}
}

// Set implements store.Tx.
func (w *witnessed) Set(key, value []byte) {
	w.add('s', key, value)
	w.Tx.Set(key, value)
}

// Clear implements store.Tx.
func (w *witnessed) Clear(key []byte) {
	w.add('c', key)
	w.Tx.Clear(key)
}

// ClearRange implements store.Tx.
func (w *witnessed) ClearRange(r store.Range) {
	w.add('r', r.Begin, r.End)
	w.Tx.ClearRange(r)
}

// Add implements store.Tx.
func (w *witnessed) Add(key []byte, delta int64) {
	w.add('a', key, binary.AppendVarint(nil, delta))
	w.Tx.Add(key, delta)
}

// SetVersionstampedKey implements store.Tx.
func (w *witnessed) SetVersionstampedKey(key []byte, offset int, value []byte) {
	w.add('v', key, value)
	w.Tx.SetVersionstampedKey(key, offset, value)
}

// Commit implements store.Tx.
func (w *witnessed) Commit(ctx context.Context) error {
	err := w.Tx.Commit(ctx)
	if w.writes > 0 && err == nil {
		w.trace.note("commit of %d writes, %016x", w.writes, w.written.Sum64())
	}
	return err
}
