package embedded

import "syscall"

const (
	// storeFiles are the files that a store may have open, beside those of its tables,
	// and what else a process opens: logs, sockets, connections to models.
	storeFiles = 128
	// leastConnections are taken however few files a process may open.
	leastConnections = 8
)

// maxConnections returns how many connections of other processes a node takes: fewer
// than the files that the process may open, as a store that cannot open its next log
// ends the process. tables are the files that the store keeps open of its tables.
func maxConnections(tables int) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<20 {
		limit.Cur = 1 << 20
	}
	files := int(limit.Cur)
	return max(leastConnections, files-tables-storeFiles-files/16)
}
