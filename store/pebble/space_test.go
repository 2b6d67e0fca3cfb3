package pebble_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

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
	free.Store(1000)
	set(t, s, "k", "after") // at once, although no time has passed
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

func TestUnknownSpaceIsNoHindrance(t *testing.T) {
	s := open(t, pebble.Config{
		FS:        vfs.NewMem(),
		FreeSpace: func() (uint64, error) { return 0, errors.New("who knows") },
	})
	set(t, s, "k", "v")
}
