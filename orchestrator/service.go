package orchestrator

import (
	"context"
	"iter"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// SubmitJob implements mapreduce.Service.
func (o *Orchestrator) SubmitJob(ctx context.Context, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	return o.intake.SubmitJob(ctx, spec, docs)
}

// ResumeJob implements mapreduce.Service.
func (o *Orchestrator) ResumeJob(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	return o.life.ResumeJob(ctx, id, r)
}

// PauseJob implements mapreduce.Service.
func (o *Orchestrator) PauseJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return o.life.PauseJob(ctx, id)
}

// CancelJob implements mapreduce.Service.
func (o *Orchestrator) CancelJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return o.life.CancelJob(ctx, id)
}

// DeleteJob implements mapreduce.Service.
func (o *Orchestrator) DeleteJob(ctx context.Context, id mapreduce.JobID) error {
	return o.life.DeleteJob(ctx, id)
}

// WakeUnit implements mapreduce.Service.
func (o *Orchestrator) WakeUnit(ctx context.Context, job mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	return o.life.WakeUnit(ctx, job, unit, handle, answer)
}

// GetJob implements mapreduce.Service.
func (o *Orchestrator) GetJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return o.reader.GetJob(ctx, id)
}

// ListJobs implements mapreduce.Service.
func (o *Orchestrator) ListJobs(ctx context.Context, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	return o.reader.ListJobs(ctx, q)
}

// WatchJob implements mapreduce.Service. Changes made here are seen at once,
// those of other orchestrators within a second.
func (o *Orchestrator) WatchJob(ctx context.Context, id mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	return o.reader.WatchJob(ctx, id, fn)
}

// ListUnits implements mapreduce.Service.
func (o *Orchestrator) ListUnits(ctx context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	return o.reader.ListUnits(ctx, q)
}

// ListEvents implements mapreduce.Service.
func (o *Orchestrator) ListEvents(ctx context.Context, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	return o.reader.ListEvents(ctx, q)
}

// CheckStore implements mapreduce.Service.
func (o *Orchestrator) CheckStore(ctx context.Context, found func(mapreduce.Finding) error) error {
	return o.reader.CheckStore(ctx, found)
}

// AnswerCache implements mapreduce.Service.
func (o *Orchestrator) AnswerCache(ctx context.Context, t mapreduce.TenantID, forget bool) (*mapreduce.AnswerCache, error) {
	return o.reader.AnswerCache(ctx, t, forget)
}
