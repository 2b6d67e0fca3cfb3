// Package collector keeps the garbage collector away while the program's packages are
// initialised: what they allocate then, some 12 MB of tables and patterns, stays until the
// program ends, so three collections in that time find nothing and take as long as all
// else of a short command. It imports nothing of the project, so that Go initialises it
// early.
package collector

import "runtime/debug"

// percent is what the user has set by GOGC, or Go's own 100.
var percent = debug.SetGCPercent(-1)

// Begin lets the collector work as the user has set it. The first line of main calls it.
func Begin() { debug.SetGCPercent(percent) }
