//go:build unix

package program

import (
	"strconv"
	"time"
)

// bounded returns a command that runs another one, each of whose processes may have some bytes of
// addresses, write files of some bytes, and use a processor for a time. The shell sets the limits
// before the program begins, so that all of its processes have them.
func bounded(command []string, memory, file int64, busy time.Duration) []string {
	const script = `ulimit -v "$1" && ulimit -f "$2" && ulimit -t "$3" && ulimit -c 0 && shift 3 && exec "$@"`
	const kib, block = 1 << 10, 512 // units of -v, and of -f in POSIX
	return append([]string{
		"/bin/sh", "-c", script, "sh",
		strconv.FormatInt(memory/kib, 10), strconv.FormatInt(file/block+1, 10), strconv.FormatInt(int64(busy/time.Second)+1, 10),
	}, command...)
}
