package orchestrator_test

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
)

// attemptsAtPeak returns the attempts at units of a job that ran when most did.
func attemptsAtPeak(c *enginetest.Counter, id mapreduce.JobID) []mapreduce.Held {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return c.AtPeak[id]
}

// killAt has the orchestrator die that passes a point next.
func killAt(f *enginetest.Fleet, p failpoint.Point) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Fatal = p
}
