package files

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Register keeps FormatFile up to date while the store is open. Its methods are safe for
// concurrent use.
//
// Each listed log exists whenever the machine may fail: a log is listed after it
// was created durably, and removed from the list durably before it is deleted or
// reused. Each log with a commit in it is listed, because Pebble reports a log
// before it writes to it. So if a listed log is missing, somebody else has removed
// it, perhaps with commits.
type Register struct {
	files  vfs.FS
	folder string

	mu       sync.Mutex
	recorded Format // guarded by mu
}

// NewRegister returns the register of a folder whose file reads as recorded.
func NewRegister(files vfs.FS, folder string, recorded Format) *Register {
	return &Register{files: files, folder: folder, recorded: recorded}
}

// SetState records the state and the version of the last commit.
func (r *Register) SetState(state State, version uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded.State, r.recorded.Version = state, version
	return writeFormat(r.files, r.folder, r.recorded)
}

// Reset records a store without logs.
func (r *Register) Reset(state State) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded = Format{State: state}
	return writeFormat(r.files, r.folder, r.recorded)
}

// AddLog lists a log. If writing the file fails, the next change lists it.
func (r *Register) AddLog(log uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := slices.BinarySearch(r.recorded.Logs, log)
	if found {
		return nil
	}
	r.recorded.Logs = slices.Insert(slices.Clone(r.recorded.Logs), at, log)
	return writeFormat(r.files, r.folder, r.recorded)
}

// removeLog removes a log from the list. If that fails, the log must stay.
func (r *Register) removeLog(log uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	at, found := slices.BinarySearch(r.recorded.Logs, log)
	if !found {
		return nil
	}

	next := r.recorded
	next.Logs = slices.Delete(slices.Clone(next.Logs), at, at+1)
	if err := writeFormat(r.files, r.folder, next); err != nil {
		return err
	}

	r.recorded = next
	return nil
}

const logSuffix = ".log"

// LogNumber returns the number of a log file, if name is that of a log.
func LogNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, logSuffix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

// CheckLogs returns an error if a log is missing that must exist.
func CheckLogs(files vfs.FS, folder string, logs []uint64) error {
	names, err := files.List(folder)
	if err != nil {
		return fmt.Errorf("store/pebble: %w", err)
	}

	there := make(map[uint64]bool)
	for _, name := range names {
		if n, ok := LogNumber(name); ok {
			there[n] = true
		}
	}

	var missing []string
	for _, n := range logs {
		if !there[n] {
			missing = append(missing, files.PathJoin(folder, fmt.Sprintf("%06d%s", n, logSuffix)))
		}
	}

	if len(missing) > 0 {
		return Damaged(strings.Join(missing, ", ") + " is missing, and with it the newest commits")
	}
	return nil
}

// A LoggedFS removes a log from the register before the log is deleted or reused.
type LoggedFS struct {
	vfs.FS
	Register *Register
}

// Remove removes a file. A log stays if its removal cannot be recorded.
func (f LoggedFS) Remove(name string) error {
	if log, ok := LogNumber(f.PathBase(name)); ok {
		if err := f.Register.removeLog(log); err != nil {
			return err
		}
	}
	return f.FS.Remove(name)
}

// ReuseForWrite turns oldName into newName. If that cannot be recorded, it creates
// newName and leaves oldName alone.
func (f LoggedFS) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if log, ok := LogNumber(f.PathBase(oldName)); ok {
		if err := f.Register.removeLog(log); err != nil {
			return f.Create(newName, category)
		}
	}
	return f.FS.ReuseForWrite(oldName, newName, category)
}

// Unwrap returns the underlying file system.
func (f LoggedFS) Unwrap() vfs.FS { return f.FS }
