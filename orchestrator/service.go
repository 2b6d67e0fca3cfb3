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
	o.life.MarkOwnJob(id)

	if fresh := accepted.New; fresh != nil {
		o.scheduler.Grants.SetInitialSlots(id, fresh.Slots)
		o.life.ScheduleJob(ctx, id, fresh.Standing, fresh.Compiled, fresh.Waiting)
	} else if err := o.life.RefreshJob(ctx, id); err != nil { // another orchestrator may have it
		return nil, err
	}

	o.signals.NotifyWatchers(id)
	return o.jobs.View.Job(ctx, id)
}

// ResumeJob implements mapreduce.Service.
func (o *Orchestrator) ResumeJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	return o.life.ResumeJob(mapreduce.WithActor(ctx, by), id, r)
}

// PauseJob implements mapreduce.Service.
func (o *Orchestrator) PauseJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	return o.life.PauseJob(mapreduce.WithActor(ctx, by), id)
}

// CancelJob implements mapreduce.Service.
func (o *Orchestrator) CancelJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	return o.life.CancelJob(mapreduce.WithActor(ctx, by), id)
}

// DeleteJob implements mapreduce.Service.
func (o *Orchestrator) DeleteJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) error {
	return o.life.DeleteJob(mapreduce.WithActor(ctx, by), id)
}

// WakeUnit implements mapreduce.Service.
func (o *Orchestrator) WakeUnit(ctx context.Context, by mapreduce.Principal, job mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	return o.life.WakeUnit(mapreduce.WithActor(ctx, by), job, unit, handle, answer)
}

// GetJob implements mapreduce.Service.
func (o *Orchestrator) GetJob(ctx context.Context, _ mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	return o.reader.GetJob(ctx, id)
}

// ListJobs implements mapreduce.Service.
func (o *Orchestrator) ListJobs(ctx context.Context, _ mapreduce.Principal, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	return o.reader.ListJobs(ctx, q)
}

// WatchJob implements mapreduce.Service. Changes made here are seen at once,
// those of other orchestrators within a second.
func (o *Orchestrator) WatchJob(ctx context.Context, _ mapreduce.Principal, id mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	return o.reader.WatchJob(ctx, id, fn)
}

// ListUnits implements mapreduce.Service.
func (o *Orchestrator) ListUnits(ctx context.Context, _ mapreduce.Principal, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	return o.reader.ListUnits(ctx, q)
}

// ReadText implements mapreduce.Service.
func (o *Orchestrator) ReadText(ctx context.Context, _ mapreduce.Principal, job mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error {
	return o.reader.ReadText(ctx, job, unit, document, sink)
}

// ListEvents implements mapreduce.Service.
func (o *Orchestrator) ListEvents(ctx context.Context, _ mapreduce.Principal, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	return o.reader.ListEvents(ctx, q)
}

// CheckStore implements mapreduce.Service.
func (o *Orchestrator) CheckStore(ctx context.Context, _ mapreduce.Principal, q mapreduce.CheckQuery, found func(mapreduce.Finding) error) error {
	return o.reader.CheckStore(ctx, q, found)
}

// AnswerCache implements mapreduce.Service.
func (o *Orchestrator) AnswerCache(ctx context.Context, _ mapreduce.Principal, t mapreduce.TenantID, forget bool) (*mapreduce.AnswerCache, error) {
	return o.reader.AnswerCache(ctx, t, forget)
}

// TenantUse implements mapreduce.Service.
func (o *Orchestrator) TenantUse(ctx context.Context, _ mapreduce.Principal, t mapreduce.TenantID) (*mapreduce.TenantUse, error) {
	return o.reader.TenantUse(ctx, t)
}

// AdmitCall lets a call of a tenant through, or refuses it as errs.Exhausted if the tenant
// has made as many in this minute as its quota allows.
func (o *Orchestrator) AdmitCall(ctx context.Context, t mapreduce.TenantID) error {
	return o.calls.Admit(ctx, t)
}

// TenantOf returns the tenant of a job, or errs.NotFound.
func (o *Orchestrator) TenantOf(ctx context.Context, id mapreduce.JobID) (mapreduce.TenantID, error) {
	ctl, err := o.jobs.View.Control(ctx, id)
	if err != nil {
		return "", err
	}
	return ctl.Tenant, nil
}
