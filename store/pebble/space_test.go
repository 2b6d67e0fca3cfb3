package pebble_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

func TestNoSpace(t *testing.T) {
	var free atomic.Uint64
	free.Store(1000)
	now := newClock()
	s := open(t, pebble.Config{
		FS: vfs.NewMem(), MinFree: 1000, Now: now.Now,
		FreeSpace: func() (uint64, error) { return free.Load(), nil },
	})
	set(t, s, "k", "before")
	free.Store(999)
	now.advance(store.MaxTxAge) // longer than a reading is believed
	tx := begin(t, s)
	tx.Set([]byte("k"), []byte("refused"))
	if err := tx.Commit(t.Context()); !errors.Is(err, store.ErrNoSpace) || store.Retryable(err) {
		t.Errorf("Commit = %v, want %v", err, store.ErrNoSpace)
	}
	if v, err := begin(t, s).Get(t.Context(), []byte("k")); string(v) != "before" || err != nil {
		t.Errorf("Get = %q, %v, want what was there", v, err)
	}
	free.Store(1124) // enough not to refuse, and not to stop refusing
	tx = begin(t, s)
	tx.Set([]byte("k"), []byte("refused"))
	if err := tx.Commit(t.Context()); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("Commit = %v, want %v", err, store.ErrNoSpace)
	}
	free.Store(1125)
	set(t, s, "k", "after") // at once, although no time has passed
}

// However often is tried to commit, the log has a line when space gets short,
// one a minute, and one when there is room again.
func TestNoSpaceIsLoggedOnce(t *testing.T) {
	var free atomic.Uint64
	free.Store(1000)
	var log bytes.Buffer // written by the committer, read after Close
	now := newClock()
	s, err := pebble.Open("data", pebble.Config{
		FS: vfs.NewMem(), MinFree: 1000, Now: now.Now, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		FreeSpace: func() (uint64, error) { return free.Load(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	free.Store(0)
	for range 301 { // five minutes
		tx := begin(t, s)
		tx.Set([]byte("k"), nil)
		if err := tx.Commit(t.Context()); !errors.Is(err, store.ErrNoSpace) {
			t.Fatalf("Commit = %v, want %v", err, store.ErrNoSpace)
		}
		now.advance(time.Second)
	}
	free.Store(2000)
	set(t, s, "k", "v")
	set(t, s, "k", "v")
	mustClose(t, s)
	if n := strings.Count(log.String(), "the disk is nearly full"); n != 6 {
		t.Errorf("%d lines say that space is short, want 6:\n%s", n, log.String())
	}
	if n := strings.Count(log.String(), "there is room on the disk again"); n != 1 {
		t.Errorf("%d lines say that there is room again, want 1", n)
	}
	if n := strings.Count(log.String(), "\n"); n != 7 {
		t.Errorf("%d lines, want 7:\n%s", n, log.String())
	}
}

// Much may be written before the next look at the clock.
func TestNoSpaceIsNoticedWithinWrites(t *testing.T) {
	const room = 1 << 20
	var used atomic.Int64
	now := newClock()
	s := open(t, pebble.Config{
		FS: vfs.NewMem(), MinFree: room, Now: now.Now,
		FreeSpace: func() (uint64, error) { return uint64(2*room - used.Load()), nil },
	})
	value := make([]byte, 10_000)
	var err error
	for err == nil {
		tx := begin(t, s)
		tx.Set([]byte("k"), value)
		if err = tx.Commit(t.Context()); err == nil {
			used.Add(int64(len(value)))
		}
	}
	if !errors.Is(err, store.ErrNoSpace) || used.Load() > room+room/4 {
		t.Errorf("stopped after %d of %d bytes by %v", used.Load(), room, err)
	}
}

// With no room for what the logs hold, a store cannot be opened; it is as it was
// when there is room again.
func TestNoSpaceToOpen(t *testing.T) {
	fs := stored(t)
	before := readFolder(t, fs, "data")
	free := uint64(1 << 10)
	c := pebble.Config{FS: fs, MinFree: 1 << 20, FreeSpace: func() (uint64, error) { return free, nil }}
	if _, err := pebble.Open("data", c); !errors.Is(err, store.ErrNoSpace) || !strings.Contains(err.Error(), "data") {
		t.Fatalf("Open = %v, want %v", err, store.ErrNoSpace)
	}
	if d := cmp.Diff(before, readFolder(t, fs, "data")); d != "" {
		t.Errorf("files changed (-before +after):\n%s", d)
	}
	free = 1 << 20
	s := open(t, c)
	if got := len(contents(t, s)); got != 100 {
		t.Errorf("%d keys, want 100", got)
	}
}

func TestUnknownSpaceIsNoHindrance(t *testing.T) {
	s := open(t, pebble.Config{
		FS:        vfs.NewMem(),
		FreeSpace: func() (uint64, error) { return 0, errors.New("who knows") },
	})
	set(t, s, "k", "v")
}
