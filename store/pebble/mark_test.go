package pebble_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
	"github.com/coditect/mapreduce/store/pebble/internal/files"
)

const mark = "CODITECT_SYNCED"

// damagedEnds are what happens to the end of a file, of which nothing else tells that it
// is not the end.
var damagedEnds = map[string]func(b []byte) []byte{
	"cut short by a byte": func(b []byte) []byte { return b[:len(b)-1] },
	"cut in half":         func(b []byte) []byte { return b[:len(b)/2] },
	"emptied":             func([]byte) []byte { return nil },
	"zeroed at its end":   func(b []byte) []byte { clear(b[len(b)-500:]); return b },
	"zeroed from half on": func(b []byte) []byte { clear(b[len(b)/2:]); return b },
	"with a flipped bit":  func(b []byte) []byte { b[len(b)-300] ^= 4; return b },
}

// What the newest log of a killed process has lost is missed, by those who only look too,
// and nothing is touched. Pebble itself takes the damage for the end of the log.
func TestDamagedLogOfAKilledStore(t *testing.T) {
	left := killedStore(t, 80)
	held := readFolder(t, left, "data")
	name := nameWith(t, held, ".log")
	for what, damage := range damagedEnds {
		t.Run(what, func(t *testing.T) {
			writeFile(t, left, "data/"+name, string(damage([]byte(held[name]))))
			before := readFolder(t, left, "data")
			for _, readOnly := range []bool{false, true} {
				s, err := pebble.Open("data", pebble.Config{FS: left, ReadOnly: readOnly})
				if err == nil {
					t.Errorf("of 80 keys that were acknowledged, %d are there, and nothing is said of it", len(contents(t, s)))
					mustClose(t, s)
				} else if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "up to 80 were acknowledged") || !strings.Contains(err.Error(), "backup") {
					t.Errorf("Open = %v, want %v, with what is lost and advice", err, store.ErrCorrupt)
				}
			}
			if d := cmp.Diff(before, readFolder(t, left, "data")); d != "" {
				t.Errorf("files changed (-before +after):\n%s", d)
			}
		})
	}
	writeFile(t, left, "data/"+name, held[name])
	if got := len(contents(t, open(t, pebble.Config{FS: left}))); got != 80 {
		t.Errorf("with the whole log there are %d keys, want 80", got)
	}
}

// What the manifest of a killed process has lost is missed as well: the tables that its
// last records name are gone, while the log is whole and has the newest version.
func TestDamagedManifestOfAKilledStore(t *testing.T) {
	const keys = 400 // memory holds a third of them at most, so that the others are in tables
	left := flushedStore(t, keys)
	held := readFolder(t, left, "data")
	name := nameWith(t, held, "MANIFEST-")
	damages := map[string]func(b []byte) []byte{
		"cut short by a byte": func(b []byte) []byte { return b[:len(b)-1] },
		"cut in half":         func(b []byte) []byte { return b[:len(b)/2] },
		"zeroed at its end":   func(b []byte) []byte { clear(b[len(b)-30:]); return b },
		"garbled at its end":  func(b []byte) []byte { copy(b[len(b)-30:], "garbage garbage garbage garbage"); return b },
		"with a flipped bit":  func(b []byte) []byte { b[len(b)-20] ^= 4; return b },
	}
	for what, damage := range damages {
		t.Run(what, func(t *testing.T) {
			writeFile(t, left, "data/"+name, string(damage([]byte(held[name]))))
			before := readFolder(t, left, "data")
			for _, readOnly := range []bool{true, false} {
				s, err := pebble.Open("data", pebble.Config{FS: left, ReadOnly: readOnly})
				if err == nil {
					t.Errorf("of %d keys that were acknowledged, %d are there, and nothing is said of it", keys, len(contents(t, s)))
					mustClose(t, s)
				} else if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes were synced", len(held[name]))) || !strings.Contains(err.Error(), "backup") {
					t.Errorf("Open = %v, want %v, with what is damaged and advice", err, store.ErrCorrupt)
				}
			}
			if d := cmp.Diff(before, readFolder(t, left, "data")); d != "" {
				t.Errorf("files changed (-before +after):\n%s", d)
			}
		})
	}
	writeFile(t, left, "data/"+name, held[name]+"a record that was being written")
	if got := len(contents(t, open(t, pebble.Config{FS: left}))); got != keys {
		t.Errorf("with the whole manifest there are %d keys, want %d", got, keys)
	}
}

// A log that is cut after the files were checked, and before the store is open, is missed
// as well, then and at every later time.
func TestLogThatIsCutWhileTheStoreIsOpened(t *testing.T) {
	left := killedStore(t, 80)
	held := readFolder(t, left, "data")
	name := nameWith(t, held, ".log")
	opened := 0
	cutting := openHookFS{FS: left, beforeOpen: func(path string) {
		if !strings.HasSuffix(path, name) {
			return
		}
		if opened++; opened == 2 { // the first time it is checked
			writeFile(t, left, path, held[name][:len(held[name])/2])
		}
	}}
	for range 2 {
		s, err := pebble.Open("data", pebble.Config{FS: cutting})
		if err == nil {
			t.Errorf("of 80 keys that were acknowledged, %d are there, and nothing is said of it", len(contents(t, s)))
			mustClose(t, s)
		} else if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "up to 80 were acknowledged") {
			t.Errorf("Open = %v, want %v, with what is lost", err, store.ErrCorrupt)
		}
	}
	if opened < 2 {
		t.Errorf("the log was opened %d times only", opened)
	}
}

