package child

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory returns how many bytes a process and all that it started hold for themselves.
// Memory that programs share, such as their code, is not counted. It returns 0 if the
// process is gone.
func Memory(pid int) int64 {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}

	children := make(map[int][]int)
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}

		// The name of the program, in brackets, may hold anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], id)
		}
	}

	// The children of children are added to the list while it is worked off.
	sum, left := int64(0), []int{pid}
	for len(left) > 0 {
		id := left[0]
		left = append(left[1:], children[id]...)
		sum += ownMemory(id)
	}

	return sum
}

// ownMemory returns the bytes that one process holds for itself.
func ownMemory(pid int) (sum int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}

	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		if name != "RssAnon" && name != "VmSwap" {
			continue
		}

		if kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil {
			sum += kib << 10
		}
	}

	return sum
}
