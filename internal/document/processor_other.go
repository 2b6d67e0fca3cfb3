//go:build !linux

package document

import "time"

// processorTime returns a clock that says how much time has passed: that includes time in
// which others had the processor, of which no common call of other systems tells.
func processorTime() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}
