package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Machine describes where a run takes place, as far as figures depend on it.
func Machine() string {
	return fmt.Sprintf("%d cores, %s/%s, %s, load average %s",
		runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH, runtime.Version(), LoadAverage())
}

// LoadAverage returns how many processes wanted to run, on average of the last one, five and
// fifteen minutes.
func LoadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

// courtesy is how much lower the priority of a process is that yields to others.
const courtesy = 5

// YieldToOthers lowers the priority of all threads of this process, and of those that they start:
// the processors that it needs say nothing about what it asks others for.
func YieldToOthers() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}

	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, courtesy); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// Allocations returns how many objects this process has allocated.
func Allocations() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}

// ProcessorTime returns what this process has used of the processors.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ResidentMemory returns the memory that this process takes of the machine once it
// has given back what it does not need, in bytes.
func ResidentMemory() (int64, error) {
	debug.FreeOSMemory()
	return ProcNumber("/proc/self/status", "VmRSS:", 1024)
}

// BytesRead returns what this process has read from files, cached or not.
func BytesRead() (int64, error) { return ProcNumber("/proc/self/io", "rchar:", 1) }

// ProcNumber returns the number that a file of /proc has in a field, times scale.
func ProcNumber(file, field string, scale int64) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}

	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			var n int64
			_, err := fmt.Sscan(rest, &n)
			return n * scale, err
		}
	}

	return 0, fmt.Errorf("%s has no field %s", file, field)
}

// FolderSize returns the bytes of all files under dir. Files that go away
// meanwhile count nothing.
func FolderSize(dir string) (int64, error) {
	size := int64(0)
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				size += info.Size()
			}
		}

		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})

	return size, err
}
