package storetest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/store"
)

func limitChecks() []Check {
	return []Check{
		{Name: "the longest key and value", check: longestKeyValue},
		{Name: "a key too large", check: keyTooLarge},
		{Name: "a value too large", check: valueTooLarge},
		{Name: "a transaction near the limit", check: largeTx},
		{Name: "a transaction too large", check: txTooLarge},
		{Name: "conflict ranges count as size", check: conflictsTooLarge},
		{Name: "keys that begin with 0xFF are reserved", check: reservedKeys},
	}
}

// longKey is a key of n bytes.
func (e *env) longKey(n int) []byte {
	return append(e.prefixedKey(""), bytes.Repeat([]byte("k"), n-len(e.prefix))...)
}

func longestKeyValue(e *env) {
	key, value := e.longKey(store.MaxKeySize), bytes.Repeat([]byte("v"), store.MaxValueSize)
	a := e.begin()
	a.wantMissing(strings.TrimPrefix(string(key), e.prefix))
	a.Set(key, value)
	a.commit()

	b := e.begin()
	got, err := b.Get(e.ctx, key)
	e.must("get", err)
	e.wantEqual("size of the value", len(got), len(value))
	b.wantRange(store.Single(key), store.RangeOptions{}, false, string(key[len(e.prefix):]), string(value))

	b.AddReadConflict(store.Single(key))
	b.AddWriteConflict(store.Single(key))
	b.ClearRange(store.Single(key))
	b.commit()
	e.wantContents()
}

func keyTooLarge(e *env) {
	key := e.longKey(store.MaxKeySize + 1)
	for name, write := range map[string]func(tx store.Tx){
		"set":         func(tx store.Tx) { tx.Set(key, nil) },
		"clear":       func(tx store.Tx) { tx.Clear(key) },
		"clear range": func(tx store.Tx) { tx.ClearRange(store.Range{Begin: key, End: e.allKeys().End}) },
		"add":         func(tx store.Tx) { tx.Add(key, 1) },
		"stamped":     func(tx store.Tx) { tx.SetVersionstampedKey(key, len(e.prefix), nil) },
	} {
		a := e.begin()
		a.set("a", "1")
		write(a.Tx)
		a.set("b", "1")
		e.wantErr(name, a.Commit(e.ctx), store.ErrKeyTooLarge)
	}

	e.wantContents()
}

func valueTooLarge(e *env) {
	value := make([]byte, store.MaxValueSize+1)
	a := e.begin()
	a.set("a", "1")
	a.Set(e.prefixedKey("b"), value)
	e.wantErr("set", a.Commit(e.ctx), store.ErrValueTooLarge)
	b := e.begin()
	b.SetVersionstampedKey(e.prefixedKey("c"+placeholder), len(e.prefix)+1, value)
	e.wantErr("stamped", b.Commit(e.ctx), store.ErrValueTooLarge)
	e.wantContents()
}

// fillValues sets so many values of nearly the largest size.
func (a *actor) fillValues(n int) {
	value := make([]byte, store.MaxValueSize-store.MaxKeySize)
	for i := range n {
		a.Set(a.env.prefixedKey(fmt.Sprint("fill", i)), value)
	}
}

func largeTx(e *env) {
	const n = store.MaxTxSize/(store.MaxValueSize-store.MaxKeySize) - 2
	a := e.begin()
	a.fillValues(n)
	a.commit()
	b := e.begin()
	b.wantGet("fill0", strings.Repeat("\x00", store.MaxValueSize-store.MaxKeySize))
	b.ClearRange(e.allKeys())
	b.commit()
}

func txTooLarge(e *env) {
	a := e.begin()
	a.fillValues(store.MaxTxSize/(store.MaxValueSize-store.MaxKeySize) + 1)
	e.wantErr("commit", a.Commit(e.ctx), store.ErrTxTooLarge)
	e.wantContents()
}

func conflictsTooLarge(e *env) {
	for name, add := range map[string]func(tx store.Tx, r store.Range){
		"read conflicts":  store.Tx.AddReadConflict,
		"write conflicts": store.Tx.AddWriteConflict,
		"cleared ranges":  store.Tx.ClearRange,
	} {
		a := e.begin()
		a.set("a", "1")
		for i := range store.MaxTxSize/store.MaxKeySize + 1 {
			key := e.longKey(store.MaxKeySize)
			copy(key[len(e.prefix):], fmt.Sprintf("%05d", i))
			add(a.Tx, store.Single(key))
		}

		e.wantErr(name, a.Commit(e.ctx), store.ErrTxTooLarge)
	}

	e.wantContents()
}

func reservedKeys(e *env) {
	key := []byte("\xff" + e.prefix)
	for name, write := range map[string]func(tx store.Tx){
		"set":         func(tx store.Tx) { tx.Set(key, nil) },
		"clear":       func(tx store.Tx) { tx.Clear(key) },
		"clear range": func(tx store.Tx) { tx.ClearRange(store.Prefixed(key)) },
		"add":         func(tx store.Tx) { tx.Add(key, 1) },
		"stamped":     func(tx store.Tx) { tx.SetVersionstampedKey([]byte("\xff"+placeholder), 1, nil) },
	} {
		a := e.begin()
		a.set("a", "1")
		write(a.Tx)
		e.wantErr(name, a.Commit(e.ctx), store.ErrReservedKey)
	}

	_, err := e.begin().Get(e.ctx, key)
	e.wantErr("get", err, store.ErrReservedKey)
	_, _, err = e.begin().GetRange(e.ctx, store.Prefixed(key), store.RangeOptions{})
	e.wantErr("get range", err, store.ErrReservedKey)
	// A range may end where the reserved keys begin.
	_, _, err = e.begin().GetRange(e.ctx, store.Range{Begin: e.prefixedKey(""), End: []byte{0xff}}, store.RangeOptions{Limit: 1})
	e.must("get range up to what is reserved", err)

	e.wantContents()
}
