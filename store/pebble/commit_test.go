package pebble_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

func TestCommitsAreSeenOnlyOnceSynced(t *testing.T) {
	gate := newLogGate()
	s := open(t, pebble.Config{FS: gate.fs()})
	set(t, s, "k", "old")

	gate.mu.Lock()
	watched, err := s.Watch(t.Context(), []byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	tx, done := begin(t, s), make(chan error, 1)
	tx.Set([]byte("k"), []byte("new"))
	go func() { done <- tx.Commit(t.Context()) }()
	<-gate.held // written to the log, not synced

	if d := cmp.Diff(map[string]string{"k": "old"}, contents(t, s)); d != "" {
		t.Errorf("before the sync (-want +got):\n%s", d)
	}
	select {
	case <-watched:
		t.Error("the watch fired before the sync")
	case err := <-done:
		t.Errorf("acknowledged before the sync: %v", err)
	default:
	}
	gate.mu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	<-watched
	if d := cmp.Diff(map[string]string{"k": "new"}, contents(t, s)); d != "" {
		t.Errorf("after the sync (-want +got):\n%s", d)
	}
}

// What is not visible yet conflicts all the same.
func TestConflictWithAGroupUnderWay(t *testing.T) {
	gate := newLogGate()
	s := open(t, pebble.Config{FS: gate.fs()})
	gate.mu.Lock()
	first, firstDone := begin(t, s), make(chan error, 1)
	first.Set([]byte("k"), []byte("1"))
	go func() { firstDone <- first.Commit(t.Context()) }()
	<-gate.held

	second, secondDone := begin(t, s), make(chan error, 1)
	if v, err := second.Get(t.Context(), []byte("k")); v != nil || err != nil {
		t.Fatalf("Get = %q, %v, want nothing", v, err)
	}
	second.Set([]byte("k"), []byte("2"))
	go func() { secondDone <- second.Commit(t.Context()) }()
	gate.mu.Unlock()
	if err := <-firstDone; err != nil {
		t.Error(err)
	}
	if err := <-secondDone; !errors.Is(err, store.ErrConflict) {
		t.Errorf("Commit = %v, want a conflict", err)
	}
	if v, err := begin(t, s).Get(t.Context(), []byte("k")); string(v) != "1" || err != nil {
		t.Errorf("after the conflict is known, Get = %q, %v, want 1", v, err)
	}
}

func TestCommitTimesOut(t *testing.T) {
	gate := newLogGate()
	s := open(t, pebble.Config{FS: gate.fs()})
	gate.mu.Lock()
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	tx, done := begin(t, s), make(chan error, 1)
	key := []byte("k")
	tx.Set(key, []byte("v"))
	go func() { done <- tx.Commit(ctx) }()
	<-gate.held
	cancel(reason)
	err := <-done
	if !errors.Is(err, store.ErrTimedOut) || !errors.Is(err, reason) {
		t.Errorf("Commit = %v, want %v because of %v", err, store.ErrTimedOut, reason)
	}
	if _, err := tx.Versionstamp(); !errors.Is(err, store.ErrUnreadable) {
		t.Errorf("Versionstamp of a commit that timed out: %v, want %v", err, store.ErrUnreadable)
	}
	key[0] = 'x' // the transaction has ended, its slices are the caller's again
	gate.mu.Unlock()
	set(t, s, "later", "")
	if d := cmp.Diff(map[string]string{"k": "v", "later": ""}, contents(t, s)); d != "" {
		t.Errorf("the commit lands all the same (-want +got):\n%s", d)
	}
}

func TestEndedContext(t *testing.T) {
	s := open(t, pebble.Config{FS: vfs.NewMem()})
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	tx := begin(t, s)
	tx.Set([]byte("k"), nil)
	cancel(reason)

	if _, err := tx.Get(ctx, []byte("k")); !errors.Is(err, reason) {
		t.Errorf("Get = %v, want %v", err, reason)
	}
	if _, err := s.Watch(ctx, []byte("k")); !errors.Is(err, reason) {
		t.Errorf("Watch = %v, want %v", err, reason)
	}
	if _, err := s.Begin(ctx); !errors.Is(err, reason) {
		t.Errorf("Begin = %v, want %v", err, reason)
	}
	if err := tx.Commit(ctx); !errors.Is(err, reason) || store.Retryable(err) {
		t.Errorf("Commit = %v, want %v: nothing was written", err, reason)
	}
	if d := cmp.Diff(map[string]string{}, contents(t, s)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestTransactionsGrowOld(t *testing.T) {
	now := newClock()
	s := open(t, pebble.Config{FS: vfs.NewMem(), Now: now.Now})
	set(t, s, "k", "v")
	reader, writer, blind := begin(t, s), begin(t, s), begin(t, s)
	now.advance(time.Hour) // their age counts from the first read
	for _, tx := range []store.Tx{reader, writer} {
		if _, err := tx.Get(t.Context(), []byte("k")); err != nil {
			t.Fatal(err)
		}
	}
	now.advance(store.MaxTxAge)
	if _, err := reader.Get(t.Context(), []byte("k")); err != nil {
		t.Errorf("at the greatest age: %v", err)
	}
	now.advance(1)
	if _, err := reader.Get(t.Context(), []byte("k")); !errors.Is(err, store.ErrTooOld) {
		t.Errorf("Get = %v, want %v", err, store.ErrTooOld)
	}
	if _, _, err := reader.Snapshot().GetRange(t.Context(), store.Range{End: []byte("z")}, store.RangeOptions{}); !errors.Is(err, store.ErrTooOld) {
		t.Errorf("GetRange = %v, want %v", err, store.ErrTooOld)
	}
	if err := reader.Commit(t.Context()); err != nil {
		t.Errorf("Commit of a transaction that wrote nothing: %v", err)
	}
	writer.Set([]byte("k"), nil)
	if err := writer.Commit(t.Context()); !errors.Is(err, store.ErrTooOld) {
		t.Errorf("Commit = %v, want %v", err, store.ErrTooOld)
	}
	blind.Set([]byte("blind"), nil)
	if err := blind.Commit(t.Context()); err != nil {
		t.Errorf("Commit of a transaction that read nothing: %v", err)
	}
}

// Conflicts are found over the whole life of a transaction, however often the
// history turned over in it.
func TestConflictsAreFoundUntilMaxTxAge(t *testing.T) {
	now := newClock()
	s := open(t, pebble.Config{FS: vfs.NewMem(), Now: now.Now})
	for age := time.Duration(0); age < store.MaxTxAge; age += store.MaxTxAge / 7 {
		t.Run(fmt.Sprint(age), func(t *testing.T) {
			point, wide := begin(t, s), begin(t, s)
			if _, err := point.Get(t.Context(), []byte("k")); err != nil {
				t.Fatal(err)
			}
			if _, _, err := wide.GetRange(t.Context(), store.Prefixed([]byte("k")), store.RangeOptions{}); err != nil {
				t.Fatal(err)
			}
			set(t, s, "k", "changed")
			now.advance(age)
			set(t, s, "other", "")
			now.advance(store.MaxTxAge - age)
			set(t, s, "other", "")
			for _, tx := range []store.Tx{point, wide} {
				tx.Set([]byte("mine"), nil)
				if err := tx.Commit(t.Context()); !errors.Is(err, store.ErrConflict) {
					t.Errorf("Commit = %v, want a conflict", err)
				}
			}
		})
	}
}

// When there is no memory left to find conflicts with, old transactions are
// refused rather than believed.
func TestHistoryIsBounded(t *testing.T) {
	const limit = 64 << 10
	s := open(t, pebble.Config{FS: vfs.NewMem(), HistorySize: limit})
	tx := begin(t, s)
	if _, err := tx.Get(t.Context(), []byte("k")); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		set(t, s, fmt.Sprintf("%0200d", i), "")
	}
	tx.Set([]byte("mine"), nil)
	if err := tx.Commit(t.Context()); !errors.Is(err, store.ErrTooOld) {
		t.Errorf("Commit = %v, want %v", err, store.ErrTooOld)
	}
	if got := s.Metrics().HistoryBytes; got > limit+limit/8 || got < limit/4 {
		t.Errorf("%d bytes of history are kept, want at most about %d", got, limit)
	}
}

// What waits for a sync is written in groups of bounded size.
func TestGroups(t *testing.T) {
	const waiting, size = 40, 500_000 // bytes
	gate := newLogGate()
	s := open(t, pebble.Config{FS: gate.fs()})
	gate.mu.Lock()
	var all sync.WaitGroup
	for i := range waiting {
		tx := begin(t, s)
		all.Go(func() {
			for j := range size / store.MaxValueSize {
				tx.Set(fmt.Appendf(nil, "%02d/%d", i, j), make([]byte, store.MaxValueSize))
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	<-gate.held
	gate.mu.Unlock()
	all.Wait()
	if got := len(contents(t, s)); got != waiting*size/store.MaxValueSize {
		t.Errorf("%d keys, want %d", got, waiting*size/store.MaxValueSize)
	}
	if m := s.Metrics(); m.Commits != waiting || m.Groups < waiting*size/(5<<20) {
		t.Errorf("metrics %+v after %d commits of %d bytes", m, waiting, size)
	}
}

func TestReservedKeys(t *testing.T) {
	s := open(t, pebble.Config{FS: vfs.NewMem()})
	set(t, s, "k", "v")
	for name, use := range map[string]func(tx store.Tx) error{
		"get":   func(tx store.Tx) error { _, err := tx.Get(t.Context(), []byte("\xffversion")); return err },
		"set":   func(tx store.Tx) error { tx.Set([]byte("\xff"), nil); return tx.Commit(t.Context()) },
		"clear": func(tx store.Tx) error { tx.Clear([]byte("\xffversion")); return tx.Commit(t.Context()) },
		"clear range": func(tx store.Tx) error {
			tx.ClearRange(store.Range{Begin: []byte("k"), End: []byte("\xff\xff")})
			return tx.Commit(t.Context())
		},
		"range": func(tx store.Tx) error {
			_, _, err := tx.GetRange(t.Context(), store.Range{End: []byte("\xff\xff")}, store.RangeOptions{})
			return err
		},
	} {
		if err := use(begin(t, s)); !errors.Is(err, store.ErrReservedKey) {
			t.Errorf("%s: %v, want %v", name, err, store.ErrReservedKey)
		}
	}
	before := s.Metrics().Version
	write(t, s, func(tx store.Tx) { tx.ClearRange(store.Range{End: []byte("\xff")}) })
	if d := cmp.Diff(map[string]string{}, contents(t, s)); d != "" {
		t.Errorf("after clearing everything (-want +got):\n%s", d)
	}
	if got := s.Metrics().Version; got <= before {
		t.Errorf("version %d after clearing everything, was %d", got, before)
	}
}

// Many committers at once: each transaction is there once, and their stamps are
// the order in which they saw each other.
func TestConcurrentCommits(t *testing.T) {
	const committers, each = 16, 50
	s := open(t, pebble.Config{FS: vfs.NewMem()})
	db := store.NewDB(s, store.Config{MaxAttempts: 100_000})
	var all sync.WaitGroup
	for lane := range committers {
		all.Go(func() {
			for i := range each {
				if err := db.Update(t.Context(), func(tx store.Tx) error { return appendLog(t, tx, lane, i) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	pairs, _, err := begin(t, s).GetRange(t.Context(), store.Prefixed([]byte("log/")), store.RangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pairs) != committers*each {
		t.Fatalf("%d entries, want %d", len(pairs), committers*each)
	}
	for i, p := range pairs {
		if got := binary.BigEndian.Uint64(p.Value); got != uint64(i) {
			t.Fatalf("entry %d saw %d before it: stamps are not in the order of commits", i, got)
		}
	}
	value, err := begin(t, s).Get(t.Context(), []byte("sum"))
	if err != nil {
		t.Fatal(err)
	}
	if got := binary.LittleEndian.Uint64(value); got != committers*each {
		t.Errorf("the sum is %d, want %d", got, committers*each)
	}
	m := s.Metrics()
	if m.Commits != committers*each || m.Groups > m.Commits || m.Refused != db.Stats().Conflicts.Load() {
		t.Errorf("metrics %+v after %d commits and %d conflicts", m, committers*each, db.Stats().Conflicts.Load())
	}
}

// appendLog reads a counter, raises it, and logs what it was.
func appendLog(t *testing.T, tx store.Tx, lane, i int) error {
	before, err := tx.Get(t.Context(), []byte("count"))
	if err != nil {
		return err
	}
	if before == nil {
		before = make([]byte, 8)
	}
	n := binary.BigEndian.Uint64(before)
	tx.Set([]byte("count"), binary.BigEndian.AppendUint64(nil, n+1))
	tx.SetVersionstampedKey([]byte("log/0123456789"), 4, before)
	tx.Set(fmt.Appendf(nil, "done/%d/%d", lane, i), nil)
	tx.Add([]byte("sum"), 1)
	return nil
}

// Adds are summed up by Pebble wherever they meet: in memory, in tables, over
// values of any length.
func TestAddsAcrossTables(t *testing.T) {
	fs := vfs.NewMem()
	c := pebble.Config{FS: fs, MemTableSize: 64 << 10}
	want := map[string]uint64{"fresh": 0, "short": 0x0201, "long": 0x0807060504030201, "cleared": 0}
	s := open(t, c)
	write(t, s, func(tx store.Tx) {
		tx.Set([]byte("short"), []byte{1, 2})
		tx.Set([]byte("long"), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
		tx.Set([]byte("cleared"), []byte{9})
		tx.Clear([]byte("cleared"))
	})
	filler := bytes.Repeat([]byte("f"), 20_000)
	for i := range 60 {
		write(t, s, func(tx store.Tx) {
			tx.Set(fmt.Appendf(nil, "filler/%d", i%7), filler)
			for key := range want {
				delta := int64(i*i*1000 - 50_000)
				tx.Add([]byte(key), delta)
				want[key] += uint64(delta)
			}
		})
	}
	mustClose(t, s)
	s = open(t, c)
	for key, sum := range want {
		value, err := begin(t, s).Get(t.Context(), []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(binary.LittleEndian.AppendUint64(nil, sum), value); d != "" {
			t.Errorf("%s (-want +got):\n%s", key, d)
		}
	}
}

func TestClosed(t *testing.T) {
	s, err := pebble.Open("data", pebble.Config{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	reading, unread := begin(t, s), begin(t, s)
	if _, err := reading.Get(t.Context(), []byte("k")); err != nil {
		t.Fatal(err)
	}
	watched, err := s.Watch(t.Context(), []byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	mustClose(t, s) // again
	<-watched
	for name, tx := range map[string]store.Tx{"reading": reading, "unread": unread} {
		if _, err := tx.Get(t.Context(), []byte("k")); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: Get = %v, want %v", name, err, store.ErrClosed)
		}
		tx.Set([]byte("k"), nil)
		if err := tx.Commit(t.Context()); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: Commit = %v, want %v", name, err, store.ErrClosed)
		}
	}
	if _, err := s.Begin(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Begin = %v, want %v", err, store.ErrClosed)
	}
	if _, err := s.Watch(t.Context(), []byte("k")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Watch = %v, want %v", err, store.ErrClosed)
	}
	if m := s.Metrics(); m != (pebble.Metrics{}) {
		t.Errorf("metrics of a closed store: %+v", m)
	}
}

// Close may come at any moment: a commit is then acknowledged and there, or
// refused and not there.
func TestCloseDuringCommits(t *testing.T) {
	for round := range 20 {
		fs := vfs.NewMem()
		s, err := pebble.Open("data", pebble.Config{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		want := closeWhileWriting(t, s)
		if d := cmp.Diff(want, contents(t, open(t, pebble.Config{FS: fs}))); d != "" {
			t.Fatalf("round %d (-acknowledged +stored):\n%s", round, d)
		}
	}
}

// closeWhileWriting returns what was acknowledged.
func closeWhileWriting(t *testing.T, s *pebble.Store) map[string]string {
	var mu sync.Mutex
	acknowledged := make(map[string]string)
	var lanes sync.WaitGroup
	under := make(chan struct{}, 1000)
	for lane := range 8 {
		lanes.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%d/%d", lane, i)
				tx, err := s.Begin(t.Context())
				if err == nil {
					tx.Set([]byte(key), nil)
					err = tx.Commit(t.Context())
				}
				if err != nil {
					if !errors.Is(err, store.ErrClosed) {
						t.Errorf("Commit = %v, want %v", err, store.ErrClosed)
					}
					return
				}
				mu.Lock()
				acknowledged[key] = ""
				mu.Unlock()
				select {
				case under <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 20 {
		<-under
	}
	mustClose(t, s)
	lanes.Wait()
	return acknowledged
}
