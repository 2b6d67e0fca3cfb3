package pebble_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a store that is closed when the test ends.
func open(t testing.TB, c pebble.Config) *pebble.Store {
	t.Helper()
	s, err := pebble.Open("data", c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, s) })
	return s
}

func mustClose(t testing.TB, s *pebble.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func begin(t testing.TB, s store.Store) store.Tx {
	t.Helper()
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tx.Discard)
	return tx
}

// write commits a transaction that fn fills.
func write(t testing.TB, s store.Store, fn func(tx store.Tx)) store.Versionstamp {
	t.Helper()
	tx := begin(t, s)
	fn(tx)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	stamp, err := tx.Versionstamp()
	if err != nil {
		t.Fatal(err)
	}
	return stamp
}

func set(t testing.TB, s store.Store, key, value string) {
	t.Helper()
	write(t, s, func(tx store.Tx) { tx.Set([]byte(key), []byte(value)) })
}

// contents returns everything that s holds.
func contents(t testing.TB, s store.Store) map[string]string {
	t.Helper()
	pairs, _, err := begin(t, s).GetRange(t.Context(), store.Range{End: []byte("\xff")}, store.RangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string, len(pairs))
	for _, p := range pairs {
		all[string(p.Key)] = string(p.Value)
	}
	return all
}

// A clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A hookFS calls beforeSync with the name of each file or folder that is about
// to be synced. The sync fails if it returns an error. If beforeChange is not
// nil, it is called before a file is made, renamed or removed.
type hookFS struct {
	vfs.FS
	beforeSync   func(name string) error
	beforeChange func()
}

func (f hookFS) change() {
	if f.beforeChange != nil {
		f.beforeChange()
	}
}

func (f hookFS) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return hookFile{File: file, before: func() error { return f.beforeSync(name) }}, nil
}

func (f hookFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f.change()
	file, err := f.FS.Create(name, c)
	return f.wrap(name, file, err)
}

func (f hookFS) Remove(name string) error {
	f.change()
	return f.FS.Remove(name)
}

func (f hookFS) Rename(oldName, newName string) error {
	f.change()
	return f.FS.Rename(oldName, newName)
}

func (f hookFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	return f.wrap(name, file, err)
}

func (f hookFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f.change()
	file, err := f.FS.OpenReadWrite(name, c, o...)
	return f.wrap(name, file, err)
}

func (f hookFS) ReuseForWrite(oldName, newName string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f.change()
	file, err := f.FS.ReuseForWrite(oldName, newName, c)
	return f.wrap(newName, file, err)
}

type hookFile struct {
	vfs.File
	before func() error
}

func (f hookFile) Sync() error {
	if err := f.before(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f hookFile) SyncData() error {
	if err := f.before(); err != nil {
		return err
	}
	return f.File.SyncData()
}

func (f hookFile) SyncTo(length int64) (bool, error) {
	if err := f.before(); err != nil {
		return false, err
	}
	return f.File.SyncTo(length)
}

// A logGate holds up syncs of Pebble's log while it is shut.
type logGate struct {
	mu   sync.RWMutex // held for writing while shut
	held chan struct{}
}

func newLogGate() *logGate { return &logGate{held: make(chan struct{}, 1000)} }

func (g *logGate) fs() vfs.FS {
	return hookFS{FS: vfs.NewMem(), beforeSync: func(name string) error {
		if !strings.HasSuffix(name, ".log") {
			return nil
		}
		if !g.mu.TryRLock() {
			g.held <- struct{}{}
			g.mu.RLock()
		}
		g.mu.RUnlock()
		return nil
	}}
}

// readFolder returns the files of a folder of disk, but for the lock, which holds
// nothing, and for what an open store removes meanwhile.
func readFolder(t testing.TB, disk vfs.FS, folder string) map[string]string {
	t.Helper()
	names, err := disk.List(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, name := range names {
		if name == "LOCK" {
			continue
		}
		f, err := disk.Open(disk.PathJoin(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// nameWith returns the last name among files that begins or ends with part.
func nameWith(t testing.TB, files map[string]string, part string) string {
	t.Helper()
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(files))) {
		if strings.HasPrefix(name, part) || strings.HasSuffix(name, part) {
			return name
		}
	}
	t.Fatalf("no file is named like %q", part)
	return ""
}

func writeFile(t testing.TB, fs vfs.FS, name, text string) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
