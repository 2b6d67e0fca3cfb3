package orchestrator

import (
	"context"
	"iter"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// The methods of this file believe their callers: package access stands before them and
// decides who may call them.

// SubmitJob implements mapreduce.Service.
func (o *Orchestrator) SubmitJob(ctx context.Context, by mapreduce.Principal, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	ctx = mapreduce.WithActor(ctx, by)
	accepted, err := o.intake.SubmitJob(ctx, spec, docs)
	if err != nil {
		return nil, err
	}
	id := accepted.Job
	o.life.Roster.Add(id)

	if fresh := accepted.New; fresh != nil {
		o.scheduler.Grants.SetInitialSlots(id, fresh.Slots)
		o.life.Roster.ScheduleJob(ctx, id, fresh.Standing, fresh.Compiled, fresh.Waiting)
	} else if err := o.life.Roster.Refresh(ctx, id); err != nil { // another orchestrator may have it
		return nil, err
	}

	o.signals.NotifyWatchers(id)
	return o.jobs.View.Job(ctx, id)
}

// PlanJob implements mapreduce.Service.
func (o *Orchestrator) PlanJob(ctx context.Context, _ mapreduce.Principal, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
	p, err := ingestConfig(&o.config, nil).PlanJob(ctx, q, docs)
	if err != nil || p.Deadline.IsZero() {
		return p, err
	}
	p.Turnarounds, err = o.jobs.Batches.Turnarounds(ctx, q.Spec.Provider+"/"+q.Spec.Model)
	return p, err
}
