package servertest

import (
	"context"
	"iter"

	"github.com/coditect/mapreduce/api/mapreduce"
)

var _ mapreduce.Client = Client{}

// A Client is a service as one principal sees it, without an edge between them.
type Client struct {
	Service mapreduce.Service
	By      mapreduce.Principal
}

// SubmitJob implements mapreduce.Client.
func (c Client) SubmitJob(ctx context.Context, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	return c.Service.SubmitJob(ctx, c.By, spec, docs)
}

// PlanJob implements mapreduce.Client.
func (c Client) PlanJob(ctx context.Context, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
	return c.Service.PlanJob(ctx, c.By, q, docs)
}

// GetJob implements mapreduce.Client.
func (c Client) GetJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return c.Service.GetJob(ctx, c.By, id)
}

// ListJobs implements mapreduce.Client.
func (c Client) ListJobs(ctx context.Context, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	return c.Service.ListJobs(ctx, c.By, q)
}

// WatchJob implements mapreduce.Client.
func (c Client) WatchJob(ctx context.Context, id mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	return c.Service.WatchJob(ctx, c.By, id, fn)
}

// ResumeJob implements mapreduce.Client.
func (c Client) ResumeJob(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	return c.Service.ResumeJob(ctx, c.By, id, r)
}

// MarkCause implements mapreduce.Client.
func (c Client) MarkCause(ctx context.Context, id mapreduce.JobID, cause string, state mapreduce.CauseState) (*mapreduce.Job, error) {
	return c.Service.MarkCause(ctx, c.By, id, cause, state)
}

// PauseJob implements mapreduce.Client.
func (c Client) PauseJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return c.Service.PauseJob(ctx, c.By, id)
}

// CancelJob implements mapreduce.Client.
func (c Client) CancelJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return c.Service.CancelJob(ctx, c.By, id)
}

// DeleteJob implements mapreduce.Client.
func (c Client) DeleteJob(ctx context.Context, id mapreduce.JobID) error {
	return c.Service.DeleteJob(ctx, c.By, id)
}

// ListUnits implements mapreduce.Client.
func (c Client) ListUnits(ctx context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	return c.Service.ListUnits(ctx, c.By, q)
}

// WakeUnit implements mapreduce.Client.
func (c Client) WakeUnit(ctx context.Context, job mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	return c.Service.WakeUnit(ctx, c.By, job, unit, handle, answer)
}

// ReadText implements mapreduce.Client.
func (c Client) ReadText(ctx context.Context, job mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error {
	return c.Service.ReadText(ctx, c.By, job, unit, document, sink)
}

// GetResult implements mapreduce.Client.
func (c Client) GetResult(ctx context.Context, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	return c.Service.GetResult(ctx, c.By, id, partial, sink)
}

// DecideValue implements mapreduce.Client.
func (c Client) DecideValue(ctx context.Context, d mapreduce.NewDecision) (*mapreduce.Decision, error) {
	return c.Service.DecideValue(ctx, c.By, d)
}

// ListDecisions implements mapreduce.Client.
func (c Client) ListDecisions(ctx context.Context, q mapreduce.ListDecisionsQuery) (*mapreduce.DecisionPage, error) {
	return c.Service.ListDecisions(ctx, c.By, q)
}

// ListWaiting implements mapreduce.Client.
func (c Client) ListWaiting(ctx context.Context, q mapreduce.ListWaitingQuery) (*mapreduce.WaitingPage, error) {
	return c.Service.ListWaiting(ctx, c.By, q)
}

// ClaimRecords implements mapreduce.Client.
func (c Client) ClaimRecords(ctx context.Context, claim mapreduce.Claim) ([]mapreduce.RecordClaim, error) {
	return c.Service.ClaimRecords(ctx, c.By, claim)
}

// ListEvents implements mapreduce.Client.
func (c Client) ListEvents(ctx context.Context, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	return c.Service.ListEvents(ctx, c.By, q)
}

// AnswerCache implements mapreduce.Client.
func (c Client) AnswerCache(ctx context.Context, t mapreduce.TenantID, forget bool) (*mapreduce.AnswerCache, error) {
	return c.Service.AnswerCache(ctx, c.By, t, forget)
}

// SumCosts implements mapreduce.Client.
func (c Client) SumCosts(ctx context.Context, q mapreduce.CostQuery) (*mapreduce.CostSums, error) {
	return c.Service.SumCosts(ctx, c.By, q)
}

// ListCertificates implements mapreduce.Client.
func (c Client) ListCertificates(ctx context.Context, t mapreduce.TenantID) ([]mapreduce.Certificate, error) {
	return c.Service.ListCertificates(ctx, c.By, t)
}

// DropCertificate implements mapreduce.Client.
func (c Client) DropCertificate(ctx context.Context, t mapreduce.TenantID, id mapreduce.CertificateID) error {
	return c.Service.DropCertificate(ctx, c.By, t, id)
}

// TenantUse implements mapreduce.Client.
func (c Client) TenantUse(ctx context.Context, t mapreduce.TenantID) (*mapreduce.TenantUse, error) {
	return c.Service.TenantUse(ctx, c.By, t)
}

// Caller implements mapreduce.Client.
func (c Client) Caller(ctx context.Context) (*mapreduce.Principal, error) {
	return c.Service.Caller(ctx, c.By)
}

// CheckStore implements mapreduce.Client.
func (c Client) CheckStore(ctx context.Context, q mapreduce.CheckQuery, found func(mapreduce.Finding) error) error {
	return c.Service.CheckStore(ctx, c.By, q, found)
}

// FleetStatus implements mapreduce.Client.
func (c Client) FleetStatus(ctx context.Context) (*mapreduce.FleetStatus, error) {
	return c.Service.FleetStatus(ctx, c.By)
}
