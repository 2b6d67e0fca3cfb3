package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// temporaryPrefix begins the names of the folders in which results are written before
// they are complete.
const temporaryPrefix = ".coditect-"

// isTemporary matches such a name whole: no other folder is ever removed.
var isTemporary = regexp.MustCompile(`^\.coditect-[a-z2-7]{12}$`)

// lockFolder locks a folder for as long as the file is open that it returns: the system
// ends the lock with the process, however that ends.
func lockFolder(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: path, Err: err}, f.Close())
	}

	// A process that had the lock meanwhile may have removed the folder.
	locked, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Stat(path); err == nil && !os.SameFile(there, locked) {
			err = &fs.PathError{Op: "lock", Path: path, Err: fs.ErrNotExist}
		}
	}

	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Sweep removes the temporary folders in dir whose writers were killed, and returns their
// paths. Those that a process is writing to are locked, and stay.
func Sweep(dir string) (removed []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}

	var failed []error
	for _, e := range entries {
		if !e.IsDir() || !isTemporary.MatchString(e.Name()) {
			continue
		}

		path := filepath.Join(dir, e.Name())
		lock, err := lockFolder(path)
		if err != nil {
			continue // its writer lives, or has just moved it to its place
		}

		if err := errors.Join(os.RemoveAll(path), lock.Close()); err != nil {
			failed = append(failed, err)
			continue
		}

		removed = append(removed, path)
	}
	return removed, errors.Join(failed...)
}