// An openHookFS calls beforeOpen with the name of each file that is about to be opened for
// reading.
type openHookFS struct {
	vfs.FS
	beforeOpen func(name string)
}

func (f openHookFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f.beforeOpen(name)
	return f.FS.Open(name, o...)
}

// flushedStore returns the disk of a process that was killed when it had written most of
// its keys to tables.
func flushedStore(t *testing.T, keys int) *vfs.MemFS {
	t.Helper()
	disk := vfs.NewCrashableMem()
	s := open(t, pebble.Config{FS: disk, MemTableSize: 32 << 10})
	for i := range keys {
		set(t, s, fmt.Sprint(i), strings.Repeat("v", 1000))
	}
	for { // tables are still being written, so the last record of the manifest may not be synced yet
		left := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		if isManifestMarked(t, left) {
			return left
		}
	}
}

// isManifestMarked reports whether all of a store's manifest is marked as synced. What is
// not may be lost without damage: the logs still have what it names.
func isManifestMarked(t *testing.T, disk vfs.FS) bool {
	t.Helper()
	held := readFolder(t, disk, "data")
	name := nameWith(t, held, "MANIFEST-")
	number, _ := files.ManifestNumber(name)
	marked, err := files.ReadMark(disk, "data")
	if err != nil {
		t.Fatal(err)
	}
	return marked.LengthOf(number) == uint64(len(held[name]))
}

// The mark itself proves nothing that it does not hold: a store with an older mark, a
// torn one or none is whole, and its next commits are marked again.
func TestMarksThatAreLost(t *testing.T) {
	blank := func(b []byte, from, to int) []byte { clear(b[from:to]); return b }
	tests := map[string]func(b []byte) []byte{
		"the first slot is torn":  func(b []byte) []byte { return blank(b, 0, 4096) },
		"the second slot is torn": func(b []byte) []byte { return blank(b, 4096, len(b)) },
		"both are":                func(b []byte) []byte { return blank(b, 0, len(b)) },
		"it is cut short":         func(b []byte) []byte { return b[:4] },
		"it is garbage":           func([]byte) []byte { return bytes.Repeat([]byte("garbage"), 5000) },
		"it is gone":              nil,
	}
	for name, lose := range tests {
		t.Run(name, func(t *testing.T) {
			left := killedStore(t, 80)
			if lose == nil {
				if err := left.Remove("data/" + mark); err != nil {
					t.Fatal(err)
				}
			} else {
				writeFile(t, left, "data/"+mark, string(lose([]byte(readFolder(t, left, "data")[mark]))))
			}
			s := open(t, pebble.Config{FS: left})
			if got := len(contents(t, s)); got != 80 {
				t.Errorf("%d keys, want 80", got)
			}
			for _, key := range []string{"x", "y"} { // a slot each
				set(t, s, key, "")
			}
			killed := left.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
			held := readFolder(t, killed, "data")
			log := nameWith(t, held, ".log")
			writeFile(t, killed, "data/"+log, held[log][:len(held[log])/2])
			if _, err := pebble.Open("data", pebble.Config{FS: killed}); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("the next commits are lost without a word: Open = %v", err)
			}
		})
	}
}

// A commit is marked before it is acknowledged, and not before it is synced.
func TestWhenCommitsAreMarked(t *testing.T) {
	gate := newLogGate()
	fs := gate.fs()
	s := open(t, pebble.Config{FS: fs})
	set(t, s, "a", "")
	before := readFolder(t, fs, "data")[mark]
	gate.mu.Lock()
	done := make(chan error, 1)
	tx := begin(t, s)
	tx.Set([]byte("b"), nil)
	go func() { done <- tx.Commit(t.Context()) }()
	<-gate.held
	if now := readFolder(t, fs, "data")[mark]; now != before {
		t.Error("it is marked while its sync is under way")
	}
	gate.mu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if now := readFolder(t, fs, "data")[mark]; now == before {
		t.Error("it is acknowledged and not marked")
	}
}

// A mark that cannot be written is said once, and stops no commit.
func TestMarksThatCannotBeWritten(t *testing.T) {
	var broken atomic.Bool
	var log bytes.Buffer
	s := open(t, pebble.Config{
		FS: unmarkableFS{FS: vfs.NewMem(), broken: &broken}, Now: newClock().Now,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	broken.Store(true)
	for _, key := range []string{"a", "b", "c"} {
		set(t, s, key, "")
	}
	mustClose(t, s)
	if n := strings.Count(log.String(), "cannot be marked"); n != 1 || !strings.Contains(log.String(), "no blocks") {
		t.Errorf("%d lines say it, want 1:\n%s", n, log.String())
	}
}

// An unmarkableFS writes no marks while it is broken.
type unmarkableFS struct {
	vfs.FS
	broken *atomic.Bool
}

func (f unmarkableFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name, c, o...)
	if err != nil || !strings.HasSuffix(name, mark) {
		return file, err
	}
	return unmarkable{File: file, broken: f.broken}, nil
}

type unmarkable struct {
	vfs.File
	broken *atomic.Bool
}

func (f unmarkable) WriteAt(b []byte, at int64) (int, error) {
	if f.broken.Load() {
		return 0, errors.New("no blocks are left")
	}
	return f.File.WriteAt(b, at)
}
