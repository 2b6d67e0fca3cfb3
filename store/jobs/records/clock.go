package records

import "time"

// A Clock is the clock of a node, for what people see and for pauses.
type Clock struct {
	now   func() time.Time
	began int64 // when the node began, as NowMicros gives it
}

// NowMicros returns the time of the node's clock, in microseconds since 1970.
func (clock *Clock) NowMicros() int64 { return clock.now().UnixMicro() }

// PauseEnd returns when a pause is over that begins now, as it is stored.
func (clock *Clock) PauseEnd(d time.Duration) (micros int64) {
	return clock.NowMicros() + d.Microseconds()
}

// PauseLeft returns what is left of a pause that lasts d and is over at endMicros by the clock
// of the node that wrote it. A clock that is wrong can make a pause shorter, and never longer.
func (clock *Clock) PauseLeft(d time.Duration, endMicros int64) time.Duration {
	if endMicros == 0 {
		return d // nothing says when it ends
	}
	return min(d, max(0, time.Duration(endMicros-clock.NowMicros())*time.Microsecond))
}

// SleepLeft returns how much longer a unit sleeps that this node sees for the first time,
// with a pause as PauseLeft takes it. If the pause began after this node, the node has seen
// it begin, and all of d is left. Otherwise the time that has passed is taken off: units
// would never go on where nodes go down more often than a pause lasts.
func (clock *Clock) SleepLeft(d time.Duration, endMicros int64) time.Duration {
	if endMicros-d.Microseconds() >= clock.began {
		return d
	}
	return clock.PauseLeft(d, endMicros)
}
