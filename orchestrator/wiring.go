package orchestrator

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs"
)

// clusterHost is what an orchestrator does when others come and go.
type clusterHost struct{ o *Orchestrator }

// LookAtTrees implements cluster.Host.
func (h clusterHost) LookAtTrees() {
	for _, id := range h.o.inheritAll() {
		h.o.signals.MarkDue(id)
	}
}

// GrantsFreed implements cluster.Host.
func (h clusterHost) GrantsFreed() {
	h.o.scheduler.callsChange()
	for _, id := range h.o.scheduler.runningJobs() {
		h.o.signals.MarkDue(id)
	}
}

// ExpireSession implements cluster.Host.
func (h clusterHost) ExpireSession(ctx context.Context, s jobs.SessionRef, running map[mapreduce.Held]bool) error {
	return h.o.expireSession(ctx, s, running)
}
