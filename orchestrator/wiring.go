package orchestrator

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/dispatch"
	"github.com/coditect/mapreduce/store/jobs/nodes"
)

// lookAtTrees has the trees of all jobs looked at as a whole.
func (o *Orchestrator) lookAtTrees() {
	for _, id := range o.scheduler.Running() {
		o.signals.RequestTreeLook(id)
		o.signals.MarkDue(id)
	}
}

// askForGrants asks for what others have given back.
func (o *Orchestrator) askForGrants() {
	o.scheduler.Grants.MarkCallsDue()
	for _, id := range o.scheduler.Running() {
		o.signals.MarkDue(id)
	}
}

// expireSession gives back what a session holds whose worker is lost.
func (o *Orchestrator) expireSession(ctx context.Context, s nodes.SessionRef, running map[protocol.Held]bool) error {
	return o.fleet.Losses.Expire(ctx, s, running)
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

// MaxTransfers is how many blobs a session may get at once, and how many it may put.
const MaxTransfers = dispatch.MaxTransfers

// Work implements protocol.Fleet.
func (o *Orchestrator) Work(ctx context.Context, stream protocol.WorkStream) error {
	return o.fleet.Work(ctx, stream)
}

// GetBlob implements protocol.Fleet.
func (o *Orchestrator) GetBlob(ctx context.Context, q *protocol.BlobRequest, take func([]byte) error) error {
	return o.fleet.GetBlob(ctx, q, take)
}

// PutBlob implements protocol.Fleet.
func (o *Orchestrator) PutBlob(ctx context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	return o.fleet.PutBlob(ctx, q, next)
}
