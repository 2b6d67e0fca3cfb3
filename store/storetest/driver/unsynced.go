package driver

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

// OpenLarge is as Open, and has what it keeps on a disk: for tests that store more than fits in memory. No commit waits for
// the disk, so that a crash of the machine would lose some.
func OpenLarge(t testing.TB) store.Store {
	t.Helper()
	if s, found := openCluster(t); found {
		return s
	}
	return openEmbedded(t, t.TempDir(), pebble.Config{FS: unsynced{vfs.Default}})
}

// An unsynced file system says at once that what was written is on the disk.
type unsynced struct{ vfs.FS }

// Create implements vfs.FS.
func (fs unsynced) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return hasty(fs.FS.Create(name, c))
}

// OpenReadWrite implements vfs.FS.
func (fs unsynced) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return hasty(fs.FS.OpenReadWrite(name, c, opts...))
}

// OpenDir implements vfs.FS.
func (fs unsynced) OpenDir(name string) (vfs.File, error) { return hasty(fs.FS.OpenDir(name)) }

// ReuseForWrite implements vfs.FS.
func (fs unsynced) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return hasty(fs.FS.ReuseForWrite(from, to, c))
}

// A hastyFile waits for no disk.
type hastyFile struct{ vfs.File }

func hasty(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return hastyFile{f}, nil
}

// Sync implements vfs.File.
func (hastyFile) Sync() error { return nil }

// SyncData implements vfs.File.
func (hastyFile) SyncData() error { return nil }

// SyncTo implements vfs.File.
func (hastyFile) SyncTo(int64) (fullSync bool, err error) { return false, nil }
