package collector_test

import (
	"runtime/debug"
	"testing"

	"github.com/coditect/mapreduce/cmd/coditect/internal/collector"
)

// Once the program has begun, memory is collected as it is in any Go program.
func TestBegin(t *testing.T) {
	before := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	if before != -1 {
		t.Errorf("while packages are initialised GOGC is %d", before)
	}

	collector.Begin()
	if got := debug.SetGCPercent(-1); got <= 0 {
		t.Errorf("after Begin GOGC is %d", got)
	}
}
