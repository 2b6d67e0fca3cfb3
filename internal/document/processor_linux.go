package document

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns a clock that says for how long the thread of the caller has had a
// processor since. Any thread may read the clock, as long as that of the caller lives.
func processorTime() func() time.Duration {
	// The clock of a thread, as the kernel numbers it (include/linux/posix-timers_types.h).
	const ofThread, scheduled = 4, 2
	clock := int32(^unix.Gettid()<<3 | ofThread | scheduled)

	begin, wall := readClock(clock), time.Now()
	return func() time.Duration {
		if begin < 0 { // a kernel without such clocks
			return time.Since(wall)
		}
		return readClock(clock) - begin
	}
}

// readClock returns what a clock of the kernel says, or a negative time if there is none.
func readClock(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return -1
	}
	return time.Duration(t.Nano())
}
