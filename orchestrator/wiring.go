package orchestrator

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/fleet"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// clusterHost is what an orchestrator does when others come and go.
type clusterHost struct{ o *Orchestrator }

// LookAtTrees implements cluster.Host.
func (h clusterHost) LookAtTrees() {
	for _, id := range h.o.fleet.LookAtTrees() {
		h.o.signals.MarkDue(id)
	}
}

// GrantsFreed implements cluster.Host.
func (h clusterHost) GrantsFreed() {
	h.o.scheduler.Grants.MarkCallsDue()
	for _, id := range h.o.scheduler.Running() {
		h.o.signals.MarkDue(id)
	}
}

// News implements cluster.Host.
func (h clusterHost) News() nodes.News { return h.o.signals.Feeds.News() }

// HearNews implements cluster.Host.
func (h clusterHost) HearNews(news map[mapreduce.NodeID]nodes.News) {
	for _, id := range h.o.signals.Feeds.Hear(time.Now(), news) {
		h.o.signals.WakeWatchers(id)
	}
}

// ExpireSession implements cluster.Host.
func (h clusterHost) ExpireSession(ctx context.Context, s nodes.SessionRef, running map[mapreduce.Held]bool) error {
	return h.o.fleet.ExpireSession(ctx, s, running)
}

// initialSlots is how many of a new job's slots this node is granted at once: all if it is
// alone, else those that its workers have. No other node has any yet, and it saves a commit
// before the first claim.
func (o *Orchestrator) initialSlots(spec *mapreduce.JobSpec) int64 {
	all := int64(spec.Parallelism)
	if o.members.IsOnlyNode() {
		return all
	}
	return min(all, o.scheduler.Sessions.SlotsFor(spec))
}

// lifeScheduler is the scheduler of an orchestrator with what the life of jobs needs
// beside it.
type lifeScheduler struct {
	*schedule.Scheduler
	o *Orchestrator
}

// ScheduleJob implements lifecycle.Scheduler.
func (l lifeScheduler) ScheduleJob(ctx context.Context, id mapreduce.JobID, st *records.Standing, compiled *jobspec.Compiled, waiting []records.Candidate) {
	l.o.scheduleJob(ctx, id, st, compiled, waiting)
}

// DropUnits implements lifecycle.Scheduler.
func (l lifeScheduler) DropUnits(id mapreduce.JobID) { l.o.scheduler.Sessions.DropUnits(id) }

// AdjustGrants implements lifecycle.Scheduler.
func (l lifeScheduler) AdjustGrants(ctx context.Context, id mapreduce.JobID) error {
	return l.o.grants.Adjust(ctx, id)
}

// MaxTransfers is how many blobs a session may get at once, and how many it may put.
const MaxTransfers = fleet.MaxTransfers

// Work implements mapreduce.Fleet.
func (o *Orchestrator) Work(ctx context.Context, stream mapreduce.WorkStream) error {
	return o.fleet.Work(ctx, stream)
}

// GetBlob implements mapreduce.Fleet.
func (o *Orchestrator) GetBlob(ctx context.Context, q *mapreduce.BlobRequest, take func([]byte) error) error {
	return o.fleet.Transfers.GetBlob(ctx, q, take)
}

// PutBlob implements mapreduce.Fleet.
func (o *Orchestrator) PutBlob(ctx context.Context, q *mapreduce.BlobRequest, next func() ([]byte, error)) (*mapreduce.BlobStored, error) {
	return o.fleet.Transfers.PutBlob(ctx, q, next)
}
