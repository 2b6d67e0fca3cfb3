package pebble

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A logRegister keeps formatFile up to date while the store is open.
//
// Each log that it lists is there, at every moment at which the machine may
// fail: a log is listed after it was made durably, and struck out durably before
// it is removed or becomes another. And each log with a commit in it is listed,
// for Pebble tells of a log before it writes to it. So a listed log that is
// missing was taken away by somebody else, perhaps with commits.
type logRegister struct {
	files  vfs.FS
	folder string

	mu       sync.Mutex
	recorded format // guarded by mu
}

// setState writes the state and the version of the last commit.
func (r *logRegister) setState(state formatState, version uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded.state, r.recorded.version = state, version
	return writeFormat(r.files, r.folder, r.recorded)
}

// reset begins a store that has no log.
func (r *logRegister) reset(state formatState) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded = format{state: state}
	return writeFormat(r.files, r.folder, r.recorded)
}

// addLog adds a log. If that fails, the log is added with the next change.
func (r *logRegister) addLog(log uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := slices.BinarySearch(r.recorded.logs, log)
	if found {
		return nil
	}
	r.recorded.logs = slices.Insert(slices.Clone(r.recorded.logs), at, log)
	return writeFormat(r.files, r.folder, r.recorded)
}

// removeLog takes a log off the list. If that fails, the log must stay.
func (r *logRegister) removeLog(log uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := slices.BinarySearch(r.recorded.logs, log)
	if !found {
		return nil
	}
	next := r.recorded
	next.logs = slices.Delete(slices.Clone(next.logs), at, at+1)
	if err := writeFormat(r.files, r.folder, next); err != nil {
		return err
	}
	r.recorded = next
	return nil
}

const logSuffix = ".log"

// logNumber returns the number of the log that a file is, if it is one.
func logNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, logSuffix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

// A loggedFS tells a register of the logs that go.
type loggedFS struct {
	vfs.FS
	register *logRegister
}

// Remove removes a file. A log whose removal cannot be written down stays.
func (f loggedFS) Remove(name string) error {
	if log, ok := logNumber(f.PathBase(name)); ok {
		if err := f.register.removeLog(log); err != nil {
			return err
		}
	}
	return f.FS.Remove(name)
}

// ReuseForWrite makes newName out of oldName, or apart from it if that cannot be
// written down.
func (f loggedFS) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if log, ok := logNumber(f.PathBase(oldName)); ok {
		if err := f.register.removeLog(log); err != nil {
			return f.Create(newName, category)
		}
	}
	return f.FS.ReuseForWrite(oldName, newName, category)
}

// Unwrap returns the file system below.
func (f loggedFS) Unwrap() vfs.FS { return f.FS }
