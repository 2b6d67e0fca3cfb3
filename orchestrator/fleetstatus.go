package orchestrator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/schedule"
)

// FleetStatus implements mapreduce.Service: what this orchestrator sees, and the workers of
// others as the store has them.
func (o *Orchestrator) FleetStatus(ctx context.Context, _ mapreduce.Principal) (*mapreduce.FleetStatus, error) {
	f := &mapreduce.FleetStatus{Node: o.jobs.Node(), Time: time.Now()}
	var write time.Duration
	f.Servers, write = o.members.Servers()

	var err error
	if f.Store, err = o.storeStatus(ctx, write); err != nil {
		return nil, err
	}
	if f.Workers, f.MoreWorkers, err = o.workerStatuses(ctx); err != nil {
		return nil, err
	}
	seen := o.scheduler.Snapshot()
	if f.Tenants, err = o.tenantQueues(ctx, seen.Tenants); err != nil {
		return nil, err
	}

	for _, m := range seen.Models {
		f.Models = append(f.Models, mapreduce.ModelStatus{Name: m.Name, BreakerOpen: m.BreakerOpen, Pause: m.Pause, Calls: m.Calls, Rates: m.Rates})
	}
	return f, nil
}

// storeStatus reads a little, to see how long that takes.
func (o *Orchestrator) storeStatus(ctx context.Context, write time.Duration) (mapreduce.StoreStatus, error) {
	n := o.jobs.DB().Stats()
	s := mapreduce.StoreStatus{
		Answers: o.supervisor.StoreAnswers(), Full: o.jobs.IsFull(), Write: write, Commits: n.Commits.Load(), Reads: n.Reads.Load(),
		Conflicts: n.Conflicts.Load(), TooOld: n.TooOld.Load(), Unknown: n.Unknown.Load(),
	}

	begun := time.Now()
	_, _, err := o.jobs.Nodes.Epoch(ctx, "health")
	s.Read = time.Since(begun)
	return s, err
}

// workerStatuses returns the workers of this orchestrator with what it knows of them, and behind
// them those of others; and how many are left out.
func (o *Orchestrator) workerStatuses(ctx context.Context) (all []mapreduce.WorkerStatus, more int64, err error) {
	all = o.scheduler.Sessions.Statuses()
	slices.SortFunc(all, func(a, b mapreduce.WorkerStatus) int { return cmp.Compare(a.Session, b.Session) })
	here := make(map[mapreduce.SessionID]int, len(all))
	for i := range all {
		here[all[i].Session] = i
		all[i].Node = o.jobs.Node()
	}

	// The store has them in the order of their ids.
	var after mapreduce.SessionID
	for {
		page, further, err := o.jobs.Nodes.Sessions(ctx, after, mapreduce.MaxShownWorkers)
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
func (o *Orchestrator) tenantQueues(ctx context.Context, seen []schedule.TenantQueue) ([]mapreduce.TenantQueue, error) {
	queues := make(map[mapreduce.TenantID]mapreduce.TenantQueue)
	for _, t := range seen {
		queues[t.Tenant] = mapreduce.TenantQueue{Tenant: t.Tenant, Jobs: int64(t.Jobs), Age: t.Age}
	}

	demand, err := o.Scaler.Demand(ctx, mapreduce.Principal{})
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
