package worker

import (
	"context"
	"time"
)

// A deadline is the time that a running attempt has left, and what ends it. When the time is
// over its timer calls what start was given: to interrupt the attempt, and after that, once its
// grace is over, to give it up. The session's lock guards a deadline.
type deadline struct {
	end   context.CancelCauseFunc // ends the context of the attempt
	limit time.Duration           // from its start
	timer *time.Timer             // nil before the attempt is started

	interrupted bool // the context has ended before the agent returned
	paused      bool // the time stands still: the attempt waits for its turn at the processor
}

// start has the time of an attempt begin; expired is called in a goroutine of its own.
func (d *deadline) start(limit time.Duration, expired func()) {
	d.limit = limit
	d.timer = time.AfterFunc(limit, expired)
}

// restart gives the attempt its whole time anew, unless it was interrupted.
func (d *deadline) restart() {
	if !d.interrupted {
		d.paused = false
		d.timer.Reset(d.limit)
	}
}

// pause has the time stand still until restart, unless the attempt was interrupted.
func (d *deadline) pause() {
	if !d.interrupted {
		d.paused = true
		d.timer.Stop()
	}
}

// extend gives the attempt another time from now on, unless it was interrupted.
func (d *deadline) extend(limit time.Duration) {
	if !d.interrupted {
		d.timer.Reset(limit)
	}
}

// interrupt ends the context of the attempt, and allows it a grace period. Only the first
// interruption counts.
func (d *deadline) interrupt(why error, grace time.Duration) {
	if !d.interrupted {
		d.interrupted = true
		d.end(why)
		d.timer.Reset(grace)
	}
}

// stop ends the context of an attempt that is over, and its timer. Of one that was never
// started there is neither.
func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.end(errOver)
	}
}
