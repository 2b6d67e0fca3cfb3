//go:build !race

package driver

// flushDelay is that of the store: without the race detector what is flushed is cheaper to read
// than what was overwritten and is still in memory.
const flushDelay = 0
