package pebble

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A privateFS is the file system of the operating system. What it creates only the
// owner can read and write.
type privateFS struct {
	vfs.FS
	readOnly bool // a folder that cannot be written to can be locked nonetheless
}

const (
	privateFile   = 0o600
	privateFolder = 0o700
)

// makePrivate takes the permissions of others from a file. A file system without
// permissions refuses that, and there is nothing to protect.
func makePrivate(name string) { _ = os.Chmod(name, privateFile) }

// Create creates a file.
func (f privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	if err == nil {
		makePrivate(name)
	}
	return file, err
}

// OpenReadWrite opens a file, and creates it if necessary.
func (f privateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name, category, opts...)
	if err == nil {
		makePrivate(name)
	}
	return file, err
}

// ReuseForWrite turns oldname into newname.
func (f privateFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(oldname, newname, category)
	if err == nil {
		makePrivate(newname)
	}
	return file, err
}

// MkdirAll creates a folder and those above it.
func (f privateFS) MkdirAll(dir string, _ os.FileMode) error {
	return f.FS.MkdirAll(dir, privateFolder)
}

// Lock locks a file, and creates it if necessary. If only reading is allowed, the lock
// is shared with other readers, and excludes those that write.
func (f privateFS) Lock(name string) (io.Closer, error) {
	lock, err := f.FS.Lock(name)
	switch {
	case err == nil:
		makePrivate(name)
	case f.readOnly && isUnwritable(err):
		return lockShared(name)
	}
	return lock, err
}

// Unwrap returns the underlying file system.
func (f privateFS) Unwrap() vfs.FS { return f.FS }

// isUnwritable reports whether err means that a file may not be created or written.
func isUnwritable(err error) bool {
	path := (*fs.PathError)(nil)
	return errors.As(err, &path) && (errors.Is(path, fs.ErrPermission) || errors.Is(path, syscall.EROFS))
}

// lockShared locks a file that can only be read. Without the file nobody holds a lock.
func lockShared(name string) (io.Closer, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(nil), nil
	}
	if err != nil {
		return nil, err
	}

	lock := syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &lock); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// makeFilesPrivate takes the permissions of others from the files of a store that was
// made without this care.
func (s *Store) makeFilesPrivate() error {
	names, err := s.config.FS.List(s.folder)
	for _, name := range names {
		path := s.config.FS.PathJoin(s.folder, name)
		info, statErr := os.Lstat(path)
		if ofStore(name) && statErr == nil && info.Mode().IsRegular() && info.Mode().Perm()&^privateFile != 0 {
			makePrivate(path)
		}
	}
	return err
}
