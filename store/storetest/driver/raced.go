//go:build race

package driver

// flushDelay keeps deletions in memory: hours of virtual time pass in moments, so that they would
// be flushed over and over; and with the race detector Pebble notes the stack of whoever reads a
// table, each time, which took up to two fifths of the time of tests.
const flushDelay = -1
