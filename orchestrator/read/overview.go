package read

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/scaler"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/store/jobs"
)

// An Overview answers how the servers, the workers and the store stand. Its methods believe their
// callers, and are safe for concurrent use.
type Overview struct{ parts OverviewParts }

// OverviewParts are what an Overview asks. All of them must be set.
type OverviewParts struct {
	Jobs       *jobs.Jobs
	Scheduler  *schedule.Scheduler
	Members    *cluster.Membership
	Supervisor *cluster.Supervisor
	Scaler     *scaler.Scaler
	// Opened closes once this orchestrator moves jobs.
	Opened <-chan struct{}
}

// NewOverview returns what answers how a fleet stands.
func NewOverview(p OverviewParts) *Overview { return &Overview{parts: p} }

// FleetStatus implements mapreduce.Service: what this orchestrator sees, and the workers of
// others as the store has them.
func (v *Overview) FleetStatus(ctx context.Context, _ mapreduce.Principal) (*mapreduce.FleetStatus, error) {
	status := &mapreduce.FleetStatus{Node: v.parts.Jobs.Node(), Time: time.Now()}
	var write time.Duration
	status.Servers, write = v.parts.Members.Servers()

	var err error
	if status.Store, err = v.storeStatus(ctx, write); err != nil {
		return nil, err
	}
	if status.Workers, status.MoreWorkers, err = v.workerStatuses(ctx); err != nil {
		return nil, err
	}
	seen := v.parts.Scheduler.Snapshot()
	if status.Tenants, err = v.tenantQueues(ctx, seen.Tenants); err != nil {
		return nil, err
	}

	for _, m := range seen.Models {
		status.Models = append(status.Models, mapreduce.ModelStatus{Name: m.Name, BreakerOpen: m.BreakerOpen, Pause: m.Pause, Calls: m.Calls, Rates: m.Rates})
	}
	return status, nil
}

// storeStatus reads a little, to see how long that takes.
func (v *Overview) storeStatus(ctx context.Context, write time.Duration) (mapreduce.StoreStatus, error) {
	n := v.parts.Jobs.DB().Stats()
	status := mapreduce.StoreStatus{
		Answers: v.parts.Supervisor.StoreAnswers(), Full: v.parts.Jobs.IsFull(), Write: write, Commits: n.Commits.Load(), Reads: n.Reads.Load(),
		Conflicts: n.Conflicts.Load(), TooOld: n.TooOld.Load(), Unknown: n.Unknown.Load(),
	}

	begun := time.Now()
	err := v.readLittle(ctx)
	status.Read = time.Since(begun)
	return status, err
}

// workerStatuses returns the workers of this orchestrator with what it knows of them, and behind
// them those of others; and how many are left out.
func (v *Overview) workerStatuses(ctx context.Context) (all []mapreduce.WorkerStatus, more int64, err error) {
	all = v.parts.Scheduler.Sessions.Statuses()
	slices.SortFunc(all, func(a, b mapreduce.WorkerStatus) int { return cmp.Compare(a.Session, b.Session) })
	here := make(map[mapreduce.SessionID]int, len(all))
	for i := range all {
		here[all[i].Session] = i
		all[i].Node = v.parts.Jobs.Node()
	}

	// The store has them in the order of their ids.
	var after mapreduce.SessionID
	for {
		page, further, err := v.parts.Jobs.Nodes.Sessions(ctx, after, mapreduce.MaxShownWorkers)
		if err != nil {
			return nil, 0, err
		}

		for _, ref := range page {
			after = ref.Session
			if i, known := here[ref.Session]; known {
				all[i].Node = ref.Node
				continue
			}
			all = append(all, mapreduce.WorkerStatus{Session: ref.Session, Node: ref.Node, Embedded: ref.Embedded})
		}
		if !further {
			break
		}
	}

	if n := len(all) - mapreduce.MaxShownWorkers; n > 0 {
		return all[:mapreduce.MaxShownWorkers], int64(n), nil
	}
	return all, 0, nil
}

// tenantQueues returns what waits of each tenant that has jobs which may run.
func (v *Overview) tenantQueues(ctx context.Context, seen []schedule.TenantQueue) ([]mapreduce.TenantQueue, error) {
	queues := make(map[mapreduce.TenantID]mapreduce.TenantQueue)
	for _, t := range seen {
		queues[t.Tenant] = mapreduce.TenantQueue{Tenant: t.Tenant, Jobs: int64(t.Jobs), Age: t.Age}
	}

	demand, err := v.parts.Scaler.Demand(ctx, mapreduce.Principal{})
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "count the units that could run: %w", err)
	}
	for _, d := range demand {
		q := queues[d.Tenant]
		q.Tenant, q.Running, q.Ready = d.Tenant, q.Running+d.Running, q.Ready+max(0, d.Units-d.Running)
		queues[d.Tenant] = q
	}

	return slices.SortedFunc(maps.Values(queues), func(a, b mapreduce.TenantQueue) int { return cmp.Compare(a.Tenant, b.Tenant) }), nil
}

// CheckStoreAnswers returns an error if the store does not answer: neither the latest signs
// of life nor a small read, which ends with ctx.
func (v *Overview) CheckStoreAnswers(ctx context.Context) error {
	select {
	case <-v.parts.Opened:
	default:
		return errs.New(errs.Unavailable, "the orchestrator has not begun: it waits for the store, or for others that hold it")
	}

	if !v.parts.Supervisor.StoreAnswers() {
		return errs.New(errs.Unavailable, "the store does not answer signs of life")
	}

	if err := v.readLittle(ctx); err != nil {
		return errs.New(errs.Unavailable, "the store does not answer a read: %w", err)
	}
	return nil
}

// CountWorkers returns how many workers have a stream to this orchestrator.
func (v *Overview) CountWorkers() int { return v.parts.Scheduler.Sessions.Count() }

// readLittle reads one key of the store.
func (v *Overview) readLittle(ctx context.Context) error {
	_, _, err := v.parts.Jobs.Nodes.Epoch(ctx, "health")
	return err
}
