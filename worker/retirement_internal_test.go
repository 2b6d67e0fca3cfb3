package worker

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRetirement: a session is idle once it drains and holds nothing, and gives up waiting for
// verdicts when nothing has run and nobody was there for as long as it waits.
func TestRetirement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := retirement{idle: make(chan struct{})}
		check := func(when string, idle, waited bool, lost time.Time) {
			t.Helper()
			if r.isIdle() != idle || r.hasWaited(lost) != waited {
				t.Errorf("%s: idle %t, has waited %t; want %t and %t", when, r.isIdle(), r.hasWaited(lost), idle, waited)
			}
		}
		long := time.Now()

		r.note(0, 0)
		<-time.After(time.Hour)
		check("before it drains", false, false, long)

		r.draining = true
		r.note(1, 2)
		<-time.After(time.Hour)
		check("something runs", false, false, long)

		r.note(0, 2)
		check("nothing runs any more", false, false, long)
		<-time.After(verdictWait)
		check("verdicts have not come", false, true, long)
		check("an orchestrator was there just now", false, false, time.Now())

		r.note(0, 0)
		check("nothing is held", true, true, long)
		r.note(0, 0) // does not close it again
	})
}
