//go:build !unix

package program

import "time"

// bounded returns the command as it is: there are no limits of processes, and only the clock and
// the size of the result bound it.
func bounded(command []string, _, _ int64, _ time.Duration) []string { return command }
