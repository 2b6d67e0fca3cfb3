package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A PrivateFS is the file system of the operating system. What it creates only the
// owner can read and write.
type PrivateFS struct {
	vfs.FS
	ReadOnly bool // a folder that cannot be written to can be locked nonetheless
}

// The modes of what a PrivateFS creates.
const (
	PrivateFile   = 0o600
	PrivateFolder = 0o700
)

// MakePrivate takes the permissions of others from a file. A file system without
// permissions refuses that, and there is nothing to protect.
func MakePrivate(name string) { _ = os.Chmod(name, PrivateFile) }

// Create creates a file.
func (f PrivateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	if err == nil {
		MakePrivate(name)
	}
	return file, err
}

// OpenReadWrite opens a file, and creates it if necessary.
func (f PrivateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name, category, opts...)
	if err == nil {
		MakePrivate(name)
	}
	return file, err
}

// ReuseForWrite turns oldname into newname.
func (f PrivateFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(oldname, newname, category)
	if err == nil {
		MakePrivate(newname)
	}
	return file, err
}

// MkdirAll creates a folder and those above it.
func (f PrivateFS) MkdirAll(dir string, _ os.FileMode) error {
	return f.FS.MkdirAll(dir, PrivateFolder)
}

// Lock locks a file, and creates it if necessary. If only reading is allowed, the lock
// is shared with other readers, and excludes those that write.
func (f PrivateFS) Lock(name string) (io.Closer, error) {
	lock, err := f.FS.Lock(name)
	switch {
	case err == nil:
		MakePrivate(name)
	case f.ReadOnly && isUnwritable(err):
		return lockShared(name)
	}
	return lock, err
}

// Unwrap returns the underlying file system.
func (f PrivateFS) Unwrap() vfs.FS { return f.FS }

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
