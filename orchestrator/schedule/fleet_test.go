package schedule_test

import (
	"time"

	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
)

// unhurried are settings for tests that last for hours of virtual time: what is done at
// intervals is done a hundred times as seldom as with steady.
func unhurried() orchestrator.Config {
	c := enginetest.Steady()
	c.Heartbeat, c.Beat, c.Lease, c.Grace = 20*time.Second, 20*time.Second, 5*time.Minute, 5*time.Minute
	c.Poll, c.Seal = 20*time.Second, 10*time.Second
	return c
}
