package cluster_test

import (
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
)

// beginOutageAt has the store go away once an orchestrator passes a point.
func beginOutageAt(f *enginetest.Fleet, p failpoint.Point) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Outage = p
}
