package orchestrator

import (
	"context"
	"iter"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// SubmitJob implements mapreduce.Service.
func (o *Orchestrator) SubmitJob(ctx context.Context, by mapreduce.Principal, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	if err := o.access.UseTenant(by, spec.Tenant); err != nil {
		return nil, err
	}
	return o.intake.SubmitJob(ctx, spec, docs)
}

// ResumeJob implements mapreduce.Service.
func (o *Orchestrator) ResumeJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	if err := o.access.UseJob(ctx, by, id); err != nil {
		return nil, err
	}
	return o.life.ResumeJob(ctx, id, r)
}

// PauseJob implements mapreduce.Service.
func (o *Orchestrator) PauseJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	if err := o.access.UseJob(ctx, by, id); err != nil {
		return nil, err
	}
	return o.life.PauseJob(ctx, id)
}

// CancelJob implements mapreduce.Service.
func (o *Orchestrator) CancelJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	if err := o.access.UseJob(ctx, by, id); err != nil {
		return nil, err
	}
	return o.life.CancelJob(ctx, id)
}

// DeleteJob implements mapreduce.Service.
func (o *Orchestrator) DeleteJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) error {
	if err := o.access.UseJob(ctx, by, id); err != nil {
		return err
	}
	return o.life.DeleteJob(ctx, id)
}

// WakeUnit implements mapreduce.Service.
func (o *Orchestrator) WakeUnit(ctx context.Context, by mapreduce.Principal, job mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	if err := o.access.UseJob(ctx, by, job); err != nil {
		return nil, err
	}
	return o.life.WakeUnit(ctx, job, unit, handle, answer)
}

// GetJob implements mapreduce.Service.
func (o *Orchestrator) GetJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	if err := o.access.UseJob(ctx, by, id); err != nil {
		return nil, err
	}
	return o.reader.GetJob(ctx, id)
}

// ListJobs implements mapreduce.Service.
func (o *Orchestrator) ListJobs(ctx context.Context, by mapreduce.Principal, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	var err error
	if q.Tenant, err = o.access.ListedTenant(by, q.Tenant); err != nil {
		return nil, err
	}
	return o.reader.ListJobs(ctx, q)
}

// WatchJob implements mapreduce.Service. Changes made here are seen at once,
// those of other orchestrators within a second.
func (o *Orchestrator) WatchJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	if err := o.access.UseJob(ctx, by, id); err != nil {
		return err
	}
	return o.reader.WatchJob(ctx, id, fn)
}

// ListUnits implements mapreduce.Service.
func (o *Orchestrator) ListUnits(ctx context.Context, by mapreduce.Principal, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	if err := o.access.UseJob(ctx, by, q.Job); err != nil {
		return nil, err
	}
	return o.reader.ListUnits(ctx, q)
}

// ReadText implements mapreduce.Service.
func (o *Orchestrator) ReadText(ctx context.Context, by mapreduce.Principal, job mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error {
	if err := o.access.UseJob(ctx, by, job); err != nil {
		return err
	}
	return o.reader.ReadText(ctx, job, unit, document, sink)
}

// ListEvents implements mapreduce.Service.
func (o *Orchestrator) ListEvents(ctx context.Context, by mapreduce.Principal, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	if err := o.access.UseJob(ctx, by, q.Job); err != nil {
		return nil, err
	}
	return o.reader.ListEvents(ctx, q)
}

// CheckStore implements mapreduce.Service.
func (o *Orchestrator) CheckStore(ctx context.Context, by mapreduce.Principal, found func(mapreduce.Finding) error) error {
	if err := o.access.UseStore(by); err != nil {
		return err
	}
	return o.reader.CheckStore(ctx, found)
}

// AnswerCache implements mapreduce.Service.
func (o *Orchestrator) AnswerCache(ctx context.Context, by mapreduce.Principal, t mapreduce.TenantID, forget bool) (*mapreduce.AnswerCache, error) {
	if err := o.access.UseTenant(by, t); err != nil {
		return nil, err
	}
	return o.reader.AnswerCache(ctx, t, forget)
}
