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
// Each listed log exists whenever the machine may fail: a log is listed after it
// was created durably, and removed from the list durably before it is deleted or
// reused. Each log with a commit in it is listed, because Pebble reports a log
// before it writes to it. So if a listed log is missing, somebody else has removed
// it, perhaps with commits.
type logRegister struct {
	files  vfs.FS
	folder string

	mu       sync.Mutex
	recorded format // guarded by mu
}

// setState records the state and the version of the last commit.
func (r *logRegister) setState(state formatState, version uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded.state, r.recorded.version = state, version
	return writeFormat(r.files, r.folder, r.recorded)
}

// reset records a store without logs.
func (r *logRegister) reset(state formatState) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded = format{state: state}
	return writeFormat(r.files, r.folder, r.recorded)
}

// addLog lists a log. If writing the file fails, the next change lists it.
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

// removeLog removes a log from the list. If that fails, the log must stay.
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

// logNumber returns the number of a log file, if name is that of a log.
func logNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, logSuffix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

// A loggedFS removes a log from the register before the log is deleted or reused.
type loggedFS struct {
	vfs.FS
	register *logRegister
}

// Remove removes a file. A log stays if its removal cannot be recorded.
func (f loggedFS) Remove(name string) error {
	if log, ok := logNumber(f.PathBase(name)); ok {
		if err := f.register.removeLog(log); err != nil {
			return err
		}
	}
	return f.FS.Remove(name)
}

// ReuseForWrite turns oldName into newName. If that cannot be recorded, it creates
// newName and leaves oldName alone.
func (f loggedFS) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if log, ok := logNumber(f.PathBase(oldName)); ok {
		if err := f.register.removeLog(log); err != nil {
			return f.Create(newName, category)
		}
	}
	return f.FS.ReuseForWrite(oldName, newName, category)
}

// Unwrap returns the underlying file system.
func (f loggedFS) Unwrap() vfs.FS { return f.FS }
