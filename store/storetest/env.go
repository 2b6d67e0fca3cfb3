package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store"
)

// An env is the environment of one run of a check: a store, and an empty part of its
// key space. Its methods end the check on failure, as those of testing.T do. Only
// the goroutine of the check may call them.
type env struct {
	ctx    context.Context
	store  store.Store
	prefix string
	begun  []*actor // transactions to discard when the check ends
}

// A brokenClause is the panic value that ends a check.
type brokenClause struct{ err error }

func (e *env) runCheck(check func(e *env)) (err error) {
	defer func() {
		for _, a := range e.begun {
			a.Discard()
		}
		switch r := recover().(type) {
		case nil:
		case brokenClause:
			err = r.err
		default:
			panic(r)
		}
	}()

	e.must("clear", clearBelow(e.ctx, e.store, e.prefix))
	check(e)
	return nil
}

// fail ends the check. It wraps an error that is a fault of the store, so that the
// check may run again.
func (e *env) fail(format string, args ...any) {
	panic(brokenClause{fmt.Errorf(format, args...)})
}

// must ends the check if err is not nil.
func (e *env) must(op string, err error) {
	if err != nil {
		e.fail("%s: %w", op, err)
	}
}

// wantErr ends the check unless err is want.
func (e *env) wantErr(op string, err, want error) {
	switch {
	case errors.Is(err, want):
	case err == nil:
		e.fail("%s: got no error, want %v", op, want)
	default:
		e.fail("%s: got error %w, want %v", op, err, want)
	}
}

// wantEqual ends the check unless got is want.
func (e *env) wantEqual(what string, got, want any) {
	if d := cmp.Diff(want, got); d != "" {
		e.fail("%s differs (-want +got):\n%s", what, d)
	}
}

// maxBackoff keeps the suite quick under faults.
const maxBackoff = 5 * time.Millisecond

// retryingDB returns a DB that retries transactions until they commit, even under
// faults.
func (e *env) retryingDB() *store.DB {
	return store.NewDB(e.store, store.Config{MaxBackoff: maxBackoff})
}

// clearBelow removes the keys below prefix that an earlier run left. It reads the
// range that it clears, so that a clear which commits late conflicts.
func clearBelow(ctx context.Context, s store.Store, prefix string) error {
	below := store.Prefixed([]byte(prefix))
	return store.NewDB(s, store.Config{MaxBackoff: maxBackoff}).Update(ctx, func(tx store.Tx) error {
		left, _, err := tx.GetRange(ctx, below, store.RangeOptions{Limit: 1})
		if len(left) > 0 {
			tx.AddReadConflict(below)
			tx.ClearRange(below)
		}
		return err
	})
}

func (e *env) prefixedKey(name string) []byte { return []byte(e.prefix + name) }

// prefixedRange returns the range of the keys from begin to end, given without
// the prefix.
func (e *env) prefixedRange(begin, end string) store.Range {
	return store.Range{Begin: e.prefixedKey(begin), End: e.prefixedKey(end)}
}

// allKeys returns the range of all keys of the check.
func (e *env) allKeys() store.Range { return store.Prefixed([]byte(e.prefix)) }

// put commits pairs of a key and a value.
func (e *env) put(pairs ...string) {
	a := e.begin()
	for i := 0; i < len(pairs); i += 2 {
		a.set(pairs[i], pairs[i+1])
	}
	a.commit()
}

// wantContents checks the whole contents: pairs of a key and a value, in order.
func (e *env) wantContents(pairs ...string) {
	e.begin().wantRange(e.allKeys(), store.RangeOptions{}, false, pairs...)
}

// begin begins a transaction.
func (e *env) begin() *actor {
	tx, err := e.store.Begin(e.ctx)
	e.must("begin", err)
	a := &actor{Tx: tx, env: e}
	e.begun = append(e.begun, a)
	return a
}

// An actor is one of the transactions of a check.
type actor struct {
	store.Tx
	env *env
}

// pinVersion fixes the read version of a.
func (a *actor) pinVersion() *actor {
	_, err := a.ReadVersion(a.env.ctx)
	a.env.must("read version", err)
	return a
}

func (a *actor) set(key, value string)     { a.Set(a.env.prefixedKey(key), []byte(value)) }
func (a *actor) clear(key string)          { a.Clear(a.env.prefixedKey(key)) }
func (a *actor) clearRange(b, end string)  { a.ClearRange(a.env.prefixedRange(b, end)) }
func (a *actor) add(key string, n int64)   { a.Add(a.env.prefixedKey(key), n) }
func (a *actor) get(key string) []byte     { return a.env.get(a.Tx, key) }
func (a *actor) snapshotGet(key string)    { a.env.get(a.Snapshot(), key) }
func (a *actor) wantGet(key, value string) { a.env.wantGet(a.Tx, key, value) }
func (a *actor) wantMissing(key string)    { a.env.wantMissing(a.Tx, key) }

func (a *actor) scan(r store.Range, o store.RangeOptions) ([]string, bool) {
	return a.env.scan(a.Tx, r, o)
}

func (a *actor) wantRange(r store.Range, o store.RangeOptions, more bool, pairs ...string) {
	a.env.wantRange(a.Tx, r, o, more, pairs...)
}

// commit commits and expects success.
func (a *actor) commit() { a.env.must("commit", a.Commit(a.env.ctx)) }

// wantConflict commits and expects a conflict with another transaction.
func (a *actor) wantConflict() {
	a.env.wantErr("commit", a.Commit(a.env.ctx), store.ErrConflict)
}

func (e *env) get(r store.Reader, key string) []byte {
	value, err := r.Get(e.ctx, e.prefixedKey(key))
	e.must(fmt.Sprintf("get %q", key), err)
	return value
}

func (e *env) wantGet(r store.Reader, key, value string) {
	got := e.get(r, key)
	if got == nil {
		e.fail("get %q: got nothing, want %q", key, value)
	}
	e.wantEqual(fmt.Sprintf("value of %q", key), string(got), value)
}

func (e *env) wantMissing(r store.Reader, key string) {
	if got := e.get(r, key); got != nil {
		e.fail("get %q: got %q, want nothing", key, got)
	}
}

// scan returns the pairs of r, flat, their keys without the prefix.
func (e *env) scan(r store.Reader, keys store.Range, o store.RangeOptions) (flat []string, more bool) {
	pairs, more, err := r.GetRange(e.ctx, keys, o)
	e.must("get range", err)

	for _, kv := range pairs {
		name, ok := strings.CutPrefix(string(kv.Key), e.prefix)
		if !ok {
			e.fail("get range: got key %q outside of [%q, %q)", kv.Key, keys.Begin, keys.End)
		}
		if kv.Value == nil {
			e.fail("get range: key %q has a nil value", name)
		}
		flat = append(flat, name, string(kv.Value))
	}

	return flat, more
}

func (e *env) wantRange(r store.Reader, keys store.Range, o store.RangeOptions, more bool, pairs ...string) {
	got, gotMore := e.scan(r, keys, o)
	e.wantEqual(fmt.Sprintf("range [%q, %q) %+v", keys.Begin, keys.End, o), got, pairs)
	if gotMore != more {
		e.fail("range [%q, %q) %+v: got more %v, want %v", keys.Begin, keys.End, o, gotMore, more)
	}
}

// encodeNumber encodes n as Add does.
func encodeNumber(n int64) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func numberOf(value []byte) int64 {
	if len(value) != 8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(value))
}
